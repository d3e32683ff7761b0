# The image: one binary, the certificate authorities, a configuration. `docker compose up` (compose.yaml) runs two of it on a
# PostgreSQL and a Redis. `scripts/prove-image` reads this file and does the same steps where there is no container engine.

FROM rust:1.95-bookworm AS build
WORKDIR /src
# Builds the dependencies in a layer of their own: the packages have no code yet. Docker repeats it only after a change of a manifest.
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY crates/agent/Cargo.toml crates/agent/
COPY crates/build-once/Cargo.toml crates/build-once/
COPY crates/gateway/Cargo.toml crates/gateway/
COPY crates/playground/Cargo.toml crates/playground/
RUN for package in agent build-once gateway playground; do mkdir -p crates/$package/src && touch crates/$package/src/lib.rs; done \
    && mkdir -p src examples/played_slack benches crates/agent/examples \
    && for main in src/main.rs examples/played_slack/main.rs benches/agent.rs crates/agent/examples/mcp.rs; do echo 'fn main() {}' >"$main"; done \
    && cargo build --profile dist --locked -p countersign
COPY crates crates
COPY src src
COPY templates templates
COPY migrations migrations
COPY samples samples
# Newer than the build of the empty packages; otherwise cargo would keep that build.
RUN touch src/main.rs crates/*/build.rs crates/*/src/lib.rs && cargo build --profile dist --locked -p countersign && mkdir data

# The same Debian, for its C library. Nothing is installed: the program is linked with that library alone.
FROM debian:bookworm-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/dist/countersign /usr/local/bin/countersign
COPY deploy/config.yaml /etc/countersign/config.yaml
# The only place that is written to; the rest may be read-only.
COPY --from=build --chown=10001:10001 /src/data /data
VOLUME /data
WORKDIR /data
USER 10001:10001
EXPOSE 8080
# With what bash has built in: the image needs no client for this.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && read -r -t 2 status <&3 && [[ $status == *' 200 '* ]]"]
ENTRYPOINT ["/usr/local/bin/countersign"]
CMD ["serve", "--config", "/etc/countersign/config.yaml"]

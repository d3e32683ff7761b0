# The image: one binary, the certificate authorities, a configuration. `docker compose up` (compose.yaml) runs two of it on a
# PostgreSQL and a Redis. `scripts/prove-image` reads this file and does the same steps where there is no container engine.

FROM rust:1.95-bookworm AS build
WORKDIR /src
# The dependencies in a layer of their own, which is made again only when they change: a package without any code needs them all.
COPY Cargo.toml Cargo.lock ./
COPY crates/agent/Cargo.toml crates/agent/
COPY crates/playground/Cargo.toml crates/playground/
RUN mkdir -p src crates/agent/src crates/playground/src examples/played_slack benches \
    && touch src/lib.rs crates/agent/src/lib.rs crates/playground/src/lib.rs \
    && for main in src/main.rs examples/played_slack/main.rs benches/agent.rs; do echo 'fn main() {}' >"$main"; done \
    && cargo build --release --locked
COPY build.rs ./
COPY crates crates
COPY src src
COPY templates templates
COPY migrations migrations
COPY samples samples
# Younger than what was built from the empty package, or cargo would take them for it.
RUN touch build.rs src/lib.rs src/main.rs crates/agent/build.rs crates/agent/src/lib.rs crates/playground/src/lib.rs && cargo build --release --locked && mkdir data

# The same Debian, for its C library. Nothing is installed: the program is linked with that library alone.
FROM debian:bookworm-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/release/countersign /usr/local/bin/countersign
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

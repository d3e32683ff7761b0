//! Where a proxy is the only way out, connections go through it, by TLS from end to end.

use super::{ANSWER, answerer, ask, broken_and_back, opens, over_sockets, stands};
use crate::support::platform::{On, on_either};
use crate::support::process::Process;
use crate::support::proxy::Proxy;
use crate::support::tls_front::TlsFront;
use crate::support::world::World;

const CREDENTIALS: &str = "ann:pw-canary-0123456789";

on_either! {
    connections_go_through_the_proxy,
    a_proxy_gets_its_credentials,
    a_proxy_that_refuses_is_told,
    no_proxy_is_kept,
}

/// A platform that is reached by TLS alone.
struct Outside {
    world: World,
    front: TlsFront,
}

impl Outside {
    /// `None` means that nothing here makes certificates.
    async fn start(on: On) -> Option<Self> {
        let world = World::without_gateway(on, &over_sockets(on, &[]), answerer).await;
        let there = base(&world)
            .strip_prefix("http://")
            .unwrap()
            .split('/')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let front = TlsFront::start(world.folder.path(), there).await?;
        Some(Self { world, front })
    }

    /// The real binary, for which the platform is at `host`. `https` and `none` are `HTTPS_PROXY` and `NO_PROXY`.
    fn serve(&mut self, host: &str, https: String, none: &str) -> Process {
        let base = base(&self.world);
        let path = base.strip_prefix("http://").unwrap().split_once('/').map_or("", |(_, path)| path);
        self.world
            .set(&[("CHAT__BASE_URL", format!("https://{host}/{path}").trim_end_matches('/'))]);
        let variables = [
            ("HTTPS_PROXY", https),
            ("NO_PROXY", none.to_owned()),
            ("SSL_CERT_FILE", self.front.certificate.display().to_string()),
        ];
        let process = Process::start_with(self.world.folder.path(), self.world.settings(), &variables);
        self.world.reach(&process.base);
        process
    }
}

/// `base_url` of the platform.
fn base(world: &World) -> String {
    let key = world.on.setting("CHAT__BASE_URL");
    let (_, base) = world.settings().iter().find(|(known, _)| *known == key).unwrap();
    base.clone()
}

/// interface (I), reach §0: the call for an address and the connection itself go through the proxy of `HTTPS_PROXY`.
async fn connections_go_through_the_proxy(on: On) {
    let Some(outside) = Outside::start(on).await else { return };
    go_through(outside, None).await;
}

/// interface (I), reach §0: they do so with the proxy's name and password, which the log does not tell.
async fn a_proxy_gets_its_credentials(on: On) {
    let Some(outside) = Outside::start(on).await else { return };
    go_through(outside, Some(CREDENTIALS)).await;
}

async fn go_through(mut outside: Outside, credentials: Option<&str>) {
    let proxy = Proxy::start(outside.front.addr, credentials).await;
    let name = credentials.map(|credentials| format!("{credentials}@")).unwrap_or_default();
    let process = outside.serve("platform.test", format!("http://{name}{}", proxy.addr), "");
    let world = outside.world;
    opens(&world, 2).await;
    for name in ["p1", "p2"] {
        ask(&world, name).await;
        world.hears(world.on.direct(name), ANSWER).await;
        broken_and_back(&world).await;
    }
    let asked = proxy.asked();
    assert!(
        asked.len() >= 7,
        "three times two connections, and at least one for calls: {asked:?}"
    );
    for tunnel in asked {
        assert_eq!(tunnel, (String::from("platform.test:443"), true));
    }
    assert!(!process.log().contains("canary"), "{}", process.log());
    world.end().await;
}

/// F-E8: a proxy that wants a name and a password which it does not get: `/readyz` says that there is no connection.
async fn a_proxy_that_refuses_is_told(on: On) {
    let Some(mut outside) = Outside::start(on).await else { return };
    let proxy = Proxy::start(outside.front.addr, Some(CREDENTIALS)).await;
    let process = outside.serve("platform.test", format!("http://ann:wrong-canary@{}", proxy.addr), "");
    stands(&outside.world, "degraded", "no connection to ").await;
    assert!(proxy.asked().iter().all(|(_, opened)| !opened));
    assert!(!process.log().contains("canary"), "{}", process.log());
    outside.world.end().await;
}

/// reach §0: a platform that `NO_PROXY` names is reached without the proxy.
async fn no_proxy_is_kept(on: On) {
    let Some(mut outside) = Outside::start(on).await else { return };
    let proxy = Proxy::start(outside.front.addr, None).await;
    let host = format!("0.0.0.0:{}", outside.front.addr.port());
    let _process = outside.serve(&host, format!("http://{}", proxy.addr), "0.0.0.0");
    let world = outside.world;
    opens(&world, 2).await;
    ask(&world, "p1").await;
    world.hears(on.direct("p1"), ANSWER).await;
    assert_eq!(proxy.asked(), []);
    world.end().await;
}

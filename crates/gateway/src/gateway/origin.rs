//! Where a request comes from, by its headers: the name that it asked for, and the page that sent it.

use std::net::Ipv4Addr;

use axum::http::{HeaderMap, HeaderName, header};

/// Is the Host one of this machine's own names? The port does not count: it may be forwarded, and a foreign name with our
/// port is as foreign as any.
pub(super) fn local_host(headers: &HeaderMap) -> bool {
    let Some(host) = text(headers, &header::HOST) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    // An address cannot be made to point elsewhere, as a name can.
    let loopback = name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    loopback || name.eq_ignore_ascii_case("localhost") || name == "[::1]"
}

/// Did a page of ours send this? The browser's own word counts (`Sec-Fetch-Site`, which it sends to secure addresses and to
/// this machine); else the origin must be the host that was asked.
pub(super) fn own_page(headers: &HeaderMap) -> bool {
    match text(headers, &HeaderName::from_static("sec-fetch-site")) {
        Some(site) => site == "same-origin",
        None => text(headers, &header::ORIGIN).is_some_and(|origin| is_host(origin, headers)),
    }
}

/// Does a browser say that a page of somebody else's sent this? Programs that are no browsers say nothing.
pub(super) fn foreign_origin(headers: &HeaderMap) -> bool {
    match text(headers, &HeaderName::from_static("sec-fetch-site")) {
        Some(site) => site != "same-origin" && site != "none",
        None => headers.contains_key(header::ORIGIN) && !text(headers, &header::ORIGIN).is_some_and(|origin| is_host(origin, headers)),
    }
}

fn is_host(origin: &str, headers: &HeaderMap) -> bool {
    let Some((scheme, place)) = origin.split_once("://") else {
        return false;
    };
    matches!(scheme, "http" | "https") && text(headers, &header::HOST).is_some_and(|host| host.eq_ignore_ascii_case(place))
}

/// The one value of a header; none when it is missing, unreadable, or there twice.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(one), None) => one.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    /// design: without a token only this machine's own names and addresses are ours, under any port.
    #[test]
    fn only_this_machine_is_local() {
        for (host, local) in [
            ("localhost", true),
            ("LocalHost:8080", true),
            ("127.0.0.1:1", true),
            ("127.0.0.2:8080", true),
            ("[::1]", true),
            ("[::1]:8080", true),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example:80", false),
            ("127.evil.example", false),
            ("10.0.0.1", false),
            ("0.0.0.0:80", false),
            ("[::]:80", false),
            ("[::1].evil.example", false),
            ("[::1", false),
            ("localhost:80@evil.example", false),
            ("localhost:8x", false),
            (":80", false),
            ("", false),
        ] {
            assert_eq!(local_host(&map(&[("host", host)])), local, "{host}");
        }
        assert!(!local_host(&map(&[])));
        assert!(!local_host(&map(&[("host", "localhost"), ("host", "localhost")])));
    }

    /// design: a form counts only from our own page: by the browser's word, else by the origin; without either it does not.
    #[test]
    fn only_our_own_page_may_press() {
        for (pairs, own, foreign) in [
            (&[("host", "localhost:1")][..], false, false),
            (&[("host", "localhost:1"), ("origin", "http://localhost:1")], true, false),
            (&[("host", "LOCALHOST:1"), ("origin", "http://localhost:1")], true, false),
            (&[("host", "bot.example"), ("origin", "https://bot.example")], true, false),
            (&[("host", "localhost:1"), ("origin", "http://localhost:2")], false, true),
            (&[("host", "localhost:1"), ("origin", "http://evil.example")], false, true),
            (&[("host", "localhost:1"), ("origin", "null")], false, true),
            (&[("host", "localhost:1"), ("origin", "file://localhost:1")], false, true),
            (&[("host", "a"), ("origin", "http://a"), ("origin", "http://a")], false, true),
            (&[("host", "a"), ("sec-fetch-site", "same-origin"), ("origin", "null")], true, false),
            (
                &[
                    ("host", "a"),
                    ("sec-fetch-site", "same-origin"),
                    ("origin", "https://public.example"),
                ],
                true,
                false,
            ),
            (
                &[("host", "a"), ("sec-fetch-site", "same-site"), ("origin", "http://a")],
                false,
                true,
            ),
            (
                &[("host", "a"), ("sec-fetch-site", "cross-site"), ("origin", "http://a")],
                false,
                true,
            ),
            (&[("host", "a"), ("sec-fetch-site", "none")], false, false),
        ] {
            let headers = map(pairs);
            assert_eq!((own_page(&headers), foreign_origin(&headers)), (own, foreign), "{pairs:?}");
        }
    }
}

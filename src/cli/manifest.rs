//! `countersign manifest`: what to paste or tick where a platform's app is made.

pub(super) mod slack_app;

use std::process::ExitCode;

use reqwest::Url;

use super::output::result;

/// Events, callbacks and permissions of a Lark app, in both languages. `PUBLIC_URL` and the words in braces as in [`slack_app::MANIFEST`].
const LARK: &str = include_str!("manifest/lark.txt");

/// Prints the manifest of a Slack app that pushes to `public_url`. `None`: events come over sockets.
pub(super) fn slack(public_url: Option<&str>) -> anyhow::Result<ExitCode> {
    print(slack_app::MANIFEST, public_url)
}

/// Prints the list for a Lark app that pushes to `public_url`. `None`: events come over sockets.
pub(super) fn lark(public_url: Option<&str>) -> anyhow::Result<ExitCode> {
    print(LARK, public_url)
}

fn print(text: &str, public_url: Option<&str>) -> anyhow::Result<ExitCode> {
    let (chosen, other) = match public_url {
        Some(_) => ("{webhook}", "{socket}"),
        None => ("{socket}", "{webhook}"),
    };
    let lines = text.lines().filter(|line| !line.starts_with(other));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(chosen).unwrap_or(line)).collect();
    result(&lines.join("\n").replace("PUBLIC_URL", public_url.unwrap_or_default()))?;
    Ok(ExitCode::SUCCESS)
}

/// Where the platforms reach this gateway: https, or http on this machine for a try; a path in front of ours is fine.
/// Without the slash at its end.
pub(super) fn public_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("{error}; give it as https://HOST"))?;
    let host = url.host_str().unwrap_or_default();
    let local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    match url.scheme() {
        "https" => (),
        "http" if local => (),
        _ => return Err(String::from("the platforms push to https only (http is allowed for this machine)")),
    }
    if host.is_empty() || !url.username().is_empty() || url.password().is_some() {
        return Err(String::from("give it as https://HOST, without a user name"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(String::from("our paths are added to it, so it must have no ? and no #"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// interface: the public URL is https (or this machine), and our paths can be added to it.
    #[test]
    fn public_urls_are_checked() {
        assert_eq!(public_url("https://bot.example/").as_deref(), Ok("https://bot.example"));
        assert_eq!(public_url("https://a.example:8443/x/").as_deref(), Ok("https://a.example:8443/x"));
        assert_eq!(public_url("http://127.0.0.1:8080").as_deref(), Ok("http://127.0.0.1:8080"));
        assert_eq!(public_url("https://a.example/\"x").as_deref(), Ok("https://a.example/%22x"));
        for bad in [
            "bot.example",
            "http://bot.example",
            "ftp://bot.example",
            "https://",
            "https://u:p@bot.example",
            "https://bot.example/?a=b",
            "https://bot.example/#x",
            "http://127.0.0.1.evil.example",
        ] {
            assert!(public_url(bad).is_err(), "{bad}");
        }
    }
}

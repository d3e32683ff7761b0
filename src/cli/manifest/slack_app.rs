//! The Slack app manifest, and the scopes that it asks for.

/// The manifest (schema of `apps.manifest.create`). `PUBLIC_URL` stands where ours goes. A line that begins with `{webhook}` or `{socket}` is
/// for that delivery of events alone.
pub(crate) const MANIFEST: &str = include_str!("slack.yaml");

/// The scopes of the bot, each with what it is for.
pub(crate) fn scopes() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = MANIFEST.lines().skip_while(|line| line.trim() != "bot:").skip(1);
    lines.map_while(|line| {
        let line = line.trim().strip_prefix("- ")?;
        let (scope, purpose) = line.split_once('#').unwrap_or((line, ""));
        Some((scope.trim(), purpose.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-3: `check --online` tells what each scope is for.
    #[test]
    fn each_scope_has_a_purpose() {
        let scopes: Vec<_> = scopes().collect();
        assert_eq!(scopes.len(), 17, "{scopes:?}");
        assert!(scopes.iter().all(|(_, purpose)| purpose.starts_with("to ")), "{scopes:?}");
    }
}

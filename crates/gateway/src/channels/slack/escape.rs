//! Foreign text on its way into Slack: after these functions it can be read, but it can no longer be a mention, a
//! broadcast, a link or an entity of ours.

use countersign_agent::domain::{ChannelKind, visible};

/// Word joiner: breaks a token without changing what people see.
const JOINER: char = '\u{2060}';

/// Foreign text for rich text and plain text, where nothing is interpreted. What would be a mention elsewhere is broken
/// up all the same: notifications, exports and other clients may take it for one.
pub(super) fn inert(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        out.push(c);
        if c == '<' && rest.peek().is_some_and(|next| matches!(next, '!' | '@' | '#')) {
            out.push(JOINER);
        }
    }
    out
}

/// Foreign text for mrkdwn and for `text`: [`inert`], and the three characters that Slack documents as its escape.
pub(super) fn mrkdwn(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    inert(text).chars().for_each(|c| push_escaped(&mut out, c));
    out
}

/// [`mrkdwn`], at most `max` UTF-16 units of it; `cut`, a line of our own below it, says that something is missing.
pub(super) fn mrkdwn_within(text: &str, max: usize, cut: &str) -> String {
    // A character is a unit at least: what is beyond need not be looked at.
    let head = text.char_indices().nth(max + 1).map_or(text, |(at, _)| &text[..at]);
    let whole = mrkdwn(head);
    if head.len() == text.len() && units(&whole) <= max {
        return whole;
    }
    let room = max.saturating_sub(units(cut) + 1);
    let (mut out, mut used) = (String::new(), 0);
    for c in inert(head).chars() {
        let before = out.len();
        push_escaped(&mut out, c);
        used += units(&out[before..]);
        if used > room {
            out.truncate(before);
            break;
        }
    }
    out.push('\n');
    out.push_str(cut);
    out
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        c => out.push(c),
    }
}

/// Length as Slack may count it: UTF-16 units, never less than characters.
pub(super) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Is `id` one of a channel, which a message may link?
pub(super) fn is_channel(id: &str) -> bool {
    id.strip_prefix(['C', 'G']).is_some_and(|rest| {
        !rest.is_empty() && rest.len() <= 64 && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    })
}

/// Can `id` be a Slack user? Others (console users, API clients) are written out.
pub(super) fn is_user(id: &str) -> bool {
    id.starts_with(['U', 'W']) && (2..=32).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// The mention of `id` in mrkdwn and in `text`, if it is the id of a Slack user or user group.
pub(super) fn mention(id: &str) -> Option<String> {
    if ChannelKind::Slack.is_group(id) {
        return Some(format!("<!subteam^{id}>"));
    }
    is_user(id).then(|| format!("<@{id}>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-5: foreign text can be neither token nor entity, and what is a token elsewhere is broken up.
    #[test]
    fn foreign_text_is_no_markup() {
        assert_eq!(
            mrkdwn("a < b && <!here> <@U1>"),
            "a &lt; b &amp;&amp; &lt;\u{2060}!here&gt; &lt;\u{2060}@U1&gt;"
        );
        assert_eq!(inert("<!channel> &lt;!here&gt; a<b"), "<\u{2060}!channel> &lt;!here&gt; a<b");
        assert_eq!(inert("a\u{202e}b\u{7}"), "a\u{fffd}b\u{fffd}");
    }

    /// M-5: a cut falls between characters and never into an entity, and is marked.
    #[test]
    fn cuts_keep_entities_whole() {
        assert_eq!(mrkdwn_within("<<<<", 16, "…"), "&lt;&lt;&lt;&lt;");
        assert_eq!(mrkdwn_within("<<<<<", 16, "…"), "&lt;&lt;&lt;\n…");
        assert_eq!(mrkdwn_within("🙂🙂🙂", 5, "…"), "🙂\n…");
    }

    /// M-5: only what can be the id of a user or a user group becomes a mention.
    #[test]
    fn only_users_and_groups_are_mentioned() {
        assert_eq!(mention("S0614TZR7").as_deref(), Some("<!subteam^S0614TZR7>"));
        assert_eq!(mention("U0ALICE01").as_deref(), Some("<@U0ALICE01>"));
        for id in [
            "api client",
            "U",
            "u0alice",
            "S",
            "Sam",
            "S1> <!here",
            "C0GENERAL",
            "U1> <!here",
            "",
        ] {
            assert_eq!(mention(id), None, "{id}");
        }
    }
}

//! What an admin is told of a refusal: the provider's own words, made harmless, and what to mend. Pure.

use secrecy::{ExposeSecret, SecretString};

/// Characters of a provider's words that are kept.
const MAX_WORDS: usize = 300;
/// A run of so many letters and digits is a key or an id, and no word.
const KEY_RUN: usize = 20;
/// So many characters in a row of our key show too much of it.
const KEY_PART: usize = 8;

/// The status, the provider's words and what to mend, in one line.
pub(super) fn refusal(status: u16, code: Option<&str>, said: Option<&str>) -> String {
    let mut line = format!("HTTP {status}");
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        line.push_str(": ");
        line.push_str(said);
    }
    if let Some(hint) = hint(status, code.unwrap_or_default(), &said.unwrap_or_default().to_lowercase()) {
        line.push_str(&format!(" ({hint})"));
    }
    line
}

/// What to mend; `said` in lower case.
fn hint(status: u16, code: &str, said: &str) -> Option<&'static str> {
    let about = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    let used_up = code == "insufficient_quota" || about(&["quota", "credit", "balance", "billing"]);
    match status {
        402 => Some("the account has no credit left: top it up at the provider"),
        400 | 403 | 429 if used_up => Some("the account's quota is used up: raise it at the provider"),
        429 => Some("the provider limits the rate: wait, or raise the limit there"),
        401 => Some("check model.api_key"),
        403 => Some("check model.api_key and what its account may use"),
        400 | 404 | 422
            if about(&[
                "support tools",
                "support tool use",
                "tool use is not supported",
                "tools is not supported",
            ]) =>
        {
            Some("choose a model with tools: model.name")
        }
        404 if about(&["pull"]) => Some("pull the model on its server, or correct model.name"),
        404 if about(&["model"]) => Some("check model.name"),
        404 => Some("check model.base_url and model.name"),
        400 | 422 if about(&["model"]) && about(&["not exist", "not found", "unknown", "invalid model", "not a valid model"]) => {
            Some("check model.name")
        }
        _ => None,
    }
}

/// Foreign words for logs and pages: one line without control characters, without our key or anything that looks like one, cut.
pub(super) fn harmless(words: &str, secret: &SecretString) -> String {
    let secret = secret.expose_secret().trim();
    let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = if secret.is_empty() { words } else { words.replace(secret, "***") };
    let mut line = String::new();
    for word in words.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        let of_a_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
        let mut rest = word;
        while let Some(c) = rest.chars().next() {
            let run = rest.find(|c| !of_a_key(c)).unwrap_or(rest.len()).max(c.len_utf8());
            let (token, after) = rest.split_at(run);
            line.push_str(if is_key(token, secret) { "***" } else { token });
            rest = after;
        }
    }
    match line.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Is this a key, or does it hold a part of ours?
fn is_key(token: &str, secret: &str) -> bool {
    let part = token
        .as_bytes()
        .windows(KEY_PART)
        .filter_map(|part| std::str::from_utf8(part).ok())
        .any(|part| secret.contains(part));
    let run = token
        .split(['_', '-', '*'])
        .any(|run| run.len() >= KEY_RUN && run.contains(|c: char| c.is_ascii_digit()));
    part || run || (token.starts_with("sk-") && token.len() > 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// interface §3: what common servers refuse is told in their words, each with what to mend.
    #[test]
    fn refusals_have_words_and_a_hint() {
        for (status, code, said, hint) in [
            (404, "", "model \"qwen3\" not found, try pulling it first", "pull the model"),
            (
                400,
                "",
                "registry.ollama.ai/library/gemma:2b does not support tools",
                "a model with tools",
            ),
            (402, "", "Insufficient Balance", "no credit left"),
            (429, "insufficient_quota", "You exceeded your current quota", "quota is used up"),
            (429, "", "Rate limit reached for requests", "limits the rate"),
            (401, "invalid_api_key", "Incorrect API key provided", "model.api_key"),
            (404, "not_found_error", "model: claude-3-nothing", "model.name"),
            (404, "", "404 page not found", "model.base_url"),
            (
                400,
                "",
                "Your credit balance is too low to access the Anthropic API.",
                "quota is used up",
            ),
            (400, "", "The model `x` does not exist", "model.name"),
        ] {
            let line = refusal(status, Some(code), Some(said));
            assert!(
                line.starts_with(&format!("HTTP {status}: {said} (")) && line.contains(hint),
                "{line}"
            );
        }
        assert_eq!(
            refusal(400, None, Some("max_tokens is too large")),
            "HTTP 400: max_tokens is too large"
        );
        assert_eq!(refusal(500, None, None), "HTTP 500");
    }

    /// interface §3: no control character, no key, not more than a few lines; names of models stay.
    #[test]
    fn words_are_made_harmless() {
        let secret = SecretString::from("gsk-canary-Xy0123456789");
        for (words, harmless_words) in [
            ("bad\u{1b}[31m\n key", "bad [31m key"),
            ("key gsk-canary-Xy0123456789!", "key ***!"),
            ("key 'Xy012345678', gsk-cana...", "key '***', ***..."),
            (
                "Incorrect API key provided: sk-proj-abc. See",
                "Incorrect API key provided: ***. See",
            ),
            ("token abcdefgh1jklmnopqrst", "token ***"),
            (
                "model: claude-3-5-sonnet-20241022, Qwen/Qwen2.5-Coder-32B-Instruct",
                "model: claude-3-5-sonnet-20241022, Qwen/Qwen2.5-Coder-32B-Instruct",
            ),
            ("模型不存在", "模型不存在"),
        ] {
            assert_eq!(harmless(words, &secret), harmless_words);
        }
        let long = harmless(&"词 ".repeat(500), &secret);
        assert_eq!(long.chars().count(), MAX_WORDS + 1);
        assert_eq!(harmless("as it is", &SecretString::from(String::new())), "as it is");
    }
}

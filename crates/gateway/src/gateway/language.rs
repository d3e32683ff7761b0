//! Which of our languages a sender means, by a header or a tag.

use axum::http::{HeaderMap, header};
use countersign_agent::domain::Locale;

/// The language of `Accept-Language` that the sender likes best among ours (RFC 9110, 12.5.4). `None` means that it says nothing.
pub(super) fn accepted_locale(headers: &HeaderMap) -> Option<Locale> {
    let mut best: Option<(Locale, f32)> = None;
    let text = headers.get(header::ACCEPT_LANGUAGE)?.to_str().ok()?;
    for range in text.split(',') {
        let (tag, weight) = range.split_once(';').unwrap_or((range, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|q| q.parse().ok()).unwrap_or(1.0);
        if let Some(locale) = locale(tag.trim())
            && weight > best.map_or(0.0, |(_, best)| best)
        {
            best = Some((locale, weight));
        }
    }
    // A browser that likes neither reads English rather than Chinese.
    Some(best.map_or(Locale::EnUs, |(locale, _)| locale))
}

/// Which of ours a language tag means, whatever the region.
pub(super) fn locale(tag: &str) -> Option<Locale> {
    match tag.split('-').next()?.to_ascii_lowercase().as_str() {
        "zh" => Some(Locale::ZhCn),
        "en" => Some(Locale::EnUs),
        _ => None,
    }
}

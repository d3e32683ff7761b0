//! What a person sees of a file before it is sent: its name, how much it is, of what kind, and its first lines.

use countersign_agent::domain::visible;
use countersign_agent::tools::TakenFile;

/// Lines of a preview, and bytes that are looked at for them.
const LINES: usize = 20;
const HEAD: usize = 3 << 10;

/// Kinds that are told by their first bytes.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
];

/// The kind of a file, by what is in it and not by its name.
pub(super) fn media_type(bytes: &[u8]) -> &'static str {
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return kind;
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    let text = !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
    if text { "text/plain" } else { "application/octet-stream" }
}

/// A number of bytes as people say it.
pub(super) fn size(bytes: u64) -> String {
    // Tenths, rounded, without a float.
    let tenths = |unit: u64| (bytes * 10 + unit / 2) / unit;
    let spelled = |tenths: u64, unit: &str| format!("{}.{} {unit}", tenths / 10, tenths % 10);
    match bytes {
        1 => String::from("1 byte"),
        0..1000 => format!("{bytes} bytes"),
        1000..999_950 => spelled(tenths(1000), "KB"),
        _ => spelled(tenths(1_000_000), "MB"),
    }
}

/// The preview of a call that would send `file`.
pub(super) fn preview_text(file: &TakenFile) -> String {
    let kind = media_type(&file.bytes);
    let head = format!("{} · {} · {kind}", visible(&file.name), size(file.bytes.len() as u64));
    if kind != "text/plain" {
        return format!("{head}\n(no text that could be shown)");
    }
    let text = std::str::from_utf8(&file.bytes).unwrap_or_default();
    let shown = &text[..text.floor_char_boundary(HEAD)];
    let lines: Vec<&str> = shown.lines().take(LINES).collect();
    let mut told = format!("{head}\n\n{}", lines.join("\n"));
    if lines.len() < text.lines().count() || shown.len() < text.len() {
        told.push_str("\n[more follows]");
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, bytes: &[u8]) -> TakenFile {
        TakenFile {
            name: name.to_owned(),
            bytes: bytes.to_vec(),
        }
    }

    /// interface: sizes are in the units that people use.
    #[test]
    fn sizes_are_in_peoples_units() {
        for (bytes, said) in [
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.0 KB"),
            (12_340, "12.3 KB"),
            (999_949, "999.9 KB"),
            (999_950, "1.0 MB"),
            (30 << 20, "31.5 MB"),
        ] {
            assert_eq!(size(bytes), said);
        }
    }

    /// interface: a file is what its bytes are, whatever its name says.
    #[test]
    fn kinds_are_told_by_the_bytes() {
        for (bytes, kind) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], "image/png"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\0\0\0\0WAVEfmt ", "application/octet-stream"),
            ("汇总,1\n".as_bytes(), "text/plain"),
            (b"a\0b", "application/octet-stream"),
            (b"\xff\xfe", "application/octet-stream"),
        ] {
            assert_eq!(media_type(bytes), kind, "{bytes:?}");
        }
    }

    /// interface: a text shows its first lines and says that there is more; of other files there is nothing to read. A name cannot hide what
    /// it ends in.
    #[test]
    fn a_preview_shows_the_first_lines() {
        assert_eq!(
            preview_text(&file("a.csv", b"x,y\n1,2\n")),
            "a.csv · 8 bytes · text/plain\n\nx,y\n1,2"
        );
        let long = preview_text(&file("a.txt", "一行\n".repeat(40).as_bytes()));
        assert_eq!(long.matches("一行").count(), LINES);
        assert!(long.ends_with("\n[more follows]"), "{long}");
        let endless = preview_text(&file("a.txt", "字".repeat(5000).as_bytes()));
        assert!(endless.len() < HEAD + 100 && endless.ends_with("字\n[more follows]"));
        let binary = preview_text(&file("report\u{202e}fdp.exe", b"MZ\0\0"));
        assert_eq!(
            binary,
            "report\u{fffd}fdp.exe · 4 bytes · application/octet-stream\n(no text that could be shown)"
        );
    }
}

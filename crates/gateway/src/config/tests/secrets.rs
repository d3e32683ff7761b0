//! Secrets: where they come from, which are refused, and that none of them leaves.

use super::*;

/// M-3: an enabled channel without its secrets refuses to start, and says where it was enabled.
#[test]
fn blank_secrets_of_an_enabled_channel() {
    problems(
        "channels:\n  lark:\n    enabled: true\n    app_secret: \"  \"\n",
        &[("COUNTERSIGN__CHANNELS__LARK__VERIFICATION_TOKEN", "")],
        &[
            "config.yaml:3: channels.lark.app_id: found a blank, must be set when channels.lark.enabled is true",
            "config.yaml:4: channels.lark.app_secret: found a blank, must be set when channels.lark.enabled is true",
            "env COUNTERSIGN__CHANNELS__LARK__VERIFICATION_TOKEN: channels.lark.verification_token: found a blank, must be set when channels.lark.enabled is true and channels.lark.delivery is webhook",
        ],
    );
    assert!(loaded(LARK, &[]).live.lark.enabled);
}

/// interface: a console token that is short enough to be guessed is refused, without a word of it.
#[test]
fn a_short_console_token_is_refused() {
    problems(
        "",
        &[("COUNTERSIGN__CHANNELS__CONSOLE__TOKEN", "fifteen-letters")],
        &[
            "env COUNTERSIGN__CHANNELS__CONSOLE__TOKEN: channels.console.token: found 15 characters, needs at least 16: whoever guesses it decides for everybody",
        ],
    );
    for token in ["sixteen-letters!", ""] {
        let found = loaded("", &[("COUNTERSIGN__CHANNELS__CONSOLE__TOKEN", token)]);
        assert_eq!(found.warnings, Vec::<String>::new());
    }
}

/// design: a secret from a file; both ways at once, a missing file and a key that is no secret are refused.
#[test]
fn secrets_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, " s3cret\n").unwrap();
    let file = path.display().to_string();
    let found = loaded("", &[("COUNTERSIGN__CHANNELS__LARK__APP_SECRET_FILE", &file)]);
    assert_eq!(found.boot.lark.app_secret.expose_secret(), "s3cret");
    assert_eq!(
        found.warnings,
        ["env COUNTERSIGN__CHANNELS__LARK__APP_SECRET_FILE: channels.lark.app_secret: blanks round the secret are dropped"]
    );
    std::fs::write(&path, "sqlite://x.db\n").unwrap();
    let found = loaded("", &[("COUNTERSIGN__STORE__DATABASE_URL_FILE", &file)]);
    assert_eq!(
        (found.boot.stores.database_url.expose_secret(), found.warnings.len()),
        ("sqlite://x.db", 0)
    );
    problems(
        "",
        &[
            ("COUNTERSIGN__CHANNELS__CONSOLE__TOKEN", "a"),
            ("COUNTERSIGN__CHANNELS__CONSOLE__TOKEN_FILE", &file),
            ("COUNTERSIGN__MODEL__API_KEY_FILE", "/no/such/file"),
            ("COUNTERSIGN__MODEL__NAME_FILE", &file),
        ],
        &[
            "env COUNTERSIGN__CHANNELS__CONSOLE__TOKEN_FILE: channels.console.token: COUNTERSIGN__CHANNELS__CONSOLE__TOKEN is set too: keep one of them",
            "env COUNTERSIGN__MODEL__API_KEY_FILE: model.api_key: \"/no/such/file\" cannot be read: No such file or directory (os error 2)",
            "env COUNTERSIGN__MODEL__NAME_FILE: unknown key, allowed there: provider, base_url, name, api_key, timeout_seconds, parallel_tool_calls, max_output_tokens, retry_minutes, vision",
        ],
    );
}

/// bugs F18: a byte order mark before a secret is no part of it, wherever the secret comes from; a secret of two lines is refused by its key.
#[test]
fn secrets_are_one_line_without_a_mark() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    let file = path.display().to_string();
    std::fs::write(&path, "\u{feff}s3cret\r\n").unwrap();
    let found = loaded("", &[("COUNTERSIGN__CHANNELS__LARK__APP_SECRET_FILE", &file)]);
    assert_eq!((found.boot.lark.app_secret.expose_secret(), found.warnings.len()), ("s3cret", 0));
    std::fs::write(&path, "\u{feff}sqlite://x.db\n").unwrap();
    let found = loaded("", &[("COUNTERSIGN__STORE__DATABASE_URL_FILE", &file)]);
    assert_eq!(found.boot.stores.database_url.expose_secret(), "sqlite://x.db");
    let found = loaded("", &[("COUNTERSIGN__CHANNELS__LARK__APP_SECRET", "\u{feff}s3cret")]);
    assert_eq!(found.boot.lark.app_secret.expose_secret(), "s3cret");

    std::fs::write(&path, "s3cret\nold-s3cret\n").unwrap();
    let told = "channels.lark.app_secret: found a secret, allowed text (put it in quotes): a secret is one line without control characters";
    problems(
        "",
        &[("COUNTERSIGN__CHANNELS__LARK__APP_SECRET_FILE", &file)],
        &[&format!("env COUNTERSIGN__CHANNELS__LARK__APP_SECRET_FILE: {told}")],
    );
    problems(
        "channels:\n  lark:\n    app_secret: \"a\\nb\"\n",
        &[],
        &[&format!("config.yaml:3: {told}")],
    );
}

/// design: no secret leaves through the effective configuration, a warning, an error or `Debug`.
#[test]
fn secrets_stay_inside() {
    const CANARY: &str = "canary-8c1f";
    let secrets: Vec<_> = KEYS.iter().filter(|key| key.is_secret()).collect();
    assert!(secrets.len() >= 5);
    for key in secrets {
        let variable = format!("COUNTERSIGN__{}", key.path.replace('.', "__").to_uppercase());
        let said = match load_text("", &[(&variable, &format!(" {CANARY} "))]) {
            Ok(all) => {
                assert!(all.effective.contains(r#""***""#), "{}", key.path);
                format!("{all:?} {}", all.effective)
            }
            Err(problems) => problems.join("\n"),
        };
        assert!(!said.contains(CANARY), "{said}");
        for wrong in [
            format!("[{CANARY}]"),
            format!("{{{CANARY}: 1}}"),
            format!("\"{CANARY}\" x"),
            format!("*{CANARY}"),
        ] {
            let mut yaml = String::new();
            for (depth, part) in key.path.split('.').enumerate() {
                yaml.push_str(&format!("{}{}{part}:", if depth > 0 { "\n" } else { "" }, "  ".repeat(depth)));
            }
            let told = load_text(&format!("{yaml} {wrong}\n"), &[]).unwrap_err().join("\n");
            assert!(!told.contains(CANARY), "{told}");
        }
    }
}

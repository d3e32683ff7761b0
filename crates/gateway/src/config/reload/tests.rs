//! Every key of the table: an edit of it is in force, waits for a restart, or is refused.

use std::collections::BTreeMap;
use std::path::PathBuf;

use secrecy::ExposeSecret;
use tempfile::TempDir;

use super::*;
use crate::config::key::{Key, Since};
use crate::config::kind::Kind;
use crate::config::table::KEYS;

/// What makes every other value valid beside it: secrets, an address of a model, more than one approver.
const BASE: &[(&str, &str)] = &[
    ("channels.lark.app_id", "cli_a"),
    ("channels.lark.app_secret", "as-0123456789"),
    ("channels.lark.verification_token", "vt-0123456789"),
    ("channels.slack.signing_secret", "ss-0123456789"),
    ("channels.slack.bot_token", "xoxb-0123456789"),
    ("channels.lark.plan_review_approvers", "anyone"),
    ("channels.slack.plan_review_approvers", "anyone"),
    ("channels.console.plan_review_approvers", "anyone"),
    ("model.base_url", "http://127.0.0.1:1/v1"),
    ("model.name", "m"),
    ("tools.workspace", "/usr"),
];

/// A file in a folder of its own, and a process that started with it.
struct Site {
    folder: TempDir,
    pairs: BTreeMap<String, String>,
}

impl Site {
    fn new(pairs: &[(&str, &str)]) -> Self {
        let pairs = pairs
            .iter()
            .map(|(path, value)| ((*path).to_owned(), (*value).to_owned()))
            .collect();
        let site = Self {
            folder: tempfile::tempdir().unwrap(),
            pairs,
        };
        std::fs::create_dir(site.folder.path().join("elsewhere")).unwrap();
        site.save(&yaml(&site.pairs));
        site
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("config.yaml")
    }

    fn save(&self, text: &str) {
        std::fs::write(self.file(), text).unwrap();
    }

    /// Writes the configuration with these keys added.
    fn edit(&self, changed: &[(&str, &str)]) {
        let mut pairs = self.pairs.clone();
        pairs.extend(changed.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())));
        self.save(&yaml(&pairs));
    }

    fn start(&self) -> (Reloader, Live) {
        let source = Source::new(Some(self.file()), std::iter::empty());
        let loaded = source.load().unwrap();
        (Reloader::new(source, &loaded), loaded.live)
    }
}

/// Nested YAML of dotted paths.
fn yaml(pairs: &BTreeMap<String, String>) -> String {
    let (mut out, mut open) = (String::new(), Vec::<&str>::new());
    for (path, value) in pairs {
        let parts: Vec<&str> = path.split('.').collect();
        let (name, sections) = parts.split_last().unwrap();
        let shared = open.iter().zip(sections).take_while(|(a, b)| a == b).count();
        open.truncate(shared);
        for section in &sections[shared..] {
            out.push_str(&format!("{}{section}:\n", "  ".repeat(open.len())));
            open.push(section);
        }
        out.push_str(&format!("{}{name}: {value}\n", "  ".repeat(open.len())));
    }
    out
}

/// What is in force, the key of the model included.
fn shown(live: &Live) -> String {
    format!("{live:?} {}", live.model.api_key.expose_secret())
}

fn look(reloader: &mut Reloader) -> Edit {
    let found = reloader.load_candidate();
    reloader.decide(found)
}

#[track_caller]
fn refused(reloader: &mut Reloader) -> Vec<String> {
    match look(reloader) {
        Edit::Refused { problems, .. } => problems,
        other => panic!("not refused: {other:?}"),
    }
}

/// A valid value of the key that differs from the base's. `None` means there is only one.
fn another(key: &Key, folder: &str) -> Option<String> {
    let is = |value: &str| {
        let base = BASE.iter().find(|(path, _)| *path == key.path);
        base.map_or(key.default.trim_matches('\''), |(_, value)| value) == value
    };
    let first = |values: &[&str]| values.iter().find(|value| !is(value)).map(|value| (*value).to_owned());
    match key.kind {
        Kind::Flag => first(&["true", "false"]),
        // A quorum of two is met by `anyone`, which calls share.
        Kind::NoneOrWhole { min, .. } => first(&["0", &min.to_string()]),
        Kind::Whole { min, max } => first(&[&(min + 1).to_string(), &min.to_string(), &max.to_string()]),
        Kind::Text | Kind::Secret => Some("another-text-or-secret".to_owned()),
        Kind::Choice(words) => first(words),
        Kind::Roles => Some("[workers]".to_owned()),
        Kind::Address => Some("127.0.0.1:9".to_owned()),
        Kind::Url { .. } => Some("https://another.example".to_owned()),
        Kind::Database => Some("sqlite://another.db".to_owned()),
        Kind::Redis => Some("redis://another:6379/1".to_owned()),
        Kind::Prefix => Some("another".to_owned()),
        Kind::Folder => Some(format!("'{folder}'")),
        Kind::Ids if key.path.ends_with("lark.escalate_to") => Some("[ou_another]".to_owned()),
        Kind::Ids if key.path.ends_with("slack.escalate_to") => Some("[U0ANOTHER]".to_owned()),
        Kind::Ids => Some("[another]".to_owned()),
        Kind::Chats => Some("[oc_another]".to_owned()),
        Kind::Approvers { .. } => first(&["requester"]),
        Kind::Effects => Some("{another: read}".to_owned()),
        Kind::Features => Some("[output_format]".to_owned()),
        Kind::Maps(_) if key.path == "rules" => Some("[{tool: another, then: deny}]".to_owned()),
        Kind::Name => Some("another".to_owned()),
        Kind::Sections(_) => Some(
            if key.path == "models" {
                "{another: {provider: demo}}"
            } else {
                "[{name: another}]"
            }
            .to_owned(),
        ),
        Kind::Maps(_) => Some("[{name: another, command: [another]}]".to_owned()),
    }
}

/// S0-35: of every key of the table, a saved edit is in force (hot), named as waiting for a restart with nothing else changed
/// (restart), or refused (not in this version); and taken back, everything is as it was.
#[test]
fn every_key_does_what_its_row_says() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for key in KEYS.iter() {
        let site = Site::new(BASE);
        let value = another(key, &site.folder.path().join("elsewhere").display().to_string()).unwrap();
        let (mut reloader, before) = site.start();
        site.edit(&[(key.path, &value)]);
        let edit = look(&mut reloader);
        let class = match (key.since, key.reload) {
            (Since::Later, _) => "later",
            (Since::Served, Reload::Hot) => "hot",
            (Since::Served, Reload::Restart) => "restart",
        };
        *seen.entry(class).or_insert(0) += 1;
        match (class, edit) {
            ("hot", Edit::Taken { live, hot, restart, .. }) => {
                assert_eq!((hot, restart), (vec![key.path], vec![]), "{}", key.path);
                assert_ne!(shown(&live), shown(&before), "{}: {value} is in force", key.path);
            }
            (
                "restart",
                Edit::Taken {
                    live,
                    hot,
                    restart,
                    restart_changed,
                    ..
                },
            ) => {
                assert_eq!((hot, restart, restart_changed), (vec![], vec![key.path], true), "{}", key.path);
                assert_eq!(shown(&live), shown(&before), "{}", key.path);
            }
            ("later", Edit::Refused { problems, .. }) => {
                assert!(
                    problems[0].contains(key.path) && problems[0].contains("not in this version"),
                    "{problems:?}"
                );
            }
            (class, edit) => panic!("{} ({class}): {edit:?}", key.path),
        }
        site.edit(&[]);
        match look(&mut reloader) {
            Edit::Taken { live, restart, .. } => assert_eq!((shown(&live), restart), (shown(&before), vec![]), "{}", key.path),
            other => panic!("{} taken back: {other:?}", key.path),
        }
        assert!(matches!(look(&mut reloader), Edit::None), "{}: nothing more to tell", key.path);
    }
    assert_eq!(seen.values().sum::<usize>(), KEYS.len(), "{seen:?}");
}

/// design: the same values in other words, other lines and other order are no edit.
#[test]
fn the_same_values_are_no_edit() {
    let site = Site::new(&[
        ("channels.lark.allowed_chats", "[oc_a, oc_b]"),
        ("tools.effects", "{a: read, b: write}"),
        ("agent.max_iterations", "7"),
    ]);
    let (mut reloader, _) = site.start();
    site.save(
        "# a comment\n\nagent: {max_iterations: 7}\nserver:\n  max_body_bytes: 1048576\ntools:\n  effects:\n    b: write\n    a: read\nchannels:\n  lark:\n    allowed_chats:\n    - oc_a\n    - \"oc_b\"\n",
    );
    let edit = look(&mut reloader);
    assert!(matches!(edit, Edit::None), "{edit:?}");
}

/// F-H13, F-A3: what is not valid changes nothing and is told once; a good part of it is not taken either. Put back as it was, the
/// configuration is good again.
#[test]
fn a_refused_edit_is_told_once_and_changes_nothing() {
    let site = Site::new(BASE);
    let (mut reloader, before) = site.start();
    site.save("agent:\n  max_iterations: 9\nchannels:\n  lark:\n    plan_review_pending_ttl_minutes: 0\n    locale: de\n");
    let problems = refused(&mut reloader);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].contains("config.yaml:5: channels.lark.plan_review_pending_ttl_minutes: found 0, allowed 1 to 1440"),
        "{problems:?}"
    );
    assert!(matches!(look(&mut reloader), Edit::None), "told once");
    site.save("agent: [\n");
    assert_eq!(refused(&mut reloader).len(), 1, "another reason is told");
    site.edit(&[]);
    match look(&mut reloader) {
        Edit::Taken { live, hot, restart, .. } => {
            assert_eq!((shown(&live), hot, restart), (shown(&before), vec![], vec![]));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(look(&mut reloader), Edit::None));
}

/// design: a channel whose secrets the process does not have cannot be enabled by an edit, even by one that brings them.
#[test]
fn a_channel_without_secrets_needs_a_restart() {
    for (enabled, secrets) in [
        (
            "channels.lark.enabled",
            &[
                "channels.lark.app_id",
                "channels.lark.app_secret",
                "channels.lark.verification_token",
            ][..],
        ),
        (
            "channels.slack.enabled",
            &["channels.slack.signing_secret", "channels.slack.bot_token"],
        ),
    ] {
        let site = Site::new(&[]);
        let (mut reloader, _) = site.start();
        site.edit(&[(enabled, "true")]);
        assert_eq!(refused(&mut reloader).len(), secrets.len());
        let mut all: Vec<(&str, &str)> = secrets.iter().map(|secret| (*secret, "hush-0123456789")).collect();
        all.push((enabled, "true"));
        site.edit(&all);
        let problems = refused(&mut reloader);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].contains("config.yaml:") && problems[0].contains(enabled) && problems[0].contains("restart"),
            "{problems:?}"
        );
        assert!(
            secrets.iter().all(|secret| problems[0].contains(secret)) && !problems[0].contains("hush"),
            "{problems:?}"
        );
        // The secrets alone wait for the restart like every such key.
        all.pop();
        site.edit(&all);
        match look(&mut reloader) {
            Edit::Taken { hot, restart, .. } => assert_eq!((hot.len(), restart.len()), (0, secrets.len())),
            other => panic!("{other:?}"),
        }
    }
}

/// interface (I): which secrets an edit needs to enable a channel goes by the delivery of the process, which waits for a restart itself.
#[test]
fn a_channel_is_enabled_with_the_secrets_of_this_process() {
    let sockets = [
        ("channels.slack.delivery", "socket"),
        ("channels.slack.app_token", "xapp-1"),
        ("channels.slack.bot_token", "xoxb-1"),
    ];
    let enabled = ("channels.slack.enabled", "true");
    let site = Site::new(&sockets);
    let (mut reloader, _) = site.start();
    site.edit(&[enabled]);
    match look(&mut reloader) {
        Edit::Taken { hot, restart, .. } => assert_eq!((hot, restart), (vec![enabled.0], vec![])),
        other => panic!("{other:?}"),
    }
    // Webhooks without a signing secret would be open to anybody, though the edit wants none.
    let site = Site::new(&sockets[1..]);
    let (mut reloader, _) = site.start();
    site.edit(&[enabled, sockets[0]]);
    let told = refused(&mut reloader);
    assert!(
        told.len() == 1 && told[0].contains("started without channels.slack.signing_secret"),
        "{told:?}"
    );
}

/// design: a file that vanishes is not an edit that says "all defaults"; a default file that appears is one.
#[test]
fn a_file_may_vanish_and_come_back() {
    let site = Site::new(&[("agent.max_iterations", "7")]);
    let (mut reloader, _) = site.start();
    std::fs::remove_file(site.file()).unwrap();
    assert!(refused(&mut reloader)[0].contains("no such file"));
    site.edit(&[("agent.max_iterations", "8")]);
    assert!(matches!(look(&mut reloader), Edit::Taken { .. }));
    // A file that nobody named: it may be missing, but not vanish.
    let loaded = |has_file| {
        let mut loaded = Source::new(Some(site.file()), std::iter::empty()).load().unwrap();
        loaded.has_file = has_file;
        loaded
    };
    let mut absent = Source::new(Some(site.folder.path().join("absent.yaml")), std::iter::empty());
    absent.needed = false;
    let vanished = Reloader::new(absent.clone(), &loaded(true)).load_candidate();
    let Candidate(Err(problems)) = vanished else {
        panic!("{vanished:?}")
    };
    assert!(
        problems[0].ends_with("absent.yaml: the file is gone; what it said stays in force"),
        "{problems:?}"
    );
    assert!(Reloader::new(absent, &loaded(false)).load_candidate().is_valid());
}

/// design: a restart key is told when it is edited, and not again with the next edit of another key; secrets are never shown.
#[test]
fn restart_keys_are_told_when_they_are_edited() {
    let site = Site::new(BASE);
    let (mut reloader, _) = site.start();
    let secret = ("channels.lark.app_secret", "canary-8c1f");
    site.edit(&[secret, ("server.bind", "127.0.0.1:9")]);
    let first = look(&mut reloader);
    assert!(!format!("{first:?} {reloader:?}").contains("canary"));
    site.edit(&[secret, ("server.bind", "127.0.0.1:9"), ("agent.max_iterations", "9")]);
    match look(&mut reloader) {
        Edit::Taken {
            hot,
            restart,
            restart_changed,
            ..
        } => {
            assert_eq!((hot, restart_changed), (vec!["agent.max_iterations"], false));
            assert_eq!(restart, ["server.bind", "channels.lark.app_secret"]);
        }
        other => panic!("{other:?}"),
    }
}

//! Templates: overrides, what is refused at start, both languages alike.

use std::collections::BTreeMap;

use super::pieces::{TemplateText, TemplateTexts};
use super::*;

/// Pieces named `name` with this text, standing at `folder/name:1`.
fn pieces(of: &[(&str, &str)]) -> TemplateTexts {
    of.iter()
        .map(|(name, text)| {
            let file = name.split('#').next().unwrap_or_default();
            let line = if name.contains('#') { ":1" } else { "" };
            (
                (*name).to_owned(),
                TemplateText {
                    place: format!("folder/{file}{line}"),
                    text: (*text).to_owned(),
                },
            )
        })
        .collect()
}

fn build(embedded: &[(&str, &str)], overrides: &[(&str, &str)]) -> Result<Templates, String> {
    Templates::build(pieces(embedded), pieces(overrides), Vec::new()).map_err(|error| error.0)
}

const GREETING: (&str, &str) = (
    "text/en-US.yaml#notice.hello",
    "Hello {{ name }}{% if plan %}, about {{ plan.goal }}{% endif %}",
);

#[track_caller]
fn refused(overridden: &str, why: &str) {
    assert_eq!(
        build(&[GREETING], &[(GREETING.0, overridden)]).err().as_deref(),
        Some(why),
        "{overridden}"
    );
}

/// design: prompts and texts render with the values given; text is put in as it is, never escaped.
#[test]
fn templates_render() {
    let all = build(&[GREETING, ("prompts/blocks/nudge.md", "<b>{{ goal }}</b>\n")], &[]).unwrap();
    let values = BTreeMap::from([("name", Some("Ann & \"Bo\"")), ("plan", None)]);
    assert_eq!(all.say(Locale::EnUs, "notice.hello", values), "Hello Ann & \"Bo\"");
    assert_eq!(
        all.prompt(PromptLanguage::En, "blocks/nudge.md", BTreeMap::from([("goal", "<x>")])),
        "<b><x></b>"
    );
}

/// design: a value that the caller forgot is an error in the log, and the key instead of half a sentence.
#[test]
fn a_missing_value_gives_the_key() {
    let all = build(&[GREETING, ("prompts/base.md", "{{ x }}")], &[]).unwrap();
    assert_eq!(all.say(Locale::EnUs, "notice.hello", ()), "notice.hello");
    assert_eq!(all.say(Locale::ZhCn, "notice.hello", ()), "notice.hello");
    assert_eq!(all.prompt(PromptLanguage::En, "base.md", ()), "base.md");
    assert_eq!(all.prompt(PromptLanguage::En, "none.md", ()), "none.md");
}

/// design: an override replaces its original and may use the original's variables and their members.
#[test]
fn an_override_replaces_its_original() {
    for (text, shown) in [
        ("Hi {{ name }}", "Hi Ann"),
        ("Hi {{ plan.goal|upper }}", "Hi RIP"),
        ("Hi", "Hi"),
        ("{% for i in range(2) %}{{ i }}{% endfor %}", "01"),
    ] {
        let all = build(&[GREETING], &[(GREETING.0, text)]).unwrap();
        let values = serde_json::json!({"name": "Ann", "plan": {"goal": "rip"}});
        assert_eq!(all.say(Locale::EnUs, "notice.hello", values), shown);
    }
}

/// design: an override with a variable, filter, include or syntax that cannot work is refused at start.
#[test]
fn what_cannot_work_is_refused() {
    refused(
        "Hi {{ nmae }}",
        "folder/text/en-US.yaml:1: notice.hello: unknown variable nmae (it has name, plan, plan.goal)",
    );
    refused(
        "Hi {{ plan.gaol }}{{ plan.goal }}",
        "folder/text/en-US.yaml:1: notice.hello: unknown variable plan.gaol (it has name, plan, plan.goal)",
    );
    refused(
        "{% if plan %}{{ name|shout }}{% endif %}",
        "folder/text/en-US.yaml:1: notice.hello: unknown filter: filter shout is unknown",
    );
    refused(
        "{% if not plan %}{{ name is loud }}{% endif %}",
        "folder/text/en-US.yaml:1: notice.hello: unknown test: test loud is unknown",
    );
    refused(
        "{% include 'prompts/none.md' %}",
        "folder/text/en-US.yaml:1: notice.hello: template not found: tried to include non-existing template 'prompts/none.md'",
    );
    refused(
        "Hi {{ name",
        "folder/text/en-US.yaml:1: notice.hello: syntax error: unexpected end of input, expected end of variable block",
    );
    let told = build(&[("prompts/base.md", "a\nb\n{% if %}")], &[]).unwrap_err();
    assert!(told.starts_with("folder/prompts/base.md:3: syntax error: "), "{told}");
}

/// design: a folder overrides prompts file by file and texts key by key, the rest stays built in.
#[test]
fn a_folder_overrides_by_path() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("prompts/base.md", "mine"),
        ("text/en-US.yaml", "notice:\n  hello: Hi {{ name }}\n"),
    ] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let embedded = pieces(&[
        GREETING,
        ("text/en-US.yaml#notice.bye", "Bye"),
        ("prompts/base.md", "theirs"),
        ("prompts/other.md", "other"),
    ]);
    let mut problems = Vec::new();
    let overrides = pieces::folder(folder.path(), &embedded, &mut problems);
    let all = Templates::build(embedded.clone(), overrides, problems).unwrap();
    assert_eq!(all.say(Locale::EnUs, "notice.hello", BTreeMap::from([("name", "Ann")])), "Hi Ann");
    assert_eq!(all.say(Locale::EnUs, "notice.bye", ()), "Bye");
    assert_eq!(
        (
            all.prompt(PromptLanguage::En, "base.md", ()),
            all.prompt(PromptLanguage::En, "other.md", ())
        ),
        ("mine".into(), "other".into())
    );

    std::fs::write(folder.path().join("text/en-US.yaml"), "notice:\n  helo: x\n  hello: '{{ nmae }}'\n").unwrap();
    let mut problems = Vec::new();
    let overrides = pieces::folder(folder.path(), &embedded, &mut problems);
    let told = Templates::build(embedded, overrides, problems).unwrap_err().0;
    let file = folder.path().join("text/en-US.yaml");
    assert_eq!(
        told.replace(&file.display().to_string(), "en-US.yaml"),
        "en-US.yaml:2: notice.helo: there is no such text\nen-US.yaml:3: notice.hello: unknown variable nmae (it has name, plan, plan.goal)"
    );
}

/// design: files of a folder that nothing would read are refused, all at once; notes and hidden files are not.
#[test]
fn stray_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    assert!(Templates::load(Some(folder.path())).is_ok());
    write("README.md", "not a template");
    write(".hidden", "not a template");
    assert!(Templates::load(Some(folder.path())).is_ok());
    write("prompts/no_such_prompt.md", "x");
    write("text/xx-XX.yaml", "a: b");
    let told = Templates::load(Some(folder.path())).unwrap_err().0;
    let shown = told.replace(&format!("{}/", folder.path().display()), "");
    assert_eq!(
        shown,
        "prompts/no_such_prompt.md: there is no built-in template prompts/no_such_prompt.md\ntext/xx-XX.yaml: there is no built-in template text/xx-XX.yaml"
    );
    assert!(
        Templates::load(Some(&folder.path().join("none")))
            .unwrap_err()
            .0
            .contains("cannot be read")
    );
}

const PAGE: (&str, &str) = ("console/page.html", "<p>{{ name }}</p>{{ word(\"notice.bye\") }}");
const BYE: [(&str, &str); 2] = [("text/zh-CN.yaml#notice.bye", "再见 <>"), ("text/en-US.yaml#notice.bye", "Bye <>")];

/// design: pages escape whatever is put in, our own words too, which come in the language of the page.
#[test]
fn pages_escape_and_speak() {
    let all = build(&[PAGE, BYE[0], BYE[1]], &[]).unwrap();
    let page = |locale| all.page("page.html", serde_json::json!({"name": "<b>", "locale": locale}));
    assert_eq!(page("en-US"), "<p>&lt;b&gt;</p>Bye &lt;&gt;");
    assert_eq!(page("zh-CN"), "<p>&lt;b&gt;</p>再见 &lt;&gt;");
}

/// design: a text that one language lacks is found at start, whatever the language of the console.
#[test]
fn a_missing_word_is_found_at_start() {
    let problem = build(&[PAGE, BYE[1]], &[]).unwrap_err();
    assert!(
        problem.contains("page.html") && problem.contains("there is no text notice.bye"),
        "{problem}"
    );
}

/// design: a page is tried with those that it includes: a text that one language lacks is found there, and nothing else is wrong with it.
#[test]
fn included_pages_are_tried_too() {
    let outer = ("console/outer.html", "{% include \"console/page.html\" %}");
    assert!(build(&[outer, PAGE, BYE[0], BYE[1]], &[]).is_ok());
    assert!(build(&[outer, PAGE, BYE[1]], &[]).unwrap_err().contains("outer.html"));
}

/// interface 2: the console's pages and files may be overridden; the address of a file follows its text.
#[test]
fn pages_and_files_are_overridden() {
    let css = ("console/console.css", "a{#b}");
    let all = build(&[PAGE, BYE[0], BYE[1], css], &[(PAGE.0, "{{ name }}!"), (css.0, "c{}")]).unwrap();
    assert_eq!(all.page("page.html", BTreeMap::from([("name", "x")])), "x!");
    let before = build(&[css], &[]).unwrap();
    let (before, after) = (before.asset("console.css").unwrap(), all.asset("console.css").unwrap());
    assert_eq!(
        (before.text.as_str(), after.text.as_str()),
        ("a{#b}", "c{}"),
        "served as it is, never rendered"
    );
    assert_ne!(before.digest, after.digest);
    assert_eq!(all.asset("page.html"), None);
}

/// C19, interface 2: prompts of both languages are overridden, a file as a whole and a YAML file key by key; what is wrong with one is
/// told with its place.
#[test]
fn prompts_of_both_languages_are_overridden() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("prompts/zh/base.md", "我们的机器人");
    write("prompts/zh/answers.yaml", "call:\n  not_run: 未执行\n");
    write("prompts/base.md", "Our bot");
    let all = Templates::load(Some(folder.path())).unwrap();
    let both = |name: &str| [PromptLanguage::En, PromptLanguage::Zh].map(|language| all.prompt(language, name, ()));
    assert_eq!(both("base.md"), ["Our bot", "我们的机器人"]);
    assert_eq!(both("answers.yaml#call.not_run"), ["not run", "未执行"]);
    assert!(both("answers.yaml#call.expired")[1].starts_with("expired: 没有人"));
    write("prompts/zh/base.md", "{% if %}");
    write("prompts/answers.yaml", "rule:\n  alone: '{{ nmae }}'\n  alnoe: x\n");
    let told = Templates::load(Some(folder.path())).unwrap_err().0;
    let shown = told.replace(&format!("{}/", folder.path().display()), "");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "prompts/answers.yaml:3: rule.alnoe: there is no such text",
            "prompts/answers.yaml:2: rule.alone: unknown variable nmae (it has name)"
        ]
    );
    assert!(
        lines[2].starts_with("prompts/zh/base.md:1: syntax error: ") && lines.len() == 3,
        "{shown}"
    );
}

//! Finding out at start what would go wrong at run time: syntax, unknown variables, filters and includes.

use std::error::Error as _;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};

use super::pieces::TemplateText;

/// Adds an embedded template.
pub(super) fn add(env: &mut Environment<'static>, name: &str, piece: &TemplateText, problems: &mut Vec<String>) {
    if let Err(error) = env.add_template_owned(name.to_owned(), piece.text.clone()) {
        problems.push(told(name, piece, &error));
    }
}

/// Replaces the embedded template `name`, which is `before`. The override may use the variables of its original and no others: they
/// are all that its caller provides.
pub(super) fn replace(
    env: &mut Environment<'static>,
    name: &str,
    before: Option<&TemplateText>,
    piece: &TemplateText,
    problems: &mut Vec<String>,
) {
    if let Some(before) = before {
        add(env, name, before, &mut Vec::new());
    }
    let original = variables(env, name);
    add(env, name, piece, problems);
    for variable in variables(env, name) {
        let global = env.globals().any(|(global, _)| Some(global) == variable.split('.').next());
        if !global && !is_provided(&variable, &original) {
            let choice = if original.is_empty() {
                "it has none".to_owned()
            } else {
                format!("it has {}", original.join(", "))
            };
            problems.push(format!("{}: unknown variable {variable} ({choice})", head(name, piece)));
        }
    }
}

/// The environment in which [`render`] tries templates.
pub(super) fn lenient(env: &Environment<'static>) -> Environment<'static> {
    let mut lenient = env.clone();
    lenient.set_undefined_behavior(UndefinedBehavior::Chainable);
    lenient
}

/// Renders `name` twice, with everything there and with nothing there, to walk both sides of most conditions.
/// Only what no value could mend is a problem.
pub(super) fn render(lenient: &Environment<'static>, name: &str, piece: &TemplateText, problems: &mut Vec<String>) {
    let Ok(template) = lenient.get_template(name) else { return };
    let failure = [Value::from_object(Anything), Value::UNDEFINED]
        .into_iter()
        .find_map(|values| template.render(values).err().filter(is_hopeless));
    if let Some(error) = failure {
        problems.push(told(name, piece, &error));
    }
}

/// Does the template fail whatever the values are? For an include, the inner error decides.
fn is_hopeless(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::UnknownFunction | ErrorKind::TemplateNotFound => true,
        ErrorKind::BadInclude => error.source().and_then(|inner| inner.downcast_ref()).is_some_and(is_hopeless),
        _ => false,
    }
}

/// Variables that a template looks up, with their members (`plan.goal`), in order.
fn variables(env: &Environment<'static>, name: &str) -> Vec<String> {
    let mut found: Vec<String> = env
        .get_template(name)
        .map(|template| template.undeclared_variables(true))
        .unwrap_or_default()
        .into_iter()
        .collect();
    found.sort();
    found
}

/// Does code that provides the variables `known` provide `variable` too? Yes for what they contain, and for members
/// of a value that the original hands on as a whole (`{{ plan|tojson }}` may become `{{ plan.goal }}`).
fn is_provided(variable: &str, known: &[String]) -> bool {
    let is_opaque = |whole: &str| !known.iter().any(|other| other != whole && within(other, whole));
    known
        .iter()
        .any(|one| within(one, variable) || (within(variable, one) && is_opaque(one)))
}

/// Is `part` the variable `whole` or a member of it?
fn within(part: &str, whole: &str) -> bool {
    part.strip_prefix(whole)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// File, and line of the prompt or key of the text.
fn head(name: &str, piece: &TemplateText) -> String {
    match name.split_once('#') {
        Some((_, key)) => format!("{}: {key}", piece.place),
        None => piece.place.clone(),
    }
}

fn told(name: &str, piece: &TemplateText, error: &Error) -> String {
    let line = error
        .line()
        .filter(|_| !name.contains('#'))
        .map(|line| format!(":{line}"))
        .unwrap_or_default();
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{}{line}: {}{detail}", head(name, piece), error.kind())
}

/// Has every member, is true, and lists itself once.
#[derive(Debug)]
struct Anything;

impl Object for Anything {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, _: &Value) -> Option<Value> {
        Some(Value::from_dyn_object(Arc::clone(self)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(1)
    }

    fn render(self: &Arc<Self>, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}

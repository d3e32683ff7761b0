//! The agent's folder holds nothing of the gateway's own: a tool that may write there must not be able to read a secret or to
//! change what decides about questions.

use std::path::{Component, Path, PathBuf};

use secrecy::ExposeSecret;

use super::boot::Boot;
use super::database_address::DatabaseAddress;
use super::problem::Report;
use super::values::Values;

const KEY: &str = "tools.workspace";

/// Refuses a workspace that holds the `file` of the configuration, the database, the templates or one of the `secrets` (variable and
/// file), or that is a part of the templates.
pub(super) fn check_workspace(boot: &Boot, layered: &Values, file: &Path, secrets: &[(String, PathBuf)], report: &mut Report) {
    let Some(workspace) = boot.tools.workspace.as_ref().filter(|_| !report.is_refused(KEY)) else {
        return;
    };
    // A folder that is not there is refused by whoever opens it.
    let Ok(root) = workspace.canonicalize() else { return };
    let place = layered.origin(KEY).unwrap_or("default").to_owned();
    let mut refuse = |relation: &str, what: &str, path: &Path| {
        report.problem(
            place.clone(),
            KEY,
            format!(
                "found `{}`, which {relation} {what} `{}`: the agent could read or change it; move one of the two, so that the workspace is \
                 a folder of its own",
                workspace.display(),
                path.display()
            ),
        );
    };
    let mut ours = vec![("the configuration".to_owned(), file.to_path_buf())];
    ours.extend(database(boot).map(|path| ("the database".to_owned(), path)));
    ours.extend(
        secrets
            .iter()
            .map(|(variable, path)| (format!("the secret of {variable},"), path.clone())),
    );
    ours.extend(
        layered
            .key_files()
            .map(|(key, file)| (format!("the secret of {key},"), PathBuf::from(file))),
    );
    if let Some(templates) = &boot.templates {
        ours.push(("the templates".to_owned(), templates.clone()));
        if places(templates).iter().any(|folder| root.starts_with(folder) && *folder != root) {
            refuse("is a part of", "the templates", templates);
        }
    }
    for (what, path) in ours {
        if places(&path).iter().any(|place| place.starts_with(&root)) {
            refuse("holds", &what, &path);
        }
    }
}

/// The file of a SQLite database; beside it lie its log and its lock.
fn database(boot: &Boot) -> Option<PathBuf> {
    match DatabaseAddress::parse(boot.stores.database_url.expose_secret()) {
        Ok(DatabaseAddress::File(path)) => Some(path),
        Ok(DatabaseAddress::Server) | Err(_) => None,
    }
}

/// Where `path` is: the name itself, whose folder may be reached through links, and what it leads to. Who may change a link may put
/// something else in its place.
fn places(path: &Path) -> Vec<PathBuf> {
    let Ok(absolute) = std::path::absolute(path) else {
        return Vec::new();
    };
    let named = match (absolute.parent(), absolute.file_name()) {
        (Some(folder), Some(name)) => real(folder).join(name),
        _ => real(&absolute),
    };
    vec![named, real(&absolute)]
}

/// `path` without links and detours, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let Some((known, rest)) = path
        .ancestors()
        .find_map(|above| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?)))
    else {
        return path.to_path_buf();
    };
    rest.components().fold(known, |mut at, part| {
        match part {
            Component::ParentDir => {
                at.pop();
            }
            part => at.push(part),
        }
        at
    })
}

//! No cycle between the files of a room: a file that needs another one is not needed by it, directly or by way of others.
//!
//! A file needs the file in which a name that it uses is defined, also when it reaches the name by a re-export. A parent that re-exports
//! names of its children does not need them. Tests inside `src` do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::{code, home, sources};

/// A module by its path, the package's name first.
type Module = Vec<String>;

/// What each file names.
struct Map {
    /// The files of the rooms by their modules.
    files: BTreeMap<Module, String>,
    /// Names that a module took in from elsewhere, and where they come from.
    taken_in: BTreeMap<(Module, String), Module>,
    /// For each file those of its room that it needs, each with a path that says so.
    needs: BTreeMap<String, BTreeMap<String, String>>,
}

impl Map {
    fn of(sources: Vec<(String, String)>) -> Self {
        let mut map = Self {
            files: BTreeMap::new(),
            taken_in: BTreeMap::new(),
            needs: BTreeMap::new(),
        };
        let mut texts = BTreeMap::new();
        for (file, text) in sources {
            let is_test = file.ends_with("/tests.rs") || file.contains("/tests/");
            if let Some(module) = module_of(&file).filter(|_| !is_test) {
                map.files.insert(module.clone(), file);
                texts.insert(module, code(without_tests(&text)));
            }
        }
        let paths: Vec<(Module, Path)> = texts
            .iter()
            .flat_map(|(module, text)| map.paths(module, text).into_iter().map(|path| (module.clone(), path)))
            .collect();
        for (module, path) in &paths {
            if path.takes_in
                && let Some(name) = &path.name
            {
                map.taken_in.insert((module.clone(), name.clone()), path.to.clone());
            }
        }
        for (module, path) in paths {
            map.note(&module, &path);
        }
        map
    }

    /// Notes that the file of `module` needs the one in which `path` ends.
    fn note(&mut self, module: &Module, path: &Path) {
        let Some(target) = self.defined_in(&path.to, 0) else { return };
        let (from, to) = (&self.files[module], &self.files[&target]);
        let re_export = path.is_public && target.starts_with(module);
        if from != to && home(from) == home(to) && !re_export {
            let said = path.to.join("::");
            self.needs.entry(from.clone()).or_default().entry(to.clone()).or_insert(said);
        }
    }

    /// The module in whose file what `path` names is defined; `None` outside of the rooms.
    fn defined_in(&self, path: &[String], depth: usize) -> Option<Module> {
        let known = (1..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let module = path[..known].to_vec();
        let taken_in = path.get(known).and_then(|name| self.taken_in.get(&(module.clone(), name.clone())));
        match taken_in {
            Some(from) if depth < 8 && from != path => self.defined_in(from, depth + 1),
            _ => Some(module),
        }
    }

    /// Every path that `text`, the code of `module`, names: those of `use`, and those that begin with `crate`, `super`, `self` or a child.
    fn paths(&self, module: &Module, text: &str) -> Vec<Path> {
        let mut found = Vec::new();
        let mut rest = text;
        let mut before = String::new();
        while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
            before.push_str(&rest[..start]);
            rest = &rest[start..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let word = &rest[..end];
            let is_path = rest[end..].starts_with("::") && !before.ends_with("::");
            if let Some(root) = self.root(module, word).filter(|_| is_path) {
                let statement = before.rsplit([';', '}']).next().unwrap_or_default();
                let takes_in = statement.trim_end().ends_with("use");
                let is_public = takes_in && statement.contains("pub");
                for (to, name) in use_tree(root, rest[end + 2..].trim_start()) {
                    found.push(Path {
                        to: without_super(to),
                        name,
                        takes_in,
                        is_public,
                    });
                }
            }
            before.push_str(word);
            rest = &rest[end..];
        }
        found
    }

    /// The module that `word` means at the beginning of a path in `module`.
    fn root(&self, module: &Module, word: &str) -> Option<Module> {
        let child = [module.as_slice(), &[word.to_owned()]].concat();
        match word {
            "crate" => Some(module[..1].to_vec()),
            "self" => Some(module.clone()),
            "super" => Some(module[..module.len() - 1].to_vec()),
            _ => self.files.contains_key(&child).then_some(child),
        }
    }

    /// Files that need one another in a circle, each cycle in order.
    fn cycles(&self) -> Vec<Vec<String>> {
        let reach: BTreeMap<&String, BTreeSet<&String>> = self.needs.keys().map(|file| (file, self.reached(file))).collect();
        let reaches = |from: &String, to: &String| reach.get(from).is_some_and(|all| all.contains(to));
        let mut cycles: Vec<Vec<String>> = Vec::new();
        for file in self.needs.keys().filter(|file| reaches(file, file)) {
            match cycles.iter_mut().find(|cycle| reaches(file, &cycle[0]) && reaches(&cycle[0], file)) {
                Some(cycle) => cycle.push(file.clone()),
                None => cycles.push(vec![file.clone()]),
            }
        }
        cycles
    }

    /// The files that `file` needs, directly or by way of others.
    fn reached<'a>(&'a self, file: &'a String) -> BTreeSet<&'a String> {
        let mut all = BTreeSet::new();
        let mut open = vec![file];
        while let Some(next) = open.pop() {
            for needed in self.needs.get(next).into_iter().flat_map(BTreeMap::keys) {
                if all.insert(needed) {
                    open.push(needed);
                }
            }
        }
        all
    }

    /// The imports inside a cycle, one a line.
    fn told(&self, cycle: &[String]) -> String {
        let mut lines = Vec::new();
        for file in cycle {
            for (needed, path) in self
                .needs
                .get(file)
                .into_iter()
                .flatten()
                .filter(|(needed, _)| cycle.contains(needed))
            {
                lines.push(format!("    {file} names {path}, of {needed}"));
            }
        }
        lines.join("\n")
    }
}

/// A path that a file names.
struct Path {
    /// From the package on.
    to: Module,
    /// Under which name a `use` takes it in.
    name: Option<String>,
    takes_in: bool,
    is_public: bool,
}

/// `super` inside a path leads one module up.
fn without_super(path: Module) -> Module {
    let mut plain = Module::new();
    for part in path {
        match part.as_str() {
            "super" => drop(plain.pop()),
            "self" => (),
            _ => plain.push(part),
        }
    }
    plain
}

/// The paths of a use tree below `root`, each with the name that it brings.
fn use_tree(root: Module, text: &str) -> Vec<(Module, Option<String>)> {
    let Some(group) = text.strip_prefix('{') else {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, after) = text.split_at(end);
        if word.is_empty() {
            return vec![(root, None)];
        }
        let path = [root.as_slice(), &[word.to_owned()]].concat();
        if let Some(deeper) = after.strip_prefix("::") {
            return use_tree(path, deeper.trim_start());
        }
        let renamed = after.trim_start().strip_prefix("as ").map(str::trim_start);
        let name = match (renamed, word) {
            (Some(name), _) => name
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
                .map(str::to_owned),
            (None, "self") => root.last().cloned(),
            (None, word) => Some(word.to_owned()),
        };
        return vec![(path, name)];
    };
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                let part = group[start..at].trim_start();
                if !part.is_empty() {
                    found.extend(use_tree(root.clone(), part));
                }
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => (),
        }
    }
    found
}

/// The text of a file up to the tests at its end.
pub(super) fn without_tests(text: &str) -> &str {
    let is_module = |after: &str| after.lines().nth(1).is_some_and(|line| line.contains("mod ") && line.contains('{'));
    let tests = text.match_indices("#[cfg(test)]").find(|(at, _)| is_module(&text[*at..]));
    tests.map_or(text, |(at, _)| &text[..at])
}

/// The module of a file of a room; `None` for other files.
fn module_of(file: &str) -> Option<Module> {
    let packages = [
        ("agent", "crates/agent/src/"),
        ("gateway", "crates/gateway/src/"),
        ("countersign", "src/"),
    ];
    let (package, inside) = packages
        .iter()
        .find_map(|(package, folder)| Some((package, file.strip_prefix(folder)?)))?;
    home(file)?;
    let parts = inside.trim_end_matches(".rs").split('/').map(str::to_owned);
    Some([(*package).to_owned()].into_iter().chain(parts).collect())
}

/// design: no cycle between the files of a room.
#[test]
fn files_of_a_room_need_each_other_in_one_direction() {
    let map = Map::of(sources());
    let cycles: Vec<String> = map.cycles().iter().map(|cycle| map.told(cycle)).collect();
    assert!(cycles.is_empty(), "turn one import of each cycle around:\n{}", cycles.join("\n\n"));
}

/// design: the scan finds a cycle, by way of others and of re-exports too, and does not take a re-export for one.
#[test]
fn the_scan_sees_cycles() {
    let cycles = |files: &[(&str, &str)]| {
        let sources = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        Map::of(sources.collect()).cycles()
    };
    let pair = [
        (
            "crates/gateway/src/room.rs",
            "mod a;\nmod b;\npub use a::A;\npub(crate) use b::{B, c};",
        ),
        ("crates/gateway/src/room/a.rs", "use super::b::{self, B};\npub struct A;"),
    ];
    let with = |text| cycles(&[pair[0], pair[1], ("crates/gateway/src/room/b.rs", text)]);
    let both = [["crates/gateway/src/room/a.rs", "crates/gateway/src/room/b.rs"]
        .map(str::to_owned)
        .to_vec()];
    assert_eq!(with("pub struct B;"), Vec::<Vec<String>>::new());
    for back in [
        "use super::a::A;",
        "use super::A;",
        "use crate::room::{x, a::{y as z}};",
        "fn f() { super::a::g(); }",
    ] {
        assert_eq!(with(back), both, "{back}");
    }
    assert_eq!(
        with("// use super::a::A;\n#[cfg(test)]\nmod tests { use super::super::A; }"),
        Vec::<Vec<String>>::new()
    );
    let own = |text| {
        cycles(&[
            ("crates/gateway/src/room.rs", text),
            ("crates/gateway/src/room/a.rs", "use super::Own;"),
        ])
    };
    assert_eq!(own("mod a;\npub use a::A;\npub struct Own;"), Vec::<Vec<String>>::new());
    assert_eq!(own("mod a;\nfn f() { a::g(); }").len(), 1);
    assert_eq!(own("mod a;\nuse a::{A};").len(), 1);
}

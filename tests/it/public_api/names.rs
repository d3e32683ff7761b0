//! Where a name leads: modules, imports and re-exports of the source tree, as far as the public API needs them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use quote::ToTokens;
use syn::{Item, ItemImpl, Type, UseTree, Visibility};

/// A module, from the crate's root.
pub type Place = Vec<String>;
/// An item: its module and its name there.
pub type Home = (Place, String);

/// Re-exports that one name may lead through.
const LINKS: usize = 16;

/// The rooms' sources, without their tests.
#[derive(Default)]
pub struct Crate {
    modules: BTreeMap<Place, Vec<Item>>,
}

impl Crate {
    pub fn read(sources: &Path, rooms: &[&str]) -> Self {
        let mut all = Self::default();
        for room in rooms {
            all.file(&sources.join(format!("{room}.rs")), vec![(*room).to_owned()]);
        }
        all
    }

    fn file(&mut self, file: &Path, place: Place) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let items = syn::parse_file(&text).unwrap().items;
        self.module(items, place, &file.with_extension(""));
    }

    fn module(&mut self, items: Vec<Item>, place: Place, folder: &Path) {
        let items = spelled_out(items);
        for item in &items {
            let Item::Mod(child) = item else { continue };
            if child
                .attrs
                .iter()
                .any(|attribute| attribute.to_token_stream().to_string().contains("cfg (test)"))
            {
                continue;
            }
            let name = child.ident.to_string();
            let inner: Place = place.iter().cloned().chain([name.clone()]).collect();
            match &child.content {
                Some((_, items)) => self.module(items.clone(), inner, &folder.join(name)),
                None => self.file(&folder.join(format!("{name}.rs")), inner),
            }
        }
        self.modules.insert(place, items);
    }

    /// Items that can be reached from outside, with the path by which.
    pub fn exported(&self, rooms: &[&str]) -> BTreeMap<Home, String> {
        let mut found = BTreeMap::new();
        for room in rooms {
            self.export(&vec![(*room).to_owned()], room, &mut found);
        }
        found
    }

    fn export(&self, place: &Place, path: &str, found: &mut BTreeMap<Home, String>) {
        for item in &self.modules[place] {
            match item {
                Item::Use(import) if public(&import.vis) => {
                    for (name, target) in leaves(&import.tree) {
                        // What is somebody else's has a page of its own.
                        if let Some(home) = self.find(place, &target) {
                            found.insert(home, format!("{path}::{name}"));
                        }
                    }
                }
                Item::Mod(child) if public(&child.vis) => {
                    let inner: Place = place.iter().cloned().chain([child.ident.to_string()]).collect();
                    self.export(&inner, &format!("{path}::{}", child.ident), found);
                }
                other => {
                    if let Some((name, true)) = named(other) {
                        found.entry((place.clone(), name.clone())).or_insert(format!("{path}::{name}"));
                    }
                }
            }
        }
    }

    /// The items of this home: most often one.
    pub fn items(&self, (place, name): &Home) -> impl Iterator<Item = &Item> {
        let items = self.modules.get(place).into_iter().flatten();
        items.filter(move |item| named(item).is_some_and(|(found, _)| found == *name))
    }

    pub fn impls(&self) -> impl Iterator<Item = (&Place, &ItemImpl)> {
        self.modules.iter().flat_map(|(place, items)| {
            items.iter().filter_map(move |item| match item {
                Item::Impl(block) => Some((place, block)),
                _ => None,
            })
        })
    }

    /// The home of what `path` names in the module `place`.
    pub fn find(&self, place: &Place, path: &[String]) -> Option<Home> {
        self.follow(place, path, LINKS)
    }

    fn follow(&self, place: &Place, path: &[String], links: usize) -> Option<Home> {
        let (first, rest) = path.split_first()?;
        let links = links.checked_sub(1)?;
        match first.as_str() {
            "crate" => return self.follow(&Vec::new(), rest, links),
            "self" => return self.follow(place, rest, links),
            "super" => return self.follow(&place[..place.len().checked_sub(1)?].to_vec(), rest, links),
            _ => (),
        }
        let items = self.modules.get(place);
        let here = || items.into_iter().flatten();
        if rest.is_empty() && here().any(|item| named(item).is_some_and(|(name, _)| name == *first)) {
            return Some((place.clone(), first.clone()));
        }
        let child: Place = place.iter().cloned().chain([first.clone()]).collect();
        if !rest.is_empty() && self.modules.contains_key(&child) {
            return self.follow(&child, rest, links);
        }
        here()
            .filter_map(|item| match item {
                Item::Use(import) => leaves(&import.tree).into_iter().find(|(name, _)| name == first),
                _ => None,
            })
            .find_map(|(_, target)| {
                let whole: Vec<String> = target.into_iter().chain(rest.iter().cloned()).collect();
                // A name cannot lead to itself.
                (whole != path).then(|| self.follow(place, &whole, links))?
            })
    }
}

/// What macros of the same file make: each call of a macro with one rule and one name is replaced by its items.
fn spelled_out(items: Vec<Item>) -> Vec<Item> {
    let rules: Vec<(String, String)> = items
        .iter()
        .filter_map(|item| match item {
            Item::Macro(rule) => Some((rule.ident.as_ref()?.to_string(), rule.mac.tokens.to_string())),
            _ => None,
        })
        .collect();
    let made = |item: Item| -> Vec<Item> {
        let Item::Macro(call) = &item else { return vec![item] };
        let called = call.mac.path.to_token_stream().to_string();
        let Some((_, rule)) = rules.iter().find(|(name, _)| *name == called) else {
            return vec![item];
        };
        let body = rule.split_once("=> {").unwrap().1.trim_end().trim_end_matches(';').trim_end();
        let tokens = call.mac.tokens.to_string();
        let name = tokens.rsplit(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap();
        let body = body.strip_suffix('}').unwrap();
        let text = body.replace("$ (# [$ doc]) *", "").replace("$ name", name);
        syn::parse_file(&text)
            .unwrap_or_else(|error| panic!("{called}!: {error}: {text}"))
            .items
    };
    items.into_iter().flat_map(made).collect()
}

pub fn public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Name of a definition, and whether it is public.
fn named(item: &Item) -> Option<(String, bool)> {
    let (name, visibility) = match item {
        Item::Const(item) => (&item.ident, &item.vis),
        Item::Enum(item) => (&item.ident, &item.vis),
        Item::Fn(item) => (&item.sig.ident, &item.vis),
        Item::Static(item) => (&item.ident, &item.vis),
        Item::Struct(item) => (&item.ident, &item.vis),
        Item::Trait(item) => (&item.ident, &item.vis),
        Item::Type(item) => (&item.ident, &item.vis),
        _ => return None,
    };
    Some((name.to_string(), public(visibility)))
}

/// The names that a `use` brings in, and where each leads.
fn leaves(tree: &UseTree) -> Vec<(String, Vec<String>)> {
    match tree {
        UseTree::Path(path) => leaves(&path.tree)
            .into_iter()
            .map(|(name, mut target)| {
                target.insert(0, path.ident.to_string());
                // `a::{self}` brings in `a`.
                if name == "self" {
                    (path.ident.to_string(), target[..1].to_vec())
                } else {
                    (name, target)
                }
            })
            .collect(),
        UseTree::Name(name) => vec![(name.ident.to_string(), vec![name.ident.to_string()])],
        UseTree::Rename(name) => vec![(name.rename.to_string(), vec![name.ident.to_string()])],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        // No room has one; what it brings in would be missing on the page.
        UseTree::Glob(_) => panic!("`use …::*` hides what is public"),
    }
}

/// The path of a type, if it is a path.
pub fn type_path(of: &Type) -> Option<Vec<String>> {
    match of {
        Type::Path(path) => Some(path.path.segments.iter().map(|segment| segment.ident.to_string()).collect()),
        _ => None,
    }
}

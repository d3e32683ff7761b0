//! The lines of one item of the public API.

use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, ItemEnum, ItemImpl, ItemStruct, ItemTrait, TraitItem};

use super::names::public;

/// A definition and its parts; `path`: what it is called outside.
pub fn item(item: &Item, path: &str) -> Vec<String> {
    match item {
        Item::Const(item) => vec![format!("{path}: const {}", text(&item.ty))],
        Item::Static(item) => vec![format!("{path}: static {}", text(&item.ty))],
        Item::Type(item) => vec![format!("{path}: type{} = {}", text(&item.generics), text(&item.ty))],
        Item::Fn(item) => vec![format!("{path}: {}", text(&item.sig))],
        Item::Struct(item) => structure(item, path),
        Item::Enum(item) => variants(item, path),
        Item::Trait(item) => methods(item, path),
        _ => Vec::new(),
    }
}

/// What `impl` adds to a type.
pub fn implementation(block: &ItemImpl, path: &str) -> Vec<String> {
    if let Some((_, of, _)) = &block.trait_ {
        return vec![format!("{path}: impl{} {}", text(&block.generics), text(of))];
    }
    let shown = block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) if public(&method.vis) => Some(format!("{path}::{}: {}", method.sig.ident, text(&method.sig))),
        ImplItem::Const(one) if public(&one.vis) => Some(format!("{path}::{}: const {}", one.ident, text(&one.ty))),
        _ => None,
    });
    shown.collect()
}

fn structure(item: &ItemStruct, path: &str) -> Vec<String> {
    let hidden = item.fields.iter().any(|field| !public(&field.vis));
    let hidden = if hidden { ", with private fields" } else { "" };
    let head = format!("{path}: struct{}{}{hidden}", text(&item.generics), derives(&item.attrs));
    let fields = item.fields.iter().enumerate().filter(|(_, field)| public(&field.vis));
    let fields = fields.map(|(at, field)| {
        let name = field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
        format!("{path}.{name}: {}", text(&field.ty))
    });
    std::iter::once(head).chain(fields).collect()
}

fn variants(item: &ItemEnum, path: &str) -> Vec<String> {
    let head = format!("{path}: enum{}{}", text(&item.generics), derives(&item.attrs));
    let variants = item.variants.iter().map(|variant| {
        let fields = variant.fields.iter().map(|field| match &field.ident {
            Some(name) => format!("{name}: {}", text(&field.ty)),
            None => text(&field.ty),
        });
        let fields = fields.collect::<Vec<_>>().join(", ");
        let fields = match &variant.fields {
            Fields::Unit => String::new(),
            Fields::Unnamed(_) => format!("({fields})"),
            Fields::Named(_) => format!(" {{ {fields} }}"),
        };
        format!("{path}::{}{fields}", variant.ident)
    });
    std::iter::once(head).chain(variants).collect()
}

fn methods(item: &ItemTrait, path: &str) -> Vec<String> {
    let above = if item.supertraits.is_empty() {
        String::new()
    } else {
        format!(": {}", text(&item.supertraits))
    };
    let head = format!("{path}: trait{}{above}", text(&item.generics));
    let parts = item.items.iter().filter_map(|part| match part {
        TraitItem::Fn(method) => {
            let given = if method.default.is_some() { ", with a default" } else { "" };
            Some(format!("{path}::{}: {}{given}", method.sig.ident, text(&method.sig)))
        }
        TraitItem::Const(one) => Some(format!("{path}::{}: const {}", one.ident, text(&one.ty))),
        TraitItem::Type(one) => Some(format!("{path}::{}: type", one.ident)),
        _ => None,
    });
    std::iter::once(head).chain(parts).collect()
}

fn derives(attributes: &[Attribute]) -> String {
    let derived = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let mut names: Vec<String> = derived
        .flat_map(|attribute| {
            let list = attribute.meta.require_list().unwrap().tokens.to_string();
            list.split(',').map(|name| name.replace(' ', "")).collect::<Vec<_>>()
        })
        .filter(|name| !name.is_empty())
        .collect();
    names.sort();
    if names.is_empty() {
        String::new()
    } else {
        format!(", derives {}", names.join(", "))
    }
}

/// Tokens as people write them: blanks only where they are wanted.
fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (from, to) in [
        (" ::", "::"),
        (":: ", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" ,", ","),
        (" :", ":"),
        (" ;", ";"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("[ ", "["),
        (" ]", "]"),
        ("->(", "-> ("),
        (",(", ", ("),
        ("=(", "= ("),
        (",)", ")"),
    ] {
        text = text.replace(from, to);
    }
    text
}

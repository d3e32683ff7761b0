//! The rules of Card JSON 2.0 that the platform enforces, as a checker: for tests and for the Lark that we play.
//!
//! It knows the components that we use and the properties the platform documents for them. Everything else is an
//! error, because 2.0 refuses the whole card over one unknown property (230099, inner 200861 or 200621).

mod rules;

use std::collections::HashSet;

use rules::{allowed, behaviors, check_markdown, known, object, one_of};
use serde_json::{Map, Value};

const MAX_BYTES: usize = 30_000;
const MAX_COMPONENTS: usize = 200;
const MAX_NESTING: usize = 5;
const HEADER_COLORS: [&str; 13] = [
    "blue",
    "wathet",
    "turquoise",
    "green",
    "yellow",
    "orange",
    "red",
    "carmine",
    "violet",
    "purple",
    "indigo",
    "grey",
    "default",
];
const BUTTON_TYPES: [&str; 9] = [
    "default",
    "primary",
    "danger",
    "text",
    "primary_text",
    "danger_text",
    "primary_filled",
    "danger_filled",
    "laser",
];

/// Does the platform take `card`?
///
/// # Errors
/// The first broken rule, with the place where it is broken.
pub fn check_card(card: &Value) -> Result<(), String> {
    let bytes = card.to_string().len();
    if bytes > MAX_BYTES {
        return Err(format!("card has {bytes} bytes, allowed {MAX_BYTES}"));
    }
    let root = object(card, "card")?;
    known(root, "card", &["schema", "config", "card_link", "header", "body"])?;
    if root.get("schema").and_then(Value::as_str) != Some("2.0") {
        return Err(String::from("card.schema is not \"2.0\""));
    }
    let config = object(&card["config"], "card.config")?;
    known(
        config,
        "card.config",
        &[
            "streaming_mode",
            "streaming_config",
            "summary",
            "locales",
            "enable_forward",
            "update_multi",
            "width_mode",
            "use_custom_translation",
            "enable_forward_interaction",
            "style",
        ],
    )?;
    if config.get("update_multi") != Some(&Value::Bool(true)) {
        return Err(String::from("card.config.update_multi is not true"));
    }
    let mut walk = Walk::default();
    if let Some(header) = root.get("header") {
        walk.header(header)?;
    }
    let body = object(&card["body"], "card.body")?;
    known(
        body,
        "card.body",
        &[
            "direction",
            "padding",
            "horizontal_spacing",
            "vertical_spacing",
            "horizontal_align",
            "vertical_align",
            "elements",
        ],
    )?;
    walk.elements(
        body,
        "card.body",
        &Place {
            depth: 1,
            form: false,
            panel: false,
        },
    )?;
    if walk.components > MAX_COMPONENTS {
        return Err(format!("card has {} components, allowed {MAX_COMPONENTS}", walk.components));
    }
    Ok(())
}

struct Place {
    depth: usize,
    form: bool,
    panel: bool,
}

impl Place {
    fn inner(&self) -> Self {
        Self {
            depth: self.depth + 1,
            ..*self
        }
    }
}

/// What must be unique or counted over the whole card.
#[derive(Default)]
struct Walk {
    ids: HashSet<String>,
    names: HashSet<String>,
    components: usize,
    submits: usize,
}

impl Walk {
    fn header(&mut self, header: &Value) -> Result<(), String> {
        let at = "card.header";
        let map = object(header, at)?;
        known(
            map,
            at,
            &[
                "title",
                "subtitle",
                "text_tag_list",
                "i18n_text_tag_list",
                "template",
                "icon",
                "padding",
            ],
        )?;
        self.text(map.get("title").ok_or("card.header has no title")?, "card.header.title", usize::MAX)?;
        if let Some(subtitle) = map.get("subtitle") {
            self.text(subtitle, "card.header.subtitle", usize::MAX)?;
        }
        one_of(map, "template", at, &HEADER_COLORS)?;
        let tags = map.get("text_tag_list").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if tags.len() > 3 {
            return Err(format!("{at} has {} tags, allowed 3", tags.len()));
        }
        for tag in tags {
            let tag = object(tag, "card.header.text_tag_list")?;
            known(tag, "card.header.text_tag_list", &["tag", "element_id", "text", "color"])?;
            self.text(
                tag.get("text").ok_or("a header tag has no text")?,
                "card.header.text_tag_list.text",
                usize::MAX,
            )?;
        }
        Ok(())
    }

    fn elements(&mut self, parent: &Map<String, Value>, at: &str, place: &Place) -> Result<(), String> {
        let elements = parent
            .get("elements")
            .and_then(Value::as_array)
            .ok_or_else(|| format!("{at} has no elements"))?;
        for (index, element) in elements.iter().enumerate() {
            self.element(element, &format!("{at}.elements[{index}]"), place)?;
        }
        Ok(())
    }

    fn element(&mut self, element: &Value, at: &str, place: &Place) -> Result<(), String> {
        if place.depth > MAX_NESTING {
            return Err(format!("{at} is nested deeper than {MAX_NESTING}"));
        }
        self.components += 1;
        let map = object(element, at)?;
        self.element_id(map, at)?;
        let tag = map.get("tag").and_then(Value::as_str).unwrap_or_default();
        match tag {
            "markdown" => {
                allowed(map, at, &["content", "i18n_content", "text_size", "text_align", "icon"])?;
                let content = map
                    .get("content")
                    .and_then(Value::as_str)
                    .ok_or_else(|| format!("{at} has no content"))?;
                check_markdown(content).map_err(|why| format!("{at}: {why}"))
            }
            "div" => {
                allowed(map, at, &["text", "fields", "icon", "width"])?;
                self.text(map.get("text").ok_or_else(|| format!("{at} has no text"))?, at, usize::MAX)
            }
            "hr" => allowed(map, at, &[]),
            "button" => self.button(map, at, place),
            "input" => self.input(map, at, place),
            "checker" => self.checker(map, at, place),
            "column_set" => self.columns(map, at, place),
            "form" => self.form(map, at, place),
            "collapsible_panel" => {
                allowed(
                    map,
                    at,
                    &[
                        "expanded",
                        "header",
                        "border",
                        "elements",
                        "padding",
                        "vertical_spacing",
                        "direction",
                        "background_color",
                    ],
                )?;
                self.elements(
                    map,
                    at,
                    &Place {
                        panel: true,
                        ..place.inner()
                    },
                )
            }
            // 1.0 tags and whatever else: refused as a whole.
            other => Err(format!("{at}: tag {other:?} is not in 2.0 (200861)")),
        }
    }

    fn element_id(&mut self, map: &Map<String, Value>, at: &str) -> Result<(), String> {
        let Some(id) = map.get("element_id") else {
            return Ok(());
        };
        let id = id.as_str().unwrap_or_default();
        let legal = id.len() <= 20
            && id.starts_with(|c: char| c.is_ascii_alphabetic())
            && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !legal {
            return Err(format!("{at}: element_id {id:?} is not legal"));
        }
        if !self.ids.insert(id.to_owned()) {
            return Err(format!("{at}: element_id {id:?} is used twice (300301)"));
        }
        Ok(())
    }

    fn text(&mut self, text: &Value, at: &str, max: usize) -> Result<(), String> {
        self.components += 1;
        let map = object(text, at)?;
        known(
            map,
            at,
            &["tag", "content", "i18n_content", "text_size", "text_align", "text_color", "lines"],
        )?;
        let content = map
            .get("content")
            .and_then(Value::as_str)
            .ok_or_else(|| format!("{at} has no content"))?;
        let length = content.chars().count();
        if length > max {
            return Err(format!("{at} has {length} characters, allowed {max}"));
        }
        match map.get("tag").and_then(Value::as_str) {
            Some("plain_text") => Ok(()),
            Some("lark_md") => check_markdown(content).map_err(|why| format!("{at}: {why}")),
            other => Err(format!("{at}: text tag {other:?} is not known")),
        }
    }

    fn button(&mut self, map: &Map<String, Value>, at: &str, place: &Place) -> Result<(), String> {
        allowed(
            map,
            at,
            &[
                "text",
                "type",
                "size",
                "width",
                "icon",
                "hover_tips",
                "disabled",
                "disabled_tips",
                "confirm",
                "behaviors",
                "name",
                "form_action_type",
            ],
        )?;
        one_of(map, "type", at, &BUTTON_TYPES)?;
        self.text(map.get("text").ok_or_else(|| format!("{at} has no text"))?, at, 100)?;
        if let Some(confirm) = map.get("confirm") {
            let confirm = object(confirm, at)?;
            known(confirm, at, &["title", "text"])?;
            for part in ["title", "text"] {
                self.text(
                    confirm.get(part).ok_or_else(|| format!("{at}: confirm has no {part}"))?,
                    at,
                    usize::MAX,
                )?;
            }
        }
        behaviors(map, at)?;
        let action = map.get("form_action_type").and_then(Value::as_str);
        if !place.form {
            return if action.is_some() {
                Err(format!("{at}: form_action_type outside a form"))
            } else {
                Ok(())
            };
        }
        self.name(map, at)?;
        match action {
            Some("submit") => {
                self.submits += 1;
                Ok(())
            }
            Some("reset") => Ok(()),
            _ => Err(format!("{at}: a button in a form needs form_action_type")),
        }
    }

    fn checker(&mut self, map: &Map<String, Value>, at: &str, place: &Place) -> Result<(), String> {
        allowed(
            map,
            at,
            &[
                "name",
                "checked",
                "text",
                "overall_checkable",
                "checked_style",
                "padding",
                "disabled",
                "behaviors",
            ],
        )?;
        self.text(map.get("text").ok_or_else(|| format!("{at} has no text"))?, at, usize::MAX)?;
        if !map.get("checked").is_none_or(Value::is_boolean) {
            return Err(format!("{at}: checked is not true or false"));
        }
        if place.form { self.name(map, at) } else { Ok(()) }
    }

    fn input(&mut self, map: &Map<String, Value>, at: &str, place: &Place) -> Result<(), String> {
        allowed(
            map,
            at,
            &[
                "name",
                "input_type",
                "rows",
                "auto_resize",
                "max_rows",
                "max_length",
                "required",
                "placeholder",
                "default_value",
                "label",
                "label_position",
                "width",
                "disabled",
                "behaviors",
                "confirm",
            ],
        )?;
        if let Some(length) = map.get("max_length")
            && !(1..=1000).contains(&length.as_u64().unwrap_or(0))
        {
            return Err(format!("{at}: max_length {length} is not in 1..1000"));
        }
        if let Some(placeholder) = map.get("placeholder") {
            self.text(placeholder, at, 100)?;
        }
        if let Some(label) = map.get("label") {
            self.text(label, at, usize::MAX)?;
        }
        if place.form {
            return self.name(map, at);
        }
        if map.contains_key("required") {
            Err(format!("{at}: required outside a form"))
        } else {
            Ok(())
        }
    }

    /// The name of an interactive component in a form (client error 200530).
    fn name(&mut self, map: &Map<String, Value>, at: &str) -> Result<(), String> {
        match map.get("name").and_then(Value::as_str) {
            None | Some("") => Err(format!("{at} is in a form and has no name (200530)")),
            Some(name) if !self.names.insert(name.to_owned()) => Err(format!("{at}: name {name:?} is used twice")),
            Some(_) => Ok(()),
        }
    }

    fn columns(&mut self, map: &Map<String, Value>, at: &str, place: &Place) -> Result<(), String> {
        allowed(
            map,
            at,
            &["flex_mode", "horizontal_spacing", "horizontal_align", "columns", "background_style"],
        )?;
        one_of(map, "flex_mode", at, &["none", "stretch", "flow", "bisect", "trisect"])?;
        let columns = map
            .get("columns")
            .and_then(Value::as_array)
            .ok_or_else(|| format!("{at} has no columns"))?;
        for (index, column) in columns.iter().enumerate() {
            let at = format!("{at}.columns[{index}]");
            self.components += 1;
            let column = object(column, &at)?;
            allowed(
                column,
                &at,
                &[
                    "width",
                    "weight",
                    "elements",
                    "vertical_align",
                    "horizontal_align",
                    "vertical_spacing",
                    "padding",
                    "direction",
                    "background_style",
                ],
            )?;
            if column.get("tag").and_then(Value::as_str) != Some("column") {
                return Err(format!("{at} is not a column"));
            }
            self.element_id(column, &at)?;
            self.elements(column, &at, &place.inner())?;
        }
        Ok(())
    }

    fn form(&mut self, map: &Map<String, Value>, at: &str, place: &Place) -> Result<(), String> {
        allowed(
            map,
            at,
            &[
                "name",
                "elements",
                "direction",
                "padding",
                "horizontal_spacing",
                "vertical_spacing",
                "horizontal_align",
                "vertical_align",
            ],
        )?;
        if place.depth != 1 || place.form || place.panel {
            return Err(format!("{at}: a form stands only at the card's root"));
        }
        self.name(map, at)?;
        let before = self.submits;
        self.elements(
            map,
            at,
            &Place {
                form: true,
                ..place.inner()
            },
        )?;
        if self.submits == before {
            Err(format!("{at} has no submit button"))
        } else {
            Ok(())
        }
    }
}

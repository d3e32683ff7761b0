//! The modal of `views.open`.

use serde_json::Value;

use super::blocks::check_blocks;
use super::faults::Faults;

pub(super) fn check_view(faults: &mut Faults, view: &Value) {
    const KNOWN: [&str; 10] = [
        "type",
        "callback_id",
        "private_metadata",
        "title",
        "submit",
        "close",
        "notify_on_close",
        "clear_on_close",
        "external_id",
        "blocks",
    ];
    faults.known("view", view, &KNOWN);
    for name in ["title", "submit", "close"] {
        // A view with inputs needs a submit button.
        if name != "close" || !view[name].is_null() {
            faults.plain(&format!("view.{name}"), &view[name], 24);
        }
    }
    faults.string("view", view, "callback_id", 255);
    if !view["private_metadata"].is_null() {
        faults.string("view", view, "private_metadata", 3000);
    }
    let blocks = faults.list("view", view, "blocks", 100);
    check_blocks(faults, blocks, true);
}

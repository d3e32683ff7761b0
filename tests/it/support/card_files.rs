//! Cards as files, for the scripts that draw them and that ask other people's checkers.

use std::fs;
use std::path::PathBuf;

use countersign_agent::domain::Locale;
use serde_json::Value;

/// Writes `card` to the folder that `COUNTERSIGN_CARDS_TO` names, as `CHANNEL/NAME-LOCALE.json`.
pub fn write_card(channel: &str, name: &str, locale: Locale, card: &Value) {
    let folder = std::env::var_os("COUNTERSIGN_CARDS_TO").expect("COUNTERSIGN_CARDS_TO names a folder");
    let folder = PathBuf::from(folder).join(channel);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}-{}.json", locale.as_str()));
    fs::write(file, card.to_string()).unwrap();
}

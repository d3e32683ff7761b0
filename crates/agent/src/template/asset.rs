//! Files that the console serves as they are: its stylesheet and its script.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::pieces::Pieces;

/// A file with the digest that makes its address change when its text does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// The file.
    pub text: String,
    /// 16 hex digits over the text.
    pub digest: String,
}

/// Takes the files that are no templates out of both sets; an override wins.
pub(super) fn take(embedded: &mut Pieces, overrides: &mut Pieces) -> BTreeMap<String, Asset> {
    let mut assets = BTreeMap::new();
    for pieces in [embedded, overrides] {
        pieces.retain(|name, piece| {
            let served = name.starts_with("console/") && (name.ends_with(".css") || name.ends_with(".js"));
            if served {
                let text = piece.text.clone();
                let digest = hex::encode(&Sha256::digest(text.as_bytes())[..8]);
                assets.insert(name.clone(), Asset { text, digest });
            }
            !served
        });
    }
    assets
}

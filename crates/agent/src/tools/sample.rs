//! The bundled sample workspace: a small weekly-report folder for `countersign demo`.

use std::fs;
use std::io;
use std::path::Path;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../samples/workspace"]
struct Sample;

/// Writes the sample files below `folder`, which is created if need be.
///
/// # Errors
/// Whatever the file system says; a file that is there already is not overwritten but an error.
pub fn unpack_sample(folder: &Path) -> io::Result<()> {
    for name in Sample::iter() {
        let Some(file) = Sample::get(&name) else { continue };
        let path = folder.join(name.as_ref());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        io::Write::write_all(&mut fs::File::create_new(&path)?, &file.data)?;
    }
    Ok(())
}

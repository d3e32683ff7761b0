//! Rebuilds the library when a template or a migration is added: the macros that embed them watch only the files
//! that were there before.

fn main() {
    println!("cargo::rerun-if-changed=../../templates");
    println!("cargo::rerun-if-changed=../../migrations");
}

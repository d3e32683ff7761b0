//! Rebuilds the package when a prompt or a sample is added: the macros that embed them watch only the files that were there before.

fn main() {
    println!("cargo::rerun-if-changed=../../templates/prompts");
    println!("cargo::rerun-if-changed=../../samples");
}

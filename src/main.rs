//! The `neuroc` command.
fn main() {}

//! `neuroc build`.

use super::Exit;

/// Write a Rust crate or a shared library.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Builds.
pub fn run(_args: &Args) -> Exit {
    Exit::Usage
}

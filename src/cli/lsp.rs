//! `neuroc lsp`.

use super::{Exit, complain};
use crate::editor;
use lsp_server::Connection;

/// Help editors with models.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: neuroc lsp\n\nEditors start it; editors/README.md has their settings.")]
pub struct Args {
    /// Stdin and stdout, as without it: some editors say so
    #[arg(long)]
    stdio: bool,
}

/// Serves one editor over stdin and stdout.
pub fn run(args: &Args) -> Exit {
    let Args { stdio: _ } = args;
    let (connection, threads) = Connection::stdio();
    let served = editor::serve(&connection);
    drop(connection);
    let ended = threads.join();
    match (served, ended) {
        (Ok(true), Ok(())) => Exit::Fine,
        // The protocol's exit code of a server that ends without having been shut down.
        (Ok(false), Ok(())) => Exit::Model,
        (Err(why), _) => {
            complain(format!("the editor's messages cannot be followed: {why}"));
            Exit::Usage
        }
        (Ok(_), Err(error)) => {
            complain(format!("the editor's messages cannot be read: {error}"));
            Exit::Usage
        }
    }
}

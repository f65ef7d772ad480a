//! `neuroc lsp`.

use super::{Exit, complain};
use crate::editor;
use lsp_server::{Connection, Message};
use std::io;
use std::thread;

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
    let (connection, Connection { sender, receiver }) = Connection::memory();
    let reader = thread::spawn(move || read(&|message| sender.send(message).is_ok()));
    let writer = thread::spawn(move || {
        let mut out = io::stdout().lock();
        receiver.iter().try_for_each(|message| message.write(&mut out))
    });
    let served = editor::serve(&connection);
    drop(connection);
    let joined = |thread: thread::JoinHandle<io::Result<()>>| {
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread has ended early")))
    };
    let written = joined(writer);
    // Where the session is broken, nobody waits for what else the editor may say.
    let ended = if served.is_ok() { joined(reader).and(written) } else { written };
    match (served, ended) {
        (Ok(true), Ok(())) => Exit::Fine,
        // The protocol's exit code of a server that ends without having been shut down.
        (Ok(false), Ok(())) => Exit::Model,
        (Err(why), _) => {
            complain(format!("the editor's messages cannot be followed: {why}"));
            Exit::Usage
        }
        (Ok(_), Err(error)) => {
            complain(format!("the editor's messages cannot be exchanged: {error}"));
            Exit::Usage
        }
    }
}

/// Tells all messages of stdin until it ends, one asks for the end, or nobody listens. What is no message is left out: the next may be one.
fn read(tell: &dyn Fn(Message) -> bool) -> io::Result<()> {
    let mut from = io::stdin().lock();
    loop {
        match Message::read(&mut from) {
            Ok(None) => return Ok(()),
            Ok(Some(message)) => {
                let last = matches!(&message, Message::Notification(note) if note.method == "exit");
                if !tell(message) || last {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                complain(format!("what the editor says is left out: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
}

//! The one test harness; `tests/README.md` says how to add a case of each kind.

mod cli;
mod crates;
mod docs;
mod engines;
mod errors;
mod models;
mod olive;
mod passes;

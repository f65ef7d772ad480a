//! The Rust emitter.
//!
//! In comes a [`Plan`] (and, for a crate that people use, an [`Interface`] and a [`Wiring`]); out go source files, formatted as by `rustfmt`.
//! Never true here: the same plan gives other bytes, or a line of the generated code that is not in one of these files.

mod interface;
mod kernels;
mod layout;
mod model;
mod shape;

pub use interface::{Copy, Default, Interface, InterfaceError, InterfaceField, InterfaceSpace, Wires, Wiring};
pub use kernels::KEYWORDS;
pub use shape::{groups, shape, shared};

use super::plan::{Plan, Precision};

/// A file of a crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path in the crate, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl SourceFile {
    fn new(path: &str, text: impl Into<String>) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }
}

/// The version of the binary interface of libraries made from [`kernel_files`].
pub use crate::runtime::abi::VERSION as ABI_VERSION;

/// The runtime as it stands in this repository.
const RUNTIME: &[(&str, &str)] = &[
    ("mod.rs", include_str!("../../runtime/mod.rs")),
    ("abi.rs", include_str!("../../runtime/abi.rs")),
    ("aligned.rs", include_str!("../../runtime/aligned.rs")),
    ("branched.rs", include_str!("../../runtime/branched.rs")),
    ("branches.rs", include_str!("../../runtime/branches.rs")),
    ("call.rs", include_str!("../../runtime/call.rs")),
    ("edge_text.rs", include_str!("../../runtime/edge_text.rs")),
    ("edges.rs", include_str!("../../runtime/edges.rs")),
    ("elementwise.rs", include_str!("../../runtime/elementwise.rs")),
    ("events.rs", include_str!("../../runtime/events.rs")),
    ("events/bits.rs", include_str!("../../runtime/events/bits.rs")),
    ("lanes/mod.rs", include_str!("../../runtime/lanes/mod.rs")),
    ("lanes/avx2.rs", include_str!("../../runtime/lanes/avx2.rs")),
    ("lanes/avx512.rs", include_str!("../../runtime/lanes/avx512.rs")),
    ("lanes/indices.rs", include_str!("../../runtime/lanes/indices.rs")),
    ("lanes/pair.rs", include_str!("../../runtime/lanes/pair.rs")),
    ("lanes/portable.rs", include_str!("../../runtime/lanes/portable.rs")),
    ("lanes/prefetch.rs", include_str!("../../runtime/lanes/prefetch.rs")),
    ("machine.rs", include_str!("../../runtime/machine.rs")),
    ("math.rs", include_str!("../../runtime/math.rs")),
    ("math/approximate.rs", include_str!("../../runtime/math/approximate.rs")),
    ("math/payne_hanek.rs", include_str!("../../runtime/math/payne_hanek.rs")),
    ("math/poisson.rs", include_str!("../../runtime/math/poisson.rs")),
    ("named.rs", include_str!("../../runtime/named.rs")),
    ("order.rs", include_str!("../../runtime/order.rs")),
    ("pages.rs", include_str!("../../runtime/pages.rs")),
    ("remember.rs", include_str!("../../runtime/remember.rs")),
    ("rng.rs", include_str!("../../runtime/rng.rs")),
    ("rows.rs", include_str!("../../runtime/rows.rs")),
    ("series.rs", include_str!("../../runtime/series.rs")),
    ("threads.rs", include_str!("../../runtime/threads.rs")),
];

/// The crate that the native engine compiles: kernels and their entry point, `src/lib.rs` first.
///
/// # Panics
/// If the plan stores bf16, which native code does not.
pub fn kernel_files(plan: &Plan) -> Vec<SourceFile> {
    let mut files = vec![
        SourceFile::new("src/lib.rs", include_str!("fixed/kernel_lib.rs")),
        SourceFile::new("src/kernels.rs", kernels::file(plan)),
        SourceFile::new("src/ffi_kernels.rs", include_str!("fixed/ffi_kernels.rs")),
    ];
    files.extend(runtime_files(|module| OF_KERNELS.contains(&module)));
    files
}

/// A whole crate that people use from Rust or C; `Cargo.toml` first.
pub fn crate_files(plan: &Plan, interface: &Interface, wiring: &Wiring) -> Result<Vec<SourceFile>, InterfaceError> {
    if plan.precision == Precision::Bf16 {
        return Err(InterfaceError::NotYet("native code stores f64 or f32, not bf16".into()));
    }
    let model = model::Model::new(plan, interface, wiring)?;
    let mut files = vec![
        SourceFile::new("Cargo.toml", model.manifest()),
        SourceFile::new("README.md", model.readme()),
        SourceFile::new("rustfmt.toml", include_str!("../../../rustfmt.toml")),
        SourceFile::new(".cargo/config.toml", include_str!("fixed/config.toml")),
        SourceFile::new(&format!("include/{}.h", interface.crate_name), model.header()),
        SourceFile::new("examples/run.rs", model.example()),
        SourceFile::new("src/lib.rs", model.lib()),
        SourceFile::new("src/model.rs", model.source()),
        SourceFile::new("src/kernels.rs", kernels::file(plan)),
        SourceFile::new("src/ffi.rs", model.ffi()),
    ];
    files.extend(model.network_files());
    files.extend(runtime_files(|_| true));
    Ok(files)
}

/// The modules of the runtime that kernels use; the native engine has the others itself. What is not there need not be compiled.
const OF_KERNELS: &[&str] = &["abi", "branches", "call", "elementwise", "lanes", "math", "rng", "rows", "series"];

/// Those modules of the embedded runtime, without their tests, that are wanted.
fn runtime_files(wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = SourceFile> {
    let module = |path: &'static str| path.split(['/', '.']).next().unwrap_or(path);
    RUNTIME.iter().filter_map(move |&(path, text)| {
        let text = match path {
            "mod.rs" => {
                let named =
                    |line: &&str| line.strip_prefix("pub mod ").is_none_or(|name| wanted(name.trim_end_matches(';')));
                text.lines().filter(named).map(|line| format!("{line}\n")).collect()
            }
            _ if wanted(module(path)) => without_tests(text),
            _ => return None,
        };
        Some(SourceFile { path: format!("src/runtime/{path}"), text })
    })
}

/// A source file without its test module, which has other files or needs the whole repository.
fn without_tests(text: &str) -> String {
    let mut kept = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let module = lines.peek().is_some_and(|next| next.contains("mod tests"));
        if line == "#[cfg(test)]" && module {
            match lines.next() {
                Some(inline) if inline.ends_with('{') => while lines.next().is_some_and(|line| line != "}") {},
                Some(_) | None => {}
            }
            continue;
        }
        // What is left on both sides of a removed module is one empty line.
        if !(line.is_empty() && kept.last().is_none_or(|last: &&str| last.is_empty())) {
            kept.push(line);
        }
    }
    kept.join("\n").trim_end().to_string() + "\n"
}

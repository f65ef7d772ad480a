//! neuroc for Python: the part in Rust, `neuroc._core`. What users see is in `python/neuroc/`.
//!
//! In come texts, numbers and arrays; out go arrays that NumPy owns, texts, and exceptions.
//! Never true here: a panic crosses into Python, the interpreter waits for a run, or a number is copied that could be moved.

mod error;
mod fitting;
mod learning;
mod model;
mod network;
mod packed;
mod recorded;
mod running;
mod simulator;
mod value;

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs a command line of the compiler; `line` begins with the name of the program. The answer is the exit code.
#[pyfunction]
fn run_line(py: Python<'_>, line: Vec<OsString>) -> u8 {
    py.detach(|| neuroc::cli::run_line(line).code())
}

/// For tests: panics.
#[pyfunction]
fn _panic() -> PyResult<()> {
    error::guarded(|| panic!("on purpose"))
}

/// The compiler.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::fitting::Differentiable;
    #[pymodule_export]
    use super::learning::{Learning, Trained};
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::recorded::Recorded;
    #[pymodule_export]
    use super::simulator::{Saved, Simulator};
    #[pymodule_export]
    use super::{_panic, run_line};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::error::keep_panics();
        module.add("XLA", cfg!(feature = "xla"))?;
        let functions = neuroc::hir::FUNCTIONS.iter().map(|function| function.name);
        module.add("WORDS", functions.chain(neuroc::hir::RESERVED.iter().copied()).collect::<Vec<_>>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

//! What goes wrong, as exceptions.
//!
//! In come diagnostics, errors of engines and panics; out go instances of the classes in `python/neuroc/errors.py`.
//! Never true here: a message is worded anew that the compiler has words for.

use neuroc::diag::{Diagnostic, render_human, render_json};
use neuroc::simulate::RunError;
use neuroc::source::SourceMap;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// What the last panic of this thread said, and where.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// From now on panics are remembered, and printed by nobody.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|info| LAST.with(|last| *last.borrow_mut() = info.to_string())));
}

/// Calls `work`; a panic becomes an exception that says whose fault it is.
pub fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let said = LAST.with(|last| last.borrow().clone());
        Err(exception("BugError", (said,)))
    })
}

/// An exception of a class of `neuroc.errors`.
pub fn exception(class: &str, arguments: impl for<'py> pyo3::call::PyCallArgs<'py> + 'static) -> PyErr {
    Python::attach(|py| {
        let made = py.import("neuroc.errors").and_then(|m| m.getattr(class)).and_then(|class| class.call1(arguments));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Wrong use, with what to do instead.
pub fn usage(message: impl Into<String>) -> PyErr {
    exception("UsageError", (message.into(),))
}

/// Diagnostics as text, as text with colours, and as JSON.
pub fn texts(sources: &SourceMap, diagnostics: &[Diagnostic]) -> (String, String, String) {
    let human = |color| render_human(sources, diagnostics, color).trim_end().to_string();
    (human(false), human(true), render_json(sources, diagnostics))
}

/// What is wrong with a model, or with what it was given from outside.
pub fn model(sources: &SourceMap, diagnostics: &[Diagnostic]) -> PyErr {
    let outside = diagnostics.iter().filter(|d| d.is_error()).all(|d| d.labels.is_empty());
    exception(if outside { "SettingError" } else { "ModelError" }, texts(sources, diagnostics))
}

/// The same, raised as what was set being wrong.
pub fn of_setting(error: PyErr) -> PyErr {
    Python::attach(|py| {
        let value = error.value(py);
        let part = |name| value.getattr(name).and_then(|text| text.extract::<String>());
        match (part("rendered"), part("ansi"), part("found")) {
            (Ok(rendered), Ok(ansi), Ok(found)) => exception("SettingError", (rendered, ansi, found)),
            _ => error,
        }
    })
}

/// An engine cannot do what it was asked for.
pub fn engine(message: impl ToString) -> PyErr {
    exception("EngineError", (message.to_string(),))
}

/// A run that could not begin or go on.
pub fn run(sources: &SourceMap, error: RunError) -> PyErr {
    match error {
        RunError::Engine(error) => engine(error),
        RunError::Sink(error) => engine(error),
        RunError::Model(diagnostics) => model(sources, &diagnostics),
    }
}

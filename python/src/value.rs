//! Numbers, with and without units, that come from Python.
//!
//! In come floats, texts and arrays; out go numbers in canonical units, or what is wrong with them.
//! Never true here: a unit is guessed: a number without one is in the unit that Python shows the quantity in.

use crate::error::usage;
use neuroc::ode::parse_override;
use neuroc::units::{Dim, DisplayUnit};
use numpy::{PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArray};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyFloat};

/// What a quantity is given.
pub enum Given {
    /// A number with its unit, as it is written.
    Text(String),
    /// A number in the unit that is shown.
    Number(f64),
    /// Numbers in the unit that is shown, in C order, and their shape.
    Array(Vec<f64>, Vec<usize>),
}

impl Given {
    /// A str, a float, an array of float64, or what Python's side can make one of these of; quantities become numbers in a unit, if one is said.
    pub fn new(name: &str, value: &Bound<'_, PyAny>, unit: Option<&str>) -> PyResult<Given> {
        match Given::known(value)? {
            Some(given) => Ok(given),
            None => {
                let py = value.py();
                let plain = match unit {
                    Some(unit) => {
                        let unit = unit.to_string();
                        let asked = PyCFunction::new_closure(py, None, None, move |_, _| unit.clone())?;
                        py.import("neuroc.exchange")?.call_method1("plain", (name, value, asked))?
                    }
                    None => value.clone(),
                };
                let made = py.import("neuroc.model")?.call_method1("_value", (name, plain))?;
                let wrong = || usage(format!("`{name}` takes a number, a text with a unit or an array of numbers"));
                Given::known(&made)?.ok_or_else(wrong)
            }
        }
    }

    fn known(value: &Bound<'_, PyAny>) -> PyResult<Option<Given>> {
        if let Ok(number) = value.cast::<PyFloat>() {
            return Ok(Some(Given::Number(number.extract()?)));
        }
        if let Ok(text) = value.extract::<String>() {
            return Ok(Some(Given::Text(text)));
        }
        // Quantities are derived from arrays.
        if value.is_exact_instance_of::<PyUntypedArray>()
            && let Ok(array) = value.extract::<PyReadonlyArrayDyn<'_, f64>>()
        {
            let array = array.as_array();
            if let (0, Some(&number)) = (array.ndim(), array.first()) {
                return Ok(Some(Given::Number(number)));
            }
            return Ok(Some(Given::Array(array.iter().copied().collect(), array.shape().to_vec())));
        }
        Ok(None)
    }
}

/// A number in canonical units: rounded once, as if it had been written with its unit.
pub fn canonical(x: f64, unit: &DisplayUnit) -> f64 {
    if unit.exponent == 0 || !x.is_finite() {
        return x;
    }
    let text = format!("{x:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or(0).saturating_add(unit.exponent);
    format!("{mantissa}e{exponent}").parse().unwrap_or(f64::NAN)
}

/// A canonical number in a unit, to 15 digits, which hide the rounding of units.
pub fn shown(x: f64, unit: &DisplayUnit) -> f64 {
    if unit.exponent == 0 {
        return x;
    }
    let x = unit.show(x);
    format!("{x:.14e}").parse().unwrap_or(x)
}

/// A text such as `-70 mV` for a quantity of a dimension, in canonical units.
pub fn with_unit(name: &str, text: &str, dim: Dim, unit: &DisplayUnit) -> PyResult<f64> {
    let wrong = |why: String| crate::error::exception("SettingError", (why,));
    let parsed = parse_override(&format!("{name}={text}"));
    let parsed = parsed.map_err(|_| {
        wrong(format!("`{text}` is no number with a unit for `{name}`; write one such as \"1 {}\"", unit.name))
    })?;
    if parsed.unit.dim != dim {
        let (is, got) = (dim.describe(), parsed.unit.dim.describe());
        let help = format!("write it in {}", unit.name);
        return Err(wrong(format!("`{name}` is {is}, but `{text}` is {got}; {help}")));
    }
    let value = parsed.unit.canonical(&parsed.number);
    value.ok_or_else(|| wrong(format!("`{text}` is too large a number for `{name}`")))
}

/// A text such as `-70 mV` for a quantity that is shown in a unit, in canonical units.
pub fn in_unit(name: &str, text: &str, unit: &DisplayUnit) -> PyResult<f64> {
    let dim = neuroc::units::Unit::parse(&unit.name).map_or(Dim::ONE, |unit| unit.dim);
    with_unit(name, text, dim, unit)
}

/// A time in ms: a number of ms, or a text with a unit; above zero.
pub fn time(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let ms = match Given::new(name, value, Some("ms"))? {
        Given::Number(ms) => ms,
        Given::Text(text) => with_unit(name, &text, Dim::TIME, &Dim::TIME.display_unit())?,
        Given::Array(..) => return Err(usage(format!("`{name}` is one time, not an array"))),
    };
    if ms.is_finite() && ms > 0.0 {
        return Ok(ms);
    }
    Err(usage(format!("`{name}` is {ms} ms; write a time above zero such as 100 (in ms) or \"0.1 s\"")))
}

/// A vector of a result that Python hands back.
pub fn vector<'py, T: numpy::Element>(array: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, T>> {
    array.extract().map_err(|_| usage("the arrays of a result have changed their shape or kind, and cannot be saved"))
}

//! Data files: numbers per cell, and series in time.
//!
//! In come names of .npy and .csv files that a model mentions; out go plain numbers, or a diagnostic at the place where the
//! file is mentioned.
//! Never true here: a missing, extra or unreadable number was skipped.

use crate::diag::{Code, Diagnostic};
use crate::hir::DataFile;
use ndarray::ArrayD;
use ndarray_npy::{ReadNpyError, ReadNpyExt};
use std::path::PathBuf;

/// The diagnostic of a file that was read, but does not fit.
pub(crate) fn wrong(file: &DataFile, why: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::BadData, file.span, format!("`{}` cannot be used", file.name), why)
}

fn path(file: &DataFile) -> PathBuf {
    file.directory.join(&file.name)
}

/// The whole file.
pub(crate) fn bytes(file: &DataFile) -> Result<Vec<u8>, Diagnostic> {
    let path = path(file);
    std::fs::read(&path).map_err(|error| {
        let message = format!("cannot read `{}`", path.display());
        Diagnostic::new(Code::CannotRead, file.span, message, error.to_string())
            .note("file names are relative to the model file")
    })
}

/// One finite number per cell.
pub fn per_cell(file: &DataFile, cells: usize) -> Result<Vec<f64>, Diagnostic> {
    let values =
        if is_npy(file) { npy(file, &bytes(file)?)?.into_iter().collect() } else { column(file, &text(file)?)? };
    if values.len() != cells {
        let why = format!("it has {} numbers, but the population has {cells} cells", values.len());
        return Err(wrong(file, why));
    }
    if let Some(at) = values.iter().position(|x| !x.is_finite()) {
        return Err(wrong(file, format!("number {at} is {}", values[at])));
    }
    Ok(values)
}

/// Samples `(t in ms, value)` that cover the time from 0 to `duration` ms.
pub fn series(file: &DataFile, duration: f64) -> Result<Vec<(f64, f64)>, Diagnostic> {
    let samples: Vec<(f64, f64)> = if is_npy(file) {
        let array = npy(file, &bytes(file)?)?;
        if array.ndim() != 2 || array.shape()[1] != 2 {
            let why = format!("its shape is {:?}, but two columns (time in ms, value) are needed", array.shape());
            return Err(wrong(file, why));
        }
        array.iter().copied().collect::<Vec<_>>().chunks(2).map(|c| (c[0], c[1])).collect()
    } else {
        rows(file, &text(file)?)?
            .into_iter()
            .map(|(line, row)| match row[..] {
                [t, x] => Ok((t, x)),
                _ => Err(wrong(file, format!("line {line} has {} columns, not two (time in ms, value)", row.len()))),
            })
            .collect::<Result<_, _>>()?
    };
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Err(wrong(file, "it holds no samples"));
    };
    if let Some(at) = samples.iter().position(|s| !s.0.is_finite() || !s.1.is_finite()) {
        return Err(wrong(file, format!("sample {at} is not finite")));
    }
    if let Some(at) = samples.windows(2).position(|w| w[1].0 < w[0].0) {
        return Err(wrong(file, format!("time goes back from {} ms to {} ms", samples[at].0, samples[at + 1].0)));
    }
    if first.0 > 1e-9 || last.0 < duration - 1e-9 {
        let why = format!("it covers {} ms to {} ms, but the run needs 0 ms to {duration} ms", first.0, last.0);
        return Err(wrong(file, why));
    }
    Ok(samples)
}

fn is_npy(file: &DataFile) -> bool {
    file.name.to_ascii_lowercase().ends_with(".npy")
}

fn npy(file: &DataFile, bytes: &[u8]) -> Result<ArrayD<f64>, Diagnostic> {
    fn read<T: ndarray_npy::ReadableElement>(bytes: &[u8]) -> Result<ArrayD<T>, ReadNpyError> {
        ArrayD::<T>::read_npy(bytes)
    }
    if file.column.is_some() {
        return Err(wrong(file, "an .npy file has no named columns"));
    }
    match read::<f64>(bytes) {
        Ok(array) => return Ok(array),
        Err(ReadNpyError::WrongDescriptor(_)) => {}
        Err(error) => return Err(wrong(file, error.to_string())),
    }
    if let Ok(array) = read::<f32>(bytes) {
        return Ok(array.mapv(f64::from));
    }
    if let Ok(array) = read::<i32>(bytes) {
        return Ok(array.mapv(f64::from));
    }
    if let Ok(array) = read::<i64>(bytes) {
        return Ok(array.mapv(|x| x as f64));
    }
    Err(wrong(file, "its numbers are neither float64, float32, int64 nor int32"))
}

/// The whole file as text.
pub(crate) fn text(file: &DataFile) -> Result<String, Diagnostic> {
    String::from_utf8(bytes(file)?).map_err(|_| wrong(file, "it is neither an .npy file (by its name) nor text"))
}

/// The numbers of a .csv file by line; a first line that is not numbers is a heading, `#` begins a comment.
fn rows(file: &DataFile, text: &str) -> Result<Vec<(usize, Vec<f64>)>, Diagnostic> {
    let mut out = Vec::new();
    for (i, line) in lines(text) {
        let row: Result<Vec<f64>, _> = cells(line).map(str::parse).collect();
        match row {
            Ok(row) => out.push((i, row)),
            Err(_) if out.is_empty() && cells(line).all(|c| c.parse::<f64>().is_err()) => {}
            Err(_) => return Err(wrong(file, format!("line {i} is not numbers: `{}`", line.trim()))),
        }
    }
    Ok(out)
}

/// The lines that count, numbered from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, l)| (i + 1, l)).filter(|(_, l)| {
        let l = l.trim();
        !l.is_empty() && !l.starts_with('#')
    })
}

/// The columns of a line.
pub(crate) fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split([',', ';', '\t']).map(str::trim)
}

fn column(file: &DataFile, text: &str) -> Result<Vec<f64>, Diagnostic> {
    let at = match &file.column {
        None => 0,
        Some(name) => {
            let heading = lines(text).next().map(|l| l.1).unwrap_or("");
            let names: Vec<&str> = cells(heading).map(|c| c.trim_matches('"')).collect();
            match names.iter().position(|n| n == name) {
                Some(at) => at,
                None => return Err(wrong(file, format!("it has no column `{name}`, but {}", names.join(", ")))),
            }
        }
    };
    rows(file, text)?
        .into_iter()
        .map(|(line, row)| match (row.get(at), file.column.is_some() || row.len() == 1) {
            (Some(&x), true) => Ok(x),
            (Some(_), false) => {
                let why = format!(
                    "line {line} has {} columns; name one: `file(\"{}\", column = \"...\")`",
                    row.len(),
                    file.name
                );
                Err(wrong(file, why))
            }
            (None, _) => Err(wrong(file, format!("line {line} has no column {}", at + 1))),
        })
        .collect()
}

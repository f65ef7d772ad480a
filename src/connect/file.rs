//! Files of edges.
//!
//! In comes the name of a file, `.npz`, `.npy` or `.csv`; out go its entries `(target, source)` in its order, or a diagnostic.
//! Never true here: that a row is skipped, or that a number is rounded.
//!
//! - `.npz` holds two vectors of integers with the names `src` and `tgt`, `source` and `target`, `pre` and `post`, or `i` and
//!   `j` (source first). Both may share a prefix that ends in `_`, `.` or `/`, such as `gj_src` and `gj_tgt`; `column = "gj"`
//!   says which prefix is meant if there are several.
//! - `.npy` holds a table of integers of shape `[n, 2]`: source, target.
//! - Other files are text with two columns, or with a heading that has two of the names above; without such names the columns
//!   are source, target.

use super::Entry;
use crate::data::{bytes, cells, lines, text, wrong};
use crate::diag::Diagnostic;
use crate::hir::DataFile;
use ndarray::{ArrayD, IxDyn};
use ndarray_npy::{NpzReader, ReadNpyError, ReadNpyExt, ReadNpzError, ReadableElement};
use std::io::Cursor;

/// The names that a source and its target go by.
const NAMES: [[&str; 2]; 4] = [["src", "tgt"], ["source", "target"], ["pre", "post"], ["i", "j"]];

/// The entries `(target, source)` of a file. Whether the cells are there is not known here: see [`super::Csr::from_entries`].
pub fn read_edges(file: &DataFile) -> Result<Vec<Entry>, Diagnostic> {
    let name = file.name.to_ascii_lowercase();
    if name.ends_with(".npz") {
        npz(file)
    } else if name.ends_with(".npy") {
        npy(file)
    } else {
        csv(file)
    }
}

fn npz(file: &DataFile) -> Result<Vec<Entry>, Diagnostic> {
    let broken = |error: ReadNpzError| wrong(file, error.to_string());
    let mut archive = NpzReader::new(Cursor::new(bytes(file)?)).map_err(broken)?;
    let names = archive.names().map_err(broken)?;
    let arrays: Vec<&str> = names.iter().map(|n| n.strip_suffix(".npy").unwrap_or(n)).collect();
    let [source, target] = ends(file, &arrays, "array")?.ok_or_else(|| no_names(file, &arrays, "arrays"))?;
    let mut vector = |at: usize| {
        let array = integers(|kind| match kind {
            Kind::I64 => widened(archive.by_name::<_, IxDyn>(&names[at])),
            Kind::U64 => widened_unsigned(archive.by_name::<_, IxDyn>(&names[at])),
            Kind::I32 => widened(archive.by_name::<_, IxDyn>(&names[at]).map(|a: ArrayD<i32>| a.mapv(i64::from))),
            Kind::U32 => widened(archive.by_name::<_, IxDyn>(&names[at]).map(|a: ArrayD<u32>| a.mapv(i64::from))),
            Kind::I16 => widened(archive.by_name::<_, IxDyn>(&names[at]).map(|a: ArrayD<i16>| a.mapv(i64::from))),
            Kind::U16 => widened(archive.by_name::<_, IxDyn>(&names[at]).map(|a: ArrayD<u16>| a.mapv(i64::from))),
        });
        let array = array.map_err(|why| wrong(file, format!("array `{}`: {why}", arrays[at])))?;
        match array.shape() {
            [_] => Ok(array.into_iter().collect::<Vec<i64>>()),
            shape => Err(wrong(file, format!("array `{}` has the shape {shape:?}, but is no vector", arrays[at]))),
        }
    };
    let (sources, targets) = (vector(source)?, vector(target)?);
    if sources.len() != targets.len() {
        let why = format!("`{}` has {} numbers, `{}` {}", arrays[source], sources.len(), arrays[target], targets.len());
        return Err(wrong(file, why));
    }
    sources.iter().zip(&targets).enumerate().map(|(row, (&s, &t))| entry(file, row, s, t)).collect()
}

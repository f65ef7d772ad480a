//! Files of edges.
//!
//! In comes the name of a file, `.npz`, `.npy` or `.csv`; out go its entries `(target, source)` in its order, or the junctions they
//! are, or a diagnostic that names the row.
//! Never true here: that a row is skipped, or that a number is rounded.
//!
//! - `.npz` holds two vectors of integers with the names `src` and `tgt`, `source` and `target`, `pre` and `post`, `from` and `to`, or `i` and
//!   `j` (source first), also with an ending `_id` or SONATA's `_node_id`. Both may share a prefix that ends in `_`, `.` or `/`, such as `gj_src` and `gj_tgt`; `column = "gj"`
//!   says which prefix is meant if there are several.
//! - `.npy` holds a table of integers of shape `[n, 2]`: source, target.
//! - Other files are text with two columns, source and target, or with a heading that has two of the names above.

use super::error::{COUNTED, edge};
use super::{ConnectError, Csr, Ends, Entry, Rule, Shape, directed, directed_csr, undirected};
use crate::data::{DataFile, bytes, cells, check_npy, complaint, lines, text, wrong};
use crate::diag::Diagnostic;
use ndarray::ArrayD;
use ndarray_npy::{ReadNpyError, ReadNpyExt, ReadableElement};
use std::io::{Cursor, Read};
use zip::ZipArchive;

/// The names that a source and its target go by.
const NAMES: [[&str; 2]; 5] = [["src", "tgt"], ["source", "target"], ["pre", "post"], ["from", "to"], ["i", "j"]];

/// What may stand behind them.
const ENDINGS: [&str; 3] = ["", "_id", "_node_id"];

/// The bytes that a list of sources or targets has at most: 500 million edges.
const LARGEST: u64 = 4_000_000_000;

/// What a file lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeList {
    /// The entries `(target, source)`. Whether the cells are there is not known yet.
    pub entries: Vec<Entry>,
    /// The line of each, counted from 1, if it is a file of lines.
    lines: Option<Vec<usize>>,
}

impl EdgeList {
    /// What is wrong with a row, as a reader of the file would call it.
    fn complaint(&self, error: &ConnectError) -> Option<String> {
        match &self.lines {
            Some(lines) => error.of_entry(|row| format!("line {}", lines[row]), ""),
            None => error.of_entry(edge, COUNTED),
        }
    }
}

/// The entries of a file; at least one.
pub fn read_edges(file: &DataFile) -> Result<EdgeList, Diagnostic> {
    let name = file.name.to_ascii_lowercase();
    let list = if name.ends_with(".npz") {
        EdgeList { entries: npz(file)?, lines: None }
    } else if name.ends_with(".npy") {
        EdgeList { entries: npy(file)?, lines: None }
    } else {
        csv(file)?
    };
    // Cells that nothing joins need no list; a list without edges has lost them.
    if list.entries.is_empty() { Err(wrong(file, "it holds no edges")) } else { Ok(list) }
}

/// What is wrong with a row of a file.
fn refusal(file: &DataFile, list: &EdgeList, error: &ConnectError) -> Diagnostic {
    wrong(file, list.complaint(error).unwrap_or_else(|| error.to_string()))
}

/// The pairs (right, left) that a file lists: its sources are on the left. Within one compartment, each pair of cells counts `once`.
pub fn read_pairs(file: &DataFile, ends: Ends<'_>, once: bool) -> Result<Vec<Entry>, Diagnostic> {
    let list = read_edges(file)?;
    let rule = Rule::Edges(list.entries.clone());
    let pairs = if once { undirected(&rule, ends.source(), 0, 0) } else { directed(&rule, ends, 0, 0) };
    pairs.map_err(|error| refusal(file, &list, &error))
}

/// The junctions within a population that a file lists, each once or all of them in both directions.
pub fn read_junctions(file: &DataFile, shape: &Shape) -> Result<Csr, Diagnostic> {
    let list = read_edges(file)?;
    let refuse = |error: ConnectError| refusal(file, &list, &error);
    let pairs = undirected(&Rule::Edges(list.entries.clone()), shape, 0, 0).map_err(refuse)?;
    let listed = Csr::from_entries(&list.entries, shape.cells(), shape.cells()).map_err(refuse)?;
    if listed.is_symmetric() { Ok(listed) } else { directed_csr(&pairs, shape.cells()).map_err(refuse) }
}

fn npz(file: &DataFile) -> Result<Vec<Entry>, Diagnostic> {
    let broken = |error: &dyn std::fmt::Display| wrong(file, format!("it is not a whole .npz file: {error}"));
    let bytes = bytes(file)?;
    if !bytes.starts_with(b"PK") {
        return Err(wrong(file, "it is not an .npz file, though its name says so"));
    }
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| broken(&e))?;
    let members: Vec<String> = archive.file_names().map(str::to_owned).collect();
    let arrays: Vec<&str> = members.iter().map(|n| n.strip_suffix(".npy").unwrap_or(n)).collect();
    let Some([source, target]) = ends(file, &arrays)? else {
        let why = format!("it has no two arrays of edges such as `src` and `tgt`, but {}", arrays.join(", "));
        return Err(wrong(file, why));
    };
    let mut vector = |at: usize| {
        let mut member = archive.by_name(&members[at]).map_err(|e| broken(&e))?;
        // Before anything is unpacked: how much a list says it has, which may be a thousand times the file.
        if member.size() > LARGEST {
            let why = format!(
                "array `{}` has {} bytes; lists of more than {LARGEST} are not read",
                arrays[at],
                member.size()
            );
            return Err(wrong(file, why));
        }
        let mut bytes = Vec::new();
        (&mut member).take(LARGEST).read_to_end(&mut bytes).map_err(|e| broken(&e))?;
        let array = integers(&bytes).map_err(|why| wrong(file, format!("array `{}`: {why}", arrays[at])))?;
        match array.shape() {
            [_] => Ok(array.into_iter().collect::<Vec<i64>>()),
            shape => Err(wrong(file, format!("array `{}` has the shape {shape:?}, but is no vector", arrays[at]))),
        }
    };
    let (sources, targets) = (vector(source)?, vector(target)?);
    if sources.len() != targets.len() {
        let why =
            format!("`{}` has {} numbers, but `{}` {}", arrays[source], sources.len(), arrays[target], targets.len());
        return Err(wrong(file, why));
    }
    sources.iter().zip(&targets).enumerate().map(|(row, (&s, &t))| entry(file, row, s, t)).collect()
}

fn npy(file: &DataFile) -> Result<Vec<Entry>, Diagnostic> {
    if file.column.is_some() {
        return Err(wrong(file, "an .npy file has no named columns"));
    }
    let array = integers(&bytes(file)?).map_err(|why| wrong(file, why))?;
    match *array.shape() {
        [_, 2] => array.outer_iter().enumerate().map(|(row, e)| entry(file, row, e[0], e[1])).collect(),
        ref shape => Err(wrong(file, format!("its shape is {shape:?}, but two columns (source, target) are needed"))),
    }
}

fn csv(file: &DataFile) -> Result<EdgeList, Diagnostic> {
    let text = text(file)?;
    let mut rows = lines(&text).peekable();
    let is_heading = |line: &str| cells(line).all(|c| c.parse::<f64>().is_err());
    let heading: Option<Vec<&str>> =
        rows.next_if(|&(_, line)| is_heading(line)).map(|(_, line)| cells(line).map(|c| c.trim_matches('"')).collect());
    let named = match &heading {
        Some(names) => match ends(file, names)? {
            None => {
                let known = NAMES.map(|[source, target]| format!("`{source}` and `{target}`")).join(", ");
                let names = names.join("`, `");
                let why = format!("its heading needs the names of a source and a target ({known}), but has `{names}`");
                return Err(wrong(file, why));
            }
            ends => ends,
        },
        None if file.column.is_some() => return Err(wrong(file, "it has no heading that names a source and a target")),
        None => None,
    };
    let (mut entries, mut numbers) = (Vec::new(), Vec::new());
    for (line, row) in rows {
        let columns: Vec<&str> = cells(row).collect();
        let needed = heading.as_ref().map_or(2, Vec::len);
        let [source, target] = match named {
            Some(ends) if columns.len() == needed => ends,
            None if columns.len() == 2 => [0, 1],
            Some(_) | None => {
                let wanted = if named.is_some() { needed } else { 2 };
                let plural = if columns.len() == 1 { "" } else { "s" };
                return Err(wrong(file, format!("line {line} has {} column{plural}, not {wanted}", columns.len())));
            }
        };
        let cell = |at: usize| {
            columns[at].parse::<u32>().map_err(|_| {
                let why = format!("line {line} has `{}` where the number of a cell should be", columns[at]);
                wrong(file, why)
            })
        };
        entries.push((cell(target)?, cell(source)?));
        numbers.push(line);
    }
    Ok(EdgeList { entries, lines: Some(numbers) })
}

/// Where the source and the target stand among names; nothing if they have none of the known names.
fn ends(file: &DataFile, names: &[&str]) -> Result<Option<[usize; 2]>, Diagnostic> {
    let mut found: Vec<(&str, [usize; 2])> = Vec::new();
    let lower: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    for [source, target] in NAMES {
        let of_name = |ending: &'static str| lower.iter().enumerate().map(move |(at, name)| (ending, at, name));
        for (ending, at, name) in ENDINGS.into_iter().flat_map(of_name) {
            let Some(prefix) = name.strip_suffix(ending).and_then(|name| name.strip_suffix(source)) else { continue };
            let partner = format!("{prefix}{target}{ending}");
            let known = prefix.is_empty() || prefix.ends_with(['_', '.', '/']);
            if let (true, Some(to)) = (known, lower.iter().position(|n| *n == partner)) {
                found.push((prefix.trim_end_matches(['_', '.', '/']), [at, to]));
            }
        }
    }
    if let Some(wanted) = &file.column {
        found.retain(|f| f.0 == wanted.to_ascii_lowercase());
        if found.is_empty() {
            let why = format!("it has no source and target named `{wanted}_...`, but {}", names.join(", "));
            return Err(wrong(file, why));
        }
    }
    match found[..] {
        [] => Ok(None),
        [(_, ends)] => Ok(Some(ends)),
        _ => {
            let pairs: Vec<String> = found.iter().map(|f| f.1.map(|at| names[at]).join(" and ")).collect();
            Err(wrong(file, format!("it could mean the edges of {}", pairs.join(", of "))))
        }
    }
}

/// An array of any integer type.
fn integers(bytes: &[u8]) -> Result<ArrayD<i64>, String> {
    fn read<T: ReadableElement>(bytes: &[u8]) -> Option<Result<ArrayD<T>, String>> {
        match ArrayD::<T>::read_npy(bytes) {
            Ok(array) => Some(Ok(array)),
            Err(ReadNpyError::WrongDescriptor(_)) => None,
            Err(error) => Some(Err(complaint(&error))),
        }
    }
    fn widened<T: ReadableElement + Copy + Into<i64>>(bytes: &[u8]) -> Option<Result<ArrayD<i64>, String>> {
        read::<T>(bytes).map(|array| Ok(array?.mapv(T::into)))
    }
    fn narrowed(bytes: &[u8]) -> Option<Result<ArrayD<i64>, String>> {
        let checked = |array: ArrayD<u64>| match array.iter().find(|&&x| x > i64::MAX as u64) {
            Some(large) => Err(format!("{large} is not the number of a cell")),
            None => Ok(array.mapv(|x| x as i64)),
        };
        read::<u64>(bytes).map(|array| checked(array?))
    }
    check_npy(bytes)?;
    widened::<i64>(bytes)
        .or_else(|| widened::<i32>(bytes))
        .or_else(|| widened::<u32>(bytes))
        .or_else(|| narrowed(bytes))
        .or_else(|| widened::<i16>(bytes))
        .or_else(|| widened::<u16>(bytes))
        .or_else(|| widened::<i8>(bytes))
        .or_else(|| widened::<u8>(bytes))
        .unwrap_or_else(|| Err("its numbers are not of an integer type".to_owned()))
}

fn entry(file: &DataFile, row: usize, source: i64, target: i64) -> Result<Entry, Diagnostic> {
    let cell = |x: i64, end: &str| {
        let why = || format!("{}{COUNTED} has the {end} {x}, which is not the number of a cell", edge(row));
        u32::try_from(x).map_err(|_| wrong(file, why()))
    };
    let source = cell(source, "source")?;
    Ok((cell(target, "target")?, source))
}

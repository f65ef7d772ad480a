//! Spikes of a file: times and the cells that they are for.
//!
//! In comes the name of a file, `.npz`, `.npy` or `.csv`; out go times in ms and cells, in their order, or a diagnostic that
//! names the row.
//! Never true here: a row is skipped, but for those of other populations, or the order of rows matters.
//!
//! - Tables of text have a heading that names a time and a cell ([`NAMES`]), or two columns: time in ms and cell. A name may say another unit: `t (s)`,
//!   `t_us`. With a column `population`, as the spikes of an earlier run have it, `column = "e"` says which rows are meant.
//! - `.npz` holds two vectors of such names, which may share a prefix: of the results of an earlier run `e.spikes.t` and `e.spikes.i`. `column = "e"`
//!   says which prefix is meant if there are several.
//! - `.npy` holds a table of shape `[n, 2]`: time in ms, cell.

use super::{Archive, DataFile, Numbers, bytes, cells, is_npy, lines, listed, npy, path, text, wrong};
use crate::diag::Diagnostic;
use crate::units::{Dim, Unit, scale};

/// The names that times and their cells go by.
const NAMES: (&[&str], &[&str]) =
    (&["t", "time", "times", "timestamps"], &["i", "cell", "cells", "target", "index", "node_ids"]);

/// Spikes as a file lists them.
#[derive(Debug, Clone, PartialEq)]
pub struct Spikes {
    /// When each happens (ms): finite, not negative.
    pub times: Vec<f64>,
    /// The cell that it is for. Whether it is there is not known yet.
    pub cells: Vec<u32>,
    /// The populations of a table that names some.
    pub populations: Vec<String>,
    /// The line of each, counted from 1, if it is a file of lines.
    lines: Option<Vec<usize>>,
}

impl Spikes {
    /// What a reader of the file would call a spike.
    pub fn place(&self, at: usize) -> String {
        match &self.lines {
            Some(lines) => format!("line {}", lines[at]),
            None => format!("spike {at} (the first is 0)"),
        }
    }
}

/// The spikes of a file. It may hold none, but not nothing at all.
pub fn spikes(file: &DataFile) -> Result<Spikes, Diagnostic> {
    let name = file.name.to_ascii_lowercase();
    let pairs = |pairs: Vec<(f64, f64)>| {
        let (times, cells) = pairs.into_iter().unzip();
        checked(file, times, cells, None)
    };
    match &file.numbers {
        Numbers::Given(_) | Numbers::Drawn(..) | Numbers::OfEdges | Numbers::Distances => {
            Err(wrong(file, "it is no file"))
        }
        Numbers::File if name.ends_with(".npz") => npz(file),
        Numbers::File if is_npy(file) => {
            if file.column.is_some() {
                return Err(wrong(file, "an .npy file names no populations"));
            }
            let table = npy(file, &bytes(file)?)?;
            match *table.shape() {
                [_, 2] => pairs(table.outer_iter().map(|row| (row[0], row[1])).collect()),
                ref shape => {
                    Err(wrong(file, format!("its shape is {shape:?}, but two columns (time in ms, cell) are needed")))
                }
            }
        }
        Numbers::File => csv(file),
    }
}

/// Times and cells, if they are some.
fn checked(file: &DataFile, times: Vec<f64>, cells: Vec<f64>, lines: Option<Vec<usize>>) -> Result<Spikes, Diagnostic> {
    let mut spikes = Spikes { times, cells: Vec::with_capacity(cells.len()), populations: Vec::new(), lines };
    for (at, &cell) in cells.iter().enumerate() {
        if !(0.0..=f64::from(u32::MAX)).contains(&cell) || cell.fract() != 0.0 {
            return Err(wrong(file, format!("{} has {cell} where the number of a cell should be", spikes.place(at))));
        }
        spikes.cells.push(cell as u32);
    }
    if let Some(at) = spikes.times.iter().position(|t| !t.is_finite() || *t < 0.0) {
        let (t, place) = (spikes.times[at], spikes.place(at));
        let why = if t.is_finite() { "a run begins at 0 ms" } else { "a time is a finite number" };
        return Err(wrong(file, format!("{place} has the time {t} ms, but {why}")));
    }
    Ok(spikes)
}

/// The unit of the times under a name, if it is a name of times.
pub(super) fn of_times(name: &str) -> Option<Unit> {
    let unit = |text: &str| Unit::named(text.trim()).filter(|unit| unit.dim == Dim::TIME);
    NAMES.0.iter().find_map(|base| {
        // Units are told apart by their case, names are not.
        let rest = name.get(base.len()..).filter(|_| name[..base.len()].eq_ignore_ascii_case(base))?.trim();
        let inside = |open, close| rest.strip_prefix(open)?.strip_suffix(close);
        match rest.strip_prefix('_').or_else(|| inside('(', ')')).or_else(|| inside('[', ']')) {
            None if rest.is_empty() => unit("ms"),
            None => None,
            Some(text) => unit(text),
        }
    })
}

fn is_of_cells(name: &str) -> bool {
    NAMES.1.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn csv(file: &DataFile) -> Result<Spikes, Diagnostic> {
    let text = text(file)?;
    let mut rows = lines(&text).peekable();
    let is_heading = |line: &str| cells(line).all(|c| c.parse::<f64>().is_err());
    let heading: Option<Vec<&str>> =
        rows.next_if(|&(_, line)| is_heading(line)).map(|(_, line)| cells(line).map(|c| c.trim_matches('"')).collect());
    if heading.is_none() && rows.peek().is_none() {
        return Err(wrong(file, "it is empty; a file without spikes has a heading, such as `t,cell`"));
    }
    let named = |names: &Vec<&str>| {
        let time = names.iter().enumerate().find_map(|(at, name)| Some((at, of_times(name)?)));
        let cell = names.iter().position(|name| is_of_cells(name));
        let both = time.zip(cell);
        both.ok_or_else(|| {
            let why = format!(
                "its heading needs the names of a time and a cell, such as `t (ms)` and `cell`, but has {}",
                listed(names)
            );
            wrong(file, why)
        })
    };
    let ms = of_times("t").unwrap_or(Unit::ONE);
    let ((time, unit), cell) = heading.as_ref().map_or(Ok(((0, ms), 1)), named)?;
    let population =
        heading.as_ref().and_then(|names| names.iter().position(|name| name.eq_ignore_ascii_case("population")));
    if file.column.is_some() && population.is_none() {
        return Err(wrong(file, "it has no column `population`"));
    }
    let wanted = heading.as_ref().map_or(2, Vec::len);
    let places = [Some(time), Some(cell), population];
    let (mut times, mut numbers, mut at) = (Vec::new(), Vec::new(), Vec::new());
    let mut others: Vec<&str> = Vec::new();
    for (line, row) in rows {
        let (mut columns, mut count) = ([""; 3], 0);
        for text in cells(row) {
            for (place, kept) in places.iter().zip(&mut columns) {
                if *place == Some(count) {
                    *kept = text;
                }
            }
            count += 1;
        }
        if count != wanted {
            let plural = if count == 1 { "" } else { "s" };
            return Err(wrong(file, format!("line {line} has {count} column{plural}, not {wanted}")));
        }
        if population.is_some() {
            let of = columns[2];
            if !others.contains(&of) {
                others.push(of);
            }
            if file.column.as_deref().is_some_and(|wanted| wanted != of) {
                continue;
            }
        }
        let time = columns[0].parse::<f64>().ok().and_then(|t| match t.is_finite() {
            true if unit == ms => Some(t),
            true => unit.canonical(columns[0]),
            false => Some(t),
        });
        let Some(time) = time else {
            return Err(wrong(file, format!("line {line} has `{}` where a time should be", columns[0])));
        };
        let Ok(cell) = columns[1].parse::<f64>() else {
            return Err(wrong(file, format!("line {line} has `{}` where the number of a cell should be", columns[1])));
        };
        times.push(time);
        numbers.push(cell);
        at.push(line);
    }
    if file.column.is_none() && others.len() > 1 {
        return Err(several(file, &others));
    }
    let populations = others.into_iter().map(str::to_owned).collect();
    Ok(Spikes { populations, ..checked(file, times, numbers, Some(at))? })
}

/// Which of several populations is meant?
fn several(file: &DataFile, known: &[&str]) -> Diagnostic {
    let why = format!("it has spikes of {}", listed(known));
    wrong(file, why).help(format!("say which: `spikes(\"{}\", column = \"{}\")`", file.name, known[0]))
}

fn npz(file: &DataFile) -> Result<Spikes, Diagnostic> {
    // What cannot be read is told as of other files.
    let fail = |why: String| wrong(file, why);
    let mut archive = match Archive::open(&path(file)) {
        Ok(archive) => archive,
        Err(why) => return Err(bytes(file).err().unwrap_or_else(|| fail(why))),
    };
    let names = archive.names();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut found: Vec<(&str, &str, Unit, &str)> = Vec::new();
    for name in &known {
        // A record of an earlier run has times and cells, too: `e.v.t` and `e.v.cell`.
        let split = name.rfind(".spikes.").map_or(0, |at| at + ".spikes.".len());
        let after = |(at, mark): (usize, &str)| split + at + mark.len();
        // `in_t` has a prefix, `t_ms` has none.
        let begins = std::iter::once(split).chain(name[split..].match_indices(['_', '/']).map(after));
        let pair = |begin: usize| {
            let (prefix, time) = name.split_at(begin);
            let unit = of_times(time)?;
            let cell = known.iter().find(|other| other.strip_prefix(prefix).is_some_and(is_of_cells))?;
            let of = prefix.trim_end_matches(['.', '/', '_']);
            Some((of.strip_suffix(".spikes").unwrap_or(of), *name, unit, *cell))
        };
        found.extend(begins.into_iter().find_map(pair));
    }
    if let Some(wanted) = &file.column {
        found.retain(|f| f.0 == wanted);
        if found.is_empty() {
            return Err(fail(format!("it has no spikes of `{wanted}`; its arrays are {}", known.join(", "))));
        }
    }
    let (time, unit, cell) = match found[..] {
        [] => {
            return Err(fail(format!("it has no two arrays of spikes such as `t` and `i`, but {}", known.join(", "))));
        }
        [(_, time, unit, cell)] => (time, unit, cell),
        _ => return Err(several(file, &found.iter().map(|f| f.0).collect::<Vec<_>>())),
    };
    let mut vector = |name: &str| {
        let array = archive.array(name).map_err(&fail)?;
        match array.shape() {
            [_] => Ok(array.into_iter().collect::<Vec<f64>>()),
            shape => Err(fail(format!("array `{name}` has the shape {shape:?}, but is no vector"))),
        }
    };
    let (mut times, cells) = (vector(time)?, vector(cell)?);
    if times.len() != cells.len() {
        return Err(fail(format!("`{time}` has {} numbers, but `{cell}` {}", times.len(), cells.len())));
    }
    let exponent = unit.display("").exponent;
    if exponent != 0 {
        times.iter_mut().for_each(|t| *t = scale(*t, exponent));
    }
    checked(file, times, cells, None)
}

//! Data files: numbers per cell, series in time, and samples to learn from.
//!
//! In come names of .npy, .npz, .csv and IDX files that a model mentions; out go plain numbers, or a diagnostic at the place where the
//! file is mentioned.
//! Never true here: a missing, extra or unreadable number was skipped.

mod dataset;
mod idx;
mod spikes;

pub use dataset::{Dataset, Kept, Samples, Split};
pub use spikes::{Spikes, spikes};

use crate::diag::{Code, Diagnostic};
use crate::operators::Distribution;
use crate::results::npy::Header;
use crate::runtime::rng::Draw;
use crate::source::Span;
use crate::units::{Unit, scale};
use ndarray::ArrayD;
use ndarray_npy::{ReadNpyError, ReadNpyExt};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zip::{ZipArchive, result::ZipError};

/// A data file that the model reads.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFile {
    /// Its name as written, relative to the model file.
    pub name: String,
    /// The directory of the model file.
    pub directory: std::path::PathBuf,
    /// The column of a .csv file.
    pub column: Option<String>,
    /// Where it is mentioned.
    pub span: Span,
    /// Where its numbers are.
    pub numbers: Numbers,
}

/// Where the numbers of a data file are, if they are in a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// In the file.
    File,
    /// In the memory of the caller.
    Given(Arc<[f64]>),
    /// They are drawn, with this random stream, as many as are needed.
    Drawn(Distribution, u32),
    /// They follow from which edges there are: how long the spikes of a file take along each.
    OfEdges,
    /// How far the two cells of each edge are from each other, in steps of the target's grid.
    Distances,
}

/// The diagnostic of a file that was read, but does not fit.
pub(crate) fn wrong(file: &DataFile, why: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::BadData, file.span, format!("`{}` cannot be used", file.name), why)
}

/// Where it is.
pub(crate) fn path(file: &DataFile) -> PathBuf {
    file.directory.join(&file.name)
}

/// Where it is, if its numbers are in a file.
pub(crate) fn file(file: &DataFile) -> Option<PathBuf> {
    matches!(file.numbers, Numbers::File).then(|| path(file))
}

/// The whole file.
pub(crate) fn bytes(file: &DataFile) -> Result<Vec<u8>, Diagnostic> {
    whole(&path(file), file.span)
}

/// A whole file that is named at a place.
fn whole(path: &Path, span: Span) -> Result<Vec<u8>, Diagnostic> {
    let (opened, length) = open(path, span)?;
    let mut bytes = Vec::new();
    let room = usize::try_from(length).unwrap_or(usize::MAX);
    let read = match bytes.try_reserve_exact(room) {
        // What is added while it is read is not read.
        Ok(()) => opened.take(length).read_to_end(&mut bytes),
        Err(_) => Err(std::io::Error::other("there is no memory for it")),
    };
    read.map(|_| bytes).map_err(|error| cannot_read(path, span, &error))
}

/// A file that is named at a place, and how many bytes it has. What is no file (a device, a pipe) has no end, or none that is known.
pub(crate) fn open(path: &Path, span: Span) -> Result<(File, u64), Diagnostic> {
    let open = || {
        let about = std::fs::metadata(path)?;
        if about.is_dir() {
            return Err(std::io::Error::other("it is a directory"));
        }
        if !about.is_file() {
            return Err(std::io::Error::other("it is no regular file"));
        }
        Ok((File::open(path)?, about.len()))
    };
    open().map_err(|error| cannot_read(path, span, &error))
}

fn cannot_read(path: &Path, span: Span, error: &std::io::Error) -> Diagnostic {
    let message = format!("cannot read `{}`", path.display());
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_string(),
        std::io::ErrorKind::PermissionDenied => "it may not be read".to_string(),
        _ => error.to_string().to_lowercase(),
    };
    Diagnostic::new(Code::CannotRead, span, message, why).note("file names are relative to the model file")
}

/// One finite number per cell; `seed` is that of the run.
pub fn per_cell(file: &DataFile, cells: usize, seed: u64) -> Result<Vec<f64>, Diagnostic> {
    numbers(file, cells, seed, |_| format!("the population has {cells} cells"))
}

/// So many finite numbers; `needed` tells what they are for, where there are so many others.
pub fn numbers(
    file: &DataFile,
    count: usize,
    seed: u64,
    needed: impl FnOnce(usize) -> String,
) -> Result<Vec<f64>, Diagnostic> {
    let values = match &file.numbers {
        Numbers::Given(values) => values.to_vec(),
        Numbers::Drawn(distribution, stream) => {
            let from = Draw { seed, stream: *stream };
            (0..count as u32).map(|row| distribution.draw(from, row, 0)).collect()
        }
        Numbers::File if is_npy(file) => npy(file, &bytes(file)?)?.into_iter().collect(),
        Numbers::File => column(file, &text(file)?)?,
        Numbers::OfEdges | Numbers::Distances => return Err(wrong(file, "its numbers are those of edges")),
    };
    if values.len() != count {
        let why = format!("it has {} numbers, but {}", values.len(), needed(values.len()));
        return Err(wrong(file, why));
    }
    if let Some(at) = values.iter().position(|x| !x.is_finite()) {
        return Err(wrong(file, format!("number {} of {count} is {}", at + 1, values[at])));
    }
    Ok(values)
}

/// Says that the shape of an array is another than that of what it is for. Sides of 1 do not count: what is long in one direction only is a vector.
pub fn shaped(file: &DataFile, shape: &[usize], what: &str) -> Result<(), Diagnostic> {
    if file.numbers != Numbers::File || !is_npy(file) {
        return Ok(());
    }
    let cannot = |why: String| wrong(file, why);
    let mut opened = BufReader::new(File::open(path(file)).map_err(|e| cannot(e.to_string()))?);
    let sides: Vec<usize> =
        Header::read(&mut opened).map_err(cannot)?.shape.iter().map(|&side| side as usize).collect();
    let long = |sides: &[usize]| sides.iter().copied().filter(|side| *side != 1).collect::<Vec<_>>();
    if long(&sides).len() < 2 || long(&sides) == long(shape) {
        return Ok(());
    }
    let wanted = match shape {
        [] | [_] => "a vector is needed".to_string(),
        _ => format!("{shape:?} is needed"),
    };
    Err(wrong(file, format!("its shape is {sides:?}, but {wanted}: {what}")))
}

/// A function of time as a file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Samples `(t in ms, value)`.
    pub samples: Vec<(f64, f64)>,
    /// The unit of the values, if a heading says one, such as `v (mV)`.
    pub unit: Option<Unit>,
}

/// The end of what is said of a file with another number of columns.
pub(crate) const NOT_TWO: &str = "columns, not two (time in ms, value)";

/// Samples that cover the time from `first` to `last` ms: the first column of two, and the other or the one that is named of more. A heading may say another
/// unit of the time: `t (s)`.
pub fn series(file: &DataFile, [first, last]: [f64; 2]) -> Result<Series, Diagnostic> {
    let mut series = Series { samples: Vec::new(), unit: None };
    if is_npy(file) {
        let array = npy(file, &bytes(file)?)?;
        if array.ndim() != 2 || array.shape()[1] != 2 {
            let why = format!("its shape is {:?}, but two columns (time in ms, value) are needed", array.shape());
            return Err(wrong(file, why));
        }
        series.samples = array.iter().copied().collect::<Vec<_>>().chunks(2).map(|c| (c[0], c[1])).collect();
    } else {
        let text = text(file)?;
        let named = file.column.as_deref().map(|name| column_at(file, &text, name)).transpose()?.map(|(at, _)| at);
        let wanted = named.map(|at| [0, at]);
        series.samples = rows(file, &text, wanted.as_ref().map(|at| at.as_slice()))?
            .into_iter()
            .map(|(line, row)| match (named, &row[..]) {
                (None, &[t, x]) => Ok((t, x)),
                (None, row) => Err(wrong(file, format!("line {line} has {} {NOT_TWO}", row.len()))),
                (Some(at), row) => match (row.first(), row.get(at)) {
                    (Some(&t), Some(&x)) => Ok((t, x)),
                    _ => Err(wrong(file, format!("line {line} has no column {}", at + 1))),
                },
            })
            .collect::<Result<_, _>>()?;
        let heading: Vec<&str> = lines(&text)
            .next()
            .filter(|(_, line)| is_heading(line))
            .map_or_else(Vec::new, |(_, line)| cells(line).collect());
        if let (Some(of_time), Some(of_value)) = (heading.first(), heading.get(named.unwrap_or(1))) {
            let unit = spikes::of_times(of_time).ok_or_else(|| {
                wrong(
                    file,
                    format!("its first column is called `{of_time}`, which is no time: write `t (ms)` or `t (s)`"),
                )
            })?;
            let exponent = unit.display("").exponent;
            if exponent != 0 {
                series.samples.iter_mut().for_each(|(t, _)| *t = scale(*t, exponent));
            }
            series.unit = unit_of(of_value).map_err(|unit| {
                let which = if named.is_some() { "the" } else { "its second" };
                wrong(file, format!("{which} column is called `{of_value}`, and `{unit}` is no unit"))
            })?;
        }
    }
    covers(&series.samples, [first, last]).map_err(|why| wrong(file, why))?;
    Ok(series)
}

/// The unit in brackets at the end of a name in a heading, if there is one; the error is what is none.
fn unit_of(name: &str) -> Result<Option<Unit>, &str> {
    let Some((_, unit)) = name.strip_suffix(')').and_then(|name| name.rsplit_once('(')) else { return Ok(None) };
    Unit::parse(unit.trim()).map(Some).ok_or(unit)
}

/// Is a line a heading: are no numbers in it? Words such as `inf` are names there.
fn is_heading(line: &str) -> bool {
    cells(line).all(|cell| cell.parse::<f64>().is_err() || !cell.contains(|c: char| c.is_ascii_digit()))
}

/// Are samples `(t in ms, value)` finite, in order, and from `first` to `last` ms? The error is a sentence.
pub fn covers(samples: &[(f64, f64)], [first, last]: [f64; 2]) -> Result<(), String> {
    let (Some(begin), Some(end)) = (samples.first(), samples.last()) else {
        return Err("it holds no samples".into());
    };
    if let Some(at) = samples.iter().position(|s| !s.0.is_finite() || !s.1.is_finite()) {
        return Err(format!("sample {at} is not finite"));
    }
    if let Some(at) = samples.windows(2).position(|w| w[1].0 < w[0].0) {
        return Err(format!("time goes back from {} ms to {} ms", samples[at].0, samples[at + 1].0));
    }
    if begin.0 > first + 1e-9 || end.0 < last - 1e-9 {
        return Err(format!("it covers {} ms to {} ms, but the run needs {first} ms to {last} ms", begin.0, end.0));
    }
    Ok(())
}

fn is_npy(file: &DataFile) -> bool {
    file.name.to_ascii_lowercase().ends_with(".npy")
}

fn npy(file: &DataFile, bytes: &[u8]) -> Result<ArrayD<f64>, Diagnostic> {
    if file.column.is_some() {
        return Err(wrong(file, "an .npy file has no named columns"));
    }
    array(bytes).map_err(|why| wrong(file, why))
}

/// The numbers of an array in NumPy's format; of booleans 0 and 1. The error is a sentence.
fn array(bytes: &[u8]) -> Result<ArrayD<f64>, String> {
    check_npy(bytes)?;
    macro_rules! read {
        ($($number:ty),*) => {
            $(match ArrayD::<$number>::read_npy(bytes) {
                Ok(array) => return Ok(array.mapv(|x| x as f64)),
                Err(ReadNpyError::WrongDescriptor(_)) => {}
                Err(error) => return Err(complaint(&error)),
            })*
        };
    }
    read!(f64, f32, i64, i32, i16, i8, u64, u32, u16, u8);
    match ArrayD::<bool>::read_npy(bytes) {
        Ok(array) => return Ok(array.mapv(|x| if x { 1.0 } else { 0.0 })),
        Err(ReadNpyError::WrongDescriptor(_)) => {}
        Err(error) => return Err(complaint(&error)),
    }
    match Header::read(&mut &bytes[..])?.dtype.ends_with("f2") {
        true => Err("its numbers are float16: save `x.astype('float32')`".into()),
        false => Err("its numbers are neither float64, float32, integers nor booleans".into()),
    }
}

/// An .npz file: arrays of numbers with names.
pub struct Archive {
    members: ZipArchive<BufReader<File>>,
    bytes: u64,
}

impl Archive {
    /// Opens it. The error is a sentence.
    pub fn open(path: &Path) -> Result<Archive, String> {
        let told = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_string(),
            std::io::ErrorKind::PermissionDenied => "it may not be read".to_string(),
            _ => error.to_string().to_lowercase(),
        };
        let file = File::open(path).map_err(told)?;
        let bytes = file.metadata().map_err(told)?.len();
        let members = ZipArchive::new(BufReader::new(file)).map_err(|e| format!("it is no .npz archive ({e})"))?;
        Ok(Archive { members, bytes })
    }

    /// The names of its arrays, in its order.
    pub fn names(&self) -> Vec<String> {
        self.members.file_names().map(|name| name.strip_suffix(".npy").unwrap_or(name).to_string()).collect()
    }

    /// How many bytes all of it has, as it says itself.
    fn unpacked(&mut self) -> Option<u64> {
        (0..self.members.len()).map(|at| Some(self.members.by_index_raw(at).ok()?.size())).sum()
    }

    /// One of its arrays. The error is a sentence.
    pub fn array(&mut self, name: &str) -> Result<ArrayD<f64>, String> {
        let known = self.names().join(", ");
        let member = self.members.by_name(&format!("{name}.npy"));
        let member = member.map_err(|e| match e {
            ZipError::FileNotFound => format!("it has no array `{name}`; it has {known}"),
            other => format!("`{name}` cannot be read ({other})"),
        })?;
        // Packed data may be a thousand times as long as the file, but not more.
        let most = self.bytes.saturating_mul(1100);
        let mut bytes = Vec::new();
        member.take(most).read_to_end(&mut bytes).map_err(|e| format!("`{name}` cannot be read ({e})"))?;
        array(&bytes).map_err(|why| format!("`{name}`: {why}"))
    }
}

/// Is it an array, as far as can be told before it is read?
pub(crate) fn check_npy(bytes: &[u8]) -> Result<(), String> {
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err("it is not an .npy file, though its name says so".into());
    }
    // The reader would first make room for all that the header promises.
    let header = Header::read(&mut &bytes[..])?;
    match (header.item(), header.bytes()) {
        // A structured type has a size that only the reader knows; it refuses it.
        (None, _) => Ok(()),
        (Some(_), Some(promised)) if promised <= bytes.len() as u64 => Ok(()),
        (Some(_), _) => Err("it is cut short: its header promises more numbers than it has bytes".into()),
    }
}

/// What keeps an array from being read.
pub(crate) fn complaint(error: &ReadNpyError) -> String {
    match error {
        ReadNpyError::Io(_) | ReadNpyError::MissingData => "it is cut short".into(),
        ReadNpyError::ExtraBytes(n) => format!("{n} bytes too many are at its end"),
        other => other.to_string(),
    }
}

/// The whole file as text.
pub(crate) fn text(file: &DataFile) -> Result<String, Diagnostic> {
    let text = String::from_utf8(bytes(file)?)
        .map_err(|_| wrong(file, "it is neither an .npy file (by its name) nor text in UTF-8"))?;
    // Spreadsheets put a byte order mark in front.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// The numbers of a .csv file by line; a first line that is not numbers is a heading, `#` begins a comment. Where some columns are wanted, what others
/// have that is no number is NaN.
fn rows(file: &DataFile, text: &str, wanted: Option<&[usize]>) -> Result<Vec<(usize, Vec<f64>)>, Diagnostic> {
    let mut out = Vec::new();
    for (at, (i, line)) in lines(text).enumerate() {
        let number = |(column, cell): (usize, &str)| match cell.parse() {
            Err(_) if wanted.is_some_and(|wanted| !wanted.contains(&column)) => Ok(f64::NAN),
            number => number,
        };
        let row: Result<Vec<f64>, _> = cells(line).enumerate().map(number).collect();
        match row {
            _ if at == 0 && is_heading(line) => {}
            Ok(row) => out.push((i, row)),
            Err(_) => {
                let comma =
                    cells(line).find(|cell| cell.contains(',') && cell.replace(',', ".").parse::<f64>().is_ok());
                return Err(wrong(
                    file,
                    match comma {
                        Some(number) => format!("line {i} has `{number}`: a decimal point is a `.`, not a `,`"),
                        None => format!("line {i} is not numbers: `{}`", line.trim()),
                    },
                ));
            }
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

/// The columns of a line. Where `;` parts them, a comma does not.
pub(crate) fn cells(line: &str) -> impl Iterator<Item = &str> {
    let separators: &[char] = if line.contains(';') { &[';', '\t'] } else { &[',', '\t'] };
    line.split(separators).map(|cell| {
        let cell = cell.trim();
        cell.strip_prefix('"').and_then(|c| c.strip_suffix('"')).map_or(cell, str::trim)
    })
}

/// The names of a heading, not all of a line that is none.
fn listed(names: &[&str]) -> String {
    match names {
        [] | [""] => "no heading at all".into(),
        _ => names.iter().take(20).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "),
    }
}

/// Where a heading has a column of that name, and how many columns it has.
fn column_at(file: &DataFile, text: &str, name: &str) -> Result<(usize, usize), Diagnostic> {
    let heading = lines(text).next().map(|l| l.1).unwrap_or("");
    let names: Vec<&str> = cells(heading).collect();
    if names.iter().filter(|n| **n == name).count() > 1 {
        return Err(wrong(file, format!("it has several columns `{name}`")));
    }
    match names.iter().position(|n| *n == name) {
        Some(at) => Ok((at, names.len())),
        None => Err(wrong(file, format!("it has no column `{name}`, but {}", listed(&names)))),
    }
}

fn column(file: &DataFile, text: &str) -> Result<Vec<f64>, Diagnostic> {
    let named = file.column.as_deref().map(|name| column_at(file, text, name)).transpose()?;
    let (at, columns) = (named.map_or(0, |(at, _)| at), named.map(|(_, columns)| columns));
    let wanted = [at];
    rows(file, text, named.map(|_| wanted.as_slice()))?
        .into_iter()
        .map(|(line, row)| match (row.get(at), file.column.is_some() || row.len() == 1) {
            (Some(_), true) if columns.is_some_and(|columns| row.len() > columns) => {
                let (n, names) = (row.len(), columns.unwrap_or(0));
                let why = format!(
                    "line {line} has {n} columns, and the heading {names}; a decimal point is a `.`, not a `,`"
                );
                Err(wrong(file, why))
            }
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

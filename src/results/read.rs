//! Reading results.
//!
//! In comes the path of an archive or of a directory; out go results, all of them or thinned for a picture, or a sentence that says what is
//! wrong.
//! Never true here: a header is believed before it has been compared with the size of the data.

use super::contents::{CELLS, KEYS, PARAMETER, SPIKE_CELLS, SPIKE_TIMES, TIMES};
use super::npy::Header;
use super::{
    Compartment, LAYOUT, Parameter, ParameterValues, Population, RunResult, Samples, Series, SeriesHead, SpikeTrain,
};
use ndarray::Array2;
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zip::ZipArchive;

/// What of results is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// So many columns of a record at most, spread over all of them.
    pub columns: Option<usize>,
    /// So many samples of a record at most: of more, the least and the largest of every few, at times of two of these.
    pub samples: Option<usize>,
    /// Parameters with a value for each cell are left out.
    pub no_parameters: bool,
}

/// Reads; the error is a sentence.
pub(super) fn read(path: &Path, reading: &Reading) -> Result<RunResult, String> {
    let mut files = Files::open(path)?;
    let mut meta = files.meta()?;
    match meta.get("layout").and_then(Value::as_u64) {
        Some(layout) if layout == u64::from(LAYOUT) => {}
        Some(layout) => return Err(format!("its layout is version {layout}, but this neuroc reads version {LAYOUT}")),
        None if meta.contains_key("units") => return Err("an older neuroc wrote it; run the model again".into()),
        None => return Err(damaged("it has no `layout`")),
    }
    no_sweep(&meta)?;
    let [units, records, populations, parameters] = [
        object(&meta, "units")?,
        object(&meta, "records")?,
        object(&meta, "populations")?,
        object(&meta, "parameters")?,
    ];
    KEYS.iter().for_each(|key| {
        meta.remove(*key);
    });
    let mut result = RunResult { meta, ..RunResult::default() };
    let names = files.names()?;
    for name in &names {
        if let Some(record) = records.get(name) {
            let text = |object: &Value, key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
            let unit = units.get(name).and_then(Value::as_str);
            let unit = unit.ok_or_else(|| damaged(&format!("it states no unit for `{name}`")))?.to_owned();
            let population = text(record, "population");
            let population = population.ok_or_else(|| damaged(&format!("it states no population for `{name}`")))?;
            let (t, few) = files.times(&format!("{name}{TIMES}"), reading.samples)?;
            let cells = files.cells(&format!("{name}{CELLS}"))?;
            let (name, t) = (name.clone(), Arc::new(t));
            let compartments = compartments(record).map_err(|what| damaged(&format!("`{name}`: {what}")))?;
            let (whole, columns) = (cells.len(), Vec::new());
            let series = Series { name, population, unit, cells, columns, whole, compartments, t, values: none() };
            result.series.push(files.series(series, reading, few)?);
        } else if let Some(population) = name.strip_suffix(SPIKE_TIMES) {
            let cells = populations.get(population).and_then(|p| p.get("cells")).and_then(Value::as_u64);
            let cells = cells.and_then(|n| usize::try_from(n).ok());
            let cells = cells.ok_or_else(|| damaged(&format!("it does not count the cells of `{population}`")))?;
            let t = files.vector::<8>(name, "<f8")?.into_iter().map(f64::from_le_bytes).collect();
            let i = files.cells(&format!("{population}{SPIKE_CELLS}"))?;
            result.spikes.push(SpikeTrain { population: population.to_owned(), cells, t, i });
        }
    }
    if let Some(name) = records.keys().find(|name| !names.contains(name)) {
        return Err(format!("it has no array `{name}`"));
    }
    result.populations =
        populations.iter().map(population).collect::<Option<_>>().ok_or_else(|| damaged("`populations`"))?;
    for (name, entry) in &parameters {
        result.parameters.extend(files.parameter(name, entry, reading)?);
    }
    result.contradiction().map_or(Ok(result), Err)
}

/// Refuses the results of many runs.
fn no_sweep(meta: &Map<String, Value>) -> Result<(), String> {
    let odd = "it holds the runs of a sweep, not one run; `neuroc plot` draws it as .svg, .png or .pdf, in Python `neuroc.read` reads it";
    if meta.contains_key("sweep") { Err(odd.into()) } else { Ok(()) }
}

/// How many samples and columns every series of a file has, in the order in which [`read`] hands them over; no sample is read.
pub(super) fn shapes(path: &Path) -> Result<Vec<(usize, usize)>, String> {
    let mut files = Files::open(path)?;
    let meta = files.meta()?;
    no_sweep(&meta)?;
    let records = object(&meta, "records")?;
    let names = files.names()?;
    let shape = |name: &String| {
        let (header, _, _) = files.array(name)?;
        match header.shape[..] {
            [rows, columns] => Ok((rows as usize, columns as usize)),
            _ => Err(wrong(name, &header, "a [time, index] table of <f4 or <f8")),
        }
    };
    names.iter().filter(|name| records.contains_key(*name)).map(shape).collect()
}

/// A series of which `row` says the numbers at a sample time, thinned as [`RunResult::read`] thins those of files.
pub fn thin(head: &SeriesHead, t: &[f64], reading: &Reading, mut row: impl FnMut(usize, &mut Vec<f64>)) -> Series {
    let few = Few::new(t.len(), reading.samples);
    let width = head.cells.len();
    let columns = spread(width, reading.columns.unwrap_or(width));
    let mut thinned = Thinned::new(&columns, few);
    let (mut all, mut chosen) = (Vec::new(), Vec::new());
    for at in 0..t.len() {
        all.clear();
        row(at, &mut all);
        chosen.clear();
        chosen.extend(columns.iter().map(|&column| all.get(column).copied().unwrap_or(f64::NAN)));
        thinned.add(&chosen);
    }
    let t: Vec<f64> = t.iter().enumerate().filter(|&(at, _)| few.stands(at)).map(|(_, &t)| t).collect();
    let values = Array2::from_shape_vec((t.len(), columns.len()), thinned.done());
    Series {
        name: head.name.clone(),
        population: head.population.clone(),
        cells: columns.iter().map(|&column| head.cells[column]).collect(),
        whole: width,
        compartments: head.compartments.clone(),
        unit: head.unit.clone(),
        t: Arc::new(t),
        // There is a row for every time that stands for some.
        values: values.map_or_else(|_| none(), Samples::F64),
        columns,
    }
}

/// The compartments that a record says it is of.
pub(super) fn compartments(record: &Value) -> Result<Option<Arc<[Compartment]>>, &'static str> {
    let Some(said) = record.get("compartments") else { return Ok(None) };
    let list = |key: &str| said.get(key).and_then(Value::as_array);
    let (Some(names), Some(distances), Some(before)) = (list("name"), list("distance_um"), list("before")) else {
        return Err("its compartments lack something");
    };
    if names.len() != distances.len() || names.len() != before.len() {
        return Err("its compartments are not counted");
    }
    let places = list("at_um");
    if places.is_some_and(|places| places.len() != names.len()) {
        return Err("its contacts are not counted");
    }
    let compartment = |(number, ((name, distance), before)): (usize, ((&Value, &Value), &Value))| {
        let before = if before.is_null() { None } else { Some(before.as_u64()?) };
        let at = match places.map(|places| places[number].as_array().map(Vec::as_slice)) {
            None => None,
            Some(Some([x, y, z])) => Some([x.as_f64()?, y.as_f64()?, z.as_f64()?]),
            Some(_) => return None,
        };
        Some(Compartment { name: name.as_str()?.to_owned(), distance: distance.as_f64()?, before, at })
    };
    let all = names.iter().zip(distances).zip(before).enumerate().map(compartment).collect::<Option<_>>();
    all.map(Some).ok_or("its compartments are no names and numbers")
}

fn none() -> Samples {
    Samples::F64(Array2::zeros((0, 0)))
}

pub(super) fn population((name, entry): (&String, &Value)) -> Option<Population> {
    let number = |v: &Value| usize::try_from(v.as_u64()?).ok();
    let shape = entry.get("shape")?.as_array()?.iter().map(number).collect::<Option<_>>()?;
    Some(Population { name: name.clone(), cells: number(entry.get("cells")?)?, shape })
}

/// The header of an array, what follows it, and the size of the whole in bytes.
type Opened<'a> = (Header, Box<dyn Read + 'a>, u64);

/// Where arrays are.
pub(super) enum Files {
    Archive(Box<ZipArchive<BufReader<File>>>, u64),
    Folder(PathBuf),
}

impl Files {
    pub fn open(path: &Path) -> Result<Files, String> {
        let told = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
            _ => e.to_string(),
        };
        let file = File::open(path).map_err(told)?;
        let about = file.metadata().map_err(told)?;
        if about.is_dir() {
            return match path.join("meta.npy").exists() {
                true => Ok(Files::Folder(path.to_owned())),
                false => Err("it is a directory without results".to_owned()),
            };
        }
        let archive = ZipArchive::new(BufReader::new(file))
            .map_err(|e| format!("it is not an .npz file, or it is cut short ({e})"))?;
        Ok(Files::Archive(Box::new(archive), about.len()))
    }

    /// The names of all arrays; in an archive in its order.
    pub fn names(&mut self) -> Result<Vec<String>, String> {
        match self {
            Files::Archive(archive, _) => {
                Ok(archive.file_names().map(|n| n.strip_suffix(".npy").unwrap_or(n).to_owned()).collect())
            }
            Files::Folder(path) => {
                let entries = fs::read_dir(path).map_err(|e| e.to_string())?;
                let names = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
                let mut names: Vec<String> = names.filter_map(|n| n.strip_suffix(".npy").map(str::to_owned)).collect();
                names.sort();
                Ok(names)
            }
        }
    }

    /// Hands over an array, its header read and compared with its size.
    pub fn with<T>(
        &mut self,
        name: &str,
        take: impl FnOnce(&Header, &mut dyn Read) -> Result<T, String>,
    ) -> Result<T, String> {
        let (header, mut from, size) = self.array(name)?;
        let taken = take(&header, &mut from)?;
        if header.bytes() == Some(size) {
            // Only at its end is a member compared with its checksum.
            io::copy(&mut from, &mut io::sink()).map_err(|e| unreadable(name, e))?;
        }
        Ok(taken)
    }

    /// An array whose header fits its size.
    fn array<'a>(&'a mut self, name: &str) -> Result<Opened<'a>, String> {
        let missing = || format!("it has no array `{name}`: it was not written by `neuroc run`, or is damaged");
        let (mut from, size, packed): (Box<dyn Read + 'a>, u64, bool) = match self {
            Files::Archive(archive, file) => {
                let file = *file;
                let member = match archive.by_name(&format!("{name}.npy")) {
                    Ok(member) => member,
                    Err(zip::result::ZipError::FileNotFound) => return Err(missing()),
                    Err(e) => return Err(unreadable(name, e)),
                };
                let packed = member.compression() != zip::CompressionMethod::Stored;
                let size = member.size();
                // Packed data may be a thousand times as long as the file, but not more.
                if size > file.saturating_mul(if packed { 1100 } else { 1 }) {
                    return Err(unreadable(name, "it is longer than the file"));
                }
                (Box::new(member), size, packed)
            }
            Files::Folder(path) => {
                let file = File::open(path.join(format!("{name}.npy"))).map_err(|e| match e.kind() {
                    io::ErrorKind::NotFound => missing(),
                    _ => unreadable(name, e),
                })?;
                let size = file.metadata().map_err(|e| unreadable(name, e))?.len();
                (Box::new(BufReader::new(file)), size, false)
            }
        };
        let header = Header::read(&mut from).map_err(|e| unreadable(name, e))?;
        // Behind the rows that the header counts there may be more, if the process that wrote them was killed.
        let whole = header.bytes().is_none_or(|bytes| if packed { bytes == size } else { bytes <= size });
        if header.item().is_some() && (header.bytes().is_none() || !whole) {
            return Err(unreadable(name, "its size does not fit its shape"));
        }
        Ok((header, from, size))
    }

    pub fn vector<const N: usize>(&mut self, name: &str, dtype: &str) -> Result<Vec<[u8; N]>, String> {
        self.with(name, |header, from| {
            if header.dtype != dtype || header.shape.len() != 1 {
                return Err(wrong(name, header, &format!("a vector of {dtype}")));
            }
            let mut bytes = Vec::new();
            let length = header.shape[0] * N as u64;
            from.take(length).read_to_end(&mut bytes).map_err(|e| unreadable(name, e))?;
            if bytes.len() as u64 != length {
                return Err(unreadable(name, "it is cut short"));
            }
            Ok(bytes.as_chunks::<N>().0.to_vec())
        })
    }

    /// The times of all rows, or of those that stand for `few` each, and how many these are.
    pub fn times(&mut self, name: &str, most: Option<usize>) -> Result<(Vec<f64>, Few), String> {
        self.with(name, |header, from| {
            let ("<f8", [rows]) = (header.dtype.as_str(), &header.shape[..]) else {
                return Err(wrong(name, header, "a vector of <f8"));
            };
            let few = Few::new(*rows as usize, most);
            let (mut times, mut number) = (Vec::new(), [0; 8]);
            for row in 0..few.rows {
                from.read_exact(&mut number).map_err(|e| unreadable(name, e))?;
                if few.stands(row) {
                    times.push(f64::from_le_bytes(number));
                }
            }
            Ok((times, few))
        })
    }

    pub fn cells(&mut self, name: &str) -> Result<Vec<u64>, String> {
        let cells = self.vector::<8>(name, "<i8")?.into_iter().map(i64::from_le_bytes);
        cells.map(|cell| u64::try_from(cell).map_err(|_| unreadable(name, "a cell is negative"))).collect()
    }

    /// Reads the samples of a series of which all else is known.
    fn series(&mut self, mut series: Series, reading: &Reading, few: Few) -> Result<Series, String> {
        let name = series.name.clone();
        self.with(&name, |header, from| {
            let size = match (header.dtype.as_str(), &header.shape[..], header.fortran) {
                ("<f4", [_, _], false) => 4,
                ("<f8", [_, _], false) => 8,
                _ => return Err(wrong(&name, header, "a [time, index] table of <f4 or <f8")),
            };
            let (rows, width) = (header.shape[0] as usize, header.shape[1] as usize);
            if (rows, width) != (few.rows, series.cells.len()) {
                let (times, cells) = (few.rows, series.cells.len());
                return Err(format!(
                    "series `{name}` has {rows} samples of {width} cells, but {times} times and {cells} cells"
                ));
            }
            let columns = spread(width, reading.columns.unwrap_or(width));
            series.values = table(from, width, size, &columns, few).map_err(|e| unreadable(&name, e))?;
            series.cells = columns.iter().map(|&column| series.cells[column]).collect();
            series.columns = columns.clone();
            Ok(())
        })?;
        Ok(series)
    }

    fn parameter(&mut self, name: &str, entry: &Value, reading: &Reading) -> Result<Option<Parameter>, String> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        let lacks = |what: &str| damaged(&format!("it has no {what} of the parameter `{name}`"));
        let unit = text("unit").ok_or_else(|| lacks("unit"))?;
        let values = match (text("array"), entry.get("value")) {
            (Some(_), _) if reading.no_parameters => return Ok(None),
            (Some(array), _) if array == format!("{PARAMETER}{name}") => {
                let values = self.vector::<8>(&array, "<f8")?.into_iter().map(f64::from_le_bytes).collect();
                let population = text("population").ok_or_else(|| lacks("population"))?;
                ParameterValues::PerCell { population, values }
            }
            (None, Some(value)) => ParameterValues::One(value.as_f64().unwrap_or(f64::NAN)),
            (Some(_) | None, _) => return Err(lacks("value")),
        };
        Ok(Some(Parameter { name: name.to_owned(), unit, values }))
    }

    pub fn meta(&mut self) -> Result<Map<String, Value>, String> {
        let text = self.with("meta", |header, from| {
            if !header.dtype.starts_with("<U") || !header.shape.is_empty() {
                return Err(wrong("meta", header, "a single text"));
            }
            let mut bytes = Vec::new();
            from.take(header.item().unwrap_or(0)).read_to_end(&mut bytes).map_err(|e| unreadable("meta", e))?;
            let codes = bytes.as_chunks::<4>().0.iter().map(|code| u32::from_le_bytes(*code));
            let text: Option<String> = codes.map(char::from_u32).collect();
            text.ok_or_else(|| damaged("it is not text"))
        })?;
        match serde_json::from_str(text.trim_end_matches('\0')) {
            Ok(Value::Object(meta)) => Ok(meta),
            Ok(_) => Err(damaged("it is not a JSON object")),
            Err(e) => Err(damaged(&format!("it is not JSON: {e}"))),
        }
    }
}

/// Reads a table of numbers of so many bytes, row by row, and keeps these columns.
pub(super) fn table(
    from: &mut dyn Read,
    width: usize,
    size: usize,
    columns: &[usize],
    few: Few,
) -> Result<Samples, String> {
    let mut thinned = Thinned::new(columns, few);
    let mut bytes = vec![0; width * size];
    let mut row = vec![0.0; columns.len()];
    for _ in 0..few.rows {
        from.read_exact(&mut bytes).map_err(|e| e.to_string())?;
        for (value, &column) in row.iter_mut().zip(columns) {
            let number = &bytes[column * size..(column + 1) * size];
            *value = match *number {
                [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
                [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
                _ => f64::NAN,
            };
        }
        thinned.add(&row);
    }
    let values = thinned.done();
    let shape = (values.len().checked_div(columns.len()).unwrap_or(few.kept()), columns.len());
    let odd = |e: ndarray::ShapeError| e.to_string();
    Ok(match size {
        4 => {
            let single = values.iter().map(|&x| x as f32).collect();
            Samples::F32(Array2::from_shape_vec(shape, single).map_err(odd)?)
        }
        _ => Samples::F64(Array2::from_shape_vec(shape, values).map_err(odd)?),
    })
}

/// So many of `count` places at most, from the first to the last.
pub(crate) fn spread(count: usize, most: usize) -> Vec<usize> {
    match most {
        0 => Vec::new(),
        1 => (0..count.min(1)).collect(),
        _ if count <= most => (0..count).collect(),
        _ => (0..most).map(|k| k * (count - 1) / (most - 1)).collect(),
    }
}

/// How rows are thinned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Few {
    pub rows: usize,
    /// How many rows become two; 1: none do.
    few: usize,
}

impl Few {
    fn new(rows: usize, most: Option<usize>) -> Few {
        let few = match most {
            Some(most) if rows > most.max(2) => (2 * rows).div_ceil(most.max(2)),
            Some(_) | None => 1,
        };
        Few { rows, few }
    }

    /// How many rows are kept.
    fn kept(self) -> usize {
        (0..self.rows).filter(|&row| self.stands(row)).count()
    }

    /// Is the time of a row one of the two that stand for its few?
    fn stands(self, row: usize) -> bool {
        let first = row / self.few * self.few;
        // The last of all is the end of the run.
        let second = if first + self.few < self.rows { first + self.few / 2 } else { self.rows - 1 };
        self.few == 1 || row == first || row == second
    }
}

/// Rows as they come, or of every few the least and the largest value of each column, in the order in which they came.
struct Thinned {
    few: Few,
    rows: usize,
    least: Vec<(f64, usize)>,
    most: Vec<(f64, usize)>,
    values: Vec<f64>,
}

impl Thinned {
    fn new(columns: &[usize], few: Few) -> Thinned {
        let none = vec![(f64::NAN, 0); columns.len()];
        Thinned { few, rows: 0, least: none.clone(), most: none, values: Vec::new() }
    }

    fn add(&mut self, row: &[f64]) {
        if self.few.few == 1 {
            self.values.extend(row);
            return;
        }
        let now = self.rows;
        for ((&x, least), most) in row.iter().zip(&mut self.least).zip(&mut self.most) {
            // Nothing is less than NaN.
            if x.is_finite() && (least.0.is_nan() || x < least.0) {
                *least = (x, now);
            }
            if x.is_finite() && (most.0.is_nan() || x > most.0) {
                *most = (x, now);
            }
        }
        self.rows += 1;
        if self.rows.is_multiple_of(self.few.few) {
            self.close(self.few.few);
        }
    }

    /// So many rows become two; one stays one.
    fn close(&mut self, rows: usize) {
        let pairs = self.least.iter().zip(&self.most);
        let in_order = pairs.map(|(l, m)| if l.1 <= m.1 { (l.0, m.0) } else { (m.0, l.0) });
        let (early, late): (Vec<f64>, Vec<f64>) = in_order.unzip();
        self.values.extend(early);
        if rows > 1 {
            self.values.extend(late);
        }
        self.least.fill((f64::NAN, 0));
        self.most.fill((f64::NAN, 0));
    }

    fn done(mut self) -> Vec<f64> {
        let rest = self.rows % self.few.few;
        if rest > 0 {
            self.close(rest);
        }
        self.values
    }
}

pub(super) fn object(meta: &Map<String, Value>, key: &str) -> Result<Map<String, Value>, String> {
    match meta.get(key) {
        Some(Value::Object(object)) => Ok(object.clone()),
        _ => Err(damaged(&format!("it has no `{key}`"))),
    }
}

pub(super) fn damaged(what: &str) -> String {
    format!("its metadata is damaged: {what}")
}

pub(super) fn unreadable(name: &str, cause: impl std::fmt::Display) -> String {
    format!("array `{name}` is damaged: {cause}")
}

pub(super) fn wrong(name: &str, header: &Header, expected: &str) -> String {
    let dtype = if header.dtype.is_empty() { "a structured type" } else { &header.dtype };
    format!("array `{name}` has dtype {dtype} and shape {:?}, expected {expected}", header.shape)
}

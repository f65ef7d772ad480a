//! Results as NumPy's `.npz` archive.
//!
//! Checked results come in and the bytes of an archive in the layout of the [module above](super) go out; an archive
//! comes in and results go out, or a sentence that says what is wrong with it. The bytes never depend on the clock, and
//! a header is never believed before it has been compared with the size of the data.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use ndarray::{Array, Array1, ArrayView1, Dimension};
use ndarray_npy::{NpzWriter, ReadNpyExt, ReadableElement, WriteNpyError, WriteNpyExt, WriteNpzError};
use serde_json::{Map, Value, json};
use zip::ZipArchive;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;

use super::{RunResult, Samples, Series, SpikeTrain};

const TIME_SUFFIX: &str = ".t";
const SPIKE_TIMES: &str = ".spikes.t";
const SPIKE_CELLS: &str = ".spikes.i";
/// From here on a member needs the 64-bit sizes that older readers do not know; below, they are left out.
const LARGE: u64 = u32::MAX as u64;

/// Writes the archive.
pub(super) fn encode(result: &RunResult, out: impl Write + Seek) -> io::Result<()> {
    let mut latch = Latch::new(out);
    let written = encode_members(result, &mut latch).map_err(into_io);
    match latch.failure {
        Some(failure) => Err(failure),
        None => written,
    }
}

fn encode_members(result: &RunResult, out: &mut (impl Write + Seek)) -> Result<(), WriteNpzError> {
    let mut archive = NpzWriter::new(out);
    let shared: &[f64] = result.series.first().map_or(&[], |s| s.t.as_slice());
    let mut units = Map::from_iter([("t".to_owned(), json!("ms"))]);
    archive.add_array_with_options("t", &ArrayView1::from(shared), member(shared.len(), 8))?;
    for s in &result.series {
        let (rows, width) = s.values.shape();
        match &s.values {
            Samples::F32(a) => archive.add_array_with_options(&*s.name, a, member(rows * width, 4))?,
            Samples::F64(a) => archive.add_array_with_options(&*s.name, a, member(rows * width, 8))?,
        }
        units.insert(s.name.clone(), json!(s.unit));
        if s.t.as_slice() != shared {
            let name = format!("{}{TIME_SUFFIX}", s.name);
            archive.add_array_with_options(&*name, &ArrayView1::from(s.t.as_slice()), member(rows, 8))?;
            units.insert(name, json!("ms"));
        }
    }
    let mut populations = Map::new();
    for train in &result.spikes {
        let times = format!("{}{SPIKE_TIMES}", train.population);
        archive.add_array_with_options(&*times, &ArrayView1::from(&train.t), member(train.t.len(), 8))?;
        let cells = format!("{}{SPIKE_CELLS}", train.population);
        archive.add_array_with_options(cells, &ArrayView1::from(&train.i), member(train.i.len(), 8))?;
        units.insert(times, json!("ms"));
        populations.insert(train.population.clone(), json!({ "cells": train.cells }));
    }
    let mut meta = result.meta.clone();
    merge(&mut meta, "units", units);
    merge(&mut meta, "populations", populations);
    archive.add_array("meta", &Text(&Value::Object(meta).to_string()))?;
    archive.finish()?;
    Ok(())
}

fn member(elements: usize, element_size: u64) -> SimpleFileOptions {
    let header = 4096;
    SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(elements as u64 * element_size + header > LARGE)
}

/// Adds the entries to the object under `key`; whatever else stood there gives way, because these are facts.
fn merge(meta: &mut Map<String, Value>, key: &str, entries: Map<String, Value>) {
    let slot = meta.entry(key).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    if let Value::Object(object) = slot {
        object.extend(entries);
    }
}

/// Takes entries that [`merge`] added out again, and the object with them when nothing else is in it.
fn unmerge(meta: &mut Map<String, Value>, key: &str, is_added: impl Fn(&str) -> bool) {
    if let Some(Value::Object(object)) = meta.get_mut(key) {
        object.retain(|name, _| !is_added(name));
        if object.is_empty() {
            meta.remove(key);
        }
    }
}

/// A text as NumPy's zero-dimensional unicode array.
struct Text<'a>(&'a str);

impl WriteNpyExt for Text<'_> {
    fn write_npy<W: Write>(&self, mut writer: W) -> Result<(), WriteNpyError> {
        let length = self.0.chars().count();
        let mut dict = format!("{{'descr': '<U{length}', 'fortran_order': False, 'shape': (), }}");
        // Magic, version and length take 10 bytes; NumPy wants the whole header to be a multiple of 64.
        let padding = (64 - (10 + dict.len() + 1) % 64) % 64;
        dict.extend(std::iter::repeat_n(' ', padding));
        dict.push('\n');
        writer.write_all(b"\x93NUMPY\x01\x00")?;
        writer.write_all(&(dict.len() as u16).to_le_bytes())?;
        writer.write_all(dict.as_bytes())?;
        for c in self.0.chars() {
            writer.write_all(&u32::from(c).to_le_bytes())?;
        }
        writer.flush()?;
        Ok(())
    }
}

/// Keeps the first error of the writer inside to itself and from then on only pretends to write: an archive writer that
/// has met an error still tries to finish the archive while it is dropped, which can complain on stderr or panic.
struct Latch<W> {
    inner: W,
    failure: Option<io::Error>,
    position: u64,
    length: u64,
}

impl<W> Latch<W> {
    fn new(inner: W) -> Latch<W> {
        Latch { inner, failure: None, position: 0, length: 0 }
    }

    /// Does what is asked for, or after a failure nothing.
    fn guard<T>(&mut self, pretended: T, mut act: impl FnMut(&mut W) -> io::Result<T>) -> T {
        while self.failure.is_none() {
            match act(&mut self.inner) {
                Ok(done) => return done,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => self.failure = Some(e),
            }
        }
        pretended
    }
}

impl<W: Write> Write for Latch<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.guard(data.len(), |w| w.write(data));
        self.position += written as u64;
        self.length = self.length.max(self.position);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.guard((), W::flush);
        Ok(())
    }
}

impl<W: Seek> Seek for Latch<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(distance) => self.length.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        let place = place.ok_or(io::ErrorKind::InvalidInput)?;
        self.position = self.guard(place, |w| w.seek(to));
        Ok(self.position)
    }
}

fn into_io(e: WriteNpzError) -> io::Error {
    match e {
        WriteNpzError::Zip(ZipError::Io(e)) | WriteNpzError::Npy(WriteNpyError::Io(e)) => e,
        other => io::Error::other(other),
    }
}

/// Reads an archive; the error is a sentence.
pub(super) fn read(path: &Path) -> Result<RunResult, String> {
    let file = File::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
        _ => e.to_string(),
    })?;
    let file_size = match file.metadata() {
        Ok(m) if m.is_dir() => return Err("it is a directory".to_owned()),
        Ok(m) => m.len(),
        Err(e) => return Err(e.to_string()),
    };
    let archive = ZipArchive::new(BufReader::new(file))
        .map_err(|e| format!("it is not an .npz file, or it is cut short ({e})"))?;
    Reader { archive, file_size }.result()
}

struct Reader<R> {
    archive: ZipArchive<R>,
    file_size: u64,
}

/// What the header of a member says, before its data.
struct Header {
    /// NumPy's type string; empty for a structured type.
    dtype: String,
    shape: Vec<usize>,
}

impl<R: Read + Seek> Reader<R> {
    fn result(&mut self) -> Result<RunResult, String> {
        let names: Vec<String> =
            self.archive.file_names().map(|n| n.strip_suffix(".npy").unwrap_or(n).to_owned()).collect();
        let has = |name: &str| names.iter().any(|n| n == name);
        for needed in ["t", "meta"] {
            if !has(needed) {
                return Err(format!("it has no array `{needed}`: it was not written by `neuroc run`"));
            }
        }
        let shared = Arc::new(self.vector::<f64>("t", "<f8")?);
        let mut meta = self.meta()?;
        let units = object(&meta, "units")?;
        let populations = object(&meta, "populations")?;
        let mut result = RunResult::default();
        for name in names.iter().filter(|n| !["t", "meta"].contains(&n.as_str())) {
            if let Some(population) = name.strip_suffix(SPIKE_TIMES) {
                let cells_name = format!("{population}{SPIKE_CELLS}");
                if !has(&cells_name) {
                    return Err(format!("it has `{name}` but no `{cells_name}`"));
                }
                let cells = populations.get(population).and_then(|p| p.get("cells")).and_then(Value::as_u64);
                let cells = cells.and_then(|n| usize::try_from(n).ok());
                result.spikes.push(SpikeTrain {
                    population: population.to_owned(),
                    cells: cells.ok_or_else(|| damaged(&format!("it does not count the cells of `{population}`")))?,
                    t: self.vector(name, "<f8")?,
                    i: self.vector(&cells_name, "<u8")?,
                });
            } else if let Some(population) = name.strip_suffix(SPIKE_CELLS) {
                let times_name = format!("{population}{SPIKE_TIMES}");
                if !has(&times_name) {
                    return Err(format!("it has `{name}` but no `{times_name}`"));
                }
            } else if !name.strip_suffix(TIME_SUFFIX).is_some_and(has) {
                let own = format!("{name}{TIME_SUFFIX}");
                let t = if has(&own) { Arc::new(self.vector(&own, "<f8")?) } else { shared.clone() };
                let unit = units.get(name).and_then(Value::as_str);
                let unit = unit.ok_or_else(|| damaged(&format!("it states no unit for `{name}`")))?.to_owned();
                result.series.push(Series { name: name.clone(), unit, t, values: self.samples(name)? });
            }
        }
        unmerge(&mut meta, "units", has);
        unmerge(&mut meta, "populations", |p| has(&format!("{p}{SPIKE_TIMES}")));
        result.meta = meta;
        result.contradiction().map_or(Ok(result), Err)
    }

    fn vector<T: ReadableElement + Clone>(&mut self, name: &str, dtype: &str) -> Result<Vec<T>, String> {
        let header = self.header(name)?;
        if header.dtype != dtype || header.shape.len() != 1 {
            return Err(wrong(name, &header, &format!("a vector of {dtype}")));
        }
        let array: Array1<T> = self.array(name)?;
        Ok(array.to_vec())
    }

    fn samples(&mut self, name: &str) -> Result<Samples, String> {
        let header = self.header(name)?;
        match (header.dtype.as_str(), header.shape.len()) {
            ("<f4", 2) => Ok(Samples::F32(self.array(name)?)),
            ("<f8", 2) => Ok(Samples::F64(self.array(name)?)),
            _ => Err(wrong(name, &header, "a [time, index] table of <f4 or <f8")),
        }
    }

    fn array<T: ReadableElement, D: Dimension>(&mut self, name: &str) -> Result<Array<T, D>, String> {
        let member = self.archive.by_name(&format!("{name}.npy")).map_err(|e| unreadable(name, e))?;
        Array::read_npy(member).map_err(|e| unreadable(name, e))
    }

    /// Reads the header of a member and makes sure that the data behind it have the size it promises.
    fn header(&mut self, name: &str) -> Result<Header, String> {
        // No compression of zip files reaches this ratio: a larger size is a lie, and would be allocated.
        let most = self.file_size.saturating_mul(1100);
        let mut member = self.archive.by_name(&format!("{name}.npy")).map_err(|e| unreadable(name, e))?;
        let size = member.size();
        let (header, header_size) = parse_header(&mut member).map_err(|e| unreadable(name, e))?;
        let item: Option<u64> = match header.dtype.get(1..2) {
            Some("U") => header.dtype[2..].parse::<u64>().ok().and_then(|n| n.checked_mul(4)),
            Some(_) => header.dtype[2..].parse().ok(),
            None => None,
        };
        let elements = header.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64));
        let Some((item, elements)) = item.zip(elements) else {
            return Ok(header);
        };
        if size > most || elements.checked_mul(item).and_then(|n| n.checked_add(header_size)) != Some(size) {
            return Err(unreadable(name, "its size does not fit its shape"));
        }
        Ok(header)
    }

    fn meta(&mut self) -> Result<Map<String, Value>, String> {
        let header = self.header("meta")?;
        if !header.dtype.starts_with("<U") || !header.shape.is_empty() {
            return Err(wrong("meta", &header, "a single text"));
        }
        let mut member = self.archive.by_name("meta.npy").map_err(|e| unreadable("meta", e))?;
        parse_header(&mut member).map_err(|e| unreadable("meta", e))?;
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).map_err(|e| unreadable("meta", e))?;
        let codes = bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
        let text: Option<String> = codes.map(char::from_u32).collect();
        let text = text.ok_or_else(|| damaged("it is not text"))?;
        match serde_json::from_str(text.trim_end_matches('\0')) {
            Ok(Value::Object(meta)) => Ok(meta),
            Ok(_) => Err(damaged("it is not a JSON object")),
            Err(e) => Err(damaged(&format!("it is not JSON: {e}"))),
        }
    }
}

fn object(meta: &Map<String, Value>, key: &str) -> Result<HashMap<String, Value>, String> {
    match meta.get(key) {
        Some(Value::Object(object)) => Ok(object.clone().into_iter().collect()),
        _ => Err(damaged(&format!("it has no `{key}`"))),
    }
}

fn damaged(what: &str) -> String {
    format!("its metadata is damaged: {what}")
}

fn unreadable(name: &str, cause: impl std::fmt::Display) -> String {
    format!("array `{name}` is damaged: {cause}")
}

fn wrong(name: &str, header: &Header, expected: &str) -> String {
    let dtype = if header.dtype.is_empty() { "a structured type" } else { &header.dtype };
    format!("array `{name}` has dtype {dtype} and shape {:?}, expected {expected}", header.shape)
}

/// Reads the header of a `.npy` member: what it says and how many bytes it takes.
fn parse_header(member: &mut impl Read) -> Result<(Header, u64), String> {
    let mut start = [0; 8];
    member.read_exact(&mut start).map_err(|e| e.to_string())?;
    if &start[..6] != b"\x93NUMPY" {
        return Err("it is not in NumPy's format".to_owned());
    }
    let mut length = [0; 4];
    let width = if start[6] == 1 { 2 } else { 4 };
    member.read_exact(&mut length[..width]).map_err(|e| e.to_string())?;
    let length = u32::from_le_bytes(length);
    if length > 1 << 20 {
        return Err("its header is too long".to_owned());
    }
    let mut dict = vec![0; length as usize];
    member.read_exact(&mut dict).map_err(|e| e.to_string())?;
    let dict = String::from_utf8(dict).map_err(|_| "its header is not text".to_owned())?;
    let after = |key: &str| dict.split_once(key).map(|(_, rest)| rest.trim_start());
    let dtype = after("'descr':").and_then(|rest| rest.strip_prefix('\'')).and_then(|rest| rest.split_once('\''));
    let shape = after("'shape':").and_then(|rest| rest.strip_prefix('(')).and_then(|rest| rest.split_once(')'));
    let (shape, _) = shape.ok_or("its header states no shape")?;
    let shape = shape.split(',').map(str::trim).filter(|d| !d.is_empty()).map(str::parse).collect::<Result<_, _>>();
    let header = Header {
        dtype: dtype.map(|(d, _)| d).filter(|d| d.is_ascii() && d.len() > 2).map(str::to_owned).unwrap_or_default(),
        shape: shape.map_err(|_| "its header states no shape")?,
    };
    Ok((header, 8 + width as u64 + u64::from(length)))
}

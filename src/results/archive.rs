//! An `.npz` archive that is whole at any moment of a run.
//!
//! In come arrays whose rows grow while the run goes on; out goes an archive that NumPy opens after every [`Archive::commit`], with the
//! rows until then, whatever becomes of the process.
//! Never true here: more than a few megabytes are in memory, or a byte depends on the clock once the archive is finished.
//!
//! Arrays whose number of rows is known lie one behind the other, each with room for all of its rows; those that grow without a known end
//! (spikes) move behind everything else when their room is full. Last comes a *directory*: the text `meta`, the list of members and the end
//! of the archive. What is behind the rows that the directory names does not belong to the archive, so rows are written first, then a new
//! directory beside the old one, in front of it or behind it, and only then the archive ends with the new one; the headers of the
//! arrays follow. The end of an archive is looked for from the end of the file, so a directory that is only half written does no harm.

use super::array::{Plan, kept};
use super::atomic::{Pending, WriteError};
use super::npy;
use crc32fast::Hasher;
use std::io::Write;
use std::path::Path;

/// From here on a size needs 64 bits, which older readers do not know; below, they are left out.
const LARGE: u64 = u32::MAX as u64;
/// The rows that an array without a known end has room for at first, in bytes.
const ROOM: u64 = 1 << 19;
/// 1 January 1980, when time begins for archives.
const DATE: u16 = 0x21;

/// An archive in the making.
pub(super) struct Archive {
    pending: Pending,
    arrays: Vec<Growing>,
    /// Where the room of all arrays ends.
    top: u64,
    /// The members as the last directory lists them, and the text in it.
    listed: Vec<Entry>,
    meta: String,
    /// Where the last directory is, and how long.
    directory: Option<(u64, u64)>,
    buffer: usize,
    compress: bool,
}

struct Growing {
    plan: Plan,
    /// Where its member begins, how many bytes of rows there is room for, and how many there are.
    place: u64,
    room: u64,
    bytes: u64,
    /// The checksum of these rows, and those that are not written yet.
    sum: Hasher,
    buffer: Vec<u8>,
}

/// A member as the list of members has it.
#[derive(Clone)]
struct Entry {
    name: String,
    sum: u32,
    bytes: u64,
    place: u64,
    large: bool,
}

impl Growing {
    fn large(&self) -> bool {
        self.room + npy::SIZE >= LARGE
    }

    /// The bytes before the rows.
    fn head(&self) -> u64 {
        local(&self.entry()).len() as u64 + npy::SIZE
    }

    fn end(&self) -> u64 {
        self.place + self.head() + self.room
    }

    /// The member with the rows that there are.
    fn entry(&self) -> Entry {
        let header = self.plan.header(self.bytes);
        let mut sum = Hasher::new();
        sum.update(&header);
        sum.combine(&self.sum);
        let (bytes, name) = (npy::SIZE + self.bytes, self.plan.name.clone());
        Entry { name, sum: sum.finalize(), bytes, place: self.place, large: self.large() }
    }

    /// What stands before the rows.
    fn begin(&self) -> Vec<u8> {
        [local(&self.entry()), self.plan.header(self.bytes)].concat()
    }
}

impl Archive {
    /// An archive for `path`, which appears there with the first [`Archive::commit`]; `compress`: its numbers are packed when it is finished.
    pub fn new(path: &Path, plans: Vec<Plan>, compress: bool) -> Result<Archive, WriteError> {
        Archive::on(Pending::open(path)?, plans, compress)
    }

    fn on(pending: Pending, plans: Vec<Plan>, compress: bool) -> Result<Archive, WriteError> {
        let buffer = kept(plans.len());
        let mut archive = Archive {
            pending,
            arrays: Vec::new(),
            top: 0,
            listed: Vec::new(),
            meta: String::new(),
            directory: None,
            buffer,
            compress,
        };
        for plan in plans {
            let room = plan.rows.map_or(ROOM, |rows| rows.saturating_mul(plan.row()));
            let (sum, buffer) = (Hasher::new(), Vec::new());
            let array = Growing { plan, place: archive.top, room, bytes: 0, sum, buffer };
            archive.top = array.end();
            archive.arrays.push(array);
        }
        Ok(archive)
    }

    /// Appends numbers to an array.
    pub fn append(&mut self, array: usize, values: &[f64]) -> Result<(), WriteError> {
        let a = &mut self.arrays[array];
        a.plan.numbers.put(values, &mut a.buffer);
        if a.buffer.len() >= self.buffer { self.flush(array) } else { Ok(()) }
    }

    /// The archive holds everything that was appended, and this text; from now on it is at its place.
    pub fn commit(&mut self, meta: &str) -> Result<(), WriteError> {
        self.list(meta)?;
        self.pending.show()
    }

    /// Commits for the last time: afterwards the bytes of the archive depend on the rows and the text alone.
    pub fn finish(mut self, meta: &str) -> Result<(), WriteError> {
        self.list(meta)?;
        let short = |a: &Growing| a.plan.rows.is_some() && a.bytes != a.room;
        if self.compress {
            self.packed(meta)
        } else if self.arrays.iter().any(short) {
            self.shorter(meta)
        } else {
            self.settle(meta)?;
            self.pending.commit_or_keep()
        }
    }

    fn list(&mut self, meta: &str) -> Result<(), WriteError> {
        for array in 0..self.arrays.len() {
            self.flush(array)?;
        }
        if self.directory.is_none() {
            // No array may lack its header once it is listed.
            self.headers()?;
        }
        self.listed = self.arrays.iter().map(Growing::entry).collect();
        self.meta = meta.to_owned();
        self.direct(self.top)?;
        self.headers()
    }

    fn headers(&mut self) -> Result<(), WriteError> {
        for array in &self.arrays {
            self.pending.write_at(array.place, &array.begin())?;
        }
        Ok(())
    }

    fn flush(&mut self, array: usize) -> Result<(), WriteError> {
        let a = &self.arrays[array];
        let needed = a.bytes + a.buffer.len() as u64;
        if needed > a.room {
            self.relocate(array, self.top, (2 * needed).next_multiple_of(ROOM))?;
        }
        let a = &mut self.arrays[array];
        self.pending.write_at(a.place + a.head() + a.bytes, &a.buffer)?;
        a.sum.update(&a.buffer);
        a.bytes += a.buffer.len() as u64;
        a.buffer.clear();
        Ok(())
    }

    /// Moves what there is of an array to a place where nothing is that the directory names.
    fn relocate(&mut self, array: usize, place: u64, room: u64) -> Result<(), WriteError> {
        let a = &mut self.arrays[array];
        let (before, bytes) = (a.place + a.head(), a.bytes);
        (a.place, a.room) = (place, room);
        let (begin, after, end) = (a.begin(), a.place + a.head(), a.end());
        let further = end > self.top;
        self.top = self.top.max(end);
        if further && self.directory.is_some_and(|(at, _)| at < end) {
            // The end of the archive moves out of the way first.
            self.direct(end)?;
        }
        self.pending.write_at(place, &begin)?;
        self.copy(before, after, bytes)
    }

    /// Writes the directory anew, at `from` if the one before is not in the way, else behind that.
    fn direct(&mut self, from: u64) -> Result<(), WriteError> {
        let length = self.ending(from).len() as u64;
        let place = match self.directory {
            Some((at, before)) if at < from + length && from < at + before => at + before,
            _ => from,
        };
        let ending = self.ending(place);
        self.pending.write_at(place, &ending)?;
        self.pending.cut(place + ending.len() as u64)?;
        self.directory = Some((place, ending.len() as u64));
        Ok(())
    }

    /// The text, the list of members and the end, as they are at a place.
    fn ending(&self, place: u64) -> Vec<u8> {
        let text = npy::text(&self.meta);
        let bytes = text.len() as u64;
        let meta = Entry { name: "meta".into(), sum: crc32fast::hash(&text), bytes, place, large: false };
        let mut out = [local(&meta), text].concat();
        let start = place + out.len() as u64;
        let list: Vec<u8> = self.listed.iter().chain([&meta]).flat_map(listed).collect();
        out.extend(&list);
        out.extend(end(self.listed.len() as u64 + 1, start, list.len() as u64));
        out
    }

    /// Arrays without a known end move to where they would be, had their length been known.
    fn settle(&mut self, meta: &str) -> Result<(), WriteError> {
        let growing: Vec<usize> = (0..self.arrays.len()).filter(|&a| self.arrays[a].plan.rows.is_none()).collect();
        let known = self.arrays.iter().filter(|a| a.plan.rows.is_some()).map(Growing::end);
        let begin = known.max().unwrap_or(0);
        let total: u64 = growing.iter().map(|&a| self.arrays[a].head() + self.arrays[a].bytes).sum();
        // Out of the way, and then back: at no time is there a place with both old and new rows.
        let length = self.ending(LARGE).len() as u64;
        self.top = self.top.max(begin + total + length);
        for &a in &growing {
            self.relocate(a, self.top, self.arrays[a].bytes)?;
        }
        self.list(meta)?;
        self.top = begin;
        for &a in &growing {
            let (place, room) = (self.top, self.arrays[a].bytes);
            self.relocate(a, place, room)?;
        }
        self.list(meta)?;
        // Once more, if the last directory was in the way of its place.
        if self.directory.is_some_and(|(at, _)| at != self.top) {
            self.list(meta)?;
        }
        Ok(())
    }

    fn copy(&mut self, from: u64, to: u64, bytes: u64) -> Result<(), WriteError> {
        let mut chunk = vec![0; (1u64 << 20).min(bytes) as usize];
        let mut done = 0;
        while done < bytes {
            let most = (bytes - done).min(chunk.len() as u64) as usize;
            self.pending.read_at(from + done, &mut chunk[..most])?;
            self.pending.write_at(to + done, &chunk[..most])?;
            done += most as u64;
        }
        Ok(())
    }

    /// A copy with room for no more rows than there are. Where there is no space for one, the archive stays as it is.
    fn shorter(mut self, meta: &str) -> Result<(), WriteError> {
        match self.copied(meta) {
            Ok(()) => Ok(()),
            Err(_) => self.pending.commit_or_keep(),
        }
    }

    fn copied(&mut self, meta: &str) -> Result<(), WriteError> {
        let exact = |a: &Growing| Plan { rows: a.bytes.checked_div(a.plan.row()).or(Some(0)), ..a.plan.clone() };
        let mut copy = Archive::on(self.pending.another()?, self.arrays.iter().map(exact).collect(), false)?;
        let mut chunk = vec![0; 1 << 20];
        for (at, array) in self.arrays.iter().enumerate() {
            let mut done = 0;
            while done < array.bytes {
                let most = (array.bytes - done).min(chunk.len() as u64) as usize;
                self.pending.read_at(array.place + array.head() + done, &mut chunk[..most])?;
                copy.arrays[at].buffer.extend(&chunk[..most]);
                copy.flush(at)?;
                done += most as u64;
            }
        }
        copy.settle(meta)?;
        copy.pending.commit()
    }

    /// A copy with packed numbers. Where there is no space for one, the archive stays as it is.
    fn packed(mut self, meta: &str) -> Result<(), WriteError> {
        let Err(mut error) = self.deflated(meta) else { return Ok(()) };
        self.pending.commit_or_keep()?;
        error.reason += "; the result is there, but not compressed";
        Err(error)
    }

    fn deflated(&mut self, meta: &str) -> Result<(), WriteError> {
        let mut packed = self.pending.another()?;
        packed.fill(|file| {
            let mut zip = zip::ZipWriter::new(file);
            let options = |bytes: u64| {
                let deflated =
                    zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
                // Packed data may be a little longer.
                deflated.large_file(bytes + bytes / 1024 + 4096 >= LARGE)
            };
            let mut chunk = vec![0; 1 << 20];
            for array in &self.arrays {
                zip.start_file(format!("{}.npy", array.plan.name), options(array.bytes))?;
                zip.write_all(&array.plan.header(array.bytes))?;
                let mut done = 0;
                while done < array.bytes {
                    let most = (array.bytes - done).min(chunk.len() as u64) as usize;
                    self.pending.read(array.place + array.head() + done, &mut chunk[..most])?;
                    zip.write_all(&chunk[..most])?;
                    done += most as u64;
                }
            }
            zip.start_file("meta.npy", options(0))?;
            zip.write_all(&npy::text(meta))?;
            zip.finish()?;
            Ok(())
        })?;
        packed.commit()
    }
}

/// What stands before the bytes of a member.
fn local(entry: &Entry) -> Vec<u8> {
    let mut out = Vec::new();
    let extra = if entry.large { [words(&[1, 16]), longs(&[entry.bytes, entry.bytes])].concat() } else { Vec::new() };
    let bytes = if entry.large { LARGE } else { entry.bytes };
    let name = format!("{}.npy", entry.name);
    out.extend(ints(&[0x0403_4B50]));
    out.extend(words(&[if entry.large { 45 } else { 20 }, flags(&name), 0, 0, DATE]));
    out.extend(ints(&[entry.sum, bytes as u32, bytes as u32]));
    out.extend(words(&[name.len() as u16, extra.len() as u16]));
    out.extend(name.as_bytes());
    out.extend(extra);
    out
}

/// A member in the list of members.
fn listed(entry: &Entry) -> Vec<u8> {
    let mut long = Vec::new();
    let mut short = |x: u64| {
        if x < LARGE {
            return x as u32;
        }
        long.push(x);
        LARGE as u32
    };
    let [bytes, packed, place] = [short(entry.bytes), short(entry.bytes), short(entry.place)];
    let extra = if long.is_empty() { Vec::new() } else { [words(&[1, 8 * long.len() as u16]), longs(&long)].concat() };
    let name = format!("{}.npy", entry.name);
    let version = if long.is_empty() && !entry.large { 20 } else { 45 };
    let mut out = ints(&[0x0201_4B50]);
    // Made on Unix, where it is a file that all may read.
    out.extend(words(&[3 << 8 | version, version, flags(&name), 0, 0, DATE]));
    out.extend(ints(&[entry.sum, packed, bytes]));
    out.extend(words(&[name.len() as u16, extra.len() as u16, 0, 0, 0]));
    out.extend(ints(&[0o100_644 << 16, place]));
    out.extend(name.as_bytes());
    out.extend(extra);
    out
}

/// The end of an archive, whose list has so many members, begins at `start` and takes so many bytes.
fn end(members: u64, start: u64, bytes: u64) -> Vec<u8> {
    let mut out = Vec::new();
    if members >= u64::from(u16::MAX) || start >= LARGE || bytes >= LARGE {
        out.extend(ints(&[0x0606_4B50]));
        out.extend(longs(&[44]));
        out.extend(words(&[3 << 8 | 45, 45]));
        out.extend(ints(&[0, 0]));
        out.extend(longs(&[members, members, bytes, start]));
        out.extend(ints(&[0x0706_4B50, 0]));
        out.extend(longs(&[start + bytes]));
        out.extend(ints(&[1]));
    }
    let members = members.min(u64::from(u16::MAX)) as u16;
    out.extend(ints(&[0x0605_4B50]));
    out.extend(words(&[0, 0, members, members]));
    out.extend(ints(&[bytes.min(LARGE) as u32, start.min(LARGE) as u32]));
    out.extend(words(&[0]));
    out
}

/// Names beyond ASCII are UTF-8.
fn flags(name: &str) -> u16 {
    if name.is_ascii() { 0 } else { 1 << 11 }
}

fn words(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn ints(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn longs(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

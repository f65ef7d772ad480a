//! What has to stay true of results and their files.

use std::fs;
use std::io::{self, Cursor, Seek, SeekFrom, Write};

use ndarray::{Array2, array};
use serde_json::json;

use super::*;

/// Two series on the shared times, one on its own, one spike train.
fn sample() -> RunResult {
    let t = Arc::new(vec![0.0, 0.1, 0.2]);
    let meta = json!({"model": "squid", "seed": 7, "note": "µA/cm² \u{1F9E0} \"quoted\""});
    RunResult {
        series: vec![
            Series {
                name: "squid.soma.v".into(),
                unit: "mV".into(),
                t: t.clone(),
                values: Samples::F64(array![[-65.0, -64.5], [f64::NAN, 1e-7], [40.0, f64::INFINITY]]),
            },
            Series {
                name: "squid.soma.m".into(),
                unit: "1".into(),
                t,
                values: Samples::F32(array![[0.1], [0.2], [0.3]]),
            },
            Series {
                name: "squid.dend.ca".into(),
                unit: "mM".into(),
                t: Arc::new(vec![0.0, 0.2, 0.4]),
                values: Samples::F64(array![[1e-5], [2e-5], [1e20]]),
            },
        ],
        spikes: vec![SpikeTrain { population: "squid".into(), cells: 2, t: vec![0.1, 0.15], i: vec![1, 0] }],
        meta: meta.as_object().cloned().expect("an object"),
    }
}

/// A sample in which every value equals itself.
fn comparable() -> RunResult {
    let mut result = sample();
    result.series[0].values = Samples::F64(array![[-65.0, -64.5], [-65.0, 1e-7], [40.0, f64::INFINITY]]);
    result
}

fn npz_bytes(result: &RunResult) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    npz::encode(result, &mut out).expect("memory takes everything");
    out.into_inner()
}

fn entries(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).expect("the directory is there").map(|e| e.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|n| n.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn read_error(bytes: &[u8]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("r.npz");
    fs::write(&path, bytes).expect("it is written");
    let message = RunResult::read_npz(&path).expect_err("it is damaged").to_string();
    assert!(message.starts_with(&format!("cannot read `{}`: ", path.display())), "{message}");
    message
}

/// An archive of raw members, each an `.npy` with this header dictionary and this data.
fn archive(members: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, dict, data) in members {
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        zip.start_file(format!("{name}.npy"), options).expect("a member");
        let mut member = b"\x93NUMPY\x01\x00".to_vec();
        member.extend((dict.len() as u16 + 1).to_le_bytes());
        member.extend(dict.as_bytes());
        member.push(b'\n');
        member.extend(*data);
        zip.write_all(&member).expect("memory takes everything");
    }
    zip.finish().expect("memory takes everything").into_inner()
}

const NO_TIMES: (&str, &str, &[u8]) = ("t", "{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }", &[]);

/// An archive with this text as its `meta` beside the members.
fn archive_with_meta(text: &str, members: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let data: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let dict = format!("{{'descr': '<U{}', 'fortran_order': False, 'shape': (), }}", text.chars().count());
    let mut all = vec![("meta", dict.as_str(), data.as_slice())];
    all.extend(members);
    archive(&all)
}

#[test]
fn npz_comes_back_equal() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("out.npz");
    comparable().write_npz(&path).expect("it is written");
    let back = RunResult::read_npz(&path).expect("it is read");
    assert_eq!(back, comparable());
    assert!(Arc::ptr_eq(&back.series[0].t, &back.series[1].t), "shared times stay shared");
    assert_eq!(entries(dir.path()), ["out.npz"]);
}

#[test]
fn npz_of_nothing_and_of_empty_series_comes_back_equal() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("out.npz");
    RunResult::default().write_npz(&path).expect("it is written");
    assert_eq!(RunResult::read_npz(&path).expect("it is read"), RunResult::default());
    let stopped_at_once = RunResult {
        series: vec![Series {
            name: "c.v".into(),
            unit: "mV".into(),
            t: Arc::default(),
            values: Samples::F32(Array2::zeros((0, 5))),
        }],
        spikes: vec![SpikeTrain { population: "c".into(), cells: 5, t: vec![], i: vec![] }],
        ..RunResult::default()
    };
    stopped_at_once.write_npz(&path).expect("it is replaced");
    assert_eq!(RunResult::read_npz(&path).expect("it is read"), stopped_at_once);
}

#[test]
fn npz_that_numpy_compressed_is_read() {
    let bytes = npz_bytes(&comparable());
    let mut plain = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
    let mut packed = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for k in 0..plain.len() {
        let mut member = plain.by_index(k).expect("a member");
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        packed.start_file(member.name(), options).expect("a member");
        io::copy(&mut member, &mut packed).expect("memory takes everything");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("out.npz");
    let packed = packed.finish().expect("memory takes everything");
    fs::write(&path, packed.into_inner()).expect("it is written");
    assert_eq!(RunResult::read_npz(&path).expect("it is read"), comparable());
}

#[test]
fn npz_keeps_not_a_number() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("out.npz");
    sample().write_npz(&path).expect("it is written");
    let back = RunResult::read_npz(&path).expect("it is read");
    assert!(back.series[0].values.get(1, 0).is_nan());
}

#[test]
fn npz_bytes_do_not_depend_on_when_they_are_written() {
    let first = npz_bytes(&sample());
    std::thread::sleep(std::time::Duration::from_millis(2100));
    assert_eq!(first, npz_bytes(&sample()));
}

/// NumPy 2 was seen to load the file and `json.loads(str(file["meta"]))` to work; these are the bytes it saw.
#[test]
fn npz_members_are_what_numpy_expects() {
    let bytes = npz_bytes(&sample());
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes.as_slice())).expect("an archive");
    let names: Vec<String> = zip.file_names().map(str::to_owned).collect();
    let expected = [
        ("t.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"),
        ("squid.soma.v.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }"),
        ("squid.soma.m.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }"),
        ("squid.dend.ca.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }"),
        ("squid.dend.ca.t.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"),
        ("squid.spikes.t.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"),
        ("squid.spikes.i.npy", "{'descr': '<u8', 'fortran_order': False, 'shape': (2,), }"),
        ("meta.npy", "{'descr': '<U"),
    ];
    assert_eq!(names, expected.map(|(name, _)| name));
    let canonical = |dict: &str| dict.replace([' ', ','], "");
    for (name, dict) in expected {
        let mut member = Vec::new();
        let mut file = zip.by_name(name).expect("a member");
        assert_eq!(file.compression(), zip::CompressionMethod::Stored);
        io::copy(&mut file, &mut member).expect("its checksum is right");
        assert_eq!(&member[..8], b"\x93NUMPY\x01\x00", "{name}: magic and version 1.0");
        let length = usize::from(u16::from_le_bytes([member[8], member[9]]));
        assert_eq!((10 + length) % 64, 0, "{name}: aligned data");
        assert_eq!(member[10 + length - 1], b'\n', "{name}: terminated header");
        let header = std::str::from_utf8(&member[10..10 + length]).expect("text");
        assert!(canonical(header).starts_with(&canonical(dict)), "{name}: {header}");
    }
    let mut meta = Vec::new();
    io::copy(&mut zip.by_name("meta.npy").expect("a member"), &mut meta).expect("its checksum is right");
    let header_size = 10 + usize::from(u16::from_le_bytes([meta[8], meta[9]]));
    let data = &meta[header_size..];
    let header = std::str::from_utf8(&meta[10..header_size]).expect("text");
    assert!(header.contains(&format!("'<U{}', 'fortran_order': False, 'shape': (), }}", data.len() / 4)), "{header}");
    let codes = data.chunks(4).map(|c| u32::from_le_bytes(c.try_into().expect("whole code points")));
    let text: String = codes.map(|c| char::from_u32(c).expect("a code point")).collect();
    let meta: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(meta["note"], "µA/cm² \u{1F9E0} \"quoted\"");
    assert_eq!(
        meta["units"],
        json!({"t": "ms", "squid.soma.v": "mV", "squid.soma.m": "1", "squid.dend.ca": "mM",
               "squid.dend.ca.t": "ms", "squid.spikes.t": "ms"})
    );
    assert_eq!(meta["populations"], json!({"squid": {"cells": 2}}));
}

#[test]
fn units_of_the_caller_are_kept_beside_those_of_the_arrays() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("out.npz");
    let mut result = comparable();
    result.meta.insert("units".into(), json!({"gbar": "mS/cm2"}));
    result.write_npz(&path).expect("it is written");
    assert_eq!(RunResult::read_npz(&path).expect("it is read"), result);
}

#[test]
fn contradictions_are_named_and_not_written() {
    type Damage = fn(&mut RunResult);
    let cases: [(Damage, &str); 9] = [
        (|r| r.series[1].name = "squid.soma.v".into(), "two arrays are named `squid.soma.v`"),
        (|r| r.series[1].name = "squid.soma.v.t".into(), "two arrays are named `squid.soma.v.t`"),
        (|r| r.series[1].name = "t".into(), "two arrays are named `t`"),
        (|r| r.series[1].name = "a/b".into(), "\"a/b\" cannot name an array"),
        (|r| r.series[1].name = "a.spikes.t".into(), "has a name kept for spikes"),
        (|r| r.series[2].t = Arc::new(vec![0.0]), "`squid.dend.ca` has 3 samples at 1 times"),
        (|r| r.series[2].t = Arc::new(vec![0.0, 2.0, 1.0]), "of series `squid.dend.ca` go backwards"),
        (|r| r.spikes[0].i[0] = 2, "cell 2 of `squid` fired, but it has 2 cells"),
        (|r| r.spikes[0].t.clear(), "0 spike times and 2 spiking cells"),
    ];
    let dir = tempfile::tempdir().expect("a directory");
    for (damage, expected) in cases {
        let mut result = sample();
        damage(&mut result);
        for name in ["r.npz", "r.csv"] {
            let error = result.write(&dir.path().join(name)).expect_err("it contradicts itself").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
    assert!(entries(dir.path()).is_empty());
}

#[test]
fn csv_is_one_wide_table_and_one_of_spikes() {
    let dir = tempfile::tempdir().expect("a directory");
    let files = sample().write(&dir.path().join("out.csv")).expect("it is written");
    assert_eq!(files, [dir.path().join("out.csv"), dir.path().join("out.spikes.csv")]);
    assert_eq!(entries(dir.path()), ["out.csv", "out.spikes.csv"]);
    let table = fs::read_to_string(&files[0]).expect("text");
    assert_eq!(
        table,
        "t_ms,squid.soma.v[0] (mV),squid.soma.v[1] (mV),squid.soma.m[0] (1),squid.dend.ca[0] (mM)\n\
         0,-65,-64.5,0.1,0.00001\n\
         0.1,nan,1e-7,0.2,\n\
         0.2,40,inf,0.3,0.00002\n\
         0.4,,,,1e20\n"
    );
    let spikes = fs::read_to_string(&files[1]).expect("text");
    assert_eq!(spikes, "population,cell,t_ms\nsquid,1,0.1\nsquid,0,0.15\n");
}

#[test]
fn csv_quotes_names_and_leaves_out_spikes_that_were_not_recorded() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut result = sample();
    result.spikes.clear();
    result.series.truncate(1);
    result.series[0].name = "a,\"b\"".into();
    let files = result.write_csv(&dir.path().join("out.csv")).expect("it is written");
    assert_eq!(files.len(), 1);
    let table = fs::read_to_string(&files[0]).expect("text");
    assert!(table.starts_with("t_ms,\"a,\"\"b\"\"[0] (mV)\","), "{table}");
}

#[test]
fn the_extension_decides() {
    assert_eq!(FileFormat::of(Path::new("a.NPZ")).expect("known"), FileFormat::Npz);
    let error = FileFormat::of(Path::new("a.mat")).expect_err("unknown").to_string();
    assert_eq!(error, "cannot write results to `a.mat`: the name must end in .npz or .csv");
}

/// Fails with `kind` once `room` bytes are written.
struct Limited {
    inner: Cursor<Vec<u8>>,
    room: usize,
    kind: io::ErrorKind,
}

impl Write for Limited {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.room == 0 && !data.is_empty() {
            return Err(self.kind.into());
        }
        let n = self.inner.write(&data[..data.len().min(self.room)])?;
        self.room -= n;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Limited {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

#[test]
fn a_full_disk_is_noticed_wherever_it_strikes() {
    let limited = |room| Limited { inner: Cursor::default(), room, kind: io::ErrorKind::StorageFull };
    let size = npz_bytes(&sample()).len();
    for room in (0..size - 1).step_by(7) {
        let error = npz::encode(&sample(), limited(room)).expect_err("it does not fit");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "after {room} of {size} bytes");
    }
    for room in 0..150 {
        let error = csv::encode_series(&sample().series, limited(room)).expect_err("it does not fit");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("out.npz");
    fs::write(&path, "the run before").expect("it is written");
    let cases = [
        (io::ErrorKind::StorageFull, "the disk is full"),
        (io::ErrorKind::QuotaExceeded, "the disk quota is used up"),
        (io::ErrorKind::ReadOnlyFilesystem, "the file system is read-only"),
    ];
    for (kind, reason) in cases {
        let half = |file: &mut fs::File| {
            file.write_all(b"half of it")?;
            Err(kind.into())
        };
        let error = ResultsError::from(Pending::new(&path, half).err().expect("it fails"));
        assert_eq!(error.to_string(), format!("cannot write `{}`: {reason}", path.display()));
    }
    // The process stops between writing and renaming: the destructor is all that runs.
    drop(Pending::new(&path, |file| file.write_all(b"all of it")).expect("it is written"));
    assert_eq!(fs::read_to_string(&path).expect("text"), "the run before");
    assert_eq!(entries(dir.path()), ["out.npz"]);
}

#[test]
fn a_destination_is_checked_before_the_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("nowhere").join("out.npz");
    for error in [check_destination(&path), sample().write_npz(&path)] {
        let expected = format!("the directory `{}` does not exist", dir.path().join("nowhere").display());
        assert_eq!(
            error.expect_err("nowhere to write").to_string(),
            format!("cannot write `{}`: {expected}", path.display())
        );
    }
    fs::create_dir(dir.path().join("d.npz")).expect("a directory");
    let error = check_destination(&dir.path().join("d.npz")).expect_err("a directory").to_string();
    assert!(error.ends_with("it is a directory"), "{error}");
    fs::write(dir.path().join("file"), "").expect("it is written");
    let error = check_destination(&dir.path().join("file").join("out.npz")).expect_err("not a directory").to_string();
    assert!(error.ends_with("/file` is not a directory"), "{error}");
    check_destination(&dir.path().join("out.npz")).expect("it can be written");
    assert_eq!(entries(dir.path()), ["d.npz", "file"]);
}

#[cfg(unix)]
#[test]
fn a_written_file_has_the_permissions_of_the_one_it_replaces() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = tempfile::tempdir().expect("a directory");
    let mode = |name: &str| fs::metadata(dir.path().join(name)).expect("it is there").permissions().mode() & 0o777;
    let path = dir.path().join("out.npz");
    fs::write(dir.path().join("plain"), "").expect("it is written");
    sample().write_npz(&path).expect("it is written");
    assert_eq!(mode("out.npz"), mode("plain"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is ours");
    symlink("out.npz", dir.path().join("link.npz")).expect("a link");
    sample().write_npz(&dir.path().join("link.npz")).expect("it is written");
    assert_eq!(mode("out.npz"), 0o640);
    let link = fs::symlink_metadata(dir.path().join("link.npz")).expect("it is there");
    assert!(link.is_symlink(), "the link is followed, not replaced");
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_is_written_to_and_never_replaced() {
    use std::os::unix::fs::FileTypeExt;
    Pending::new(Path::new("/dev/null"), |f| f.write_all(b"x")).and_then(Pending::commit).expect("it takes anything");
    let full = Path::new("/dev/full");
    let error = Pending::new(full, |f| f.write_all(b"x")).and_then(Pending::commit).expect_err("it takes nothing");
    assert_eq!(error.reason, "the disk is full");
    for device in ["/dev/null", "/dev/full"] {
        assert!(fs::metadata(device).expect("it is there").file_type().is_char_device());
    }
}

/// Run by hand: `mount -t tmpfs -o size=64k tmpfs DIR`, then `NEUROC_TEST_FULL_DIR=DIR cargo test -- --ignored full_file`.
#[test]
#[ignore = "needs a file system of 64 kB, which takes the right to mount one"]
fn a_full_file_system_keeps_the_old_file() {
    let dir = std::env::var_os("NEUROC_TEST_FULL_DIR").expect("NEUROC_TEST_FULL_DIR names a small file system");
    let path = Path::new(&dir).join("out.npz");
    let mut result = comparable();
    result.write_npz(&path).expect("a small result fits");
    result.series[2].t = Arc::new((0..20_000).map(f64::from).collect());
    result.series[2].values = Samples::F64(Array2::zeros((20_000, 1)));
    for name in ["out.npz", "out.csv"] {
        let error = result.write(&Path::new(&dir).join(name)).expect_err("a large one does not").to_string();
        assert!(error.ends_with("the disk is full"), "{error}");
    }
    assert_eq!(RunResult::read_npz(&path).expect("the old one is whole"), comparable());
    assert_eq!(entries(Path::new(&dir)), ["out.npz"]);
}

#[test]
fn reading_says_what_is_wrong() {
    let error = RunResult::read_npz(Path::new("no/such.npz")).expect_err("it is missing").to_string();
    assert_eq!(error, "cannot read `no/such.npz`: there is no such file");
    assert!(read_error(b"t,v\n0,1\n").contains("it is not an .npz file"));
    assert!(read_error(&archive(&[])).contains("it has no array `t`"));
    assert!(read_error(&archive(&[NO_TIMES])).contains("it has no array `meta`"));

    let meta = r#"{"units": {"v": "mV"}, "populations": {}}"#;
    let scalar = ("t", "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", [0; 8].as_slice());
    assert!(
        read_error(&archive_with_meta(meta, &[scalar]))
            .contains("array `t` has dtype <f8 and shape [], expected a vector of <f8")
    );
    let ints = ("v", "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 1), }", [].as_slice());
    assert!(
        read_error(&archive_with_meta(meta, &[NO_TIMES, ints]))
            .contains("array `v` has dtype <i8 and shape [0, 1], expected a [time, index] table of <f4 or <f8")
    );
    let structured = ("v", "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (0,), }", [].as_slice());
    assert!(read_error(&archive_with_meta(meta, &[NO_TIMES, structured])).contains("a structured type"));
    let long = ("v", "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", [0; 8].as_slice());
    assert!(read_error(&archive_with_meta(meta, &[NO_TIMES, long])).contains("has 1 samples at 0 times"));
    let huge = ("v", "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976, 1), }", [].as_slice());
    assert!(read_error(&archive_with_meta(meta, &[NO_TIMES, huge])).contains("its size does not fit its shape"));
    let lone = ("p.spikes.t", "{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }", [].as_slice());
    assert!(read_error(&archive_with_meta(meta, &[NO_TIMES, lone])).contains("but no `p.spikes.i`"));
}

#[test]
fn reading_says_how_the_metadata_are_damaged() {
    let v = ("v", "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1), }", [].as_slice());
    let cases = [
        ("{", "it is not JSON"),
        ("[]", "it is not a JSON object"),
        ("{}", "it has no `units`"),
        (r#"{"units": 3, "populations": {}}"#, "it has no `units`"),
        (r#"{"units": {}, "populations": {}}"#, "it states no unit for `v`"),
    ];
    for (text, expected) in cases {
        let error = read_error(&archive_with_meta(text, &[NO_TIMES, v]));
        assert!(error.contains("its metadata is damaged") && error.contains(expected), "{error}");
    }
    let not_text = ("meta", "{'descr': '<U1', 'fortran_order': False, 'shape': (), }", [255; 4].as_slice());
    assert!(read_error(&archive(&[NO_TIMES, not_text])).contains("it is not text"));
}

/// No byte of a file, changed or missing, makes reading panic; what is read has passed the check.
#[test]
fn reading_survives_any_damage() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("r.npz");
    let bytes = npz_bytes(&comparable());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x15;
        fs::write(&path, &damaged).expect("it is written");
        if let Ok(result) = RunResult::read_npz(&path) {
            result.check().expect("what is read is consistent");
        }
        if at % 16 == 0 {
            fs::write(&path, &bytes[..at]).expect("it is written");
            RunResult::read_npz(&path).expect_err("it is cut short");
        }
    }
}

/// Run by hand to look at a file with NumPy: writes the sample to the path in NEUROC_TEST_NPZ.
#[test]
#[ignore = "writes a file for a look at it with NumPy"]
fn write_a_sample_for_numpy() {
    let path = std::env::var_os("NEUROC_TEST_NPZ").expect("NEUROC_TEST_NPZ names a file");
    sample().write_npz(Path::new(&path)).expect("it is written");
}

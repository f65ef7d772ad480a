//! What has to stay true of results and their files.

use std::fs;
use std::io::{self, Cursor, Write};

use ndarray::{Array2, array};
use serde_json::json;

use super::*;

/// Two series on the shared times, one on its own, one spike train.
fn sample() -> RunResult {
    let t = Arc::new(vec![0.0, 0.1, 0.2]);
    let meta = json!({"model": "squid", "seed": 7, "note": "µA/cm² \u{1F9E0} \"quoted\""});
    RunResult {
        series: vec![
            Series::of_cells(
                "squid.soma.v",
                "mV",
                vec![0, 1],
                t.clone(),
                Samples::F64(array![[-65.0, -64.5], [f64::NAN, 1e-7], [40.0, f64::INFINITY]]),
            ),
            Series::of_cells("squid[1].soma.m", "1", vec![1], t, Samples::F64(array![[0.1], [0.2], [0.3]])),
            Series::of_cells(
                "squid[0].dend.ca",
                "mM",
                vec![0],
                Arc::new(vec![0.0, 0.2, 0.4]),
                Samples::F64(array![[1e-5], [2e-5], [1e20]]),
            ),
        ],
        spikes: vec![SpikeTrain { population: "squid".into(), cells: 2, t: vec![0.1, 0.15], i: vec![1, 0] }],
        populations: vec![Population { name: "squid".into(), cells: 2, shape: vec![1, 2] }],
        parameters: vec![
            Parameter { name: "n".into(), unit: "1".into(), values: ParameterValues::One(2.0) },
            Parameter {
                name: "squid.soma.gbar".into(),
                unit: "mS/cm2".into(),
                values: ParameterValues::PerCell { population: "squid".into(), values: vec![0.5, 0.25] },
            },
        ],
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
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("r.npz");
    result.write(&path).expect("it is written");
    fs::read(&path).expect("it is there")
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
    comparable().write(&path).expect("it is written");
    let back = RunResult::read_npz(&path).expect("it is read");
    assert_eq!(back, comparable());
    assert_eq!(entries(dir.path()), ["out.npz"]);
}

#[test]
fn npz_of_nothing_and_of_empty_series_comes_back_equal() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("out.npz");
    RunResult::default().write(&path).expect("it is written");
    assert_eq!(RunResult::read_npz(&path).expect("it is read"), RunResult::default());
    let stopped_at_once = RunResult {
        series: vec![Series::of_cells(
            "c.v",
            "mV",
            (0..5).collect(),
            Arc::default(),
            Samples::F32(Array2::zeros((0, 5))),
        )],
        spikes: vec![SpikeTrain { population: "c".into(), cells: 5, t: vec![], i: vec![] }],
        populations: vec![Population { name: "c".into(), cells: 5, shape: vec![5] }],
        ..RunResult::default()
    };
    stopped_at_once.write(&path).expect("it is replaced");
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
    sample().write(&path).expect("it is written");
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
        ("squid.soma.v.t.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"),
        ("squid.soma.v.cell.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }"),
        ("squid[1].soma.m.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }"),
        ("squid[1].soma.m.t.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"),
        ("squid[1].soma.m.cell.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }"),
        ("squid[0].dend.ca.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }"),
        ("squid[0].dend.ca.t.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"),
        ("squid[0].dend.ca.cell.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }"),
        ("param.squid.soma.gbar.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"),
        ("squid.spikes.t.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"),
        ("squid.spikes.i.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }"),
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
    assert_eq!(meta["layout"], 2);
    assert_eq!(
        meta["units"],
        json!({"t": "ms", "squid.soma.v": "mV", "squid.soma.v.t": "ms", "squid[1].soma.m": "1", "squid[1].soma.m.t": "ms",
               "squid[0].dend.ca": "mM", "squid[0].dend.ca.t": "ms", "param.squid.soma.gbar": "mS/cm2",
               "squid.spikes.t": "ms"})
    );
    assert_eq!(meta["populations"], json!({"squid": {"cells": 2, "shape": [1, 2]}}));
    assert_eq!(
        meta["parameters"],
        json!({"n": {"value": 2.0, "unit": "1"},
               "squid.soma.gbar": {"array": "param.squid.soma.gbar", "unit": "mS/cm2", "population": "squid"}})
    );
    assert_eq!(meta["records"]["squid[1].soma.m"], json!({"population": "squid"}));
}

#[test]
fn contradictions_are_named_and_not_written() {
    type Damage = fn(&mut RunResult);
    let cases: [(Damage, &str); 11] = [
        (|r| r.series[1].cells = vec![0, 1], "1 columns of 2 cells"),
        (|r| r.populations[0].shape = vec![3], "2 cells on a grid of [3]"),
        (|r| r.series[1].name = "squid.soma.v".into(), "two arrays are named `squid.soma.v`"),
        (|r| r.series[1].name = "squid.soma.v.t".into(), "two arrays are named `squid.soma.v.t`"),
        (|r| r.series[1].name = "t".into(), "two arrays are named `t`"),
        (|r| r.series[1].name = "a/b".into(), "\"a/b\" cannot name an array"),
        (|r| r.series[1].name = "a.spikes.t".into(), "has a name kept for spikes"),
        (|r| r.series[2].t = Arc::new(vec![0.0]), "`squid[0].dend.ca` has 3 samples at 1 times"),
        (|r| r.series[2].t = Arc::new(vec![0.0, 2.0, 1.0]), "of series `squid[0].dend.ca` go backwards"),
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
    assert_eq!(files, ["out.csv", "out.spikes.csv", "out.meta.json"].map(|name| dir.path().join(name)));
    assert_eq!(entries(dir.path()), ["out.csv", "out.meta.json", "out.spikes.csv"]);
    let table = fs::read_to_string(&files[0]).expect("text");
    assert_eq!(
        table,
        "t_ms,squid[0].soma.v (mV),squid[1].soma.v (mV),squid[1].soma.m (1),squid[0].dend.ca (mM)\n\
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
    let files = result.write(&dir.path().join("out.csv")).expect("it is written");
    assert_eq!(files.len(), 2);
    let table = fs::read_to_string(&files[0]).expect("text");
    assert!(table.starts_with("t_ms,\"a,\"\"b\"\"[0] (mV)\","), "{table}");
}

#[test]
fn the_extension_decides() {
    assert_eq!(FileFormat::of(Path::new("a.NPZ")).expect("known"), FileFormat::Npz);
    let error = FileFormat::of(Path::new("a.mat")).expect_err("unknown").to_string();
    assert_eq!(error, "cannot write results to `a.mat`: the name must end in .npz, .csv or / (a directory)");
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
    for error in [check_destination(&path), sample().write(&path).map(drop)] {
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
    sample().write(&path).expect("it is written");
    assert_eq!(mode("out.npz"), mode("plain"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is ours");
    symlink("out.npz", dir.path().join("link.npz")).expect("a link");
    sample().write(&dir.path().join("link.npz")).expect("it is written");
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
    result.write(&path).expect("a small result fits");
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
    assert!(read_error(&archive(&[])).contains("it has no array `meta`"));

    let meta = r#"{"layout": 2, "units": {"v": "mV"}, "records": {"v": {"population": "p"}}, "populations": {}, "parameters": {}}"#;
    let one = ("v.t", "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", [0; 8].as_slice());
    let cell = ("v.cell", "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", [0; 8].as_slice());
    let of = |v: (&str, &str, &[u8])| read_error(&archive_with_meta(meta, &[one, cell, v]));
    assert!(read_error(&archive_with_meta(meta, &[])).contains("it has no array `v`"));
    let scalar = ("v.t", "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", [0; 8].as_slice());
    let long = ("v", "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", [0; 8].as_slice());
    assert!(
        read_error(&archive_with_meta(meta, &[scalar, cell, long]))
            .contains("array `v.t` has dtype <f8 and shape [], expected a vector of <f8")
    );
    let ints = ("v", "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 1), }", [].as_slice());
    assert!(
        of(ints).contains("array `v` has dtype <i8 and shape [0, 1], expected a [time, index] table of <f4 or <f8")
    );
    let structured = ("v", "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (0,), }", [].as_slice());
    assert!(of(structured).contains("a structured type"));
    let two = ("v", "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }", [0; 16].as_slice());
    assert!(of(two).contains("has 2 samples of 1 cells, but 1 times and 1 cells"));
    let huge = ("v", "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976, 1), }", [].as_slice());
    assert!(of(huge).contains("its size does not fit its shape"));
    let lone = ("p.spikes.t", "{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }", [].as_slice());
    let counted = meta.replace(r#""populations": {}"#, r#""populations": {"p": {"cells": 1, "shape": [1]}}"#);
    assert!(read_error(&archive_with_meta(&counted, &[one, cell, long, lone])).contains("no array `p.spikes.i`"));
}

#[test]
fn reading_says_how_the_metadata_are_damaged() {
    let v = ("v", "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1), }", [].as_slice());
    let cases = [
        ("{", "it is not JSON"),
        ("[]", "it is not a JSON object"),
        ("{}", "it has no `layout`"),
        (r#"{"layout": 2}"#, "it has no `units`"),
        (
            r#"{"layout": 2, "units": {}, "records": {"v": {}}, "populations": {}, "parameters": {}}"#,
            "it states no unit for `v`",
        ),
    ];
    for (text, expected) in cases {
        let error = read_error(&archive_with_meta(text, &[v]));
        assert!(error.contains("its metadata is damaged") && error.contains(expected), "{error}");
    }
    assert!(
        read_error(&archive_with_meta(r#"{"layout": 9}"#, &[]))
            .contains("is version 9, but this neuroc reads version 2")
    );
    assert!(read_error(&archive_with_meta(r#"{"units": {}}"#, &[])).contains("an older neuroc wrote it"));
    let not_text = ("meta", "{'descr': '<U1', 'fortran_order': False, 'shape': (), }", [255; 4].as_slice());
    assert!(read_error(&archive(&[not_text])).contains("it is not text"));
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
    sample().write(Path::new(&path)).expect("it is written");
}

// ---------------------------------------------------------------------------------------------------- while a run goes on

const CELLS: u64 = 3;

/// Two records, one of all cells and one of a cell every other step, and spikes.
fn growing(steps: u64) -> Contents {
    let head = |name: &str, cells: Vec<u64>, samples| SeriesHead {
        name: name.into(),
        population: "c".into(),
        unit: "mV".into(),
        cells,
        compartments: None,
        samples,
    };
    Contents {
        series: vec![head("c[1].w", vec![1], Some(steps / 2 + 1)), head("c.v", (0..CELLS).collect(), Some(steps + 1))],
        trains: vec![TrainHead { population: "c".into(), cells: CELLS as usize }],
        populations: vec![Population { name: "c".into(), cells: CELLS as usize, shape: vec![CELLS as usize] }],
        parameters: vec![Parameter {
            name: "c.g".into(),
            unit: "1".into(),
            values: ParameterValues::PerCell { population: "c".into(), values: vec![0.1, 0.2, 0.3] },
        }],
        single: false,
    }
}

/// What is recorded at a step: 200 spikes, too, so that their room runs out.
fn feed(writer: &mut Writer, step: u64) {
    let t = step as f64;
    if step.is_multiple_of(2) {
        writer.row(0, t, &[-t]).expect("it is taken");
    }
    writer.row(1, t, &[t, t + 0.25, t + 0.5]).expect("it is taken");
    for spike in 0..200u32 {
        writer.spike(0, t + f64::from(spike) / 256.0, u64::from(spike) % CELLS).expect("it is taken");
    }
}

/// What a file holds after so many steps (the step 0 is one).
fn check_grown(result: &RunResult, steps: u64) {
    let [w, v] = &result.series[..] else { panic!("{:?}", result.series.iter().map(|s| &s.name).collect::<Vec<_>>()) };
    let (w, v) = if v.name == "c.v" { (w, v) } else { (v, w) };
    assert_eq!((v.t.len() as u64, w.t.len() as u64), (steps, steps.div_ceil(2)));
    assert!(v.t.iter().enumerate().all(|(row, &t)| t == row as f64 && v.values.get(row, 2) == t + 0.5));
    assert!(w.t.iter().enumerate().all(|(row, &t)| t == 2.0 * row as f64 && w.values.get(row, 0) == -t));
    assert_eq!((&w.cells[..], &v.cells[..]), (&[1][..], &[0, 1, 2][..]));
    let spikes = &result.spikes[0];
    assert_eq!(spikes.t.len() as u64, 200 * steps);
    let at = |k: usize| ((k / 200) as f64 + (k % 200) as f64 / 256.0, (k % 200) as u64 % CELLS);
    assert!(spikes.t.iter().zip(&spikes.i).enumerate().all(|(k, (&t, &i))| (t, i) == at(k)));
}

fn steps_so_far(steps: u64) -> Map<String, Value> {
    Map::from_iter([("steps".to_owned(), json!(steps))])
}

/// After every commit the file is whole, whatever was handed over since: the file as it is now is what a killed process leaves.
#[test]
fn a_file_is_whole_while_it_grows() {
    for name in ["r.npz", "r/"] {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(name);
        let mut writer = Writer::new(&path, growing(2000), false).expect("it begins");
        assert!(name == "r/" || !path.exists(), "nothing is shown before it is whole");
        let mut last = 0;
        for step in 0..=2000 {
            feed(&mut writer, step);
            if step % 97 == 5 {
                writer.commit(&steps_so_far(step)).expect("it is written");
                last = step;
            }
            if step % 97 == 5 || step % 97 == 60 {
                let result = RunResult::read_npz(&path).expect("it is whole");
                assert_eq!(result.meta["steps"].as_u64(), Some(last));
                check_grown(&result, last + 1);
            }
        }
        writer.finish(&steps_so_far(2000)).expect("it is written");
        check_grown(&RunResult::read_npz(&path).expect("it is whole"), 2001);
    }
}

/// When it was committed does not show in the end, nor that a run was stopped.
#[test]
fn the_bytes_of_a_file_depend_on_what_it_holds_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let written = |name: &str, expected: u64, commits: u64| {
        let path = dir.path().join(name);
        let mut writer = Writer::new(&path, growing(expected), false).expect("it begins");
        for step in 0..=600 {
            feed(&mut writer, step);
            if step % commits == commits - 1 {
                writer.commit(&steps_so_far(step)).expect("it is written");
            }
        }
        writer.finish(&steps_so_far(600)).expect("it is written");
        fs::read(path).expect("it is there")
    };
    let once = written("a.npz", 600, 10_000);
    assert_eq!(once, written("b.npz", 600, 7));
    assert_eq!(once, written("c.npz", 600, 601));
    assert_eq!(once, written("d.npz", 1_000_000_000, 50), "a stopped run gives back its room");
    assert_eq!(entries(dir.path()), ["a.npz", "b.npz", "c.npz", "d.npz"]);
    let bytes = 601 * 4 * 8 + 601 * 2 * 8 + 301 * 2 * 8 + 601 * 200 * 16;
    assert!(once.len() < bytes + 6000, "{} for {bytes}", once.len());
    zip::ZipArchive::new(Cursor::new(once)).expect("an archive").by_name("c.v.npy").expect("a member");
}

/// Between two commits, whichever bytes a killed process had written, NumPy's reader finds an archive.
#[test]
fn more_than_four_gigabytes_have_their_sizes_in_64_bits() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("r.npz");
    // Sparse: the room for a thousand million steps is not filled.
    let mut writer = Writer::new(&path, growing(1_000_000_000), false).expect("it begins");
    for step in 0..10 {
        feed(&mut writer, step);
    }
    writer.commit(&steps_so_far(10)).expect("it is written");
    assert!(fs::metadata(&path).expect("it is there").len() > 1 << 32);
    check_grown(&RunResult::read_npz(&path).expect("it is whole"), 10);
}

#[test]
fn packed_files_hold_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut sizes = Vec::new();
    for compress in [false, true] {
        let path = dir.path().join(format!("{compress}.npz"));
        let mut writer = Writer::new(&path, growing(2000), compress).expect("it begins");
        for step in 0..1500 {
            feed(&mut writer, step);
        }
        writer.finish(&steps_so_far(1499)).expect("it is written");
        check_grown(&RunResult::read_npz(&path).expect("it is whole"), 1500);
        sizes.push(fs::metadata(&path).expect("it is there").len());
    }
    assert!(sizes[1] < sizes[0] / 2, "{sizes:?}");
}

#[test]
fn d10_a_directory_of_something_else_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("r/");
    fs::create_dir(&path).expect("a directory");
    fs::write(path.join("diary.txt"), "dear").expect("it is written");
    let error = sample().write(&path).expect_err("it is not ours").to_string();
    assert!(error.contains("holds something else than a result"), "{error}");
    assert!(check_destination(&path).is_err());
    fs::remove_file(path.join("diary.txt")).expect("it is ours");
    sample().write(&path).expect("it is empty");
    comparable().write(&path).expect("it is a result");
    let back = RunResult::read_npz(&path).expect("it is read");
    assert_eq!(back.series.len(), comparable().series.len());
    assert_eq!(back.parameters, comparable().parameters);
}

#[test]
fn thinned_results_keep_extremes_and_spread_cells() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("r.npz");
    let t: Vec<f64> = (0..10_001).map(f64::from).collect();
    let spike = |row: usize, cell: usize| if row == 7777 && cell == 100 { 50.0 } else { (row as f64 / 500.0).sin() };
    let values = Samples::F64(Array2::from_shape_fn((10_001, 101), |(row, cell)| spike(row, cell)));
    let series = Series::of_cells("c.v", "mV", (0..101).collect(), Arc::new(t), values);
    RunResult { series: vec![series], ..RunResult::default() }.write(&path).expect("it is written");
    let reading = Reading { samples: Some(500), columns: Some(5), no_parameters: true };
    let thin = RunResult::read(&path, &reading).expect("it is read");
    let series = &thin.series[0];
    assert_eq!(series.cells, [0, 25, 50, 75, 100]);
    assert!(series.t.len() <= 501 && series.values.shape() == (series.t.len(), 5));
    let at = (0..series.t.len()).find(|&row| series.values.get(row, 4) == 50.0).expect("the extreme is kept");
    assert!((series.t[at] - 7777.0).abs() < 50.0);
    assert_eq!(series.t.last(), Some(&10_000.0));
}

/// A temporary file of a process that died is swept away, one that is being written is not.
#[cfg(unix)]
#[test]
fn d16_leftovers_are_swept_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for name in [".neuroc-dead.part", ".neuroc-live.part"] {
        let file = fs::File::create(dir.path().join(name)).expect("it is made");
        file.set_modified(old).expect("it is ours");
    }
    let live = fs::File::open(dir.path().join(".neuroc-live.part")).expect("it is there");
    live.lock().expect("it is ours");
    sample().write(&dir.path().join("out.npz")).expect("it is written");
    assert_eq!(entries(dir.path()), [".neuroc-live.part", "out.npz"]);
    // What a link leads to need not be there.
    std::os::unix::fs::symlink("later.npz", dir.path().join("link.npz")).expect("a link");
    sample().write(&dir.path().join("link.npz")).expect("it is written");
    assert!(fs::symlink_metadata(dir.path().join("link.npz")).expect("it is there").is_symlink());
    assert!(dir.path().join("later.npz").is_file());
}

#[test]
fn d15_a_name_that_is_too_long_is_told_before_the_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = check_destination(&dir.path().join(format!("{}.npz", "x".repeat(260)))).expect_err("it is too long");
    assert!(error.to_string().contains("too long"), "{error}");
    assert!(entries(dir.path()).is_empty());
}

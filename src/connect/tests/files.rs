//! Files of edges.

use super::*;
use crate::data::{DataFile, Numbers};
use crate::source::{FileId, Span};
use ndarray::{Array1, array};
use ndarray_npy::{NpzWriter, write_npy};
use std::fs::File;
use std::path::Path;

fn read(directory: &Path, name: &str, column: Option<&str>) -> Result<Vec<Entry>, String> {
    let file = DataFile {
        name: name.to_owned(),
        directory: directory.to_owned(),
        column: column.map(str::to_owned),
        span: Span::new(FileId(0), 0, 0),
        numbers: Numbers::File,
    };
    read_edges(&file).map(|list| list.entries).map_err(|d| d.labels[0].message.clone())
}

/// Vectors in an archive that NumPy's `savez_compressed` could have written.
fn archive(directory: &Path, name: &str, vectors: &[(&str, &[i32])]) {
    let mut writer = NpzWriter::new_compressed(File::create(directory.join(name)).expect("a file"));
    for (name, vector) in vectors {
        writer.add_array(*name, &Array1::from(vector.to_vec())).expect("an array");
    }
    writer.finish().expect("an archive");
}

#[test]
fn archives_are_read_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for (source, target) in [("src", "tgt"), ("source", "target"), ("pre", "post"), ("i", "j"), ("gj_src", "gj_tgt")] {
        archive(at, "a.npz", &[(target, &[1, 2, 0]), ("init", &[7]), (source, &[0, 1, 5])]);
        assert_eq!(read(at, "a.npz", None), Ok(vec![(1, 0), (2, 1), (0, 5)]));
    }
    archive(at, "a.npz", &[("a_i", &[1]), ("a_j", &[2]), ("b_i", &[3]), ("b_j", &[4])]);
    assert_eq!(read(at, "a.npz", Some("b")), Ok(vec![(4, 3)]));
    let mut all = vec![read(at, "a.npz", None), read(at, "a.npz", Some("c"))];
    archive(at, "a.npz", &[("src", &[1]), ("target", &[2])]);
    all.push(read(at, "a.npz", None));
    archive(at, "a.npz", &[("src", &[1]), ("tgt", &[2, 3])]);
    all.push(read(at, "a.npz", None));
    archive(at, "a.npz", &[("src", &[1, 2]), ("tgt", &[0, -2])]);
    all.push(read(at, "a.npz", None));
    let all: Vec<String> = all.into_iter().map(|r| r.expect_err("a mistake")).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn tables_are_read_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_npy(at.join("a.npy"), &array![[0i64, 1], [5, 2]]).expect("a table");
    assert_eq!(read(at, "a.npy", None), Ok(vec![(1, 0), (2, 5)]));
    write_npy(at.join("a.npy"), &array![[0u16, 1], [5, 2]].reversed_axes()).expect("a table");
    assert_eq!(read(at, "a.npy", None), Ok(vec![(5, 0), (2, 1)]));
    let mut all = Vec::new();
    write_npy(at.join("a.npy"), &array![[0i32, 1, 2]]).expect("a table");
    all.push(read(at, "a.npy", None));
    write_npy(at.join("a.npy"), &array![[0.0, 1.0]]).expect("a table");
    all.push(read(at, "a.npy", None));
    write_npy(at.join("a.npy"), &array![[0, u64::MAX]]).expect("a table");
    all.push(read(at, "a.npy", None));
    write_npy(at.join("a.npy"), &array![[0, 1i64 << 32]]).expect("a table");
    all.push(read(at, "a.npy", None));
    let all: Vec<String> = all.into_iter().map(|r| r.expect_err("a mistake")).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn text_is_read_by_its_heading_or_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = |text: &str, column| {
        std::fs::write(folder.path().join("a.csv"), text).expect("a file");
        read(folder.path(), "a.csv", column)
    };
    let expected = Ok(vec![(1, 0), (2, 5)]);
    assert_eq!(csv("0,1\n# remark\n5, 2\n", None), expected);
    assert_eq!(csv("from,to\n0,1\n5,2\n", None), expected);
    assert_eq!(csv("weight;post;pre\n0.5;1;0\n0.5;2;5\n", None), expected);
    assert_eq!(csv("gj_src,gj_tgt,i,j\n0,1,9,9\n5,2,9,9\n", Some("gj")), expected);
    let all = [
        csv("0,1\n5\n", None),
        csv("src,tgt\n0,1\n5,2,3\n", None),
        csv("0,1\n5,-2\n", None),
        csv("0,1.0\n", None),
        csv("a,b\n0,1\n", Some("gj")),
        csv("i,j,src,tgt\n0,1,2,3\n", None),
    ];
    let all: Vec<String> = all.into_iter().map(|r| r.expect_err("a mistake")).collect();
    insta::assert_snapshot!(all.join("\n"));
}

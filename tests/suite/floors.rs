//! Tests of: floors. The modules of the compiler stand on floors, and a module uses only what is below it.
//!
//! In come the table in `src/lib.rs` and the source files; out goes every use that does not lead down, with its place.
//! Never true here: code of tests is looked at, which may use everything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What stands in `src` and is no module of the compiler: templates of generated crates.
const TEMPLATES: &str = "src/codegen/rust/fixed";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn library() -> String {
    fs::read_to_string(root().join("src/lib.rs")).unwrap()
}

/// The floor of every module, as the table says.
fn floors(library: &str) -> BTreeMap<String, u32> {
    let mut floors = BTreeMap::new();
    for line in library.lines() {
        let Some((floor, modules)) = line.strip_prefix("//! | ").and_then(|row| row.split_once(" | ")) else {
            continue;
        };
        let Ok(floor) = floor.parse::<u32>() else { continue };
        for module in modules.split('`').skip(1).step_by(2) {
            let before = floors.insert(module.to_string(), floor);
            assert_eq!(before, None, "`{module}` stands on two floors");
        }
    }
    floors
}

/// Source files of the compiler, without those of tests.
fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let path = folder.join(&name);
        if root().join(&path).is_dir() {
            if name != "tests" && path != Path::new(TEMPLATES) {
                files(&path, out);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" && !name.ends_with("_tests.rs") {
            out.push(path);
        }
    }
}

/// The module of a file: the first part of its path behind `src`. `pjrt` stands beside the runtime, and is no part of it.
fn module(path: &Path) -> &str {
    let path = path.to_str().unwrap();
    let path = path.strip_prefix("src/").unwrap();
    let path = path.strip_prefix("runtime/pjrt").map_or(path, |_| "pjrt");
    path.split('/').next().unwrap().trim_end_matches(".rs")
}

/// The code of a file line by line: no comments, no text between quotes, nothing from the tests at its end on.
fn code(text: &str) -> String {
    let text = text.split_once("#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code);
    let mut out = String::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or("");
        out.extend(line.split('"').step_by(2));
        out.push('\n');
    }
    out
}

/// The modules that code names behind `crate::`, with their lines.
fn uses(code: &str) -> Vec<(usize, String)> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut out = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        if code[..at].ends_with('$') {
            continue; // a macro, wherever it is used
        }
        let line = code[..at].lines().count().max(1) + usize::from(code[..at].ends_with('\n'));
        let rest = &code[at + path.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            out.push((line, word(rest)));
            continue;
        };
        let mut depth = 0;
        let mut begins = true;
        for (i, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                _ if begins && c.is_alphabetic() => {
                    out.push((line, word(&list[i..])));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    out
}

/// Uses in a file of a module that do not lead down.
fn wrong(path: &str, module: &str, text: &str, floors: &BTreeMap<String, u32>) -> Vec<String> {
    let floor = floors[module];
    let mut out = Vec::new();
    for (line, used) in uses(&code(text)) {
        match floors.get(&used) {
            _ if used == module => {}
            Some(&below) if below < floor => {}
            Some(other) => out.push(format!(
                "{path}:{line}: `{module}` (floor {floor}) uses `{used}` (floor {other}): move what is used down, or what uses it up"
            )),
            None => out.push(format!("{path}:{line}: `{used}` stands on no floor in src/lib.rs")),
        }
    }
    out
}

#[test]
fn modules_use_what_is_below_them() {
    let floors = floors(&library());
    let mut paths = Vec::new();
    files(Path::new("src"), &mut paths);
    paths.retain(|path| path != Path::new("src/lib.rs") && path != Path::new("src/main.rs"));
    paths.sort();
    assert!(paths.len() > 150, "{} files", paths.len());
    let mut errors = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(root().join(path)).unwrap();
        errors.extend(wrong(path.to_str().unwrap(), module(path), &text, &floors));
    }
    assert!(errors.is_empty(), "\n{}", errors.join("\n"));
}

#[test]
fn every_module_stands_on_a_floor() {
    let library = library();
    let declared = library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let declared: std::collections::BTreeSet<String> = declared.map(str::to_string).collect();
    assert_eq!(floors(&library).into_keys().collect::<std::collections::BTreeSet<_>>(), declared);
}

#[test]
fn a_use_that_leads_up_is_found() {
    let floors = floors("//! | 2 | [`above`](above) |\n//! | 1 | `here`, `beside` |\n//! | 0 | `below` |\n");
    let text = "//! crate::above is only spoken of.\nuse crate::{\n    below::{above, x},\n    beside,\n};\nuse crate::here::y;\n\
        fn f() { crate::above::g(\"crate::above\") } // crate::above\nfn h() { crate::nowhere::i() }\n\
        #[cfg(test)]\nmod tests {\n    use crate::above;\n}\n";
    let found = wrong("src/here.rs", "here", text, &floors);
    let places: Vec<&str> = found.iter().filter_map(|error| error.split(' ').next()).collect();
    assert_eq!(places, ["src/here.rs:2:", "src/here.rs:7:", "src/here.rs:8:"], "{found:?}");
    assert!(found[0].contains("`beside` (floor 1)") && found[1].contains("`above` (floor 2)"), "{found:?}");
    assert!(found[2].contains("`nowhere` stands on no floor"), "{found:?}");
}

//! Tests of: the crates that the compiler writes. What they are made for uses them: cargo, rustfmt, clippy and a C compiler.

use neuroc::codegen::plan::{PlanOptions, Precision, plan};
use neuroc::codegen::rust::{
    Default, Interface, InterfaceField, InterfaceNetwork, InterfaceSpace, crate_files, kernel_files,
};
use neuroc::engine::{Edges, Engine, Setup};
use neuroc::interp::Interp;
use neuroc::step::{FieldKind, SpaceKind, Verified, parse, verify};
use std::path::{Path, PathBuf};
use std::process::Command;

fn program(name: &str) -> Verified {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/ir/{name}.ir"));
    verify(parse(&std::fs::read_to_string(path).unwrap()).unwrap()).unwrap()
}

/// Everything visible; values in thousandths of the canonical unit.
fn interface(program: &Verified, name: &str) -> Interface {
    let program = program.program();
    let field = |(index, field): (usize, &neuroc::step::Field)| {
        let default = match field.kind {
            FieldKind::Uniform if field.name == "dt" => Default::Number(0.05),
            FieldKind::Uniform => Default::Number(1.5),
            FieldKind::Series => Default::Series(vec![(0.1, 0.0), (0.6, 1.0), (1.0, -0.5)]),
            FieldKind::Data => Default::Data((0..9).map(|cell| 0.1 * f64::from(cell)).collect()),
            FieldKind::Const | FieldKind::State | FieldKind::Temp | FieldKind::Output | FieldKind::Event => {
                Default::None
            }
        };
        let (id, name) = (neuroc::step::FieldId(index as u32), field.name.clone());
        let doc = "A \"quantity\" | of the model.".into();
        InterfaceField { field: id, name, unit: "mV".into(), scale: 0.5, doc, default }
    };
    // Nine cells in a ring, each edge in its own order.
    let network = |space: &neuroc::step::Space| InterfaceNetwork { name: space.name.clone(), default: ring(9) };
    let (plain, relations): (Vec<_>, Vec<_>) = program.spaces.iter().partition(|s| s.kind == SpaceKind::Plain);
    Interface {
        crate_name: name.into(),
        doc: "A model for tests.\n\nIt has a second paragraph.".into(),
        spaces: plain.iter().map(|_| InterfaceSpace { size: 9, doc: String::new() }).collect(),
        fields: program.fields.iter().enumerate().map(field).collect(),
        networks: relations.into_iter().map(network).collect(),
        seed: 42,
        example_steps: 40,
    }
}

/// Cells that hear their two neighbours.
fn ring(cells: u32) -> Edges {
    let sources = (0..cells).flat_map(|cell| [(cell + 1) % cells, (cell + cells - 1) % cells]).collect();
    Edges { offsets: (0..=cells).map(|cell| 2 * cell).collect(), sources }
}

/// Writes the crate of a program.
fn write(program: &Verified, name: &str, precision: Precision) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates").join(name);
    let plan = plan(program, &PlanOptions { precision, ..PlanOptions::default() }).unwrap();
    let _ = std::fs::remove_dir_all(folder.join("src"));
    for file in crate_files(&plan, &interface(program, name)).unwrap() {
        let path = folder.join(file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.text).unwrap();
    }
    folder
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn cargo(folder: &Path, arguments: &[&str]) -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates/target");
    succeed(Command::new(env!("CARGO")).current_dir(folder).args(arguments).env("CARGO_TARGET_DIR", target))
}

/// The compiler, in a folder and with a cache of the tests' own.
fn compiler(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuroc"));
    command.current_dir(folder).env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

const PROGRAMS: &[&str] = &[
    "hh",
    "lif",
    "driven",
    "spread",
    "two_populations",
    "all_ops_lanes",
    "all_ops_numbers",
    "junctions",
    "two_edges",
    "two_passes",
];

#[test]
fn a_crate_builds_runs_and_is_clean() {
    let (clippy, rustfmt) = (super::has_component("clippy"), super::has_component("fmt"));
    for (index, name) in PROGRAMS.iter().enumerate() {
        let precision = if index % 2 == 0 { Precision::F64 } else { Precision::F32 };
        let folder = write(&program(name), &format!("model_{name}"), precision);
        if clippy {
            cargo(&folder, &["clippy", "--offline", "--all-targets", "--", "-Dwarnings"]);
        }
        if rustfmt {
            cargo(&folder, &["fmt", "--check"]);
        }
    }
    let folder = write(&program("hh"), "model_hh", Precision::F64);
    let out = cargo(&folder, &["run", "--offline", "--release", "--example", "run"]);
    assert!(out.starts_with("t = 2 ms\n"), "{out}");
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    for name in PROGRAMS {
        let once = plan(&program(name), &PlanOptions::default()).unwrap();
        let twice = plan(&program(name), &PlanOptions::default()).unwrap();
        assert_eq!(once.to_string(), twice.to_string());
        assert_eq!(kernel_files(&once), kernel_files(&twice));
    }
}

const C: &str = r#"
#include "driven.h"
#include <stdio.h>
#define TRY(call) if (call) { fprintf(stderr, "%s\n", driven_error(model)); return 1; }
int main(void) {
    if (driven_abi_version() != DRIVEN_ABI_VERSION) return 2;
    size_t sizes[1] = {11};
    driven_model *model = driven_create(sizes, 1, 2), *none = driven_create(sizes, 3, 1);
    if (!model || none) return 3;
    if (driven_step(model, 1) == 0) return 4;
    if (driven_set_param(model, "amplitud", 1.0) == 0) return 5;
    fprintf(stderr, "%s\n", driven_error(model));
    TRY(driven_set_param(model, "amplitude", 2.5));
    double t[3] = {0.1, 0.6, 1.0}, value[3] = {0.0, 4.0, -1.0};
    TRY(driven_set_series(model, "p.input", t, value, 3));
    TRY(driven_set_seed(model, 7));
    TRY(driven_init(model));
    TRY(driven_step(model, 33));
    double x[16]; size_t n;
    TRY(driven_read(model, "p.t", x, 16, &n));
    for (size_t i = 0; i < n; i++) printf("%a\n", 0.5 * x[i]);
    uint64_t steps[4], cells[4];
    TRY(driven_spikes(model, "p.on", steps, cells, 4, &n));
    printf("%zu %llu %llu\n", n, (unsigned long long)steps[3], (unsigned long long)cells[3]);
    driven_destroy(model);
    return 0;
}
"#;

#[test]
fn a_c_program_gets_the_interpreters_numbers() {
    let program = program("driven");
    let folder = write(&program, "driven", Precision::F64);
    cargo(&folder, &["build", "--offline", "--release", "--lib"]);
    std::fs::write(folder.join("main.c"), C).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates/target/release");
    let cc = |arguments: &[&str]| {
        let mut command = Command::new("cc");
        command.current_dir(&folder).args(arguments).arg("-L").arg(&target);
        succeed(command.arg(format!("-Wl,-rpath,{}", target.display())))
    };
    cc(&["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Iinclude", "main.c", "-o", "main", "-ldriven"]);
    let out = succeed(&mut Command::new(folder.join("main")));

    let id = |name: &str| program.program().find_field(name).unwrap();
    let setup = Setup {
        sizes: vec![11],
        uniforms: vec![(id("dt"), 0.05), (id("amplitude"), 1.25)],
        series: vec![(id("p.input"), vec![(0.1, 0.0), (0.6, 2.0), (1.0, -0.5)])],
        seed: 7,
        ..Setup::default()
    };
    let mut interp = Interp::new(program.clone(), &setup).unwrap();
    let (mut spikes, mut values) = (Vec::new(), Vec::new());
    interp.init().unwrap();
    interp.step(0, 33, &mut spikes).unwrap();
    interp.observe(33).unwrap();
    interp.read(id("p.t"), 0..11, &mut values).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    let found: Vec<f64> = lines[..11].iter().map(|line| hexadecimal(line)).collect();
    assert_eq!(found, values);
    assert_eq!(lines[11], format!("{} {} {}", spikes.len(), spikes[3].step, spikes[3].cell));
}

/// What the crate of the olive network prints: the bits of its states, with its own edges, then with others.
const NETWORK: &str = r#"
use inferior_olive::model::{Model, Sizes};

fn show(model: &mut Model) -> Result<(), Box<dyn std::error::Error>> {
    for name in ["io.soma.v", "io.dend.v", "io.dend.Ca"] {
        for value in model.read(name)? {
            println!("{:x}", value.to_bits());
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut model = Model::new(Sizes::default(), 2)?;
    assert_eq!(model.threads(), 2);
    model.init()?;
    model.step(80)?;
    show(&mut model)?;
    let (offsets, sources) = model.edges("edges.Cx36")?;
    let (offsets, sources) = (offsets.to_vec(), sources.to_vec());

    // Nobody connected, then connected as before: as after the first `init`.
    model.set_edges("edges.Cx36", &vec![0; offsets.len()], &[])?;
    assert!(model.step(1).unwrap_err().to_string().contains("init"));
    model.init()?;
    model.step(80)?;
    show(&mut model)?;
    model.set_edges("edges.Cx36", &offsets, &sources)?;
    model.init()?;
    model.step(80)?;
    show(&mut model)?;

    // Wrong ones, and another number of cells, which has no default.
    for (offsets, sources) in [(&[0, 1][..], &[0][..]), (&offsets[..], &[0][..])] {
        println!("{}", model.set_edges("edges.Cx36", offsets, sources).unwrap_err());
    }
    println!("{}", model.set_edges("dt", &offsets, &sources).unwrap_err());
    println!("{}", model.set_param("edges.Cx36", 1.0).unwrap_err());
    let mut pair = Model::new(Sizes { io: 2 }, 1)?;
    println!("{}", pair.init().unwrap_err());
    pair.set_edges("edges.Cx36", &[0, 1, 2], &[1, 0])?;
    pair.init()?;
    let before = pair.read("io.dend.v")?;
    pair.step(400)?;
    let after = pair.read("io.dend.v")?;
    assert!((after[0] - after[1]).abs() < (before[0] - before[1]).abs());
    Ok(())
}
"#;

#[test]
fn a_crate_of_a_network_gives_the_bits_of_a_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates/olive");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["inferior_olive", "olive_cell"] {
        let text = std::fs::read_to_string(root.join(format!("examples/inferior_olive/{name}.neuro"))).unwrap();
        let records = "record io.soma.v every 1 ms\n    record io.dend.v every 1 ms\n    record io.dend.Ca every 1 ms";
        std::fs::write(folder.join(format!("{name}.neuro")), text.replace("record io.soma.v every 1 ms", records))
            .unwrap();
    }
    let apart = std::fs::read_to_string(folder.join("inferior_olive.neuro")).unwrap();
    let apart: Vec<&str> = apart.lines().filter(|line| !line.contains("connect ")).collect();
    std::fs::write(folder.join("apart.neuro"), apart.join("\n")).unwrap();
    let neuroc = |arguments: &[&str]| succeed(compiler(&folder).args(arguments));
    let set = ["--set", "side=9", "--seed", "5"];
    neuroc(&[&["build", "inferior_olive.neuro", "-o", "made"], &set[..]].concat());
    let made = folder.join("made");
    std::fs::write(made.join("examples/network.rs"), NETWORK).unwrap();
    if super::has_component("clippy") {
        cargo(&made, &["clippy", "--offline", "--lib", "--", "-Dwarnings"]);
    }
    let out = cargo(&made, &["run", "--offline", "--release", "--example", "network"]);
    let lines: Vec<&str> = out.lines().collect();
    let bits = |part: usize| -> Vec<f64> {
        let of_part = &lines[part * 3 * 729..(part + 1) * 3 * 729];
        of_part.iter().map(|line| f64::from_bits(u64::from_str_radix(line, 16).unwrap())).collect()
    };

    let run = |model: &str| -> Vec<f64> {
        neuroc(&[&["run", model, "--duration", "2ms", "-o", "r.npz", "--quiet", "--threads", "1"], &set[..]].concat());
        let result = neuroc::results::RunResult::read_npz(&folder.join("r.npz")).unwrap();
        let last = |name: &str| {
            let series = result.series_named(name).unwrap();
            (0..729).map(|cell| series.values.get(series.t.len() - 1, cell)).collect::<Vec<f64>>()
        };
        ["io.soma.v", "io.dend.v", "io.dend.Ca"].into_iter().flat_map(last).collect()
    };
    assert!(bits(0) == run("inferior_olive.neuro"), "the crate and `neuroc run` differ");
    assert!(bits(2) == bits(0), "the same edges, set by hand, give other numbers");
    // Without edges there is no current; the sum of none, 0, is added to the others all the same.
    let (got, want) = (bits(1), run("apart.neuro"));
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-12 * b.abs()), "no edges are not nothing");
    assert!(got != bits(0));
    assert_eq!(
        lines[9 * 729..],
        [
            "`edges.Cx36`: the edges are not those of 729 cells",
            "`edges.Cx36`: the edges are not those of 729 cells",
            "`dt` is a parameter, not a network",
            "`edges.Cx36` is a network, not a parameter",
            "`edges.Cx36` needs edges for this number of cells before `init`: use `set_edges`",
        ]
    );
}

const NETWORK_IN_C: &str = r#"
#include "inferior_olive.h"
#include <stdio.h>
#define TRY(call) if (call) { fprintf(stderr, "%s\n", inferior_olive_error(model)); return 1; }
int main(void) {
    size_t sizes[1] = {3}, n;
    double v[3];
    uint32_t offsets[4] = {0, 1, 3, 4}, sources[4] = {1, 0, 2, 1};
    inferior_olive_model *model = inferior_olive_create(sizes, 1, 1);
    if (!model) return 2;
    if (inferior_olive_init(model) == 0) return 3;
    printf("%s\n", inferior_olive_error(model));
    if (inferior_olive_set_edges(model, "edges.Cx36", offsets, 3, sources, 4) == 0) return 4;
    printf("%s\n", inferior_olive_error(model));
    TRY(inferior_olive_set_edges(model, "edges.Cx36", offsets, 4, sources, 4));
    TRY(inferior_olive_set_seed(model, 5));
    TRY(inferior_olive_init(model));
    TRY(inferior_olive_step(model, 80));
    TRY(inferior_olive_read(model, "io.soma.v", v, 3, &n));
    for (size_t i = 0; i < n; i++) printf("%a\n", v[i]);
    inferior_olive_destroy(model);
    return 0;
}
"#;

#[test]
fn a_library_of_a_network_takes_edges_from_c() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/inferior_olive");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["inferior_olive", "olive_cell"] {
        std::fs::copy(examples.join(format!("{name}.neuro")), at.join(format!("{name}.neuro"))).unwrap();
    }
    let neuroc = |arguments: &[&str]| succeed(compiler(at).args(arguments));
    neuroc(&["build", "inferior_olive.neuro", "-o", "lib", "--emit", "cdylib"]);
    std::fs::write(at.join("main.c"), NETWORK_IN_C).unwrap();
    let arguments = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Ilib", "main.c", "-o", "main"];
    let libraries = ["-Llib", "-linferior_olive", "-Wl,-rpath,lib"];
    succeed(Command::new("cc").current_dir(at).args(arguments).args(libraries));
    let out = succeed(Command::new(at.join("main")).current_dir(at));
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].contains("set_edges") && lines[1].contains("3 cells"), "{out}");

    // The same three cells in a row, run by the compiler.
    let model = std::fs::read_to_string(at.join("inferior_olive.neuro")).unwrap();
    let model = model.replace("torus_radial(degree = 10, r_max = 4, width = 4)", "edges(\"row.csv\")");
    std::fs::write(at.join("row.neuro"), model.replace("Olive[side, side, side]", "Olive[side]")).unwrap();
    std::fs::write(at.join("row.csv"), "0,1\n1,0\n2,1\n1,2\n").unwrap();
    let settings = ["--set", "side=3", "--seed", "5", "--duration", "2ms", "-o", "r.npz", "--quiet"];
    neuroc(&[&["run", "row.neuro"], &settings[..]].concat());
    let result = neuroc::results::RunResult::read_npz(&at.join("r.npz")).unwrap();
    let series = result.series_named("io.soma.v").unwrap();
    let expected: Vec<f64> = (0..3).map(|cell| series.values.get(series.t.len() - 1, cell)).collect();
    let found: Vec<f64> = lines[2..].iter().map(|line| hexadecimal(line)).collect();
    assert_eq!(found, expected);
}

/// What C's `%a` means.
fn hexadecimal(text: &str) -> f64 {
    let (sign, text) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let (digits, power) = text.strip_prefix("0x").unwrap().split_once('p').unwrap();
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa = u64::from_str_radix(&format!("{whole}{fraction}"), 16).unwrap();
    sign * mantissa as f64 * f64::from(power.parse::<i32>().unwrap() - 4 * fraction.len() as i32).exp2()
}

#[test]
fn plans_and_kernels_look_like_this() {
    for name in ["hh", "driven", "two_edges", "two_passes"] {
        let plan = plan(&program(name), &PlanOptions::default()).unwrap();
        let kernels = kernel_files(&plan).into_iter().find(|file| file.path == "src/kernels.rs").unwrap();
        insta::with_settings!({ snapshot_path => "../ir", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("{name}.plan"), plan.to_string());
            insta::assert_snapshot!(format!("{name}.rust"), kernels.text);
        });
    }
}

/// The names that a printed plan defines in a kernel, in the order in which code does it: numbers, then those that lanes use, then what the
/// loops load and compute. Columns of a row are spread before a step's own work.
fn named_by_the_plan(kernel: &[&str]) -> Vec<String> {
    let connected = kernel.iter().any(|line| line.contains("for each 32 blocks"));
    let (mut numbers, mut spread, mut row, mut loops) = (vec![], vec![], vec![], vec![]);
    let (mut in_loops, mut steps) = (false, None);
    for line in kernel.iter().map(|line| line.trim()) {
        let first = line.split(' ').next().unwrap_or_default().to_string();
        let columns = |list: &str| list.split(", ").map(str::to_string).collect::<Vec<_>>();
        in_loops |= line.starts_with("for each");
        if line == "for each step {" {
            steps = Some(loops.len());
        }
        if let Some(register) = line.strip_prefix("load ").filter(|rest| rest.contains(" from ")) {
            loops.push(register.split(' ').next().unwrap_or_default().to_string());
        } else if let Some(list) = line.strip_prefix("spread: ") {
            spread.extend(columns(list).into_iter().map(|name| name.trim_end_matches(" (counter)").to_string()));
        } else if let Some(list) = line.strip_prefix("row: ") {
            row.extend(columns(list).into_iter().filter(|name| !name.ends_with(" (counter)")));
        } else if line.contains(" = ") || line.ends_with(" := 0.0") {
            if in_loops { loops.push(first) } else { numbers.push(first) }
        }
    }
    let steps = steps.filter(|_| !connected).unwrap_or(0);
    let body = loops.split_off(steps);
    [numbers, spread, loops, row, body].concat()
}

/// The names that the code of a kernel defines, in order, but those of its surroundings.
fn named_by_the_code(kernel: &[&str]) -> Vec<String> {
    const SURROUNDINGS: &[&str] = &[
        "state", "cell", "output", "data", "temp", "sums", "some", "blocks", "own", "rows", "row", "arrived", "width",
        "Call", "(mut",
    ];
    const NUMBERED: &[&str] = &["arriving", "from", "width", "draw", "held"];
    let numbered = |name: &str| {
        NUMBERED.iter().any(|word| name.strip_prefix(word).is_some_and(|rest| rest.parse::<u32>().is_ok()))
    };
    let names = kernel.iter().filter_map(|line| {
        let defined = line.trim().strip_prefix("let ")?;
        let name = defined.trim_start_matches("mut ").split([' ', ':', ')']).next()?;
        (!SURROUNDINGS.contains(&name) && !numbered(name)).then(|| name.to_string())
    });
    names.collect()
}

/// What the printed plan says is computed, and where, is what the code computes, in that order.
#[test]
fn the_printed_plan_is_the_code() {
    for name in PROGRAMS {
        let plan = plan(&program(name), &PlanOptions::default()).unwrap();
        let (text, files) = (plan.to_string(), kernel_files(&plan));
        let code = &files.iter().find(|file| file.path == "src/kernels.rs").unwrap().text;
        let lines: Vec<&str> = text.lines().collect();
        let printed: Vec<&[&str]> = lines.split(|line| line.starts_with("  kernel ")).skip(1).collect();
        let lines: Vec<&str> = code.lines().collect();
        let emitted: Vec<&[&str]> = lines.split(|line| line.starts_with("pub fn ")).skip(1).collect();
        assert_eq!(printed.len(), emitted.len(), "{name}");
        for (printed, emitted) in printed.into_iter().zip(emitted) {
            let end = printed.iter().position(|line| line.is_empty()).unwrap_or(printed.len());
            let printed = &printed[..end];
            let (planned, found) = (named_by_the_plan(printed), named_by_the_code(emitted));
            assert!(!found.is_empty(), "{name}");
            assert_eq!(planned, found, "{name}\n{}\n{}", printed.join("\n"), emitted.join("\n"));
        }
    }
}

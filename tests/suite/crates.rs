//! Tests of: the crates that the compiler writes. What they are made for uses them: cargo, rustfmt, clippy and a C compiler.

use neuroc::codegen::plan::{PlanOptions, Precision, plan};
use neuroc::codegen::rust::{
    Default, Interface, InterfaceField, InterfaceSpace, Wires, Wiring, crate_files, kernel_files,
};
use neuroc::engine::{Edges, Engine, Setup};
use neuroc::interp::Interp;
use neuroc::runtime::named::Count;
use neuroc::step::{FieldKind, SpaceKind, Verified, parse, verify};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

fn program(name: &str) -> Verified {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/ir/{name}.ir"));
    verify(parse(&std::fs::read_to_string(path).unwrap()).unwrap()).unwrap()
}

/// Everything visible; values in tenths of the canonical unit.
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
        InterfaceField {
            field: id,
            name,
            unit: "mV".into(),
            exponent: -1,
            doc,
            default,
            computes: Vec::new(),
            copies: Vec::new(),
        }
    };
    let plain = program.spaces.iter().filter(|space| space.kind == SpaceKind::Plain);
    Interface {
        crate_name: name.into(),
        doc: "A model for tests.\n\nIt has a second paragraph.".into(),
        spaces: plain.map(|_| InterfaceSpace { size: 9, count: Count::Free, doc: String::new() }).collect(),
        fields: program.fields.iter().enumerate().map(field).collect(),
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
    // Nine cells in a ring, each edge in its own order.
    let relations = plan.relations.iter().map(|_| Wires::bare(Arc::new(ring(9)))).collect();
    let wiring = Wiring { relations, ..Wiring::default() };
    for file in crate_files(&plan, &interface(program, name), &wiring).unwrap() {
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
    succeed(&mut cargo_in(folder, arguments))
}

fn cargo_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder).args(arguments).env("CARGO_TARGET_DIR", folder.join("target"));
    command
}

/// What an example of a crate prints. However much it is optimized, it has the same bits; without that it is made four times as soon.
fn example_prints(folder: &Path, name: &str) -> String {
    let mut command = cargo_in(folder, &["run", "--offline", "--release", "--example", name]);
    succeed(command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"))
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
    if (driven_set_param(model, "amplitude", 0.0 / 0.0) == 0 || driven_set_param(model, "amplitude", 1.0 / 0.0) == 0) return 6;
    TRY(driven_set_param(model, "amplitude", 12.5));
    double t[3] = {0.1, 0.6, 1.0}, value[3] = {0.0, 20.0, -5.0};
    TRY(driven_set_series(model, "p.input", t, value, 3));
    TRY(driven_set_seed(model, 7));
    TRY(driven_init(model));
    TRY(driven_step(model, 33));
    double x[16]; size_t n;
    TRY(driven_read(model, "p.t", x, 16, &n));
    for (size_t i = 0; i < n; i++) printf("%a\n", x[i]);
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
    let target = folder.join("target/release");
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
    assert_eq!(found, values.iter().map(|x| x * 10.0).collect::<Vec<f64>>());
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
    let out = example_prints(&made, "network");
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

/// A model, how it is run, and what its crate and `neuroc run` are asked for.
struct Case {
    name: &'static str,
    model: String,
    set: &'static [&'static str],
    /// More settings of `neuroc run`, whose crate has other sizes then.
    run_set: &'static [&'static str],
    sizes: &'static str,
    precision: &'static str,
    steps: u64,
    dt: f64,
    /// What a record is called in results, and in the crate.
    read: &'static [(&'static str, &'static str)],
    /// The populations that spike, and their events in the crate.
    spikes: &'static [(&'static str, &'static str)],
    /// A file beside the model.
    file: Option<(&'static str, String)>,
}

/// An example with other text in some places.
fn example(name: &str, other: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.neuro"));
    let text = std::fs::read_to_string(path).unwrap();
    other.iter().fold(text, |text, (old, new)| {
        assert!(text.contains(old), "{name} has no `{old}`");
        text.replace(old, new)
    })
}

/// Prints the bits of what the crate of a case has after its steps, twice: a second `init` begins the same run.
fn bits_of(case: &Case) -> String {
    let Case { sizes, steps, read, spikes, .. } = case;
    let names = |names: &[(&str, &str)]| format!("{:?}", names.iter().map(|(_, name)| *name).collect::<Vec<_>>());
    format!(
        r#"use model::model::{{Model, Sizes}};
fn main() -> Result<(), Box<dyn std::error::Error>> {{
    let mut model = Model::new({sizes}, 2)?;
    for _ in 0..2 {{
        model.init()?;
        // Steps may be taken in any portions.
        model.step({steps} / 3)?;
        model.step({steps} - {steps} / 3)?;
        assert!(model.all_finite());
        let (read, spikes): (Vec<&str>, Vec<&str>) = (vec!{}, vec!{});
        for name in read {{
            let values: Vec<String> = model.read(name)?.iter().map(|x| format!("{{:x}}", x.to_bits())).collect();
            println!("{{}}", values.join(" "));
        }}
        for name in spikes {{
            let spikes: Vec<String> = model.spikes(name)?.iter().map(|(step, cell)| format!("{{step}}:{{cell}}")).collect();
            println!("{{}}", spikes.join(" "));
        }}
    }}
    Ok(())
}}
"#,
        names(read),
        names(spikes)
    )
}

fn the_crate_gives_the_bits_of_a_run(case: &Case) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates").join(case.name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("model.neuro"), &case.model).unwrap();
    if let Some((name, text)) = &case.file {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let neuroc = |arguments: &[&str]| succeed(compiler(&folder).args(arguments).args(["--precision", case.precision]));
    let settings = |set: &[&'static str]| set.iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>();
    neuroc(&[&["build", "model.neuro", "-o", "made"], &settings(case.set)[..]].concat());
    let made = folder.join("made");
    if super::has_component("fmt") {
        cargo(&made, &["fmt", "--check"]);
    }
    if super::has_component("clippy") {
        cargo(&made, &["clippy", "--offline", "--all-targets", "--", "-Dwarnings"]);
    }
    std::fs::write(made.join("examples/bits.rs"), bits_of(case)).unwrap();
    let out = example_prints(&made, "bits");
    let lines: Vec<&str> = out.lines().collect();
    let (first, second) = lines.split_at(lines.len() / 2);
    assert_eq!(first.len(), case.read.len() + case.spikes.len());
    assert!(first == second, "{}: the second run is another one", case.name);

    let duration = format!("{}ms", case.steps as f64 * case.dt);
    let set = [settings(case.set), settings(case.run_set)].concat();
    neuroc(
        &[&["run", "model.neuro", "--duration", &duration, "-o", "r.npz", "--quiet", "--threads", "1"], &set[..]]
            .concat(),
    );
    let result = neuroc::results::RunResult::read_npz(&folder.join("r.npz")).unwrap();
    for (&(name, _), line) in case.read.iter().zip(first) {
        let series = result.series_named(name).unwrap_or_else(|| panic!("{name} is not recorded"));
        let last = series.t.len() - 1;
        let want: Vec<f64> = (0..series.cells.len()).map(|cell| series.values.get(last, cell)).collect();
        let got = |word: &str| f64::from_bits(u64::from_str_radix(word, 16).unwrap());
        let got: Vec<f64> = line.split_whitespace().map(got).collect();
        assert!((series.t[last] - case.steps as f64 * case.dt).abs() < 1e-9);
        assert!(got == want, "{}: {name} of the crate and of `neuroc run` differ\n{got:?}\n{want:?}", case.name);
        assert!(want.iter().any(|x| *x != want[0]) || want.len() == 1, "{}: {name} is the same everywhere", case.name);
    }
    for (&(population, _), line) in case.spikes.iter().zip(&first[case.read.len()..]) {
        let train = result.spikes.iter().find(|train| train.population == population).unwrap();
        let want: Vec<String> =
            train.t.iter().zip(&train.i).map(|(t, i)| format!("{}:{i}", (t / case.dt).round() as u64 - 1)).collect();
        assert!(want.len() > 4, "{}: `{population}` hardly spikes: {want:?}", case.name);
        assert!(want.iter().map(String::as_str).eq(line.split_whitespace()), "{}: other spikes", case.name);
    }
}

/// Cells with sections: one that becomes forty, which begin differently; a ring with synapses, begun by a drive; junctions between dendrites.
#[test]
fn crates_of_branched_cells_give_the_bits_of_a_run() {
    the_crate_gives_the_bits_of_a_run(&Case {
        name: "stick",
        model: example(
            "ball_and_stick",
            &[
                (
                    "population pyr: BallAndStick[n]",
                    "population pyr: BallAndStick[n]\n    init pyr.v ~ uniform(-70 mV, -60 mV)",
                ),
                ("record pyr.dend(1).v every 0.1 ms", "record {pyr.dend(1).v, pyr.all.v} every 0.1 ms"),
            ],
        ),
        set: &[],
        run_set: &["n=40"],
        sizes: "Sizes { pyr: 40 }",
        precision: "f64",
        steps: 800,
        dt: 0.025,
        read: &[
            ("pyr.soma(0.5).v", "pyr.soma(0.5).v.out"),
            ("pyr.soma(0.5).Na.m", "pyr.soma(0.5).Na.m.out"),
            ("pyr.dend(1).v", "pyr.dend(1).v.out"),
            ("pyr.all.v", "pyr.v"),
        ],
        spikes: &[("pyr", "pyr.soma(0.5).spikes")],
        file: None,
    });
    the_crate_gives_the_bits_of_a_run(&Case {
        name: "ringing",
        model: example("dendritic_ring", &[("data/ring.csv", "ring.csv")]),
        set: &[],
        run_set: &[],
        sizes: "Sizes::default()",
        precision: "f64",
        steps: 4000,
        dt: 0.025,
        read: &[("ring.soma(0.5).v", "ring.soma(0.5).v.out"), ("ring.dend(0.5).v", "ring.dend(0.5).v.out")],
        spikes: &[("ring", "ring.soma(0.5).spikes")],
        file: Some((
            "ring.csv",
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/ring.csv")).unwrap(),
        )),
    });
    the_crate_gives_the_bits_of_a_run(&Case {
        name: "coupled",
        model: example("dendritic_junctions", &[("record pv[0..3]", "record pv")]),
        set: &[],
        run_set: &[],
        sizes: "Sizes::default()",
        precision: "f32",
        steps: 3000,
        dt: 0.025,
        read: &[("pv.soma(0.5).v", "pv.soma(0.5).v.out"), ("pv.up(0.5).v", "pv.up(0.5).v.out")],
        spikes: &[("pv", "pv.soma(0.5).spikes")],
        file: None,
    });
    the_crate_gives_the_bits_of_a_run(&Case {
        name: "spiny",
        model: example(
            "calcium_diffusion",
            &[(
                "population cells: Spiny",
                "population cells: Spiny[5]\n    init cells.head.Ca ~ uniform(5e-5 mM, 1e-3 mM)",
            )],
        ),
        set: &[],
        run_set: &[],
        sizes: "Sizes::default()",
        precision: "f64",
        steps: 2400,
        dt: 0.025,
        read: &[("cells.head(0.5).Ca", "cells.head(0.5).Ca.out"), ("cells.dend(0.6).Ca", "cells.dend(0.6).Ca.out")],
        spikes: &[],
        file: None,
    });
}

/// Currents through graded synapses, for which cells of both populations compute what they release first.
#[test]
fn a_crate_records_what_comes_along_edges() {
    let model = "
synapse Fast {
    param half = -20 mV
    sum open(weight) = weight / (1 + exp((half - v_pre) / 8 mV))
    current i = open * 1 nS * (v + 80 mV)
}
cell Oscillator {
    state v: mV = -20 mV
    v' = (105 pA - 2 nS * (v + 60 mV) - i_syn) / 20 pF
}
channel Leak { param gbar = 0.3 mS/cm2; param erev = -65 mV }
cell Branched {
    section dend { length = 200 um; diam = 2 um; compartments = 3 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -50 mV; insert Leak }
}
network main {
    population a: Oscillator[37]
    population b: Oscillator[60]
    population c: Branched[5]
    init {a, b, c}.v ~ uniform(-60 mV, 20 mV)
    connect a -> b via Fast { rule = probability(p = 0.1); weight ~ uniform(0.1, 0.4) }
    connect b -> a via Fast { rule = fixed_in_degree(n = 3); weight = 0.5 }
    connect a -> c.dend(0.1) via Fast { rule = fixed_in_degree(n = 4); weight = 0.1 }
    connect c.dend(0.9) -> b via Fast(half = -60 mV) { rule = all_to_all; weight = 0.1 }
}
run {
    duration = 2 ms; dt = 0.01 ms; method = cnexp
    record a.{v, Fast.open} every 1 ms
    record b.Fast.open every 1 ms
    record c.dend(0.1).{v, Fast.open} every 1 ms
}";
    the_crate_gives_the_bits_of_a_run(&Case {
        name: "released",
        model: model.to_string(),
        set: &[],
        run_set: &[],
        sizes: "Sizes::default()",
        precision: "f64",
        steps: 200,
        dt: 0.01,
        read: &[
            ("a.v", "a.v"),
            ("a.Fast.open", "a.Fast.open.out"),
            ("b.Fast.open", "b.Fast.open.out"),
            ("c.dend(0.1).v", "c.dend(0.1).v.out"),
            ("c.dend(0.1).Fast.open", "c.dend(0.1).Fast.open.out"),
        ],
        spikes: &[],
        file: None,
    });
}

/// Synapses of every kind that remember, with delays of axons and dendrites, and what modulates them.
#[test]
fn a_crate_of_synapses_that_remember_gives_the_bits_of_a_run() {
    let all = crate::plasticity::MIXED;
    let of_e = "delay ~ uniform(0.1 ms, 2 ms) }\n    connect e -> i";
    assert!(all.contains(of_e));
    the_crate_gives_the_bits_of_a_run(&Case {
        name: "learning",
        model: all.replace(of_e, &of_e.replace(" }", "; dendritic_fraction = 0.7 }")),
        set: &[],
        run_set: &[],
        sizes: "Sizes::default()",
        precision: "f64",
        steps: 800,
        dt: 0.1,
        read: &[
            ("e.v", "e.v"),
            // Weights follow from these, and spikes from weights; in nS they are rounded once more.
            ("e.e.Stdp.pre", "e.e.Stdp.pre.out"),
            ("e.e.Stdp.post", "e.e.Stdp.post.out"),
            ("e.i.Alpha.b", "e.i.Alpha.b.out"),
            ("i.e.learnt.c", "i.e.learnt.c.out"),
        ],
        spikes: &[("e", "e.spikes"), ("i", "i.spikes")],
        file: None,
    });
}

/// Poisson drives, conductances, weights and delays of their own, spikes of a file.
#[test]
fn crates_of_networks_with_events_give_the_bits_of_a_run() {
    let all = |population: &str| (format!("record {population}[0..2]"), format!("record {population}"));
    let (e_some, e_all) = all("e");
    the_crate_gives_the_bits_of_a_run(&Case {
        name: "brunel_small",
        model: example("brunel", &[(e_some.as_str(), e_all.as_str())]),
        set: &["order=120"],
        run_set: &[],
        sizes: "Sizes::default()",
        precision: "f32",
        steps: 600,
        dt: 0.1,
        read: &[("e.v", "e.v")],
        spikes: &[("e", "e.spikes"), ("i", "i.spikes")],
        file: None,
    });
    the_crate_gives_the_bits_of_a_run(&Case {
        name: "coba",
        // As in the paper, without delays.
        model: example(
            "vogels_abbott_coba",
            &[
                (e_some.as_str(), e_all.as_str()),
                ("delay = 0.1 ms", "delay = 0 ms"),
                ("run {", "run { arrivals = after_threshold;"),
            ],
        ),
        set: &["n=800", "p=0.1"],
        run_set: &[],
        sizes: "Sizes::default()",
        precision: "f64",
        steps: 800,
        dt: 0.1,
        read: &[("e.v", "e.v")],
        spikes: &[("e", "e.spikes"), ("i", "i.spikes")],
        file: None,
    });
    the_crate_gives_the_bits_of_a_run(&Case {
        name: "pulse",
        model: example(
            "travelling_pulse",
            &[
                ("record cells[100].v", "record cells.v"),
                ("refractory 200 ms", "refractory 3 ms"),
                (
                    "    input start",
                    "    drive cells[50..60] via ExpCurr from spikes(\"in.csv\") { weight ~ uniform(1 nA, 2 nA) }\n    input start",
                ),
            ],
        ),
        set: &["n=60"],
        run_set: &[],
        sizes: "Sizes::default()",
        precision: "f64",
        steps: 800,
        dt: 0.05,
        read: &[("cells.v", "cells.v")],
        spikes: &[("cells", "cells.spikes")],
        file: Some(("in.csv", (0..40).map(|k| format!("{},{}\n", 0.75 * f64::from(k + 1), 50 + k % 10)).collect())),
    });
}

/// What the crate of a network with events refuses, and what edges it takes.
const EVENTS: &str = r#"
use pulses::model::{Model, Sizes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut model = Model::new(Sizes::default(), 1)?;
    println!("{}", model.set_param("dt", 0.1).unwrap_err());
    println!("{}", model.set_param("strength", 2.0).unwrap_err());
    model.set_param("a.tau", 10.0)?;
    let (offsets, sources) = model.edges("edges.a.b.Delta")?;
    let (offsets, sources) = (offsets.to_vec(), sources.to_vec());
    println!("{}", model.set_edges("edges.a.b.Delta", &offsets, &sources).unwrap_err());
    let of = |model: &mut Model| -> Result<Vec<f64>, Box<dyn std::error::Error>> {
        model.init()?;
        model.step(200)?;
        Ok(model.read("b.v")?)
    };
    let before = of(&mut model)?;
    let (offsets, sources) = model.edges("edges.a.b.Fast")?;
    let (offsets, sources) = (offsets.to_vec(), sources.to_vec());
    model.set_edges("edges.a.b.Fast", &vec![0; offsets.len()], &[])?;
    assert_ne!(of(&mut model)?, before);
    model.set_edges("edges.a.b.Fast", &offsets, &sources)?;
    assert_eq!(of(&mut model)?, before);
    let mut other = Model::new(Sizes { a: 3, b: 2 }, 1)?;
    println!("{}", other.init().unwrap_err());
    Ok(())
}
"#;

#[test]
fn a_crate_of_events_says_what_it_cannot_change() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates/of_events");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let model = r#"
use std.synapses.{Delta}
cell Leaky {
    param tau = 20 ms
    state v: mV = 0 mV
    v' = -v / tau
    spike when v > 5 mV { v = 0 mV }
}
network main {
    param strength = 1
    population a: Leaky[4]
    population b: Leaky[5]
    connect a -> b via Delta { rule = all_to_all(); weight ~ uniform(1 mV, 2 mV); delay = 1 ms }
    connect a -> b via Delta as Fast { rule = all_to_all(); weight = strength * 0.25 mV; delay = 1.5 ms }
    drive a via Delta from times(1 ms, 3 ms, 5 ms) { weight = 6 mV }
}
run { duration = 20 ms; dt = 0.1 ms; record b.v every 1 ms }
"#;
    std::fs::write(folder.join("pulses.neuro"), model).unwrap();
    succeed(compiler(&folder).args(["build", "pulses.neuro", "-o", "made"]));
    let made = folder.join("made");
    std::fs::write(made.join("examples/events.rs"), EVENTS).unwrap();
    let out = example_prints(&made, "events");
    let own = "each edge of `edges.a.b.Delta` has a delay or a weight of its own, so they are those of this crate, for \
               populations of default size";
    assert_eq!(
        out.lines().collect::<Vec<_>>(),
        [
            "`dt` cannot be changed: delays of `edges.a.b.Delta`, or what its edges bring, were computed from it when this crate \
             was made",
            "`strength` cannot be changed: delays of `edges.a.b.Fast`, or what its edges bring, were computed from it when this crate \
             was made",
            own,
            own,
        ]
    );
    let readme = std::fs::read_to_string(made.join("README.md")).unwrap();
    let (_, networks) = readme.split_once("## Networks").unwrap();
    let networks = networks.split_once("## Fields").unwrap().0;
    assert!(networks.contains("model.set_edges(\"edges.a.b.Fast\""), "{networks}");
    assert!(networks.contains("cannot be replaced: `edges.a.b.Delta`."), "{networks}");
    assert!(networks.contains("`set_param` therefore refuses: `dt`, `strength`."), "{networks}");
}

const EVENTS_IN_C: &str = r#"
#include "coba_lib.h"
#include <stdio.h>
#define TRY(call) if (call) { fprintf(stderr, "%s\n", coba_lib_error(model)); return 1; }
int main(void) {
    static double v[1000];
    static uint64_t steps[100000], cells[100000];
    size_t n;
    coba_lib_model *model = coba_lib_create(NULL, 0, 2);
    if (!model) return 2;
    for (int again = 0; again < 2; again++) {
        TRY(coba_lib_init(model));
        TRY(coba_lib_step(model, 500));
        TRY(coba_lib_read(model, "e.v", v, 1000, &n));
        for (size_t i = 0; i < n; i++) printf("%a\n", v[i]);
        TRY(coba_lib_spikes(model, "e.spikes", steps, cells, 100000, &n));
        for (size_t i = 0; i < n; i++) printf("%llu %llu\n", (unsigned long long)steps[i], (unsigned long long)cells[i]);
    }
    coba_lib_destroy(model);
    return 0;
}
"#;

/// What crates cannot do is refused with the reason, and nothing is written.
#[test]
fn what_has_no_crate_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let why = "`shaft.potential` is a potential, which is computed outside of the program so far; leave it out";
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/lfp.neuro");
    let output = compiler(folder.path()).arg("build").arg(model).args(["-o", "lfp"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(why) && said.contains("NU0320"), "{said}");
    assert!(!folder.path().join("lfp").exists());
}

/// A library that is there is run again, without the compiler.
#[test]
fn a_library_of_a_network_with_events_runs_from_c() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let model = example("vogels_abbott_coba", &[("record e[0..2]", "record e")]);
    std::fs::write(at.join("coba_lib.neuro"), model).unwrap();
    let neuroc = |arguments: &[&str]| succeed(compiler(at).args(arguments).args(["--set", "n=600", "--set", "p=0.1"]));
    neuroc(&["build", "coba_lib.neuro", "-o", "lib", "--emit", "cdylib"]);
    std::fs::write(at.join("main.c"), EVENTS_IN_C).unwrap();
    let arguments = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Ilib", "main.c", "-o", "main"];
    succeed(Command::new("cc").current_dir(at).args(arguments).args(["-Llib", "-lcoba_lib", "-Wl,-rpath,lib"]));
    let out = succeed(Command::new(at.join("main")).current_dir(at));
    assert_eq!(out, succeed(Command::new(at.join("main")).current_dir(at)), "another time it does something else");
    let lines: Vec<&str> = out.lines().collect();
    let (first, second) = lines.split_at(lines.len() / 2);
    assert_eq!(first, second);

    neuroc(&["run", "coba_lib.neuro", "--duration", "50ms", "-o", "r.npz", "--quiet"]);
    let result = neuroc::results::RunResult::read_npz(&at.join("r.npz")).unwrap();
    let series = result.series_named("e.v").unwrap();
    let expected: Vec<f64> = (0..480).map(|cell| series.values.get(series.t.len() - 1, cell)).collect();
    assert_eq!(first[..480].iter().map(|line| hexadecimal(line)).collect::<Vec<f64>>(), expected);
    let train = result.spikes.iter().find(|train| train.population == "e").unwrap();
    let spikes = train.t.iter().zip(&train.i).map(|(t, i)| format!("{} {i}", (t / 0.1).round() as u64 - 1));
    assert!(train.t.len() > 100);
    assert!(spikes.eq(first[480..].iter().map(|line| (*line).to_string())), "other spikes");
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
        if matches!(line, "for each step {" | "for the step {") {
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
        "state", "cell", "output", "data", "temp", "sums", "some", "blocks", "own", "rows", "row", "arrived", "step",
        "width", "Call", "(mut",
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

const OF_EACH_OTHER: &str = r#"
use joined::model::{Model, Sizes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut model = Model::new(Sizes::default(), 1)?;
    // What was computed from a parameter has to be set, too.
    model.set_param("b.soma.Leak.gbar", 0.2)?;
    println!("{}", model.init().unwrap_err());
    model.set_param("x.g", 0.4)?;
    model.init()?;
    model.step(1)?;
    println!("{}", model.set_param("b.soma.Leak.gbar", 0.3).is_ok() && model.step(1).is_ok());
    let mut model = Model::new(Sizes::default(), 1)?;
    model.init()?;
    // Others see what is written at once.
    let count = model.read("b.v")?.len();
    model.write("b.v", &vec![-40.0; count])?;
    model.step(1)?;
    println!("{:x}", model.read("x.v")?[0].to_bits());
    Ok(())
}
"#;

/// Junctions see voltages of branched cells that are written, and parameters that are made of others do not stay behind.
#[test]
fn what_depends_on_what_is_set_in_a_crate_follows_or_is_told() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates/of_each_other");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let model = r#"
use std.channels.hh.{Leak}
cell B {
    section soma { length = 15 um; diam = 15 um; compartments = 1 }
    section dend { from soma(1); length = 50 um; diam = 2 um; compartments = 3 }
    region all { ra = 90 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak(gbar = 0.1 mS/cm2, erev = -65 mV) }
}
cell P {
    param unit = 2 nS
    param g = 2 * unit
    state v: mV = -65 mV
    v' = (-(v + 65 mV) * (g + unit) - i_syn) / 100 pF
}
junction Lin { param g = 5 nS; current i = g * dv }
network main {
    population b: B
    population x: P
    connect b.dend(0.5) -- x via Lin { rule = all_to_all }
}
run { duration = 1 ms; dt = 0.1 ms; method = cnexp; record {b.dend(0.5).v, x.v} every 0.1 ms }
"#;
    std::fs::write(folder.join("joined.neuro"), model).unwrap();
    succeed(compiler(&folder).args(["build", "joined.neuro", "-o", "made"]));
    let made = folder.join("made");
    std::fs::write(made.join("examples/joined.rs"), OF_EACH_OTHER.replace("b.soma.Leak.gbar", "x.unit")).unwrap();
    let out = example_prints(&made, "joined");
    let run = folder.join("run.npz");
    let begin = ["run", "joined.neuro", "--set", "b.all.v_init=-40mV", "--duration", "0.1ms", "--quiet", "-o"];
    succeed(compiler(&folder).args(begin).arg(&run));
    let result = neuroc::results::RunResult::read_npz(&run).unwrap();
    let v = result.series_named("x.v").unwrap();
    let bits = format!("{:x}", v.values.get(v.t.len() - 1, 0).to_bits());
    assert_eq!(
        out.lines().collect::<Vec<_>>(),
        [
            "`x.g` was computed from `x.unit` when this crate was made, and does not follow it: set `x.g`, too",
            "true",
            &bits
        ]
    );
}

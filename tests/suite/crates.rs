//! Tests of: the crates that the compiler writes. What they are made for uses them: cargo, rustfmt, clippy and a C compiler.

use neuroc::codegen::plan::{PlanOptions, Precision, plan};
use neuroc::codegen::rust::{Default, Interface, InterfaceField, InterfaceSpace, crate_files, kernel_files};
use neuroc::engine::{Engine, Setup};
use neuroc::interp::Interp;
use neuroc::step::{FieldKind, Verified, parse, verify};
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
            FieldKind::Data(_) => Default::Data((0..9).map(|cell| 0.1 * f64::from(cell)).collect()),
            FieldKind::Cell(_)
            | FieldKind::State(_)
            | FieldKind::Temp(_)
            | FieldKind::Output(_)
            | FieldKind::Event(_)
            | FieldKind::Edges(_) => Default::None,
        };
        let field = neuroc::step::FieldId(index as u32);
        InterfaceField { field, unit: "mV".into(), scale: 0.5, doc: "A \"quantity\" | of the model.".into(), default }
    };
    Interface {
        crate_name: name.into(),
        doc: "A model for tests.\n\nIt has a second paragraph.".into(),
        spaces: program.spaces.iter().map(|_| InterfaceSpace { size: 9, doc: String::new() }).collect(),
        fields: program.fields.iter().enumerate().map(field).collect(),
        seed: 42,
        example_steps: 40,
    }
}

/// Writes the crate of a program.
fn write(program: &Verified, name: &str, precision: Precision) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates").join(name);
    let plan = plan(program, &PlanOptions { precision, ..PlanOptions::default() });
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

const PROGRAMS: &[&str] = &["hh", "lif", "driven", "spread", "two_populations", "all_ops_lanes", "all_ops_numbers"];

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
        let once = plan(&program(name), &PlanOptions::default());
        let twice = plan(&program(name), &PlanOptions::default());
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
        edges: Vec::new(),
        grids: Vec::new(),
        sizes: vec![11],
        uniforms: vec![(id("dt"), 0.05), (id("amplitude"), 1.25)],
        series: vec![(id("p.input"), vec![(0.1, 0.0), (0.6, 2.0), (1.0, -0.5)])],
        data: vec![],
        seed: 7,
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
    for name in ["hh", "driven"] {
        let plan = plan(&program(name), &PlanOptions::default());
        let kernels = kernel_files(&plan).into_iter().find(|file| file.path == "src/kernels.rs").unwrap();
        insta::with_settings!({ snapshot_path => "../ir", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("{name}.plan"), plan.to_string());
            insta::assert_snapshot!(format!("{name}.rust"), kernels.text);
        });
    }
}

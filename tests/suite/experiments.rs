//! Tests of: `examples/inferior_olive`. Its tables are the study's, single precision stays with double precision, and its script
//! runs every experiment, at a small size, where there is a Python. (That every model checks and runs is in `models.rs`.)

use neuroc::results::RunResult;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_neuroc");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn olive(name: &str) -> PathBuf {
    root().join("examples/inferior_olive").join(name)
}

/// The heading and the numbers, row by row, of a table.
fn table(name: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let text = fs::read_to_string(olive(name)).unwrap();
    let mut lines = text.lines();
    let heading = lines.next().unwrap().split(',').map(str::to_owned).collect();
    (heading, lines.map(|l| l.split(',').map(|x| x.parse().unwrap()).collect()).collect())
}

/// Runs a model natively; kernels are kept where those of the other tests are.
fn run(folder: &Path, model: &str, arguments: &[&str]) -> RunResult {
    let out = folder.join("result.npz");
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(olive(model)).arg("--quiet").arg("--cache").arg(cache).arg("-o").arg(&out).args(arguments);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{model} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    RunResult::read_npz(&out).unwrap_or_else(|e| panic!("{e}"))
}

/// The largest difference between two recordings of the somata, all of which must be finite.
fn apart(a: &RunResult, b: &RunResult) -> f64 {
    let cells = a.spikes[0].cells;
    let (a, b) = (a.series_named("io.soma.v").unwrap(), b.series_named("io.soma.v").unwrap());
    assert_eq!(a.t, b.t);
    let mut worst: f64 = 0.0;
    for sample in 0..a.t.len() {
        for cell in 0..cells {
            let d = (a.values.get(sample, cell) - b.values.get(sample, cell)).abs();
            assert!(d.is_finite(), "cell {cell} at {} ms", a.t[sample]);
            worst = worst.max(d);
        }
    }
    worst
}

#[test]
fn tables_of_the_stress_test_are_the_studys() {
    let (heading, cells) = table("stress/cells.csv");
    assert_eq!(heading[..4], ["soma", "axon", "dend", "g_cal"].map(str::to_owned));
    assert_eq!((heading.len(), cells.len()), (14, 64));
    // What is known of the study's draws: four potentials, the bounds of the conductances, the first pulse.
    let somata: Vec<f64> = cells.iter().map(|c| c[0]).collect();
    assert_eq!(somata[..4], [-58.5098575409663, -60.41479290351355, -58.05693438569792, -55.430910430775924]);
    assert!(cells.iter().all(|c| (0.5..1.4).contains(&c[3]) && f64::from(c[3] as f32) == c[3]));
    let first: Vec<f64> = cells.iter().map(|c| c[4]).filter(|&i| i != 0.0).collect();
    assert_eq!(first.len(), 16);
    assert!((first.iter().sum::<f64>() - 166.3755).abs() < 1e-4);
    let (heading, edges) = table("stress/edges.csv");
    assert_eq!(heading, ["src", "tgt"]);
    assert_eq!(edges.len(), 640);
    assert_eq!(edges[..3], [[38.0, 59.0], [51.0, 4.0], [28.0, 33.0]]);
    assert_eq!(edges.iter().map(|e| e[0] * e[1]).sum::<f64>(), 703394.0);
}

#[test]
fn stressed_cells_spike_alike_in_both_precisions() {
    let folder = tempfile::tempdir().unwrap();
    let double = run(folder.path(), "stress.neuro", &["--threads", "1"]);
    let single = run(folder.path(), "stress.neuro", &["--threads", "1", "--precision", "f32"]);
    let spikes = |result: &RunResult| {
        let mut counts = [0; 64];
        result.spikes[0].i.iter().for_each(|&c| counts[c as usize] += 1);
        counts
    };
    assert_eq!(spikes(&double), spikes(&single));
    assert_eq!(spikes(&double).iter().sum::<i32>(), 1118);
    assert!(double.spikes[0].t.iter().all(|&t| t > 5000.0), "a spike before the first pulse");
    let worst = apart(&double, &single);
    println!("stress test: f32 is {worst:.3} mV from f64 at most");
    // A single spike that is a few steps late is some ten mV.
    assert!(worst < 20.0, "{worst}");
}

#[test]
fn ten_seconds_in_single_precision_stay_close() {
    let folder = tempfile::tempdir().unwrap();
    for model in ["inferior_olive.neuro", "unconnected.neuro"] {
        let arguments = ["--duration", "10s", "--threads", "1", "--precision"];
        let double = run(folder.path(), model, &[&arguments[..], &["f64"]].concat());
        let single = run(folder.path(), model, &[&arguments[..], &["f32"]].concat());
        let worst = apart(&double, &single);
        println!("{model}: f32 is {worst:.4} mV from f64 at most");
        assert!(worst < 0.05, "{model}: {worst}");
    }
}

/// What a Python script did, or `None` (and said) where there is no Python 3.9.
fn python(arguments: &[&str]) -> Option<(i32, String, String)> {
    let probe = ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"];
    let there = Command::new("python3").args(probe).stdin(Stdio::null()).output();
    if !there.is_ok_and(|done| done.status.success()) {
        crate::lacks(&format!("SKIPPED: there is no Python 3.9, so `python3 {}` is not tried", arguments.join(" ")));
        return None;
    }
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let mut command = Command::new("python3");
    command.arg("-B").args(arguments).env("XDG_CACHE_HOME", cache).stdin(Stdio::null());
    let done = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((done.status.code().unwrap_or(-1), text(&done.stdout), text(&done.stderr)))
}

#[test]
fn every_experiment_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (to, script) = (folder.path().display().to_string(), olive("run.py").display().to_string());
    let sweep = ["--sides", "4,5", "--threads", "1,2", "--duration", "1", "--repeat", "1"];
    let experiments: [(&str, &[&str], usize, &str); 4] = [
        ("performance", &sweep, 8, "| 125 |"),
        ("complexity", &sweep, 16, "| 125 |"),
        (
            "validation",
            &["--side", "4", "--duration", "20"],
            4,
            "below 0.05 mV: yes; the same bits with 1 and 2 threads: yes",
        ),
        ("stress", &["--duration", "5020"], 2, "- the same number of spikes in every cell in f32 and f64: yes"),
    ];
    for (name, arguments, rows, shown) in experiments {
        let all = [&[script.as_str(), name, "--neuroc", PROGRAM, "--to", to.as_str()], arguments].concat();
        let Some((code, out, err)) = python(&all) else { return };
        assert_eq!(code, 0, "{name}: {out}{err}");
        assert!(out.contains(shown), "{name}: {out}");
        assert_eq!(fs::read_to_string(folder.path().join(format!("{name}.md"))).unwrap().trim(), out.trim());
        let table = fs::read_to_string(folder.path().join(format!("{name}.csv"))).unwrap();
        assert_eq!(table.lines().count(), 1 + rows, "{table}");
    }
}

#[test]
fn wrong_arguments_of_the_experiments_are_refused() {
    let script = olive("run.py").display().to_string();
    let cases: [(&[&str], i32, &str); 5] = [
        (&["speed"], 2, "invalid choice: 'speed'"),
        (&["performance", "--sides", "3"], 2, "a side of 4 or more"),
        (&["performance", "--sides", "x"], 2, "argument --sides"),
        (&["validation", "--duration", "0"], 2, "a whole number above 0"),
        (&["stress", "--neuroc", "/no/such/neuroc"], 1, "error: cannot run /no/such/neuroc"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().display().to_string();
    for (arguments, expected, message) in cases {
        let more: &[&str] = if expected == 1 { &["--to", &to] } else { &[] };
        let Some((code, _, err)) = python(&[&[script.as_str()], arguments, more].concat()) else { return };
        assert_eq!(code, expected, "{arguments:?}: {err}");
        assert!(err.contains(message), "{arguments:?}: {err}");
    }
}

#[test]
fn scripts_are_python() {
    let mut scripts = vec![olive("run.py"), olive("study_network.py")];
    for entry in fs::read_dir(root().join("benches/peers")).unwrap() {
        scripts.push(entry.unwrap().path());
    }
    scripts.retain(|p| p.extension().is_some_and(|e| e == "py"));
    assert!(scripts.len() > 8, "{scripts:?}");
    let scripts: Vec<String> = scripts.iter().map(|p| p.display().to_string()).collect();
    let mut arguments =
        vec!["-c", "import ast, sys; [ast.parse(open(p, encoding='utf-8').read(), p) for p in sys.argv[1:]]"];
    arguments.extend(scripts.iter().map(String::as_str));
    let Some((code, _, err)) = python(&arguments) else { return };
    assert_eq!(code, 0, "{err}");
}

#[test]
fn the_study_s_networks_are_drawn_again() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().display().to_string();
    let Some((code, _, _)) = python(&["-c", "import numpy"]) else { return };
    if code != 0 {
        crate::lacks("SKIPPED: there is no NumPy, so the tables of the stress test are not drawn again");
        return;
    }
    let script = olive("study_network.py").display().to_string();
    let Some((code, _, err)) = python(&[&script, "stress", "--to", &to]) else { return };
    assert_eq!(code, 0, "{err}");
    for name in ["cells.csv", "edges.csv"] {
        let (old, new) = (fs::read(olive("stress").join(name)).unwrap(), fs::read(folder.path().join(name)).unwrap());
        assert!(old == new, "{name} is another");
    }
}

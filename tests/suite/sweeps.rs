//! Sweeps: `sweep` lines of a run and `neuroc run --sweep`.
//!
//! Most runs are interpreted and short; what is compiled has a cache of its own, so that kernels can be counted.

use crate::cli::{Done, folder, neuroc};
use neuroc::plot::{self, PlotKind, PlotOptions};
use neuroc::results::{Found, Reading, RunResult, Samples, SweepResult};
use std::fs;
use tempfile::TempDir;

/// Three cells that differ, in two axes.
const MODEL: &str = "use std.cells.lif.{Lif}
network main {
    population a: Lif[3]
    init a.v ~ uniform(-65 mV, -55 mV)
    param a.r_m ~ uniform(80 Mohm, 120 Mohm)
    input step: pulse(delay = 1 ms, duration = 50 ms, amplitude = 0.2 nA) -> a
}
run {
    duration = 40 ms
    dt = 0.1 ms
    seed = 3
    record a.v every 1 ms
    record spikes of a
    sweep tau_m = [10, 20] ms
    sweep step.amplitude = 0.1 .. 0.4 nA in 3 steps
}
";

const INTERP: &[&str] = &["run", "m.neuro", "--engine", "interp", "--quiet"];

fn with<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<&'a str> {
    [a, b].concat()
}

fn fine(here: &TempDir, arguments: &[&str]) -> Done {
    let done = neuroc(here, arguments);
    assert_eq!(done.code, 0, "{arguments:?}: {}", done.err);
    done
}

fn fails(here: &TempDir, arguments: &[&str], code: i32, said: &[&str]) {
    let done = neuroc(here, arguments);
    assert_eq!(done.code, code, "{arguments:?}: {}", done.err);
    for text in said {
        assert!(done.err.contains(text), "{arguments:?} does not say {text:?}: {}", done.err);
    }
}

fn found(here: &TempDir, name: &str) -> Found {
    Found::read(&here.path().join(name), &Reading::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn sweep(here: &TempDir, name: &str) -> SweepResult {
    match found(here, name) {
        Found::Sweep(sweep) => sweep,
        Found::Run(_) => panic!("{name} holds one run"),
    }
}

fn one(here: &TempDir, arguments: &[&str]) -> RunResult {
    fine(here, &with(arguments, &["-o", "one.npz"]));
    match found(here, "one.npz") {
        Found::Run(run) => run,
        Found::Sweep(_) => panic!("it holds a sweep"),
    }
}

/// The same to the last bit.
fn same(a: &RunResult, b: &RunResult) {
    let bits = |samples: &Samples| match samples {
        Samples::F64(x) => x.iter().map(|x| x.to_bits()).collect::<Vec<u64>>(),
        Samples::F32(x) => x.iter().map(|x| u64::from(x.to_bits())).collect(),
    };
    assert_eq!(a.series.len(), b.series.len());
    for (a, b) in a.series.iter().zip(&b.series) {
        assert_eq!((&a.name, &a.unit, &a.cells, &a.t), (&b.name, &b.unit, &b.cells, &b.t));
        assert_eq!(bits(&a.values), bits(&b.values), "{}", a.name);
    }
    assert_eq!((&a.spikes, &a.parameters, &a.populations), (&b.spikes, &b.parameters, &b.populations));
}

#[test]
fn a_sweep_is_its_runs() {
    let here = folder(&[("m.neuro", MODEL)]);
    let cache = here.path().join("cache").display().to_string();
    let native = ["run", "m.neuro", "--quiet", "--cache", &cache];
    for (run, name) in [(INTERP, "interp.npz"), (&native[..], "native.npz")] {
        fine(&here, &with(run, &["-o", name]));
        let all = sweep(&here, name);
        assert_eq!((all.shape.clone(), all.runs.len()), (vec![2, 3], 6));
        let values: Vec<&[f64]> = all.axes.iter().map(|axis| &axis.values[..]).collect();
        assert_eq!(values, [&[10.0, 20.0][..], &[0.1, 0.25, 0.4]]);
        assert_eq!((all.axes[0].parameter.as_str(), all.axes[1].unit.as_str()), ("a.tau_m", "nA"));
        assert_eq!(all.meta["complete"], true);
        for (k, (tau, amplitude)) in
            [("10", "0.1"), ("10", "0.25"), ("10", "0.4"), ("20", "0.1"), ("20", "0.25"), ("20", "0.4")]
                .into_iter()
                .enumerate()
        {
            let (tau, amplitude) = (format!("tau_m={tau}ms"), format!("step.amplitude={amplitude}nA"));
            let single = one(&here, &with(run, &["--sweep", "none", "--set", &tau, "--set", &amplitude]));
            same(&all.runs[k], &single);
            assert_eq!(all.runs[k].meta["steps"], single.meta["steps"]);
        }
        let spikes: Vec<usize> = all.runs.iter().map(|run| run.spikes[0].t.len()).collect();
        assert!(spikes[3] == 0 && spikes[2] > spikes[1] && spikes[2] > spikes[5], "{spikes:?}");
    }
    let bytes = |name: &str| fs::read(here.path().join(name)).unwrap();
    for threads in ["1", "3", "8"] {
        fine(&here, &with(&native, &["-o", "again.npz", "--threads", threads]));
        assert!(bytes("again.npz") == bytes("native.npz"), "{threads} threads");
    }
    assert_eq!(fs::read_dir(here.path().join("cache")).unwrap().count(), 1, "one kernel for all runs");
    fine(&here, &with(INTERP, &["-o", "folder/"]));
    assert_eq!(sweep(&here, "folder/"), sweep(&here, "interp.npz"));
    fine(&here, &with(INTERP, &["-o", "packed.npz", "--compress"]));
    assert_eq!(sweep(&here, "packed.npz"), sweep(&here, "interp.npz"));
    let error = RunResult::read_npz(&here.path().join("interp.npz")).unwrap_err().to_string();
    assert!(error.contains("a sweep"), "{error}");
}

#[test]
fn options_say_what_is_swept() {
    let here = folder(&[("m.neuro", MODEL)]);
    let swept = |arguments: &[&str]| {
        fine(&here, &[INTERP, arguments, &["-o", "s.npz", "--duration", "2ms"]].concat());
        sweep(&here, "s.npz")
    };
    // In place of the lines of the file.
    let seeds = swept(&["--sweep", "seed=1..4"]);
    assert_eq!((&seeds.shape[..], &seeds.axes[0].values[..]), (&[4][..], &[1.0, 2.0, 3.0, 4.0][..]));
    same(&seeds.runs[2], &one(&here, &with(INTERP, &["--sweep", "none", "--seed", "3", "--duration", "2ms"])));
    assert!(seeds.runs[0].series != seeds.runs[1].series && seeds.runs[3].meta["seed"] == 4);
    assert!(seeds.runs[0].parameters != seeds.runs[1].parameters, "drawn by the seed");

    let log = swept(&["--sweep", "tau_m=1..1000ms:4log", "--sweep", "step.amplitude=100,200 pA"]);
    assert_eq!((&log.shape[..], &log.axes[0].values[..]), (&[4, 2][..], &[1.0, 10.0, 100.0, 1000.0][..]));
    assert_eq!((log.axes[1].values.clone(), log.axes[1].unit.as_str()), (vec![100.0, 200.0], "pA"));

    let together = swept(&["--sweep", "tau_m=10,20ms,step.amplitude=0.1,0.2nA"]);
    assert_eq!((together.shape.len(), together.axes.len(), together.axes[1].axis), (1, 2, 0));
    let set = ["--sweep", "none", "--set", "tau_m=20ms", "--set", "step.amplitude=0.2nA", "--duration", "2ms"];
    same(&together.runs[1], &one(&here, &with(INTERP, &set)));

    // A Latin hypercube: a value in each tenth of both ranges, in an order of its own.
    let drawn = ["--sweep", "tau_m=10..20ms,step.amplitude=0..1nA:10samples"];
    let samples = swept(&drawn);
    let tenths = |axis: usize, low: f64, width: f64| {
        samples.axes[axis].values.iter().map(|x| ((x - low) / width * 10.0) as usize).collect::<Vec<_>>()
    };
    let (a, b) = (tenths(0, 10.0, 10.0), tenths(1, 0.0, 1.0));
    let sorted = |mut places: Vec<usize>| {
        places.sort();
        places
    };
    assert!(a != b && sorted(a.clone()) == (0..10).collect::<Vec<_>>() && sorted(b) == sorted(a));
    assert_eq!(swept(&drawn).axes, samples.axes, "the seed of the run says what is drawn");
    assert_ne!(swept(&with(&drawn, &["--seed", "4"])).axes, samples.axes);
    let random = swept(&["--sweep", "tau_m=10..20ms:10random"]);
    assert!(
        random.axes[0].values.iter().all(|x| (10.0..20.0).contains(x))
            && random.axes[0].values != samples.axes[0].values
    );

    // Initial values, and parameters that depend on others.
    let initial = swept(&["--sweep", "a.v=-70..-60mV:2"]);
    assert_eq!(initial.runs[1].series[0].values.get(0, 2), -60.0);
    let number = |run: &RunResult, name: &str| run.parameters.iter().find(|p| p.name == name).map(|p| p.values.clone());
    assert_ne!(number(&log.runs[0], "a.tau_m"), number(&log.runs[2], "a.tau_m"));
    assert_eq!(number(&log.runs[0], "a.t_ref"), number(&log.runs[2], "a.t_ref"));
}

#[test]
fn what_cannot_be_swept_is_said() {
    let here = folder(&[
        ("m.neuro", MODEL),
        ("two.neuro", &MODEL.replace("Lif[3]", "Lif[n]").replace("population", "param n = 2\n    population")),
    ]);
    let says = |arguments: &[&str], code: i32, said: &[&str]| {
        fails(&here, &[INTERP, arguments, &["-o", "x.npz"]].concat(), code, said)
    };
    says(&["--sweep", "tau_n=1..2ms:3"], 2, &["NU0107", "no parameter `tau_n`", "did you mean `tau_m`"]);
    says(&["--sweep", "tau_m=1..2mV:3"], 2, &["NU0201", "a.tau_m` is a time", "a voltage"]);
    says(&["--sweep", "tau_m=1..2:3"], 2, &["NU0201", "a pure number", "such as ms"]);
    says(&["--sweep", "tau_m=1..2ms"], 2, &["NU0314", "how many values", ":11"]);
    says(&["--sweep", "tau_m=1..2ms:1"], 2, &["NU0314", "2 steps at least"]);
    says(&["--sweep", "tau_m=1..1ms:3"], 2, &["NU0314", "no way"]);
    says(&["--sweep", "tau_m=1..2ms:1000000"], 2, &["NU0314", "100000 runs at most"]);
    says(&["--sweep", "tau_m=1,2", "--sweep", "tau_m"], 2, &["no sweep", "there is no `=`"]);
    says(
        &["--sweep", "tau_m=1,2ms", "--set", "a.tau_m=3ms"],
        2,
        &["NU0308", "`a.tau_m` is swept", "--set a.tau_m=3ms"],
    );
    says(&["--set", "a.tau_m=3ms"], 2, &["NU0308", "swept here", "m.neuro:14"]);
    says(&["--sweep", "seed=1..3", "--seed", "2"], 2, &["`seed` is swept", "`--seed`"]);
    says(&["--sweep", "seed=-1,2"], 2, &["the seed cannot be -1"]);
    says(&["--sweep", "tau_m=1,2ms", "--sweep", "a.tau_m=3,4ms"], 2, &["swept twice"]);
    says(&["--sweep", "dt=0.1,0.2ms"], 2, &["`dt` cannot be swept"]);
    says(&["--sweep", "tau_m=1..0ms:3"], 2, &["NU0321", "in the run with tau_m = 0 ms"]);
    says(&["--save", "s.npz"], 2, &["`--save` is for one run", "--sweep none"]);
    fails(&here, &with(INTERP, &["-o", "x.csv"]), 2, &["a sweep has no table"]);
    fails(
        &here,
        &["run", "two.neuro", "--engine", "interp", "-o", "x.npz", "--sweep", "n=2..4"],
        2,
        &["the run with n = 3 has other numbers of cells", "once for each size"],
    );
    assert!(!here.path().join("x.npz").exists());
    let many = "run { duration = 1 ms; dt = 0.1 ms; record a.v around spikes of a from 0 ms to 1 ms; sweep tau_m = [1, 2] ms }";
    let around = format!("{}{many}", &MODEL[..MODEL.find("run {").unwrap()]);
    let here = folder(&[("m.neuro", &around)]);
    fails(&here, &with(INTERP, &["-o", "x.npz"]), 1, &["around spikes", "in every run"]);
}

#[test]
fn a_run_that_fails_is_told_and_the_others_are_kept() {
    let text = "cell C { param k = 1 /ms; state x = 1; x' = k * x * x - x / 1 ms; state y = 0; y' = 1 /ms; spike when y > 1 { y = 0 } }
network main { population c: C }
run { duration = 5 ms; dt = 0.01 ms; method = euler; record c.x every 0.5 ms; record spikes of c; sweep k = [0.5, 1e300, 0.25] /ms }";
    let here = folder(&[("m.neuro", text)]);
    let run = with(INTERP, &["-o", "m.npz"]);
    fails(
        &here,
        &run,
        1,
        &[
            "NU0501",
            "in the run with k = 1e300 /ms".replace("1e300", &1e300.to_string()).as_str(),
            "1 of 3 runs failed",
        ],
    );
    let all = sweep(&here, "m.npz");
    let complete: Vec<bool> = all.runs.iter().map(|run| run.meta["complete"] == true).collect();
    assert_eq!(complete, [true, false, true]);
    let failed = &all.runs[1].series[0].values;
    assert!(failed.get(0, 0) == 1.0 && failed.get(10, 0).is_nan() && failed.shape() == (11, 1));
    for (k, value) in [(0, "k=0.5/ms"), (2, "k=0.25/ms")] {
        same(&all.runs[k], &one(&here, &with(INTERP, &["--sweep", "none", "--set", value])));
    }
    assert!(all.meta["complete"] == false && all.meta["steps"] == 500);
    // There is no rate of it: a curve has a gap.
    let options = PlotOptions { kind: PlotKind::Rates, ..PlotOptions::default() };
    let picture = here.path().join("gap.svg");
    plot::draw_found(&Found::Sweep(all), &picture, &options).unwrap();
    let dots = |text: &str| text.matches("<rect").count();
    let (gap, picture) = (dots(&fs::read_to_string(&picture).unwrap()), here.path().join("none.svg"));
    fine(&here, &with(INTERP, &["--sweep", "k=0.5,0.1,0.25 /ms", "-o", "fine.npz"]));
    plot::draw_found(&found(&here, "fine.npz"), &picture, &options).unwrap();
    assert_eq!(dots(&fs::read_to_string(&picture).unwrap()), gap + 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_sweep_that_is_stopped_keeps_the_finished_runs() {
    use std::process::{Command, Stdio};
    let here = folder(&[("m.neuro", &MODEL.replace("duration = 40 ms", "duration = 20 s"))]);
    // The first runs are short, the others would take minutes.
    let arguments = ["run", "m.neuro", "--engine", "interp", "-o", "m.npz", "--threads", "2", "--sweep", "seed=1..500"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_neuroc"))
        .current_dir(here.path())
        .args(arguments)
        .args(["--duration", "300ms"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    crate::cli::catches_interrupts(child.id());
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    assert!(Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap().success());
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(130), "{said}");
    assert!(said.contains("of 500 runs are done") && said.contains("wrote m.npz"), "{said}");
    let all = sweep(&here, "m.npz");
    let complete: Vec<bool> = all.runs.iter().map(|run| run.meta["complete"] == true).collect();
    let kept = complete.iter().filter(|&&c| c).count();
    assert!(complete.len() == 500 && kept < 500, "{kept}");
    for (run, complete) in all.runs.iter().zip(complete) {
        let values = &run.series[0].values;
        assert!(values.shape() == (301, 3) && values.get(300, 1).is_nan() != complete);
    }
}

#[test]
fn pictures_know_the_axes() {
    let here = folder(&[("m.neuro", MODEL)]);
    let svg = |arguments: &[&str]| {
        fine(&here, arguments);
        fs::read_to_string(here.path().join("m.svg")).unwrap()
    };
    let has = |picture: &str, texts: &[&str]| {
        texts.iter().for_each(|text| assert!(picture.contains(text), "{text} is not in the picture"));
    };
    // A map of two axes, with its colours.
    let map = svg(&with(INTERP, &["-o", "two.npz", "--plot", "m.svg"]));
    has(
        &map,
        &["a · mean rate of 3 cells (spikes/s) over tau_m and step.amplitude", "tau_m (ms)", "step.amplitude (nA)"],
    );
    let lines = svg(&["plot", "two.npz", "-o", "m.svg", "--against", "step.amplitude"]);
    has(&lines, &["step.amplitude (nA)", "tau_m (ms)", ">\n10\n<", ">\n20\n<"]);
    fails(&here, &["plot", "two.npz", "-o", "m.svg", "--kind", "traces"], 2, &["one axis", "two"]);
    fails(&here, &["plot", "two.npz", "-o", "m.svg", "--kind", "raster"], 2, &["rates or as traces"]);
    fails(&here, &["plot", "two.npz", "-o", "m.svg", "--against", "x"], 2, &["not swept", "tau_m"]);
    // A curve of one, and its traces.
    let curve = svg(&with(INTERP, &["--sweep", "step.amplitude=0..0.4nA:9", "-o", "one.npz", "--plot", "m.svg"]));
    has(&curve, &["a · mean rate of 3 cells over step.amplitude", "step.amplitude (nA)", "rate (spikes/s)"]);
    let traces = svg(&["plot", "one.npz", "-o", "m.svg", "--series", "a.v", "--cells", "1"]);
    has(&traces, &["a.v, cell 1 · 9 values of step.amplitude (nA)", "time (ms)", ">\n0.4\n<"]);
    fails(&here, &["plot", "one.npz", "-o", "m.svg", "--series", "b.v"], 2, &["nothing is recorded", "b.v"]);
    // A picture alone, and a page.
    fine(&here, &with(INTERP, &["--plot", "alone.png"]));
    assert!(fs::read(here.path().join("alone.png")).unwrap().starts_with(b"\x89PNG"));
    fails(&here, &["plot", "one.npz", "-o", "m.html"], 2, &["a sweep"]);
}

#[test]
fn sweep_lines_are_formatted_and_shown() {
    let text = "run {\n    duration = 1 ms\n    sweep a.x=[1,2 , 5]mV,b.y  = 1 ..2 nS\n    sweep c=-1e-3..5 /ms in 7 log   steps\n}\n";
    let here = folder(&[("m.neuro", text), ("n.neuro", MODEL)]);
    fine(&here, &["fmt", "m.neuro"]);
    let formatted = fs::read_to_string(here.path().join("m.neuro")).unwrap();
    assert_eq!(
        formatted,
        "run {\n    duration = 1 ms\n    sweep a.x = [1, 2, 5] mV, b.y = 1 .. 2 nS\n    sweep c = -1e-3 .. 5 /ms in 7 log steps\n}\n"
    );
    let hir = fine(&here, &["emit", "n.neuro", "--stage", "hir"]).out;
    assert!(hir.contains("    sweep step.amplitude = 0.1 .. 0.4 nA in 3 steps\n"), "{hir}");
    // What is none of the business of a run once is no hindrance to it.
    fine(&here, &["emit", "n.neuro", "--stage", "ir"]);
    fine(&here, &["check", "n.neuro"]);
}

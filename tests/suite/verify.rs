//! Tests of: verify. Real runs whose faults are made on purpose are judged, and `neuroc verify` as its users meet it.

use neuroc::codegen::plan::Precision;
use neuroc::compare::judge::{self, Convergence, Meeting, Runs};
use neuroc::driver::{self, CompileOptions, EngineChoice, Experiment};
use neuroc::hir::{Method, Sources};
use neuroc::results::RunResult;
use neuroc::simulate::{Ending, RunOptions, Unwatched};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

// ---------------------------------------------------------------------------------------------- judgements of real runs

const SQUID: &str = "
    use std.channels.hh.{Na, K, Leak}
    cell Squid {
        compartment soma { cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak }
        spike when soma.v crosses 0 mV
    }
    network main {
        population squid: Squid
        input step: pulse(delay = 1 ms, duration = 30 ms, amplitude = 10 uA/cm2) -> squid.soma
    }
    run {
        duration = 30 ms; dt = 0.04 ms; celsius = 6.3 degC
        record squid.soma.{v, K.n} every 0.2 ms
        record spikes of squid
    }
";

/// The squid axon with a method, the given step divided, and a setting.
fn squid(method: Method, parts: f64, set: &[&str]) -> RunResult {
    let checked = driver::check_text("squid.neuro", Path::new(""), SQUID, &Sources);
    let set = set.iter().map(ToString::to_string).collect();
    let options = CompileOptions { method: Some(method), dt: Some(0.04 / parts), set, ..CompileOptions::default() };
    let compiled = driver::compile(&checked, &options, &mut |_, _, _| {}).unwrap();
    let experiment = Experiment::new(compiled).unwrap();
    let plan = experiment.plan(Precision::F64).unwrap();
    let mut engine = experiment.engine(&plan, EngineChoice::Interp).unwrap().engine;
    let (result, outcome) = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched).unwrap();
    assert_eq!(outcome.ending, Ending::Done);
    result
}

/// `own` with `set` beside the other method without it.
fn judged(own: Method, set: &[&str], other: Method) -> Vec<judge::Judgement> {
    let [base, half, quarter, finest] = [1.0, 2.0, 4.0, 16.0].map(|parts| squid(own, parts, set));
    let [other_half, other_quarter, finest_other] = [2.0, 4.0, 16.0].map(|parts| squid(other, parts, &[]));
    judge::judge(&Runs {
        dt: 0.04,
        duration: 30.0,
        base: &base,
        halved: Some([&half, &quarter]),
        other: Some([&other_half, &other_quarter]),
        finest: Some(&finest),
        finest_other: Some(&finest_other),
        moved: None,
    })
}

#[test]
fn every_method_meets_every_other_one() {
    for (own, other) in [
        (Method::Euler, Method::Rk4),
        (Method::Cnexp, Method::Rk4),
        (Method::Rk4, Method::Heun),
        (Method::ExpEuler, Method::Euler),
    ] {
        for j in judged(own, &[], other) {
            assert!(!matches!(j.method, Some(Meeting::Apart { .. })), "{own:?} {other:?}: {j:?}");
            assert!(!matches!(j.step.unwrap().convergence, Convergence::Unsettled(_)), "{own:?} {other:?}: {j:?}");
        }
    }
}

#[test]
fn a_model_that_is_lowered_wrongly_is_caught() {
    // As if the formulas of the method's own program had a conductance, a reversal potential or a temperature that is off.
    for set in ["Na.gbar=125mS/cm2", "K.erev=-78mV", "Leak.gbar=0.33mS/cm2"] {
        let judged = judged(Method::ExpEuler, &[set], Method::Rk4);
        let v = judged.iter().find(|j| j.name == "squid.soma.v").unwrap();
        assert!(matches!(v.step.unwrap().convergence, Convergence::Order(_)), "{set}: {v:?}");
        assert!(matches!(v.method, Some(Meeting::Apart { confirmed: Some(_), .. })), "{set}: {v:?}");
    }
}

// ---------------------------------------------------------------------------------------------- the command line

struct Done {
    code: i32,
    out: String,
    err: String,
}

fn verify_with(text: &str, more: &[&str], change: impl Fn(&mut Command)) -> Done {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.neuro"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuroc"));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    command.current_dir(folder.path()).args(["verify", "m.neuro", "--cache"]).arg(cache).args(more);
    change(&mut command);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    Done { code, out: text(&output.stdout), err: text(&output.stderr) }
}

fn verify(text: &str, more: &[&str]) -> Done {
    verify_with(text, more, |_| {})
}

/// The line of the verdict that begins with a word.
fn verdict<'d>(done: &'d Done, what: &str) -> &'d str {
    let lines = done.out.lines().skip_while(|line| *line != "verdict");
    lines.into_iter().find(|line| line.starts_with(what)).unwrap_or_else(|| panic!("{what}: {}{}", done.out, done.err))
}

fn says(done: &Done, what: &str, words: &[&str]) {
    let line = verdict(done, what);
    for word in words {
        assert!(line.contains(word), "no `{word}` in: {line}\n{}", done.err);
    }
}

fn example(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(format!("{name}.neuro"));
    fs::read_to_string(file).unwrap()
}

#[test]
fn engines_steps_methods_and_moved_states_are_in_one_report() {
    let squid = example("squid");
    let done = verify(&squid, &["--duration", "20ms", "--within", "1e-9", "--precision", "f64"]);
    // Where XLA has no plugin, that is said.
    assert!(done.code == 0 && !done.err.contains("error"), "{}{}", done.out, done.err);
    for word in ["native f64", "at dt/2", "at dt/4", "order", "rk4, dt/4", "moved 1e-9", "grows by"] {
        assert!(done.out.contains(word), "{}", done.out);
    }
    says(&done, "native f64", &["agrees within ", "spikes equal"]);
    says(&done, "step", &["converges with order ", "its error at 0.01 ms is about ", " ms in spikes"]);
    says(&done, "method", &["exp_euler and rk4 go to the same solution"]);
    says(&done, "moved", &["not sensitive"]);

    let done = verify(&squid, &["--duration", "20ms", "--precision", "f64", "--json"]);
    let report: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(report["reference"], "interp f64, no passes");
    assert_eq!(report["engines"][0]["engine"], "native f64");
    assert_eq!(report["engines"][0]["variables"][0]["name"], "squid.soma.v");
    assert_eq!(report["engines"][0]["spikes"][0]["shift_ms"], 0.0);
    let runs: Vec<&str> = report["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(runs, ["step", "step", "method", "method", "moved"]);
    assert_eq!(report["runs"][1]["dt_ms"], 0.0025);
    assert_eq!(report["runs"][2]["method"], "rk4");
    assert_eq!(report["judgements"][0]["step"]["verdict"], "converges");
    assert_eq!(report["judgements"][0]["method"]["verdict"], "same");
    assert_eq!(report["judgements"][0]["moved"]["sensitive"], false);
    let verdict: Vec<&str> = report["verdict"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(verdict.iter().any(|line| line.starts_with("step: converges")), "{report}");
}

/// Lorenz, J Atmos Sci 20:130 (1963).
const CHAOTIC: &str = "
    cell Lorenz {
        state x = 1
        state y = 1
        state z = 20
        x' = 10 * (y - x) / 1 ms
        y' = (x * (28 - z) - y) / 1 ms
        z' = (x * y - 8 / 3 * z) / 1 ms
    }
    network main { population cells: Lorenz }
    run { duration = 30 ms; dt = 0.01 ms; method = rk4; record cells.{x, z} every 0.1 ms }
";

#[test]
fn chaos_is_told_from_faults() {
    let done = verify(CHAOTIC, &["--precision", "f64"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    says(&done, "moved", &["SENSITIVE"]);
    says(&done, "native f64", &["agrees"]);
    says(&done, "step", &["converges with order", "as large as what is computed"]);
    says(&done, "method", &["rk4 and heun go together until ", "a smaller --dt tells"]);
    // For a shorter time nothing is lost.
    let done = verify(CHAOTIC, &["--precision", "f64", "--duration", "5ms"]);
    says(&done, "moved", &["not sensitive"]);
    says(&done, "method", &["rk4 and heun go to the same solution"]);
}

#[test]
fn what_rests_before_it_is_chaotic_is_sensitive() {
    let done = verify(&example("izhikevich"), &["--precision", "f64", "--method", "rk4"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    says(&done, "moved", &["SENSITIVE"]);
    says(&done, "native f64", &["agrees", "what the model makes of rounding"]);
}

/// Leaky cells with an input and a method.
fn leaky(network: &str, run: &str) -> String {
    format!(
        "cell C {{
            compartment soma {{ cm = 1 uF/cm2; v_init = -60 mV; insert Leak }}
        }}
        channel Leak {{ current i = 0.1 mS/cm2 * (v + 65 mV) }}
        junction Gap {{ current i = 0.01 mS/cm2 * dv * exp(-(dv / 10 mV)^2) }}
        network main {{
            population c: C[4]
            init c.soma.v = -60 mV + 3 mV * index
            {network}
        }}
        run {{ duration = 20 ms; dt = 0.1 ms; record c.soma.v; {run} }}"
    )
}

#[test]
fn noise_is_compared_where_all_steps_see_the_same() {
    let noise = |every: &str| {
        leaky(&format!("input hum: noise(mean = 1 uA/cm2, sd = 2 uA/cm2, every = {every}) -> c.soma"), "seed = 3")
    };
    let done = verify(&noise("0.5 ms"), &["--precision", "f64"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    says(&done, "method", &["exp_euler and rk4 go to the same solution"]);
    // As often as there are steps: what smaller steps see is the same.
    let done = verify(&noise("0.1 ms"), &["--precision", "f64"]);
    says(&done, "method", &["exp_euler and rk4 go to the same solution"]);
    // In every step: smaller ones see other numbers.
    let white = "input hum: white_noise(mean = 1 uA/cm2, sd = 2 uA/cm2, per = 1 ms) -> c.soma";
    let done = verify(&leaky(white, "seed = 3"), &["--precision", "f64"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    for what in ["step", "method"] {
        says(&done, what, &["not tried: noise is drawn anew in every step"]);
    }
    says(&done, "moved", &["not sensitive"]);
    assert!(!done.out.contains("dt/2"), "{}", done.out);
}

#[test]
fn junctions_are_compared_with_another_method() {
    let junctions = leaky("connect c.soma -- c.soma via Gap { rule = all_to_all() }", "");
    for (own, other) in [("exp_euler", "rk4"), ("euler", "rk4"), ("cnexp", "rk4")] {
        let done = verify(&junctions, &["--precision", "f64", "--method", own]);
        assert_eq!(done.code, 0, "{}{}", done.out, done.err);
        says(&done, "method", &[&format!("{own} and {other} go to the same solution")]);
        says(&done, "step", &["converges with order"]);
    }
}

#[test]
fn spikes_that_shift_with_the_step_are_no_fault() {
    let done =
        verify(&example("squid"), &["--precision", "f64", "--dt", "0.05ms", "--duration", "50ms", "--method", "euler"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    says(&done, "step", &["converges", " ms in spikes"]);
    let lif = "
        use std.cells.lif.{Lif}
        network main {
            population cells: Lif[5]
            input step: pulse(delay = 0 ms, duration = 1 s, amplitude = 150 pA + index * 37 pA) -> cells
        }
        run { duration = 200 ms; dt = 0.1 ms; record spikes of cells; record cells.v every 1 ms }";
    let done = verify(lif, &["--precision", "f64"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(!done.out.contains("DOES NOT"), "{}", done.out);
    says(&done, "moved", &["not sensitive"]);
}

/// A persistent sodium current whose rates are written by hand, pushed slowly through the voltage where they are 0 / 0.
const RAMP: &str = "
    channel NaP {
        param gbar = 0.1 mS/cm2
        param erev = 50 mV
        gate m instantaneous {
            alpha = 0.1 /ms/mV * (v + 40 mV) / (1 - exp(-(v + 40 mV) / 10 mV))
            beta = 4 /ms * exp(-(v + 65 mV) / 18 mV)
        }
    }
    channel Leak { param gbar = 0.3 mS/cm2; param erev = -65 mV }
    cell C { compartment soma { cm = 1 uF/cm2; v_init = -65 mV; insert NaP, Leak } }
    network main {
        population p: C
        input ramp_: ramp(delay = 0 ms, duration = 1000 ms, start = 0 uA/cm2, finish = 5 uA/cm2) -> p.soma
    }
    run { duration = 1000 ms; dt = 0.05 ms; record p.soma.v every 20 ms }
";

/// Where methods go to different solutions, `verify` says so; where they do not, it does not.
#[test]
fn methods_that_go_elsewhere_are_found() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.neuro"), RAMP).unwrap();
    for method in ["exp_euler", "cnexp", "euler"] {
        let end = |method: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_neuroc"));
            command.current_dir(folder.path()).args(["run", "m.neuro", "--quiet", "--engine", "interp", "-o", "m.npz"]);
            assert!(command.args(["--method", method]).status().unwrap().success());
            let result = RunResult::read_npz(&folder.path().join("m.npz")).unwrap();
            result.series[0].values.get(result.series[0].t.len() - 1, 0)
        };
        let elsewhere = (end(method) - end("rk4")).abs() > 1.0;
        let done = verify(RAMP, &["--precision", "f64", "--method", method]);
        assert_eq!(done.code, i32::from(elsewhere), "{}{}", done.out, done.err);
        if elsewhere {
            assert!(done.err.contains("does not converge to the solution"), "{}", done.err);
            says(&done, "method", &["DOES NOT CONVERGE to what rk4 gives", "the method or a formula is at fault"]);
            says(&done, "step", &["but not to what `method` says"]);
        } else {
            says(&done, "method", &["go to the same solution"]);
        }
    }
}

#[test]
fn a_run_that_becomes_nan_is_a_finding() {
    // No number exists at t = 0.25 ms, which a half of the step meets and the step does not.
    let hole = "
        cell C { state x = 1; x' = sqrt(abs(t - 0.25 ms) / 1 ms - 0.001) / 1 ms - x / 1 ms }
        network main { population c: C }
        run { duration = 1 ms; dt = 0.1 ms; method = euler; record c.x }";
    let done = verify(hole, &["--precision", "f64"]);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    says(&done, "native f64", &["agrees"]);
    says(&done, "step", &["fails: `c.x` of cell 0 became NaN"]);
    says(&done, "method", &["not tried"]);
    says(&done, "moved", &["not sensitive"]);
    assert!(done.out.contains("not finite"), "{}", done.out);
    assert!(done.err.contains("NU0501"), "{}", done.err);
}

#[cfg(unix)]
#[test]
fn without_rustc_the_interpreter_does_the_other_runs() {
    let done = verify_with(&leaky("", ""), &["--precision", "f64"], |command| {
        command.env("PATH", "");
    });
    let compared = !done.err.contains("no engine is at hand to be compared");
    assert_eq!(done.code, i32::from(!compared), "{}{}", done.out, done.err);
    assert!(done.err.contains("so the interpreter does the other runs, too"), "{}", done.err);
    assert!(done.out.contains("from exp_euler at 0.1 ms (interp f64)"), "{}", done.out);
    says(&done, "method", &["exp_euler and rk4 go to the same solution"]);
}

#[cfg(target_os = "linux")]
#[test]
fn long_runs_are_announced_and_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.neuro"), leaky("", "")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuroc"));
    command.current_dir(folder.path()).args(["verify", "m.neuro", "--duration", "1000s", "--dt", "0.01ms"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // What is said first is said before the run.
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut estimate = String::new();
    said.read_line(&mut estimate).unwrap();
    assert!(estimate.contains(" for the interpreter; --duration "), "{estimate}");
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert_eq!(rest, "stopped; nothing was compared\n");
}

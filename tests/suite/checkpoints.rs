//! Tests of: checkpoints. A run that is saved and goes on is the same, bit for bit, as one that is not interrupted.

use neuroc::results::{Checkpoint, RunResult, Samples};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Everything that a step may depend on: states and hidden ones, refractory times, drawn parameters, noise, time, gap junctions.
const MODEL: &str = "junction Gap { param g = 0.01 mS/cm2; current i = g * dv }
    channel Leak { param g = 0.1 mS/cm2; param e = -65 mV; current i = g * (v - e) }
    cell Fires {
        param t_ref = 1 ms
        state v: mV = -70 mV
        state x: mV = 0 mV
        input drive: mV/ms
        v' = (-60 mV - v) / 5 ms + drive
        x' = -x / 20 ms
        spike when v crosses -55 mV { v = -70 mV; x += 1 mV; refractory t_ref }
    }
    cell Axon { compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Leak } spike when soma.v crosses -60 mV }
    network main {
        param n = 7
        population f: Fires[n]
        population a: Axon[9]
        param f.t_ref ~ uniform(0.5 ms, 2 ms)
        param a.soma.Leak.g ~ uniform(0.05 mS/cm2, 0.2 mS/cm2)
        init a.soma.v ~ normal(-64 mV, 4 mV)
        input up: 2 mV/ms + noise(mean = 0 mV/ms, sd = 3 mV/ms, every = 0.25 ms) -> f.drive
        input wave: sine(delay = 1 ms, duration = 20 ms, amplitude = 10 uA/cm2, period = 5 ms, phase = index) -> a.soma
        connect a.soma -- a.soma via Gap { rule = probability(0.4) }
    }
    run { duration = 20 ms; dt = 0.05 ms; seed = 3; record f.{v, x}; record a.soma.v every 0.5 ms; record spikes of f; record spikes of a }";

fn neuroc(folder: &Path, arguments: &[&str]) -> Output {
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuroc"));
    command
        .current_dir(folder)
        .args(["run", "m.neuro", "--quiet", "--cache"])
        .arg(cache)
        .args(arguments)
        .output()
        .unwrap()
}

fn fine(folder: &Path, arguments: &[&str], more: &[&str]) {
    let output = neuroc(folder, &[arguments, more].concat());
    assert!(output.status.success(), "{arguments:?} {more:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn result(folder: &Path, name: &str) -> RunResult {
    RunResult::read_npz(&folder.join(name)).unwrap()
}

/// Every record as rows of bits with their times, from a time on.
fn rows(result: &RunResult) -> Vec<Vec<(u64, Vec<u64>)>> {
    let row = |values: &Samples, at: usize| (0..values.shape().1).map(|c| values.get(at, c).to_bits()).collect();
    let of =
        |s: &neuroc::results::Series| s.t.iter().enumerate().map(|(at, t)| (t.to_bits(), row(&s.values, at))).collect();
    result.series.iter().map(of).collect()
}

fn spikes(result: &RunResult) -> Vec<Vec<(u64, u64)>> {
    let of = |s: &neuroc::results::SpikeTrain| s.t.iter().map(|t| t.to_bits()).zip(s.i.iter().copied()).collect();
    result.spikes.iter().map(of).collect()
}

/// Is `whole` what the two parts are, one after the other?
fn same(whole: &RunResult, first: &RunResult, second: &RunResult, what: &str) {
    for ((whole, first), second) in rows(whole).into_iter().zip(rows(first)).zip(rows(second)) {
        let mut joined = first;
        for row in second {
            match joined.last() {
                // The second part begins with the sample that the first ends with.
                Some(last) if last.0 == row.0 => assert_eq!(*last, row, "{what}: where they meet"),
                _ => joined.push(row),
            }
        }
        assert_eq!(whole, joined, "{what}");
    }
    for ((whole, first), second) in spikes(whole).into_iter().zip(spikes(first)).zip(spikes(second)) {
        assert_eq!(whole, [first, second].concat(), "{what}: spikes");
    }
}

fn folder() -> tempfile::TempDir {
    holding(MODEL)
}

fn holding(model: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.neuro"), model).unwrap();
    std::fs::write(folder.path().join("s.csv"), "t_s,cell\n0.0031,0\n0.0052,2\n0.0113,1\n").unwrap();
    folder
}

/// Saves at some steps with `first`, goes on with `second`, and compares with a whole run with `first`.
fn goes_on(first: &[&str], second: &[&str], steps: &[u32]) {
    of_model_goes_on(MODEL, first, second, steps);
}

fn of_model_goes_on(model: &str, first: &[&str], second: &[&str], steps: &[u32]) {
    let folder = holding(model);
    let at = folder.path();
    fine(at, first, &["-o", "whole.npz"]);
    let whole = result(at, "whole.npz");
    assert!(whole.spikes.iter().all(|train| train.t.len() > 3), "{:?}", spikes(&whole));
    for step in steps {
        let until = format!("{}ms", f64::from(*step) * 0.05);
        fine(at, first, &["-o", "first.npz", "--duration", &until, "--save", "state.npz"]);
        fine(at, second, &["-o", "second.npz", "--load", "state.npz"]);
        let what = format!("{first:?}, then {second:?} from step {step}");
        same(&whole, &result(at, "first.npz"), &result(at, "second.npz"), &what);
    }
}

const INTERP: &[&str] = &["--engine", "interp"];
const ONE: &[&str] = &["--threads", "1"];
const TWO: &[&str] = &["--threads", "2", "--fuse", "7"];

#[test]
fn an_interpreted_run_goes_on() {
    goes_on(INTERP, INTERP, &[1, 2, 40, 139, 200, 399]);
}

#[test]
fn a_compiled_run_goes_on_with_any_number_of_threads() {
    goes_on(ONE, TWO, &[1, 40, 139, 399]);
    goes_on(TWO, ONE, &[3, 200]);
    let single = ["--threads", "1", "--precision", "f32"];
    goes_on(&single, &single, &[17, 240]);
}

#[test]
fn a_run_goes_on_with_another_engine() {
    goes_on(INTERP, TWO, &[7, 250]);
    goes_on(ONE, INTERP, &[333]);
}

/// Events on their way: along edges with delays of their own, of generators and from files, to synapses that add up, learn or are modulated.
const EVENTS: &str = r#"use std.cells.lif.Lif
    use std.cells.generators.Poisson
    use std.synapses.{ExpCurr, Delta}
    use std.plasticity.{Stdp, RewardStdp}
    network main {
        population e: Lif[11]
        population i: Lif[5]
        population told: Poisson[3]
        population reward: Poisson[1]
        param told.rate = 300 Hz
        param reward.rate = 200 Hz
        init e.v ~ uniform(-70 mV, -51 mV)
        init i.v ~ uniform(-70 mV, -51 mV)
        connect e -> {e, i} via Delta { rule = probability(0.5); weight ~ uniform(0.1 mV, 2 mV); delay ~ uniform(0.1 ms, 6 ms) }
        connect i -> e via Delta as inh { rule = probability(0.5); weight = -1 mV; delay = 1.5 ms }
        connect told -> e via Delta as fed { rule = probability(0.9); weight ~ uniform(1 mV, 6 mV); delay ~ uniform(0.1 ms, 9 ms) }
        connect told -> i via Stdp(w_max = 2 nS, a_plus = 0.1) { rule = probability(0.9); weight ~ uniform(0.2 nS, 2 nS); delay ~ uniform(0.1 ms, 3 ms) }
        connect told -> i via RewardStdp as Rewarded(w_max = 2 nS) { rule = probability(0.9); weight ~ uniform(0.2 nS, 2 nS); delay ~ uniform(0.1 ms, 3 ms) }
        connect reward -> i modulating Rewarded { rule = all_to_all; weight = 0.2; delay = 3 ms }
        drive e via Delta as beat from poisson(rate = 900 Hz) { weight = 3 mV; delay = 2 ms }
        drive e[0..3] via Delta as file from spikes("s.csv") { weight = 9 mV; delay = 4 ms }
        drive i via Delta as soon from times(0.05 ms, 0.1 ms, 7 ms) { weight = 3 mV; delay = 2.5 ms }
    }
    run { duration = 20 ms; dt = 0.05 ms; seed = 3; record e.v; record spikes of e; record spikes of i }"#;

#[test]
fn events_on_their_way_arrive_after_a_run_has_gone_on() {
    for (first, second) in [(INTERP, INTERP), (ONE, ONE), (ONE, TWO), (TWO, INTERP), (INTERP, ONE)] {
        of_model_goes_on(EVENTS, first, second, &[1, 40, 139, 302]);
    }
}

/// Spikes on their way back to synapses are in a checkpoint, too.
#[test]
fn spikes_in_dendrites_arrive_after_a_run_has_gone_on() {
    let told = "weight ~ uniform(0.2 nS, 2 nS); delay ~ uniform(0.1 ms, 3 ms)";
    let at = EVENTS.find(told).expect("the synapses that remember") + told.len();
    let text = format!("{}; dendritic_fraction = 0.9{}", &EVENTS[..at], &EVENTS[at..]);
    for (first, second) in [(INTERP, INTERP), (ONE, TWO), (TWO, INTERP)] {
        of_model_goes_on(&text, first, second, &[1, 40, 139, 302]);
    }
}

/// What is between two steps is in a checkpoint: spikes that arrive at once, and who has just been reset.
#[test]
fn events_between_two_steps_arrive_after_a_run_has_gone_on() {
    let others = [
        ("delay ~ uniform(0.1 ms, 6 ms)", "delay = 0 ms"),
        ("delay = 1.5 ms", "delay = 0 ms"),
        ("delay ~ uniform(0.1 ms, 3 ms)", "delay = 0 ms"),
        ("seed = 3", "seed = 3; arrivals = after_threshold"),
        (
            "use std.cells.lif.Lif",
            "cell Lif { state v: mV = -65 mV; v' = (-49 mV - v - 100 Mohm * i_syn) / 20 ms; spike when v > -50 mV { v = -60 mV } }",
        ),
    ];
    let text = others.iter().fold(EVENTS.to_string(), |text, (old, new)| {
        assert!(text.contains(old), "no `{old}`");
        text.replace(old, new)
    });
    for (first, second) in [(INTERP, INTERP), (ONE, TWO), (TWO, INTERP)] {
        of_model_goes_on(&text, first, second, &[1, 40, 139, 302]);
    }
}

#[cfg(feature = "xla")]
#[test]
fn a_run_goes_on_on_xla() {
    use neuroc::plugins::{Kind, Search};
    if let Err(error) = Search::everywhere().plugin(Kind::Cpu) {
        crate::lacks(&format!("XLA's plugin is missing, nothing is saved and loaded with it: {error}"));
        return;
    }
    let xla = ["--engine", "xla"];
    goes_on(&xla, &xla, &[1, 139, 200]);
    let remembers = |line: &&str| line.contains("Stdp") || line.contains("Rewarded");
    let folder = holding(&EVENTS.lines().filter(|line| !remembers(line)).collect::<Vec<_>>().join("\n"));
    let output = neuroc(folder.path(), &["--engine", "xla", "-o", "a.npz", "--save", "s.npz"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("spikes on their way are not kept") && said.contains("`--engine native` keeps them"),
        "{said}"
    );
}

/// A run that goes on may have other parameters, and a seed of its own; the draws are those of the seed that was saved, if none is given.
#[test]
fn a_run_branches() {
    let folder = folder();
    let at = folder.path();
    fine(at, INTERP, &["-o", "a.npz", "--duration", "5ms", "--seed", "11", "--save", "s.npz"]);
    assert_eq!(Checkpoint::read(&at.join("s.npz")).unwrap().seed, 11);
    let mut branches = Vec::new();
    for more in [&[][..], &["--seed", "11"], &["--seed", "12"], &["--set", "Leak.e=-50mV"]] {
        fine(at, INTERP, &[&["-o", "b.npz", "--load", "s.npz"], more].concat());
        branches.push(rows(&result(at, "b.npz")));
    }
    assert_eq!(branches[0], branches[1]);
    assert!(branches[0] != branches[2] && branches[0] != branches[3]);
}

/// Events take whole steps: they cannot be told in steps of another length.
#[test]
fn events_on_their_way_keep_the_time_step() {
    let folder = holding(EVENTS);
    let at = folder.path();
    fine(at, INTERP, &["-o", "a.npz", "--duration", "5ms", "--save", "s.npz"]);
    let output = neuroc(at, &[INTERP, &["-o", "b.npz", "--load", "s.npz", "--dt", "0.025ms"]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("go on with the `dt` it was saved with"), "{said}");
    let saved = Checkpoint::read(&at.join("s.npz")).unwrap();
    let told = saved.events.iter().find(|sent| sent.event == "told'spikes").unwrap();
    // No delay is longer than 9 ms, which are 180 steps.
    assert!(
        told.ago.len() > 3
            && told.ago.iter().all(|ago| (1..=180).contains(ago))
            && told.cell.iter().all(|&cell| cell < 3)
    );
    assert!(!at.join("b.npz").exists());
}

#[test]
fn what_cannot_go_on_is_told() {
    let folder = folder();
    let at = folder.path();
    fine(at, INTERP, &["-o", "a.npz", "--duration", "4.95ms", "--save", "s.npz"]);
    let said = |file: &str, more: &[&str]| {
        let output = neuroc(at, &[INTERP, &["-o", "b.npz", "--load", file], more].concat());
        assert_eq!(output.status.code(), Some(2), "{file} {more:?}");
        assert!(!at.join("b.npz").exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let expected = [
        (said("s.npz", &["--set", "n=8"]), "7 values in it, but 8 cells in this run"),
        (said("s.npz", &["--duration", "4.95ms"]), "saved at 4.95 ms, but the run ends at 4.95 ms"),
        (said("s.npz", &["--dt", "0.1ms"]), "saved at 4.95 ms, which is no multiple of dt, 0.1 ms"),
        (said("a.npz", &[]), "holds results (layout 2) and no checkpoint"),
        (said("m.neuro", &[]), "not an .npz file"),
        (said("gone.npz", &[]), "no such file"),
    ];
    for (said, part) in expected {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
    std::fs::write(
        at.join("m.neuro"),
        MODEL
            .replace("state x", "state y")
            .replace("x'", "y'")
            .replace("-x", "-y")
            .replace("x +=", "y +=")
            .replace("v, x", "v, y"),
    )
    .unwrap();
    let other = said("s.npz", &[]);
    assert!(other.contains("it is of another model: this one has no state `f.x`"), "{other}");
}

/// A spike at 10 ms that has arrived after 1 ms, and is kept for the sake of another connection with a longer delay.
const DELAYS: &str = "use std.cells.generators.{Regular}
    cell T { state v: mV = 0 mV; v' = -v / 1000 ms }
    synapse Kick { on event(weight: mV) { v += weight } }
    network main {
        param d = 1 ms
        population s: Regular
        population a: T
        population b: T
        param s.first = 10 ms
        param s.interval = 100 ms
        connect s -> a via Kick { rule = all_to_all; weight = 1 mV; delay = d }
        connect s -> b via Kick { rule = all_to_all; weight = 1 mV; delay = 20 ms }
    }
    run { duration = 40 ms; dt = 0.1 ms; record {a.v, b.v} every 1 ms }";

/// Goes on from `s.npz`, which is refused in these words.
fn refused(folder: &Path, more: &[&str], parts: &[&str]) {
    let output = neuroc(folder, &[INTERP, &["-o", "b.npz", "--load", "s.npz"], more].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{more:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{more:?}: no `{part}` in {said}");
    }
    assert!(!folder.join("b.npz").exists());
}

/// Lets a checkpoint be one of a version that kept no digests.
fn forgets_ways(folder: &Path) {
    let file = folder.join("s.npz");
    let saved = Checkpoint::read(&file).unwrap();
    assert!(saved.ways.as_ref().is_some_and(|ways| !ways.is_empty()), "{:?}", saved.ways);
    Checkpoint { ways: None, ..saved }.write(&file).unwrap();
}

#[test]
fn spikes_on_their_way_keep_their_delays() {
    let folder = holding(DELAYS);
    let at = folder.path();
    fine(at, INTERP, &["-o", "whole.npz"]);
    fine(at, INTERP, &["-o", "a.npz", "--duration", "15ms", "--save", "s.npz"]);
    for longer in ["d=10ms", "d=0.2ms"] {
        refused(
            at,
            &["--set", longer],
            &["`s.a.Kick` has other delays", "arrive twice", "save when none are on their way"],
        );
    }
    fine(at, INTERP, &["-o", "b.npz", "--load", "s.npz"]);
    same(&result(at, "whole.npz"), &result(at, "a.npz"), &result(at, "b.npz"), "the same delays");
    // Nothing is on its way any more.
    fine(at, INTERP, &["-o", "a.npz", "--duration", "35ms", "--save", "s.npz"]);
    fine(at, INTERP, &["-o", "b.npz", "--load", "s.npz", "--set", "d=10ms"]);
    std::fs::remove_file(at.join("b.npz")).unwrap();
    // A file that knows nothing of ways is taken as it is.
    fine(at, INTERP, &["-o", "a.npz", "--duration", "15ms", "--save", "s.npz"]);
    forgets_ways(at);
    fine(at, INTERP, &["-o", "b.npz", "--load", "s.npz", "--set", "d=10ms"]);
}

#[test]
fn what_synapses_have_learnt_stays_theirs() {
    let model = |rule: &str| {
        format!(
            "use std.cells.generators.Poisson
            use std.cells.lif.Lif
            use std.plasticity.Stdp
            network main {{
                population s: Poisson[6]
                population c: Lif[4]
                param s.rate = 200 Hz
                connect s -> c via Stdp(w_max = 2 nS) {{ rule = {rule}; weight = 1 nS; delay = 0.1 ms }}
            }}
            run {{ duration = 20 ms; dt = 0.1 ms; seed = 3; record c.v }}"
        )
    };
    for rule in ["fixed_in_degree(n = 3)", "probability(p = 0.3)"] {
        let folder = holding(&model(rule));
        let at = folder.path();
        fine(at, INTERP, &["-o", "a.npz", "--duration", "10ms", "--save", "s.npz"]);
        let parts = ["`s.c.Stdp` has other edges", "what each of them remembers", "go on with the seed, 3, the rule"];
        refused(at, &["--seed", "4"], &parts);
        fine(at, INTERP, &["-o", "b.npz", "--load", "s.npz"]);
    }
    // Other edges without a memory and with nothing on its way are a branch.
    let folder = holding(DELAYS);
    let at = folder.path();
    fine(at, INTERP, &["-o", "a.npz", "--duration", "35ms", "--save", "s.npz"]);
    let other = DELAYS.replacen("rule = all_to_all", "rule = probability(p = 0)", 1);
    std::fs::write(at.join("m.neuro"), &other).unwrap();
    fine(at, INTERP, &["-o", "b.npz", "--load", "s.npz"]);
    std::fs::remove_file(at.join("b.npz")).unwrap();
    std::fs::write(at.join("m.neuro"), DELAYS).unwrap();
    fine(at, INTERP, &["-o", "a.npz", "--duration", "15ms", "--save", "s.npz"]);
    std::fs::write(at.join("m.neuro"), other).unwrap();
    refused(at, &[], &["`s.a.Kick` has other edges", "spikes are on their way along them"]);
}

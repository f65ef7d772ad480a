//! Values of single connections, set from outside.

use crate::cli::{folder, neuroc};
use neuroc::results::RunResult;

/// Lines of connections through synapses that remember.
fn model(lines: &str) -> String {
    format!(
        "use std.cells.lif.LifCond
        use std.cells.generators.Regular
        use std.plasticity.TsodyksMarkram
        network main {{
            population g: Regular
            population e: LifCond[2]
            {lines}
        }}
        run {{ duration = 40 ms; dt = 0.1 ms; record e.v every 10 ms }}"
    )
}

const DRAWN: &str = "connect g -> e via TsodyksMarkram { rule = all_to_all; delay = 1 ms
    weight ~ uniform(1 nS, 2 nS); tau_rec ~ uniform(100 ms, 200 ms); U ~ uniform(0.2, 0.6) }";

/// What is demanded of a value in the file is demanded of one that is set, and told as that.
#[test]
fn values_of_connections_are_looked_at() {
    let here = folder(&[("m.neuro", &model(DRAWN))]);
    for (set, said) in [
        ("g.e.TsodyksMarkram.tau_rec=-50ms", "`tau_rec` of `g.e.TsodyksMarkram` is -50 ms"),
        ("g.e.TsodyksMarkram.tau_rec=0ms", "`tau_rec` of `g.e.TsodyksMarkram` is 0 ms"),
        ("g.e.TsodyksMarkram.weight=-5nS", "`weight` of `g.e.TsodyksMarkram` is -5 nS"),
    ] {
        for engine in ["interp", "native"] {
            let done = neuroc(&here, &["run", "m.neuro", "--engine", engine, "--set", set, "-o", "o.npz"]);
            let told = done.err.contains(said) && done.err.contains("it is set from outside");
            assert!(done.code == 2 && told, "{set}: {}", done.err);
        }
        let (name, x) = set.split_once('=').unwrap();
        let sweep = format!("{name}={},{x}", x.replace(['-'], "").replace("0ms", "10ms"));
        let done = neuroc(&here, &["run", "m.neuro", "--engine", "interp", "--sweep", &sweep, "-o", "s.npz"]);
        assert!(done.code == 2 && done.err.contains(said), "{sweep}: {}", done.err);
        assert!(!here.path().join("s.npz").exists());
    }
    let done = neuroc(&here, &["run", "m.neuro", "--set", "g.e.TsodyksMarkram.tau_rec=50ms", "-o", "o.npz"]);
    assert_eq!(done.code, 0, "{}", done.err);
}

/// A name never stands for what no connection takes: where each line says a parameter for its own, it is those that are set.
#[test]
fn what_no_connection_takes_is_not_set() {
    let last = |lines: &str, set: &[&str]| {
        let here = folder(&[("m.neuro", &model(lines))]);
        let run = ["run", "m.neuro", "--engine", "interp", "-o", "o.npz"];
        let done = neuroc(&here, &[&run, set].concat());
        assert_eq!(done.code, 0, "{lines} {set:?}: {}", done.err);
        let result = RunResult::read_npz(&here.path().join("o.npz")).unwrap();
        let v = &result.series[0];
        (0..2).map(|cell| v.values.get(v.t.len() - 1, cell)).collect::<Vec<f64>>()
    };
    let one = |u: &str| format!("param p0 = 0.2\n {}", DRAWN.replace("U ~ uniform(0.2, 0.6)", u));
    assert_eq!(last(DRAWN, &["--set", "U=0.9"]), last(&one("U = 0.9"), &[]));
    assert_eq!(last(&one("U = p0"), &["--set", "p0=0.9"]), last(&one("U = 0.9"), &[]));
    assert_ne!(last(DRAWN, &[]), last(DRAWN, &["--set", "U=0.9"]));
    // A line that leaves it to the receptor takes that.
    let two = format!("{DRAWN}\n {}", DRAWN.replace("; U ~ uniform(0.2, 0.6)", ""));
    assert_ne!(last(&two, &[]), last(&two, &["--set", "e.TsodyksMarkram.U=0.9"]));

    let here = folder(&[("m.neuro", &model(&one("U = p0")))]);
    for (name, said) in [
        ("U", "every line of connections says `U` for its own"),
        ("e.TsodyksMarkram.U", "every line of connections says `U` for its own"),
        ("g.e.TsodyksMarkram.U", "`U` is what the line of these connections says"),
        ("g.e.TsodyksMarkram.delay", "`delay` is what the line of these connections says"),
    ] {
        for option in ["--set", "--sweep"] {
            let done = neuroc(&here, &["run", "m.neuro", option, &format!("{name}=0.9"), "-o", "o.npz"]);
            let told = done.err.contains(said) && done.err.contains("give the network a parameter");
            assert!(done.code == 2 && told && !done.err.contains("did you mean"), "{option} {name}: {}", done.err);
        }
    }
}

/// A drive that brings more than is drawn in a step is told before the run.
#[test]
fn a_rate_that_is_too_high_is_told_at_once() {
    let model = model("param rate = 1 MHz\n drive e via TsodyksMarkram from poisson(rate = rate) { weight = 1 nS }")
        .replace("std.plasticity.TsodyksMarkram", "std.synapses.ExpCond")
        .replace("via TsodyksMarkram", "via ExpCond");
    let here = folder(&[("m.neuro", &model)]);
    assert_eq!(neuroc(&here, &["run", "m.neuro", "--engine", "interp", "-o", "o.npz"]).code, 0);
    let done = neuroc(&here, &["run", "m.neuro", "--set", "rate=1e7Hz", "-o", "o.npz"]);
    assert!(done.code == 2 && done.err.contains("more events in one step than are drawn"), "{}", done.err);
    let here = folder(&[("m.neuro", &model.replace("1 MHz", "10 MHz"))]);
    let done = neuroc(&here, &["check", "m.neuro"]);
    assert!(done.code == 1 && done.err.contains("lower it, or make `dt` shorter"), "{}", done.err);
}

/// What is wrong with a number of a file is not helped by cutting draws off.
#[test]
fn numbers_of_files_and_draws_have_their_own_help() {
    let line = |weight: &str| {
        let lines =
            format!("connect g -> e via TsodyksMarkram {{ rule = edges(\"e.csv\"); delay = 1 ms; weight {weight} }}");
        let here = folder(&[("m.neuro", &model(&lines)), ("e.csv", "source,target,w\n0,0,1\n0,1,-3\n")]);
        let done = neuroc(&here, &["check", "m.neuro"]);
        assert!(done.code == 1 && done.err.contains("is -"), "{}", done.err);
        done.err
    };
    assert!(!line("= file(\"e.csv\", column = \"w\") * 1 nS").contains("truncated"));
    assert!(line("~ normal(-100 nS, 1 nS)").contains("truncated"));
    assert!(line("~ normal(-100 nS, 1 nS) * file(\"e.csv\", column = \"w\")").contains("truncated"));
}

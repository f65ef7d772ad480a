//! The command line as its users meet it: the built program in folders of their own.
//!
//! Most runs are interpreted and short, since what is tested here is not the kernels; those that are compiled share the
//! cache of the engine tests.

use ndarray::{Array1, Array2};
use ndarray_npy::NpzReader;
use neuroc::results::{Found, ParameterValues, Reading, RunResult, Samples};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_neuroc");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels")
}

fn example(name: &str) -> String {
    root().join("examples").join(format!("{name}.neuro")).display().to_string()
}

fn examples() -> Vec<String> {
    let folders = ["examples", "examples/inferior_olive"];
    let mut names: Vec<String> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(root().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "neuro"))
        .map(|path| path.display().to_string())
        .collect();
    names.sort();
    names
}

/// A folder with files in it.
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

fn done(output: Output) -> Done {
    Done {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

/// Runs `neuroc` in a folder.
pub fn neuroc(folder: &TempDir, arguments: &[&str]) -> Done {
    done(command(folder.path(), arguments).output().unwrap())
}

/// Runs, and demands success.
fn fine(folder: &TempDir, arguments: &[&str]) -> Done {
    let done = neuroc(folder, arguments);
    assert_eq!(done.code, 0, "{arguments:?}: {}", done.err);
    done
}

/// Runs, and demands an exit code, nothing on stdout, a message with these parts, and no panic.
fn fails(folder: &TempDir, arguments: &[&str], code: i32, parts: &[&str]) {
    let done = neuroc(folder, arguments);
    assert_eq!(done.code, code, "{arguments:?}: {}", done.err);
    assert_eq!(done.out, "", "{arguments:?}");
    for part in parts {
        assert!(done.err.contains(part), "{arguments:?}: no `{part}` in: {}", done.err);
    }
    assert!(!done.err.contains("panicked"), "{arguments:?}: {}", done.err);
}

fn json(line: &str) -> Value {
    assert!(line.ends_with('\n') && line.lines().count() == 1, "one line: {line}");
    serde_json::from_str(line).unwrap()
}

fn result(folder: &TempDir, name: &str) -> RunResult {
    RunResult::read_npz(&folder.path().join(name)).unwrap_or_else(|e| panic!("{e}"))
}

/// Three passive cells, 2 ms in steps of 0.1 ms; `network` and `run` are more lines of these blocks.
fn passive(network: &str, run: &str) -> String {
    format!(
        "\
channel Leak {{
    param g = 1 mS/cm2
    let half = 0.5 * g
    current i = 2 * half * (v + 65 mV)
}}

cell C {{
    param g = 1 mS/cm2
    compartment soma {{
        area = 1000 um2
        cm = 1 uF/cm2
        v_init = -55 mV
        insert Leak(g = g)
    }}
    spike when soma.v crosses 0 mV
}}

network main {{
    param n = 3
    population c: C[n]
    {network}
}}

run {{
    duration = 2 ms
    dt = 0.1 ms
    {run}
}}
"
    )
}

fn passive_folder(network: &str, run: &str) -> TempDir {
    folder(&[("m.neuro", &passive(network, run))])
}

const INTERP: &[&str] = &["run", "m.neuro", "--engine", "interp", "--quiet", "-o", "m.npz"];

fn with<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [arguments, more].concat()
}

// ------------------------------------------------------------------------------------------------------- the contract

const VERBS: &[&str] =
    &["check", "run", "build", "emit", "opt", "passes", "info", "explain", "lib", "plot", "fmt", "lsp", "bench"];

#[test]
fn every_verb_has_help_with_an_example() {
    let here = folder(&[]);
    let all = fine(&here, &["--help"]);
    for verb in VERBS {
        assert!(all.out.contains(&format!("\n  {verb} ")), "{verb} is not listed");
        let help = fine(&here, &[verb, "--help"]);
        assert!(help.out.contains(&format!("Example: neuroc {verb}")) || *verb == "opt", "{verb}: {}", help.out);
        assert!(help.out.contains("Example: neuroc ") && help.err.is_empty(), "{verb}");
    }
    let version = fine(&here, &["--version"]);
    assert!(version.out.starts_with("neuroc "), "{}", version.out);
}

#[test]
fn a_wrong_command_line_is_2() {
    let here = passive_folder("", "record c.soma.v");
    let wrong: &[&[&str]] = &[
        &[],
        &["frobnicate"],
        &["check"],
        &["run", "m.neuro", "--frobnicate"],
        &["run", "m.neuro", "--dt", "0ms"],
        &["run", "m.neuro", "--dt", "-1ms"],
        &["run", "m.neuro", "--dt", "0.1"],
        &["run", "m.neuro", "--dt", "0.1mV"],
        &["run", "m.neuro", "--dt", "soon"],
        &["run", "m.neuro", "--duration", "1"],
        &["run", "m.neuro", "--duration", "nan ms"],
        &["run", "m.neuro", "--duration", "1e999s"],
        &["run", "m.neuro", "--duration", "2.05ms"],
        &["run", "m.neuro", "--duration", "1e15s"],
        &["run", "m.neuro", "--method", "magic"],
        &["run", "m.neuro", "--seed", "-1"],
        &["run", "m.neuro", "--threads", "0"],
        &["run", "m.neuro", "--fuse", "0"],
        &["run", "m.neuro", "-O", "7"],
        &["run", "m.neuro", "--precision", "f16"],
        &["run", "m.neuro", "--accuracy", "1e-3"],
        &["run", "m.neuro", "--precision", "f32", "--accuracy", "1e-9"],
        &["run", "m.neuro", "--engine", "interp", "--precision", "f32"],
        &["run", "m.neuro", "-o", "m.txt"],
        &["run", "m.neuro", "-o", "m"],
        &["run", "m.neuro", "-o", "nowhere/m.npz"],
        &["run", "m.neuro", "-o", "."],
        &["run", "m.neuro", "--plot", "m.jpg"],
        &["run", "m.neuro", "--plot", "nowhere/m.svg"],
        &["emit", "m.neuro"],
        &["emit", "m.neuro", "--stage", "soup"],
        &["emit", "m.neuro", "--stage", "ir", "--passes", "magic"],
        &["emit", "m.neuro", "--stage", "ir", "--print-ir-after", "magic"],
        &["explain", "NU9999"],
        &["lib", "nothing"],
        &["bench", "m.neuro", "--repeat", "0"],
        &["plot", "m.npz", "--from", "nan"],
    ];
    for arguments in wrong {
        fails(&here, arguments, 2, &[]);
    }
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1, "nothing was written");
}

/// XLA's flags change what it makes, so executables made with others are not taken from the cache.
#[cfg(feature = "xla")]
#[test]
fn executables_are_kept_by_the_flags_of_xla() {
    if crate::pjrt::cpu().is_none() {
        return;
    }
    let here = passive_folder("", "record c.soma.v");
    let cached = |flags: &str| {
        let mut bench = command(here.path(), &["bench", "m.neuro", "--engine", "xla", "--cache", "kept", "--json"]);
        let ran = done(bench.env("XLA_FLAGS", flags).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.err);
        json(&ran.out)["kernel_cached"].clone()
    };
    let others = "--xla_cpu_enable_fast_math=false";
    assert_eq!(["", "", others, others].map(cached), [false, true, false, true]);
}

/// Storage in 16 bits is for XLA's devices; whoever cannot do it says who can.
#[cfg(feature = "xla")]
#[test]
fn native_code_stores_no_bf16() {
    let here = passive_folder("", "record c.soma.v");
    let bf16 =
        |command: &[&str], part: &str| fails(&here, &with(command, &["--precision", "bf16"]), 2, &["bf16", part]);
    bf16(&["run", "m.neuro"], "--engine xla");
    bf16(&["bench", "m.neuro"], "--engine xla");
    bf16(&["run", "m.neuro", "--engine", "interp"], "--engine xla");
    bf16(&["emit", "m.neuro", "--stage", "rust"], "--stage stablehlo");
    bf16(&["build", "m.neuro", "-o", "d"], "--emit stablehlo");
    bf16(&["build", "m.neuro", "-o", "d", "--emit", "cdylib"], "--target");
    bf16(&["run", "m.neuro", "--engine", "xla", "--accuracy", "1e-9"], "f64");
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1, "nothing was written");
}

#[cfg(feature = "xla")]
#[test]
fn targets_that_do_not_exist_are_told() {
    let here = passive_folder("", "record c.soma.v");
    let target = |target: &str, parts: &[&str]| {
        fails(&here, &["build", "m.neuro", "-o", "d", "--target", target], 2, parts);
    };
    target("tpu:v9", &["v9", "v5e"]);
    target("tpu:v5e:2x2x1", &["2x2x1"]);
    target("abacus", &["abacus", "tpu:"]);
    assert!(!here.path().join("d").exists());
}

/// A run of digits that is shown one of them, and what cannot be shown.
#[test]
fn samples_are_shown_in_runs() {
    let (here, digits) = (folder(&[]), example("digits"));
    let shown = neuroc(&here, &["run", &digits, "--engine", "interp", "--sample", "7", "--json", "-o", "seven.npz"]);
    assert!(shown.code == 0 && shown.err.contains("sample 7 is for testing and has the class 7"), "{}", shown.err);
    assert_eq!(json(&shown.out)["sample"], serde_json::json!({"number": 7, "class": 7, "test": true}));
    fails(&here, &["run", &digits, "--sample", "1797"], 2, &["there is no sample 1797", "the last 1796"]);
    fails(
        &here,
        &["run", &digits, "--sample", "7", "--set", "pixels.x=1"],
        2,
        &["sets what `--sample 7` gives values to"],
    );
    fails(&here, &["run", &digits, "--sample", "7", "--sweep", "seed=1..3"], 2, &["--sweep none"]);
    fails(&here, &["run", &example("squid"), "--sample", "7"], 2, &["this model has none"]);
}

#[cfg(feature = "xla")]
#[test]
fn devices_are_for_xla_and_a_missing_plugin_is_told() {
    let here = passive_folder("", "record c.soma.v");
    fails(&here, &["run", "m.neuro", "--device", "cuda"], 2, &["`--device`", "--engine xla"]);
    fails(&here, &["run", "m.neuro", "--plugin", "p.so"], 2, &["`--plugin`", "--engine xla"]);
    fails(&here, &["run", "m.neuro", "--engine", "xla", "--device", "abacus"], 2, &["'abacus'", "cpu, cuda, tpu"]);
    fails(&here, &["run", "m.neuro", "--engine", "xla", "--plugin", "p.so"], 2, &["p.so"]);
    let digits = example("digits");
    fails(&here, &["train", &digits, "--engine", "xla", "--plugin", "p.so", "-o", "d.npz"], 2, &["p.so"]);
    fails(&here, &["train", &digits, "--engine", "xla", "--precision", "bf16", "-o", "d.npz"], 1, &["f64 or f32"]);
}

/// A training on XLA's CPU plugin, and on from where it stopped.
#[cfg(feature = "xla")]
#[test]
fn networks_learn_on_xla() {
    if crate::pjrt::cpu().is_none() {
        return;
    }
    let (here, digits) = (folder(&[]), example("digits"));
    let train = |more: &[&str]| {
        let ran = neuroc(&here, &with(&["train", &digits, "--engine", "xla", "--precision", "f32", "--json"], more));
        assert_eq!(ran.code, 0, "{}", ran.err);
        json(&ran.out)["epochs"].as_array().unwrap().clone()
    };
    let too_little = ["train", &digits, "--engine", "xla", "--precision", "f32", "--memory", "1kB", "-o", "one.npz"];
    fails(&here, &too_little, 1, &["at least", "the native engine, which can take steps again"]);
    assert_eq!(train(&["--epochs", "1", "-o", "one.npz"]).len(), 1);
    let second = train(&["--epochs", "2", "--resume", "one.npz", "-o", "two.npz"]);
    let both = train(&["--epochs", "2", "-o", "both.npz"]);
    assert_eq!((second.len(), both.len()), (1, 2));
    assert_eq!(second[0]["train"]["loss"], both[1]["train"]["loss"]);
    assert!(both[1]["test"]["accuracy"].as_f64().unwrap() > 0.8, "{both:?}");
    let read = |name: &str| fs::read(here.path().join(name)).unwrap();
    assert!(read("two.npz") == read("both.npz"));
}

#[test]
fn a_training_with_less_memory_learns_the_same() {
    let (here, digits) = (folder(&[]), example("digits"));
    let train = |memory: &str, output: &str| {
        let more = ["train", &digits, "--json", "--epochs", "1", "--memory", memory, "-o", output];
        let ran = fine(&here, &more);
        let summary = json(&ran.out);
        (summary["memory_bytes"].as_f64().unwrap(), summary["steps_forward"].as_u64().unwrap(), ran.err)
    };
    let (whole, once, _) = train("4GB", "whole.npz");
    let (less, again, said) = train("500kB", "less.npz");
    assert!(whole > 5e5 && less <= 5e5, "{whole} and {less} bytes");
    assert!(once < again && again < 5 * once, "{once} and {again} steps");
    assert!(said.contains(&format!("of {} states take", once + 1)) && said.contains("each step is taken"), "{said}");
    assert!(bytes(&here, "less.npz") == bytes(&here, "whole.npz"));
    let too_little = ["at least", "a larger --memory would do"];
    fails(&here, &["train", &digits, "--memory", "1kB", "-o", "no.npz"], 1, &too_little);
    assert!(!here.path().join("no.npz").exists());
}

/// With large steps the digits that are tested become worse again.
#[test]
fn a_training_with_patience_keeps_what_was_best_for_the_samples_that_are_tested() {
    let text = fs::read_to_string(example("digits")).unwrap();
    let data = root().join("examples/data/digits.npz").display().to_string();
    let text = text.replace("data/digits.npz", &data).replace("lr = 2e-3", "lr = 0.03");
    let patient = text.replace("epochs = 15", "epochs = 40\n    patience = 2");
    let here = folder(&[("all.neuro", &text), ("patient.neuro", &patient)]);
    let train = |file: &str, more: &[&str]| {
        let ran = neuroc(&here, &with(&["train", file, "--json"], more));
        assert_eq!(ran.code, 0, "{}", ran.err);
        (json(&ran.out), ran.err)
    };
    let losses = |summary: &Value| -> Vec<f64> {
        summary["epochs"].as_array().unwrap().iter().map(|epoch| epoch["test"]["loss"].as_f64().unwrap()).collect()
    };
    let (whole, said) = train("patient.neuro", &["-o", "best.npz"]);
    let (found, best) = (losses(&whole), whole["best_epoch"].as_u64().unwrap() as usize);
    assert!(found.len() == best + 2 && best + 2 < 40, "{found:?}");
    assert!(found.iter().enumerate().all(|(at, loss)| at + 1 == best || *loss > found[best - 1]), "{found:?}");
    assert!(said.contains(&format!("least in epoch {best}")), "{said}");
    // What is kept is what as many epochs make of it.
    let (plain, _) = train("all.neuro", &["--epochs", &best.to_string(), "-o", "plain.npz"]);
    assert_eq!(losses(&plain), found[..best]);
    assert!(plain["best_epoch"].is_null());
    let read = |name: &str| fs::read(here.path().join(name)).unwrap();
    assert!(read("best.npz") == read("plain.npz"));
    // From there it comes to the same.
    let (rest, _) = train("patient.neuro", &["--resume", "best.npz", "-o", "again.npz"]);
    assert_eq!((losses(&rest), rest["best_epoch"].as_u64()), (found[best..].to_vec(), Some(best as u64)));
    assert!(read("again.npz") == read("best.npz"));
}

#[cfg(not(feature = "xla"))]
#[test]
fn a_build_without_xla_does_not_know_it() {
    let here = passive_folder("", "record c.soma.v");
    fails(&here, &["run", "m.neuro", "--engine", "xla"], 2, &["'xla'", "native, interp"]);
    fails(&here, &["build", "m.neuro", "-o", "d", "--emit", "stablehlo"], 2, &["'stablehlo'", "crate, cdylib"]);
    fails(&here, &["emit", "m.neuro", "--stage", "stablehlo"], 2, &["'stablehlo'"]);
}

/// What crates cannot do is no bug.
#[test]
fn check_tells_all_errors_and_reads_standard_input() {
    let good = passive("", "record c.soma.v");
    let bad = good.replace("1000 um2", "1000 um").replace("cm = 1 uF/cm2", "cm = 1 ms");
    let here = folder(&[("good.neuro", &good), ("bad.neuro", &bad)]);
    let quiet = fine(&here, &["check", "good.neuro"]);
    assert!(quiet.out.is_empty() && quiet.err.is_empty(), "{}", quiet.err);
    fails(&here, &["check", "good.neuro", "bad.neuro"], 1, &["bad.neuro:10:", "bad.neuro:11:", "error[NU"]);

    let lines = neuroc(&here, &["check", "bad.neuro", "good.neuro", "gone.neuro", "--message-format", "json"]);
    assert_eq!((lines.code, lines.err.as_str()), (1, ""));
    let objects: Vec<Value> = lines.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(objects.len() >= 3, "{}", lines.out);
    for object in &objects {
        assert!(object["code"].as_str().unwrap().starts_with("NU") && object["severity"] == "error", "{object}");
    }
    let label = &objects[0]["labels"][0];
    assert_eq!((label["file"].as_str(), label["line"].as_u64()), (Some("bad.neuro"), Some(10)));

    for (text, code) in [(&good, 0), (&bad, 1)] {
        let mut child =
            command(here.path(), &["check", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let done = done(child.wait_with_output().unwrap());
        assert_eq!(done.code, code, "{}", done.err);
        assert_eq!(done.err.contains("<stdin>:10:"), code == 1, "{}", done.err);
    }
}

#[test]
fn odd_texts_are_read_or_refused_with_a_reason() {
    let good = passive("", "record c.soma.v");
    let here = folder(&[
        ("bom.neuro", &format!("\u{feff}{good}")),
        ("crlf.neuro", &good.replace('\n', "\r\n")),
        ("tabs.neuro", &good.replace("    ", "\t")),
        ("nul.neuro", &good.replace("cell", "ce\0ll")),
        ("empty.neuro", ""),
        ("long.neuro", &good.replace("= 1 mS/cm2", &format!("= 1 mS/cm2 {}", "+ 1 mS/cm2 ".repeat(10_000)))),
        ("deep.neuro", &good.replace("= 1 mS/cm2", &format!("= {}1 mS/cm2{}", "(".repeat(20_000), ")".repeat(20_000)))),
        ("comment.neuro", &format!("// {}\n{good}", "long ".repeat(200_000))),
    ]);
    fs::write(here.path().join("latin.neuro"), b"// caf\xe9\n").unwrap();
    fine(&here, &["check", "bom.neuro", "crlf.neuro", "tabs.neuro", "empty.neuro", "comment.neuro"]);
    fails(&here, &["check", "nul.neuro"], 1, &["NU0001", "byte", "zero"]);
    fails(&here, &["check", "latin.neuro"], 1, &["NU0001", "0xe9", "UTF-8"]);
    fails(&here, &["check", "long.neuro"], 1, &["NU0003"]);
    fails(&here, &["check", "deep.neuro"], 1, &["NU0003"]);
    fails(&here, &["check", "gone.neuro"], 2, &["gone.neuro", "No such file"]);
    fails(&here, &["check", "."], 2, &["directory"]);
    // Of several files a wrong model counts for more than a name.
    fails(&here, &["check", "deep.neuro", "gone.neuro"], 1, &["gone.neuro", "NU0003"]);
    for verb in ["fit", "train", "verify", "info", "bench"] {
        fails(&here, &[verb, "gone.neuro"], 2, &["gone.neuro", "No such file"]);
    }
    fails(&here, &["emit", "gone.neuro", "--stage", "ir"], 2, &["gone.neuro"]);
    fails(&here, &["build", "gone.neuro", "-o", "made"], 2, &["gone.neuro"]);
    fails(&here, &["run", "gone.neuro"], 2, &["gone.neuro", "No such file"]);
    fails(&here, &["run", "empty.neuro"], 1, &["no `network`"]);
}

#[test]
fn the_resolved_model_shows_all_of_the_network() {
    let model = "channel Leak { param gbar = 0.3 mS/cm2; param erev = -65 mV; let w = -(v - erev)^2 / 1 mV
    let u = (-(v / 1 mV))^2; current i = gbar * (v - erev) + 0 uA/cm2 * (w / 1 mV + u) }
synapse Fixed { param tau = 3 ms; state g: nS = 0 nS; state x = 1; g' = -g / tau; x' = (1 - x) / (50 ms)
    on pre(weight: nS) { g += weight * x; x = x * 0.5 }
    current i = g * (v - 0 mV) }
synapse Kept { state g: nS = 0 nS; g' = -g / (3 ms); on event(weight: nS) { g += weight }; current i = g * (v - 0 mV) }
junction Gap { param g = 1 nS; current i = g * dv }
cell C {
    section soma { length = 20 um; diam = 20 um; compartments = 1; toward (0, 1, 0) }
    section dend { from soma(1); length = 100 um; diam = 2 um; compartments = 3; toward (0, 1, 0) }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
    spike when soma(0.5).v crosses 0 mV
}
network main {
    param n = 4
    population c: C[n] { spacing = 50 um }
    input step: pulse(1 ms, 2 ms, 0.1 nA) -> c[0..2].soma(0.5)
    connect c.dend(0.5) -- c.soma(0.5) via Gap { rule = probability(0.5) }
    connect c -> c.dend(0.5) via Fixed { rule = all_to_all; weight = 2 nS; delay = 1.5 ms }
    drive c[1].dend(0.5) via Kept from times(0.5 ms) { weight = 1 nS }
    probe near of c { at (0 um, 50 um, 0 um) }
}
run { duration = 5 ms; dt = 0.1 ms; record c[3].dend(0.5).v every 1 ms from 2 ms; record spikes of c }
";
    let here = folder(&[("m.neuro", model)]);
    let text = fine(&here, &["emit", "m.neuro", "--stage", "hir"]).out;
    for line in [
        "let u: 1 = (-(v / 1 mV)) ^ 2",
        "let w: mV = -((v - erev) ^ 2) / 1 mV",
        "sections 2, compartments 4",
        "part dend(0.5).Kept, compartments 1",
        "spike when v crosses 0 mV at soma(0.5)",
        "population c: C[n]",
        "spacing 50 um",
        "own x: 1 = 1\n            x' = (1 - x) / 50 ms",
        "on pre x = x * 0.5",
        "c[0 .. 2]",
        "junctions Gap: ",
        "connect c -> c via dend(0.5).Fixed, all_to_all",
        "weight 2 nS",
        "delay 1.5 ms",
        "from times(0.5 ms)",
        "probe near of c: contacts 1, sigma 0.3 S/m",
        "at dend(0.5) every 1 ms from 2 ms",
        "record spikes of c",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[test]
fn every_stage_is_printed_and_the_ir_reads_back() {
    let here = passive_folder("", "record c.soma.v");
    for stage in ["ast", "hir", "ode", "ir", "ir-opt", "plan", "rust"] {
        let text = fine(&here, &["emit", "m.neuro", "--stage", stage]);
        assert!(text.out.len() > 100 && text.out.ends_with('\n') && text.err.is_empty(), "{stage}: {}", text.err);
        assert_eq!(text.out, fine(&here, &["emit", "m.neuro", "--stage", stage]).out, "{stage} is the same every time");
        assert!(fine(&here, &["emit", "m.neuro", "--stage", stage, "-o", "stage"]).out.is_empty());
        assert_eq!(fs::read_to_string(here.path().join("stage")).unwrap(), text.out, "{stage}");
    }
    let plain = fine(&here, &["emit", "m.neuro", "--stage", "ir", "-o", "m.ir"]);
    assert!(plain.out.is_empty());
    let same = fine(&here, &["opt", "m.ir"]);
    assert_eq!(same.out, fs::read_to_string(here.path().join("m.ir")).unwrap());
    let changed = fine(&here, &["opt", "m.ir", "--passes", "fold,cse,dce"]);
    assert_eq!(changed.out, fine(&here, &["emit", "m.neuro", "--stage", "ir", "--passes", "fold,cse,dce"]).out);
    fails(&here, &["opt", "m.ir", "--passes", "magic"], 2, &["magic", "neuroc passes"]);
    fails(&here, &["opt", "m.neuro"], 1, &["m.neuro:1"]);
    fails(&here, &["opt", "gone.ir"], 2, &["gone.ir"]);
    assert_eq!(
        fine(&here, &["emit", "m.neuro", "--stage", "ir-opt", "-O0"]).out,
        fine(&here, &["emit", "m.neuro", "--stage", "ir"]).out
    );
    let told = fine(&here, &["emit", "m.neuro", "--stage", "ir-opt", "--print-ir-after", "all", "--time-passes"]);
    let passes = fine(&here, &["passes"]);
    assert!(told.err.contains(" ms  dce") && told.err.contains("// after dce") && !told.out.contains("// after"));
    assert!(passes.out.contains("dce  ") && passes.out.contains("-O2: "), "{}", passes.out);
    fails(&here, &["emit", "m.neuro", "--stage", "ir", "-o", "nowhere/x"], 2, &["nowhere", "does not exist"]);
}

#[test]
fn every_code_is_explained_and_the_library_can_be_read() {
    let here = folder(&[]);
    let list = fine(&here, &["explain"]);
    assert!(list.out.lines().count() > 40);
    for line in list.out.lines().step_by(7) {
        let code = &line[..6];
        let story = fine(&here, &["explain", &code.to_lowercase()]);
        assert!(story.out.contains(code) && story.out.lines().count() >= 3, "{}", story.out);
    }
    for code in neuroc::diag::Code::ALL {
        assert!(list.out.contains(code.id()) && !code.explanation().is_empty());
    }
    let modules = fine(&here, &["lib"]);
    assert!(modules.out.contains("std.channels.hh: ") && modules.out.contains("    channel Na\n"), "{}", modules.out);
    assert_eq!(fine(&here, &["lib", "std.channels.hh"]).out, fine(&here, &["lib", "channels.hh"]).out);
}

#[test]
fn info_tells_shapes() {
    let swc =
        "1 1 0 0 0 10 -1\n2 3 10 0 0 1 1\n3 3 110 0 0 1 2\n4 2 -10 0 0 0.5 1\n5 2 -60 0 0 0.5 4\n6 2 -60 0 0 0.5 5\n";
    let model = "channel Leak { param gbar = 0.1 mS/cm2\n param erev = -65 mV }
        cell C { morphology = swc(\"cell.swc\")\n region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak } }
        network main { population pyr: C[3] }
        run { duration = 1 ms; dt = 0.1 ms; method = cnexp\n record pyr.soma(0.5).v }";
    let here = folder(&[("cell.swc", swc), ("m.neuro", model)]);
    let told = fine(&here, &["info", "m.neuro"]).out;
    for line in [
        "pyr: 3 cells C",
        "    shape: cell.swc",
        "    soma: one point: a cylinder with the area of the sphere",
        "    points at the place of their parent: lines 6",
        "    soma           1             1         20.0      1256.6",
        "    dend           1             3        100.0       628.3",
        "    axon           1             3         50.0       157.1",
        "    membrane time constant at soma(0.5): 10.00 ms",
        "a run of 1 ms takes 10 steps of 0.1 ms, about 1.2 kB of memory for its cells, and 264 B for what it records",
    ] {
        assert!(told.lines().any(|l| l == line), "no line\n{line}\nin\n{told}");
    }
    assert!(told.contains("input resistance at soma(0.5): ") && told.contains("electrotonic length: "), "{told}");
    // Without sections: the time constants of all states, where these are known before the run.
    let points = "cell Lif { param tau: ms = 20 ms\n state v: mV = -60 mV; v' = -(v + 60 mV) / tau
          state grows = 1; grows' = grows / 1 ms; spike when v > -50 mV { v = -60 mV } }
        synapse Kick { on event(weight: mV) { v += weight } }
        network main { population a: Lif[10]\n connect a -> a via Kick { rule = fixed_in_degree(n = 4); weight = 1 mV; delay = 1 ms } }
        run { duration = 10 ms; dt = 0.1 ms; record a.v }";
    std::fs::write(here.path().join("p.neuro"), points).unwrap();
    let told = fine(&here, &["info", "p.neuro"]).out;
    for line in ["a: 10 cells Lif", "    2 states; time constants at the start: v 20 ms", "about 40 connections"] {
        assert!(told.lines().any(|l| l == line), "no line\n{line}\nin\n{told}");
    }
}

#[test]
fn formatting_is_stable_and_check_changes_nothing() {
    let good = passive("", "record c.soma.v");
    let untidy = good.replace("    ", "\t ");
    let here = folder(&[("tidy.neuro", &good), ("untidy.neuro", &untidy), ("broken.neuro", "cell {")]);
    fails(&here, &["fmt", "--check", "tidy.neuro", "untidy.neuro"], 1, &["untidy.neuro is not formatted"]);
    assert_eq!(fs::read_to_string(here.path().join("untidy.neuro")).unwrap(), untidy);
    fine(&here, &["fmt", "tidy.neuro", "untidy.neuro"]);
    fine(&here, &["fmt", "--check", "tidy.neuro", "untidy.neuro"]);
    let formatted = fs::read_to_string(here.path().join("untidy.neuro")).unwrap();
    assert!(!formatted.contains('\t'));
    fails(&here, &["fmt", "broken.neuro"], 1, &["broken.neuro:1"]);
    assert_eq!(fs::read_to_string(here.path().join("broken.neuro")).unwrap(), "cell {");
    fails(&here, &["fmt", "gone.neuro"], 2, &["gone.neuro"]);
}

// ----------------------------------------------------------------------------------------------------------- settings

#[test]
fn parameters_are_set_or_the_candidates_are_listed() {
    let here = passive_folder("", "record c.soma.v");
    fine(&here, &with(INTERP, &["--set", "n=5", "--set", "C.g=2mS/cm2"][..2]));
    assert_eq!(result(&here, "m.npz").series[0].values.shape(), (21, 5));
    let settings: &[(&str, &[&str])] = &[
        ("m=5", &["no parameter `m`", "it has n, "]),
        ("n", &["no `=`"]),
        ("n=", &["no number"]),
        ("n=nan", &["no number"]),
        ("n=1e999", &["too large"]),
        ("n=3mV", &["pure number", "voltage", "--set n=3"]),
        ("c.g=3", &["conductance density", "--set c.g=3mS/cm2"]),
        ("c.g=3 furlong", &["no unit `furlong`"]),
    ];
    for (setting, parts) in settings {
        fails(&here, &with(INTERP, &["--set", setting]), 2, parts);
    }
    for (setting, part) in
        [("n=0", "no cells"), ("n=1.5", "1.5 cells"), ("n=-1", "-1 cells"), ("n=1e300", "1e300 cells")]
    {
        fails(&here, &with(INTERP, &["--set", setting]), 2, &["m.neuro:20:16", part]);
    }
    let squid = example("squid");
    let ambiguous = ["squid.soma.Na.gbar", "squid.soma.K.gbar", "write more of the name"];
    fails(&here, &["run", &squid, "--set", "gbar=1mS/cm2"], 2, &ambiguous);
}

/// What waits for spikes takes memory; what is compared is compared at all times.
#[test]
fn a_record_around_spikes_is_counted_and_verified_and_not_fitted() {
    let model = |window: &str| {
        format!(
            "cell P {{ param rate = 0.13 /ms; state x = 0; x' = rate; spike when x crosses 1 {{ x = 0 }} }}
             network main {{ population p: P[200] }}
             run {{ duration = 20 ms; dt = 0.01 ms; record p.x around spikes of p from {window} to 1 ms }}"
        )
    };
    let here = folder(&[
        ("far.neuro", &model("-20 ms")),
        ("near.neuro", &model("-0.1 ms")),
        ("smooth.neuro", &model("-0.1 ms").replace("{ x = 0 }", "")),
        ("x.csv", "0,0\n20,1\n"),
    ]);
    let run = |name| ["run", name, "--engine", "interp", "-o", "m.npz", "--memory", "1MB"];
    // 2000 rows of 200 cells wait, or 10 of them.
    fails(&here, &run("far.neuro"), 1, &["B of memory", "`--memory` allows"]);
    assert_eq!(neuroc(&here, &run("near.neuro")).code, 0);
    let verified =
        neuroc(&here, &["verify", "near.neuro", "--duration", "10ms", "--cache", &cache().display().to_string()]);
    assert_eq!(verified.code, 0, "{}", verified.err);
    let fit = ["fit", "smooth.neuro", "--engine", "interp", "--free", "rate=0.1..0.2/ms", "--target", "p.x=x.csv"];
    fails(&here, &fit, 2, &["`p.x` is recorded around spikes only"]);
}

#[test]
fn what_the_machine_cannot_hold_is_refused_with_numbers() {
    let here = passive_folder("", "record c[0..1].soma.v");
    for engine in ["interp", "native"] {
        let cache = cache().display().to_string();
        let run = ["run", "m.neuro", "-o", "m.npz", "--engine", engine, "--cache", &cache, "--duration", "1e9s"];
        fails(&here, &with(&run, &["--set", "n=4e9"]), 1, &["GB of memory", "the machine has"]);
        fails(&here, &with(&run, &["--memory", "20B"]), 1, &["B of memory", "`--memory` allows"]);
    }
    fails(&here, &with(INTERP, &["--memory", "much"]), 2, &["a size such as 2GB"]);
    fails(&here, &with(INTERP, &["--duration", "1e10s"]), 1, &["for what it records", "the disk has", "every 1 ms"]);
    assert!(!here.path().join("m.npz").exists());
}

#[test]
fn time_grids_that_do_not_fit_are_refused_with_a_number_that_does() {
    let here = passive_folder("", "record c.soma.v every 0.2 ms\n    record c.soma.Leak.half every 0.2 ms");
    fails(&here, &with(INTERP, &["--dt", "0.03ms"]), 2, &["not a multiple of dt, 0.03 ms", "a duration of 2.01"]);
    let done = neuroc(&here, &with(INTERP, &["--dt", "0.4ms"]));
    assert!(done.code == 2 && done.err.contains("m.neuro:27:") && done.err.contains("this too"), "{}", done.err);
    assert_eq!(done.err.matches("error[").count(), 1, "one interval, one error: {}", done.err);
    fails(&here, &with(INTERP, &["--duration", "1e300s"]), 2, &["too many steps"]);
    assert!(!here.path().join("m.npz").exists());
}

#[test]
fn methods_seeds_and_steps_reach_the_numbers() {
    let here = passive_folder("init c[1..n].soma.v ~ normal(-60 mV, 2 mV)", "record c.soma.v");
    let end = |more: &[&str]| {
        fine(&here, &with(INTERP, more));
        let r = result(&here, "m.npz");
        let (rows, _) = r.series[0].values.shape();
        (r.series[0].values.get(rows - 1, 0), r.series[0].values.get(0, 1))
    };
    // dv/dt = -(v + 65 mV) / (1 ms) from -55 mV.
    let exact = -65.0 + 10.0 * (-2.0f64).exp();
    assert!((end(&["--method", "exp_euler"]).0 - exact).abs() < 1e-9);
    assert!((end(&["--method", "euler"]).0 - (-65.0 + 10.0 * 0.9f64.powi(20))).abs() < 1e-9);
    assert!((end(&["--method", "rk4"]).0 - exact).abs() < 1e-4);
    assert!((end(&["--method", "euler", "--dt", "0.05ms"]).0 - (-65.0 + 10.0 * 0.95f64.powi(40))).abs() < 1e-9);
    let (a, b, again) = (end(&["--seed", "1"]).1, end(&["--seed", "2"]).1, end(&["--seed", "1"]).1);
    assert!(a != b && a == again);
}

// ----------------------------------------------------------------------------------------------------------- results

fn array<T: ndarray_npy::ReadableElement>(npz: &mut NpzReader<fs::File>, name: &str) -> Array2<T> {
    npz.by_name(name).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn numbers(npz: &mut NpzReader<fs::File>, name: &str) -> Array1<f64> {
    npz.by_name(name).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn open(folder: &TempDir, name: &str) -> NpzReader<fs::File> {
    NpzReader::new(fs::File::open(folder.path().join(name)).unwrap()).unwrap()
}

fn bytes(folder: &TempDir, name: &str) -> Vec<u8> {
    fs::read(folder.path().join(name)).unwrap()
}

#[test]
fn results_have_the_names_shapes_and_values_of_the_model() {
    let here = passive_folder(
        "input up: pulse(delay = 0 ms, duration = 1 ms, amplitude = 100 uA/cm2) -> c[2].soma",
        "record c.soma.v every 0.1 ms
    record c[1..3].soma.{Leak.i, Leak.half} every 0.5 ms
    record c.g every 1 ms
    record spikes of c",
    );
    fine(&here, INTERP);
    let mut npz = open(&here, "m.npz");
    let t = numbers(&mut npz, "t");
    assert_eq!((t.len(), t[0], t[20]), (21, 0.0, 2.0));
    let v: Array2<f64> = array(&mut npz, "c.soma.v");
    assert_eq!(v.dim(), (21, 3));
    let t2 = numbers(&mut npz, "c[1..3].soma.Leak.i.t");
    assert_eq!(t2.to_vec(), [0.0, 0.5, 1.0, 1.5, 2.0]);
    let i: Array2<f64> = array(&mut npz, "c[1..3].soma.Leak.i");
    let half: Array2<f64> = array(&mut npz, "c[1..3].soma.Leak.half");
    let g: Array2<f64> = array(&mut npz, "c.g");
    assert_eq!((i.dim(), half.dim(), g.dim()), ((5, 2), (5, 2), (3, 3)));
    for row in 0..21 {
        // Without input dv/dt = -(v + 65 mV) / ms; the integrator is exact for it.
        let exact = -65.0 + 10.0 * (-t[row]).exp();
        assert!((v[[row, 0]] - exact).abs() < 1e-9 && v[[row, 0]] == v[[row, 1]], "v at {} ms", t[row]);
    }
    // 100 uA/cm2 over 1 mS/cm2 pull v towards +35 mV; 65 mV * (1 - exp(-t)) is passed on the way.
    assert!((v[[10, 2]] - (35.0 - 90.0 * (-1.0f64).exp())).abs() < 1e-9);
    let meta = result(&here, "m.npz").meta;
    for row in 0..5 {
        assert!((i[[row, 0]] - (v[[row * 5, 1]] + 65.0)).abs() < 1e-9, "1 mS/cm2 and mV give uA/cm2");
    }
    assert!(half.iter().all(|&x| x == 0.5) && g.iter().all(|&x| x == 1.0));
    let series = |name: &str| result(&here, "m.npz").series_named(name).unwrap().unit.clone();
    let units = ["c.soma.v", "c[1..3].soma.Leak.i", "c[1..3].soma.Leak.half", "c.g"].map(series);
    assert_eq!(units, ["mV", "uA/cm2", "mS/cm2", "mS/cm2"]);
    for key in ["source_hash", "compiler", "options", "seed", "model", "steps"] {
        assert!(meta.contains_key(key), "{key}: {meta:?}");
    }
    assert_eq!(meta["complete"], true);
}

#[test]
fn accuracy_is_explained_from_what_the_program_has() {
    let here = folder(&[]);
    let squid = example("squid");
    let emit = ["emit", &squid, "--stage", "ir-opt", "--explain", "--accuracy"];
    let exact = fine(&here, &with(&emit, &["exact"]));
    assert!(exact.err.contains("6 elementary functions at full accuracy"), "{}", exact.err);
    let nano = fine(&here, &with(&emit, &["1e-9"]));
    assert_eq!(nano.out.matches("= approximate ").count(), 6, "{}", nano.out);
    assert!(nano.err.contains("2 exp2 by a polynomial of degree 7: error up to 4.7e-11"), "{}", nano.err);
    assert!(nano.err.contains("0 of ") && nano.err.contains("0 elementary functions at full"), "{}", nano.err);
    let micro = fine(&here, &with(&emit, &["1e-6"]));
    assert!(micro.err.contains("1 exp2 in f32") && micro.out.contains("= widen "), "{}", micro.err);
    // In f32 nothing is left to give up.
    let single = fine(&here, &with(&emit, &["1e-6", "--precision", "f32"]));
    assert_eq!(single.out, exact.out);
    assert!(single.err.contains("nothing changes"), "{}", single.err);
}

#[test]
fn spikes_are_sorted_and_single_precision_is_single() {
    let here = folder(&[]);
    let cache = cache().display().to_string();
    let squid = example("squid");
    let run = ["run", &squid, "--quiet", "--cache", &cache, "--duration", "15ms", "--set", "n=300"];
    fine(&here, &with(&run, &["-o", "one.npz", "--threads", "1"]));
    let summary = fine(&here, &with(&run, &["-o", "two.npz", "--threads", "2", "--fuse", "1", "--json"]));
    fine(&here, &with(&run, &["-o", "single.npz", "--precision", "f32"]));

    let summary = json(&summary.out);
    let mut keys: Vec<&str> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort();
    let named = ["cell_steps_per_s", "cells", "compile_s", "device", "dt", "engine", "model", "precision"];
    let rest = ["realtime_factor", "run_s", "spikes", "steps"];
    assert!(named.iter().chain(&rest).all(|key| keys.contains(key)), "{keys:?}");
    assert_eq!(
        (&summary["model"], &summary["engine"], &summary["precision"]),
        (&"squid".into(), &"native".into(), &"f64".into())
    );
    assert_eq!(
        (summary["steps"].as_u64(), summary["cells"].as_u64(), summary["spikes"].as_u64()),
        (Some(1500), Some(300), Some(300))
    );

    let one = result(&here, "one.npz");
    assert_eq!(bytes(&here, "one.npz"), bytes(&here, "two.npz"), "threads and windows change nothing");
    let mut npz = open(&here, "one.npz");
    let (t, i) = (
        numbers(&mut npz, "squid.spikes.t"),
        npz.by_name::<ndarray::OwnedRepr<i64>, ndarray::Ix1>("squid.spikes.i").unwrap(),
    );
    assert_eq!((t.len(), i.len()), (300, 300));
    let order: Vec<(f64, i64)> = t.iter().copied().zip(i.iter().copied()).collect();
    assert!(order.is_sorted_by(|a, b| a <= b));
    let single = result(&here, "single.npz");
    for (a, b) in one.series.iter().zip(&single.series) {
        assert!(matches!((&a.values, &b.values), (Samples::F64(_), Samples::F32(_))), "{}", a.name);
    }
    let v: Array2<f32> = array(&mut open(&here, "single.npz"), "squid.soma.v");
    assert!((f64::from(v[[50, 7]]) - one.series[0].values.get(50, 7)).abs() < 1e-2);
}

#[test]
fn examples_are_the_same_interpreted_and_compiled() {
    let here = folder(&[]);
    let cache = cache().display().to_string();
    for file in examples() {
        // What is large would take the interpreter minutes.
        let (duration, smaller): (&str, &[&str]) = match Path::new(&file).file_stem().and_then(|stem| stem.to_str()) {
            Some("rallpack3" | "coba_hh") => ("1ms", &[]),
            Some("purkinje" | "column" | "lfp" | "pyramidal" | "olive_sheet") => ("3ms", &[]),
            Some("vogels_abbott_coba" | "vogels_abbott_cuba") => ("3ms", &[]),
            Some("microcircuit") => ("10ms", &["--set", "scale=0.01"]),
            _ => ("10ms", &[]),
        };
        let run = with(&["run", &file, "--quiet", "--cache", &cache, "--duration", duration], smaller);
        fine(&here, &with(&run, &["-o", "interp.npz", "--engine", "interp"]));
        fine(&here, &with(&run, &["-o", "native.npz", "--threads", "1"]));
        let read = |name: &str| Found::read(&here.path().join(name), &Reading::default()).unwrap();
        let runs = |found: Found| match found {
            Found::Run(run) => vec![run],
            Found::Sweep(sweep) => sweep.runs,
        };
        let (native, interp) = (runs(read("native.npz")), runs(read("interp.npz")));
        assert_eq!(native.len(), interp.len(), "{file}");
        for (native, interp) in native.iter().zip(&interp) {
            assert!(!native.series.is_empty() || !native.spikes.is_empty(), "{file}: records");
            assert_eq!(native.series, interp.series, "{file}: recorded values");
            assert_eq!(native.spikes, interp.spikes, "{file}: spikes");
        }
    }
}

#[test]
fn the_same_run_gives_the_same_bytes_and_every_format() {
    let here = passive_folder("init c.soma.v ~ normal(-60 mV, 2 mV)", "record c.soma.v\n    record spikes of c");
    fine(&here, INTERP);
    let first = bytes(&here, "m.npz");
    fine(&here, INTERP);
    assert_eq!(bytes(&here, "m.npz"), first);

    let run = ["run", "m.neuro", "--engine", "interp"];
    let told = fine(&here, &with(&run, &["-o", "m.csv", "--plot", "m.png"]));
    assert!(
        told.out.is_empty() && told.err.contains("wrote m.csv") && told.err.contains("wrote m.png"),
        "{}",
        told.err
    );
    assert!(!told.err.contains('\u{1b}') && !told.err.contains('%'), "no progress bar when piped: {}", told.err);
    let table = fs::read_to_string(here.path().join("m.csv")).unwrap();
    assert!(table.starts_with("t_ms,c[0].soma.v (mV),") && table.lines().count() == 22, "{table}");
    assert!(here.path().join("m.spikes.csv").exists());
    assert!(bytes(&here, "m.png").starts_with(b"\x89PNG"));
    // Without any output named, both files of the model's name appear; with --json alone, none.
    let bare = folder(&[("m.neuro", &passive("", "record c.soma.v"))]);
    assert!(!json(&fine(&bare, &with(&run, &["--json", "--quiet"])).out)["steps"].is_null());
    assert_eq!(fs::read_dir(bare.path()).unwrap().count(), 1);
    let quiet = fine(&bare, &with(&run, &["--quiet"]));
    assert!(quiet.err.is_empty() && bare.path().join("m.npz").exists() && bare.path().join("m.svg").exists());

    for (picture, begin) in [("p.svg", &b"<svg"[..]), ("p.png", b"\x89PNG")] {
        fine(&here, &["plot", "m.npz", "-o", picture, "--series", "soma.v", "--from", "0.5", "--to", "1.5"]);
        assert!(bytes(&here, picture).starts_with(begin), "{picture}");
    }
    fine(&here, &["plot", "m.npz"]);
    assert!(here.path().join("m.svg").exists());
    fails(&here, &["plot", "m.npz", "--series", "nothing"], 2, &["no name matches nothing", "c.soma.v"]);
    fails(&here, &["plot", "m.npz", "--width", "1"], 2, &["300 to 10000"]);
    fails(&here, &["plot", "m.neuro"], 2, &["not an .npz file"]);
    fails(&here, &["plot", "gone.npz"], 2, &["no such file"]);

    let bench = fine(&here, &["bench", "m.neuro", "--engine", "interp", "--steps", "20", "--repeat", "2", "--json"]);
    let bench = json(&bench.out);
    assert!(bench["cell_steps_per_s"].as_f64().unwrap() > 0.0 && bench["steps"] == 20, "{bench}");
    // What holds the interpreter up is not the machine.
    assert!(bench["predictions"].is_null() && bench["machine"].is_null(), "{bench}");
    let bench = fine(&here, &["bench", "m.neuro", "--engine", "interp", "--steps", "20", "--repeat", "2"]);
    assert!(bench.out.contains("flops") && bench.out.contains("real-time factor"), "{}", bench.out);
}

/// The texts of an SVG.
fn texts(svg: &str) -> Vec<String> {
    let elements = svg.split("<text ").skip(1).filter_map(|e| e.split_once(">\n")?.1.split_once("\n</text>"));
    elements.map(|(text, _)| text.to_owned()).collect()
}

#[test]
fn a_cell_is_drawn_by_its_shape_and_along_its_way() {
    let cell = "use std.channels.hh.{Leak}\ncell C {
        section soma { length = 20 um; diam = 20 um; compartments = 1 }
        section left { from soma(1); length = 100 um; diam = 2 um; compartments = 5 }
        section right { from soma(1); length = 150 um; diam = 1 um; compartments = 5 }
        region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }
        region soma { insert Leak(gbar = 0.1 mS/cm2, erev = -65 mV) }
        region left { insert Leak(gbar = 0.3 mS/cm2 + 1 mS/cm2 * distance / 1 mm, erev = -65 mV) }
    }
    cell Point { state v: mV = 0 mV; v' = -v / 1 ms }
    network main { population c: C[2]\n population p: Point\n input step: 0.1 nA -> c[1].left(1) }
    run { duration = 2 ms; dt = 0.1 ms; method = cnexp
        record c.all.v every 0.5 ms\n record c[1].left.Leak.i every 0.5 ms\n record p.v }";
    let here = folder(&[("m.neuro", cell)]);
    let draw = |arguments: &[&str]| {
        fine(&here, &with(&["plot"], &with(arguments, &["-o", "p.svg"])));
        texts(&String::from_utf8(bytes(&here, "p.svg")).unwrap())
    };
    let has = |said: &[String], wanted: &[&str]| {
        for text in wanted {
            assert!(said.iter().any(|t| t == text), "{text:?} is not among {said:?}");
        }
    };
    let shape = ["--morphology", "m.neuro"];
    has(&draw(&shape), &["C", "3 sections, 11 compartments, 270 um", "soma", "left", "right", "20 um"]);
    has(&draw(&with(&shape, &["--colour", "Leak.gbar"])), &["c: Leak.gbar", "Leak.gbar (mS/cm²)", "0.20", "0.40"]);
    has(&draw(&with(&shape, &["--color", "distance", "--cell", "C"])), &["c: distance", "distance (um)"]);
    fine(&here, &["plot", "--morphology", "m.neuro"]);
    assert!(here.path().join("m.C.svg").exists());
    fine(&here, &with(&["plot"], &with(&shape, &["-o", "p.png", "--width", "500", "--height", "300"])));
    assert!(bytes(&here, "p.png").starts_with(b"\x89PNG"));
    fine(&here, &with(&["plot"], &with(&shape, &["-o", "p.pdf"])));
    assert!(bytes(&here, "p.pdf").starts_with(b"%PDF"));
    let wrong = |arguments: &[&str], code: i32, parts: &[&str]| fails(&here, &with(&["plot"], arguments), code, parts);
    wrong(&with(&shape, &["--colour", "Na.gbar"]), 2, &["`Na.gbar`", "area, distance, cm, ra", "Leak.gbar, Leak.erev"]);
    wrong(&with(&shape, &["--cell", "Point"]), 2, &["no cell with sections is called `Point`", "there are C"]);
    wrong(&with(&shape, &["--at", "1ms"]), 2, &["--at", "RESULT"]);
    wrong(&with(&shape, &["--kind", "raster"]), 2, &["--kind", "not for shapes"]);
    wrong(&with(&shape, &["-o", "p.html"]), 2, &[".svg, .png or .pdf"]);
    wrong(&with(&shape, &["-o", "p.svg", "--width", "10"]), 2, &["300 to 10000"]);
    wrong(&["--cell", "C", "r.npz"], 2, &["--morphology"]);

    fine(&here, &["run", "m.neuro", "-o", "r.npz", "--engine", "interp", "--plot", "r.svg"]);
    let run = String::from_utf8(bytes(&here, "r.svg")).unwrap();
    has(&texts(&run), &["c.all.v", "soma(0.5) of cell 0", "right(0.9) of cell 1", "8 of 22 compartments", "left(0.9)"]);
    let with_results = ["--morphology", "m.neuro", "r.npz", "--at", "1.1ms"];
    has(&draw(&with(&with_results, &["--colour", "v"])), &["c, cell 0: v at 1 ms", "V (mV)"]);
    has(&draw(&with(&with_results, &["--colour", "v", "--cells", "1"])), &["c, cell 1: v at 1 ms"]);
    has(&draw(&with(&with_results, &["--colour", "Leak.i"])), &["c, cell 1: Leak.i at 1 ms", "Leak.i (uA/cm²)"]);
    wrong(&with_results, 2, &["v, Leak.i", "--colour v"]);
    wrong(&with(&with_results, &["--colour", "m"]), 2, &["no `m` of compartments, but v, Leak.i"]);
    wrong(&["--morphology", "m.neuro", "r.npz", "--colour", "v"], 2, &["--at 12ms"]);
    wrong(&["--morphology", "m.neuro", "r.npz", "--colour", "v", "--at", "7ms"], 1, &["at 7 ms", "from 0 ms to 2 ms"]);
    let other =
        fs::read_to_string(here.path().join("m.neuro")).unwrap().replace("compartments = 5", "compartments = 7");
    fs::write(here.path().join("other.neuro"), other).unwrap();
    let other = ["--morphology", "other.neuro", "r.npz", "--at", "1ms", "--colour", "v"];
    wrong(&other, 1, &["not of this model", "left(0.1)"]);

    let space = ["r.npz", "--kind", "space"];
    let way = "c.all.v of cell 0 · V (mV) along the way from soma(0.5) to right(0.9)";
    has(&draw(&space), &[way, "distance (um)", "time (ms)"]);
    let way = "c.all.v of cell 1 · V (mV) along the way from soma(0.5) to left(0.9)";
    has(&draw(&with(&space, &["--along", "left", "--cells", "1"])), &[way]);
    let profiles = draw(&with(&space, &["--series", "all.v", "--at", "0ms,1ms"]));
    has(&profiles, &["c.all.v of cell 0", "0 ms", "1 ms", "V (mV)", "distance (um)"]);
    wrong(&with(&space, &["--series", "all.v", "--along", "up"]), 2, &["called `up`", "soma, left, right"]);
    wrong(&with(&space, &["--at", "9ms"]), 1, &["at 9 ms, but from 0 ms to 2 ms"]);
    wrong(&with(&space, &["--series", "p.v"]), 1, &["record cells.all.v"]);
    wrong(&["r.npz", "--at", "1ms"], 2, &["--kind space"]);
    wrong(&with(&space, &["--at", "1ms,2ms", "--along", "left"]), 2, &["--along"]);
}

#[test]
fn bench_compares_a_run_with_what_the_machine_allows() {
    let here = folder(&[]);
    let cache = cache().display().to_string();
    let common = ["--threads", "1", "--repeat", "1", "--steps", "80", "--precision", "f32", "--cache", &cache];
    let bench = |model: &str, more: &[&str]| fine(&here, &with(&with(&["bench", &example(model)], &common), more)).out;
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    let bounds = ["arithmetic", "division", "memory", "gather", "barrier"];

    // Unconnected: four states come and go once in 40 steps, nothing is gathered.
    let squid = json(&bench("squid", &["--set", "n=500", "--json"]));
    let [population] = &squid["populations"].as_array().unwrap()[..] else { panic!("{squid}") };
    assert_eq!((&population["name"], &population["cells"]), (&Value::from("squid"), &Value::from(500)));
    assert_eq!(number(&population["steps_in_registers"]), 40.0);
    let bytes = &population["bytes_per_cell_step"];
    assert_eq!((number(&bytes["loaded"]), number(&bytes["stored"])), (0.4, 0.4));
    assert_eq!((number(&bytes["gathered"]), number(&bytes["edge_table"])), (0.0, 0.0));
    assert_eq!(number(&population["per_cell_step"]["exponentials"]), 6.0);
    let intensity = number(&population["per_cell_step"]["flops"]) / number(&bytes["total"]);
    assert!((number(&population["flops_per_byte"]) / intensity - 1.0).abs() < 1e-12, "{population}");
    assert!((number(&squid["ns_per_cell_step"]) * number(&squid["cell_steps_per_s"]) / 1e9 - 1.0).abs() < 1e-12);
    let predicted = &squid["predictions"]["ns_per_cell_step"];
    assert_eq!((number(&predicted["gather"]), number(&predicted["barrier"])), (0.0, 0.0));
    assert!(["arithmetic", "division", "memory"].iter().all(|bound| number(&predicted[*bound]) > 0.0), "{predicted}");

    // Connected: all 14 states are streamed every step; a cell has ten junctions on average.
    let olive = json(&bench("inferior_olive/inferior_olive", &["--json"]));
    let [population] = &olive["populations"].as_array().unwrap()[..] else { panic!("{olive}") };
    let (bytes, places) = (&population["bytes_per_cell_step"], number(&population["edge_places_per_cell"][0]));
    assert_eq!(number(&population["edges_per_cell"][0]), 10.0);
    assert!(places >= 10.0, "{population}");
    assert_eq!((number(&bytes["loaded"]), number(&bytes["stored"]), number(&bytes["exchanged"])), (56.0, 56.0, 4.0));
    // Halves, quarters and eighths: exact.
    assert_eq!((number(&bytes["edge_table"]), number(&bytes["gathered"])), (4.0 * places + 4.0, 4.0 * places));
    let predicted = &olive["predictions"]["ns_per_cell_step"];
    assert!(number(&predicted["gather"]) > 0.0 && number(&predicted["barrier"]) == 0.0, "{predicted}");
    let largest = bounds.iter().max_by(|a, b| number(&predicted[**a]).total_cmp(&number(&predicted[**b])));
    assert_eq!(olive["predictions"]["nearest"], **largest.unwrap());

    let text = bench("inferior_olive/inferior_olive", &[]);
    for part in ["compile time", "ns each", "flops per byte", "streamed every step", "nearest limit", "measured"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(bounds.iter().all(|bound| text.contains(&format!("\n  {bound} "))), "{text}");
}

#[test]
fn cells_are_selected_and_wrong_selections_are_told_before_the_run() {
    let here = passive_folder("", "record c[1..3].soma.v\n    record c[0].soma.v every 1 ms");
    fine(&here, INTERP);
    let r = result(&here, "m.npz");
    let shapes: Vec<(&str, (usize, usize))> = r.series.iter().map(|s| (s.name.as_str(), s.values.shape())).collect();
    assert_eq!(shapes, [("c[1..3].soma.v", (21, 2)), ("c[0].soma.v", (3, 1))]);
    for (record, parts) in [
        ("record c[1..9].soma.v", &["m.neuro:27:12", "0 to 2"][..]),
        ("record c[2..2].soma.v", &["m.neuro:27:12", "no such cells"]),
        ("record c[1].soma.v\n record c[0..1].soma.v\n record c[0..1].soma.v every 1 ms", &["recorded twice"]),
        (
            "record c[0..1].soma.v\n record c[1..2].soma.Leak.{i}\n record c[1].soma.Leak.i every 1 ms\n record c[1..n - 1].soma.Leak.i",
            &["recorded twice"],
        ),
        ("record c.soma.w", &["soma.w"]),
    ] {
        let here = passive_folder("", record);
        fails(&here, &["check", "m.neuro"], 1, parts);
        fails(&here, INTERP, 1, parts);
        assert!(!here.path().join("m.npz").exists());
    }
}

// -------------------------------------------------------------------------------------------------------- data files

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let header = format!("{header:<117}\n");
    [b"\x93NUMPY\x01\x00".as_slice(), &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
}

fn doubles(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

#[test]
fn data_files_are_read_whole_or_refused() {
    let three = doubles(&[1.0, 2.0, 3.0]);
    let good = npy("<f8", "3,", &three);
    let per_cell: Vec<(&str, Vec<u8>, Option<&str>)> = vec![
        ("double.npy", good.clone(), None),
        ("column.npy", npy("<f8", "3, 1", &three), None),
        ("byte.npy", npy("|u1", "3,", &[1, 2, 3]), None),
        ("int.npy", npy("<i4", "3,", &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]), None),
        ("lines.csv", b"# made by hand\r\n1\r\n2\r\n\r\n3\r\n".to_vec(), None),
        ("mark.csv", "\u{feff}1\n2\n3\n".into(), None),
        ("quoted.csv", b"\"g\"\n\"1\"\n2\n3".to_vec(), None),
        ("short.npy", good[..good.len() - 3].to_vec(), Some("cut short")),
        ("head.npy", good[..60].to_vec(), Some("cut short")),
        ("empty.npy", Vec::new(), Some("not an .npy file")),
        ("text.npy", b"1\n2\n3\n".to_vec(), Some("not an .npy file")),
        ("long.npy", [good.as_slice(), b"x"].concat(), Some("1 bytes too many")),
        ("lie.npy", npy("<f8", "250000000,", &three), Some("promises more")),
        ("great_lie.npy", npy("<f8", "1000000000000,", &three), Some("promises more")),
        ("complex.npy", npy("<c16", "1,", &three[..16]), Some("neither float64")),
        ("words.npy", npy("<U1", "1,", &three[..4]), Some("neither float64")),
        ("nan.npy", npy("<f8", "3,", &doubles(&[1.0, f64::NAN, 3.0])), Some("number 2 of 3 is NaN")),
        ("two.npy", npy("<f8", "2,", &three[..16]), Some("it has 2 numbers, but the population has 3 cells")),
        ("word.csv", b"1\ntwo\n3\n".to_vec(), Some("line 2 is not numbers: `two`")),
        ("heads.csv", b"g\nof cells\n1\n2\n3\n".to_vec(), Some("line 2 is not numbers")),
        ("wide.csv", b"a,b\n1,2\n3,4\n5,6\n".to_vec(), Some("2 columns; name one")),
        ("gap.csv", b"a,b\n1,2\n,4\n5,6\n".to_vec(), Some("line 3")),
        ("nothing.csv", Vec::new(), Some("0 numbers")),
        ("binary.csv", vec![0xff, 0xfe, 0], Some("nor text")),
    ];
    for (name, data, why) in &per_cell {
        let network = format!("param c.g = file(\"{name}\") * 1 mS/cm2");
        let here = passive_folder(&network, "record c.g every 1 ms");
        fs::write(here.path().join(name), data).unwrap();
        match why {
            Some(why) => fails(&here, INTERP, 1, &["NU0315", "m.neuro:21:17", name, why]),
            None => {
                fine(&here, INTERP);
                let g = &result(&here, "m.npz").series[0].values;
                assert_eq!([g.get(0, 0), g.get(0, 1), g.get(2, 2)], [1.0, 2.0, 3.0], "{name}");
            }
        }
    }
    let named = "param c.g = file(\"d.csv\", column = \"b\") * 1 mS/cm2";
    let here = passive_folder(named, "record c.g every 1 ms");
    fails(&here, INTERP, 1, &["NU0004", "d.csv", "relative to the model file"]);
    fs::write(here.path().join("d.csv"), "a;b\n1;7\n2;8\n3;9\n").unwrap();
    fine(&here, INTERP);
    assert_eq!(result(&here, "m.npz").series[0].values.get(0, 2), 9.0);
    fs::write(here.path().join("d.csv"), "a;b\n1;7,5\n2;8,5\n3;9,5\n").unwrap();
    fails(&here, INTERP, 1, &["line 2 has `7,5`: a decimal point is a `.`, not a `,`"]);
    fs::write(here.path().join("d.csv"), "a,c\n1,7\n2,8\n3,9\n").unwrap();
    fails(&here, INTERP, 1, &["no column `b`, but `a`, `c`"]);
    fs::remove_file(here.path().join("d.csv")).unwrap();
    fs::create_dir(here.path().join("d.csv")).unwrap();
    fails(&here, INTERP, 1, &["NU0004", "directory"]);
}

#[test]
fn a_series_covers_the_run_or_is_refused() {
    let series: Vec<(&str, Vec<u8>, Option<&str>)> = vec![
        ("s.npy", npy("<f8", "2, 2", &doubles(&[0.0, 1.0, 2.0, 3.0])), None),
        ("s.csv", b"t,i\n0,1\n2,3\n".to_vec(), None),
        ("end.csv", b"0,1\n1.9,3\n".to_vec(), Some("covers 0 ms to 1.9 ms, but the run needs 0 ms to 2 ms")),
        ("begin.csv", b"0.1,1\n2,3\n".to_vec(), Some("covers 0.1 ms")),
        ("back.csv", b"0,1\n1,1\n0.5,1\n2,3\n".to_vec(), Some("goes back from 1 ms to 0.5 ms")),
        ("inf.csv", b"0,1\n1,inf\n2,3\n".to_vec(), Some("not finite")),
        ("one.csv", b"0\n1\n2\n".to_vec(), Some("1 columns")),
        ("spaces.csv", b"0 1\n2 3\n".to_vec(), Some("is not numbers")),
        ("none.csv", b"".to_vec(), Some("no samples")),
        ("flat.npy", npy("<f8", "2,", &doubles(&[0.0, 2.0])), Some("two columns")),
    ];
    for (name, data, why) in &series {
        let here = passive_folder(&format!("input i: series(\"{name}\") * 1 uA/cm2 -> c.soma"), "record c.soma.v");
        fs::write(here.path().join(name), data).unwrap();
        match why {
            Some(why) => fails(&here, INTERP, 1, &["NU0315", "m.neuro:21:14", why]),
            None => _ = fine(&here, INTERP),
        }
    }
}

// -------------------------------------------------------------------------------------------------- runs that go wrong

#[test]
fn a_run_that_diverges_names_the_culprit_and_keeps_what_it_has() {
    let text = passive("", "record c[0].soma.v every 1 ms\n    record spikes of c").replace("g = 1 mS", "g = 1e20 mS");
    let here = folder(&[("m.neuro", &text)]);
    let run = with(INTERP, &["--method", "euler", "--duration", "20ms"]);
    let parts =
        ["NU0501", "`c.soma.v` of cell 0 became", "at t = 1.", "m.neuro:12:", "c.soma.v = ", " mV", "--dt 0.05ms"];
    fails(&here, &run, 1, &parts);
    let kept = result(&here, "m.npz");
    assert_eq!(kept.series[0].t.as_slice(), [0.0, 1.0]);
    assert_eq!(kept.meta["complete"], false);
    let steps = kept.meta["steps"].as_u64().unwrap();
    assert!((10..20).contains(&steps), "{steps}");
    assert!(kept.spikes[0].t.last().unwrap() > &1.2, "spikes between the last sample and the end are kept");
    let traced = neuroc(&here, &with(&run, &["--trace-nan"]));
    assert_eq!((traced.code, traced.err.matches("at t = ").count()), (1, 11), "{}", traced.err);

    let zero = text.replace("v_init = -55 mV", "v_init = -55 mV / (n - 3)").replace("[n]", "[3]");
    let zero = zero.replace("cell C {", "cell C {\n    param n = 3");
    let here = folder(&[("m.neuro", &zero)]);
    fails(&here, INTERP, 1, &["NU0501", "the initial value of `c.soma.v` of cell 0 is infinite"]);
    assert!(result(&here, "m.npz").series[0].t.is_empty());
}

/// Waits until a process has a handler for SIGINT, which `neuroc run` sets just before the first step.
#[cfg(target_os = "linux")]
pub fn catches_interrupts(process: u32) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() & 2 != 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no handler after a minute");
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_stopped_keeps_a_complete_file() {
    for signal in ["-INT", "-TERM"] {
        let here = passive_folder("", "record c.soma.v every 1 ms");
        let run = ["run", "m.neuro", "--engine", "interp", "-o", "m.npz", "--duration", "1000s"];
        let child = command(here.path(), &run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        catches_interrupts(child.id());
        std::thread::sleep(Duration::from_millis(300));
        // The shell's own `kill`: a small system has no program of that name.
        let kill = format!("kill {signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let done = done(child.wait_with_output().unwrap());
        assert_eq!(done.code, 130, "{}", done.err);
        assert!(done.err.contains("stopped at t = ") && done.err.contains("wrote m.npz"), "{}", done.err);
        let kept = result(&here, "m.npz");
        assert!(kept.series[0].t.len() > 1 && kept.meta["complete"] == false);
    }
}

/// Nothing is asked of a process that is killed: its files are whole all the time.
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_killed_leaves_what_it_had_recorded() {
    let here = passive_folder("", "record c.soma.v\n    record c[1].soma.v every 1 ms\n    record spikes of c");
    for (name, wait) in [("m.npz", 1500), ("m.npz", 2500), ("d/", 1500)] {
        fs::write(here.path().join("m.npz"), "the run before").unwrap();
        let run = ["run", "m.neuro", "--engine", "interp", "--quiet", "-o", name, "--duration", "1000s"];
        let mut child = command(here.path(), &run).spawn().unwrap();
        catches_interrupts(child.id());
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        let kept = result(&here, name);
        let [v, one] = ["c.soma.v", "c[1].soma.v"].map(|name| kept.series_named(name).unwrap());
        assert!(one.t.len() > 1 && v.t.len() > 10 && kept.meta["complete"] == false);
        assert_eq!(kept.meta["steps"].as_u64(), Some(v.t.len() as u64 - 1));
        assert_eq!(one.t.len(), (v.t.len() - 1) / 10 + 1);
    }
}

/// What is recorded is written while the run goes on, so it may be more than there is memory.
#[cfg(target_os = "linux")]
#[test]
fn d4_results_larger_than_memory_are_written() {
    let here = passive_folder("", "record c.soma.v");
    let cache = cache().display().to_string();
    let run = ["run", "m.neuro", "--quiet", "--threads", "1", "--set", "n=50000", "-o", "m.npz", "--cache", &cache];
    // With a limit rustc would have no memory for the kernel.
    fine(&here, &with(&run, &["--duration", "0.1ms"]));
    let limited = format!("ulimit -v 180000 && exec {PROGRAM} {} --duration 50ms", run.join(" "));
    let done = Command::new("sh").args(["-c", &limited]).current_dir(here.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(fs::metadata(here.path().join("m.npz")).unwrap().len() > 200_000_000);
}

#[test]
fn names_of_records_and_their_times_do_not_depend_on_the_order() {
    let (fine_grained, coarse) = ("record c.soma.v every 0.1 ms", "record c[2].soma.v every 1 ms");
    let results = [[fine_grained, coarse], [coarse, fine_grained]].map(|lines| {
        let here = passive_folder("", &lines.join("\n    "));
        fine(&here, INTERP);
        let mut npz = open(&here, "m.npz");
        assert_eq!((numbers(&mut npz, "t").len(), numbers(&mut npz, "c[2].soma.v.t").len()), (21, 3));
        let cell: Array1<i64> = npz.by_name("c[2].soma.v.cell").unwrap();
        assert_eq!(cell.to_vec(), [2]);
        let mut series = result(&here, "m.npz").series;
        series.sort_by(|a, b| a.name.cmp(&b.name));
        series
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn results_hold_grids_parameters_and_drawn_values() {
    let text = passive("param c.g ~ uniform(1 mS/cm2, 2 mS/cm2)", "record c[1].soma.v\n    record c.g every 2 ms");
    let here = folder(&[("m.neuro", &text.replace("C[n]", "C[n, 2]"))]);
    fine(&here, INTERP);
    let r = result(&here, "m.npz");
    assert_eq!((r.populations[0].cells, &r.populations[0].shape[..]), (6, &[2, 3][..]));
    let parameter = |name: &str| r.parameters.iter().find(|p| p.name == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(parameter("n").values, ParameterValues::One(3.0));
    let drawn = &r.series_named("c.g").unwrap().values;
    let drawn: Vec<f64> = (0..6).map(|cell| drawn.get(0, cell)).collect();
    let values = ParameterValues::PerCell { population: "c".into(), values: drawn };
    assert_eq!((&parameter("c.g").values, parameter("c.g").unit.as_str()), (&values, "mS/cm2"));
}

#[cfg(target_os = "linux")]
#[test]
fn full_disks_and_closed_pipes_are_told() {
    let here = passive_folder("", "record c.soma.v");
    for name in ["full.npz", "full.svg", "full.png"] {
        std::os::unix::fs::symlink("/dev/full", here.path().join(name)).unwrap();
    }
    let run = ["run", "m.neuro", "--engine", "interp", "--quiet"];
    let lost =
        done(command(here.path(), &with(&run, &["-o", "full.npz"])).env("TMPDIR", here.path()).output().unwrap());
    assert!(lost.code == 1 && lost.err.contains("the disk is full; the results are kept in `"), "{}", lost.err);
    let refuge = PathBuf::from(lost.err.split('`').nth(3).unwrap());
    assert_eq!(RunResult::read_npz(&refuge).unwrap().series.len(), 1);
    fails(&here, &with(&run, &["--plot", "full.svg"]), 1, &["the disk is full"]);
    fails(&here, &with(&run, &["--plot", "full.png"]), 1, &["the disk is full"]);
    fails(&here, &["emit", "m.neuro", "--stage", "rust", "-o", "/dev/full"], 1, &["the disk is full"]);
    let bench = ["bench", "m.neuro", "--engine", "interp", "--steps", "1", "--repeat", "1", "--json"];
    let json = with(&run, &["--json"]);
    for arguments in [&["passes"][..], &["check", "gone", "--message-format", "json"], &json, &bench] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let done = done(command(here.path(), arguments).stdout(full).output().unwrap());
        assert!(done.code == 1 && done.err.contains("No space left"), "{arguments:?}: {}", done.err);
    }
    for arguments in [&["emit", "m.neuro", "--stage", "ast"][..], &["check", "gone"]] {
        // Nobody reads what the program says.
        let mut command = command(here.path(), arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(if arguments[0] == "emit" { 0 } else { 2 }), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_missing_or_broken_compiler_is_explained() {
    use std::os::unix::fs::PermissionsExt;
    let here = passive_folder("", "record c.soma.v");
    let cache = here.path().join("cache").display().to_string();
    let run = ["run", "m.neuro", "--quiet", "-o", "m.npz", "--cache", &cache];
    let with_path = |path: &str| done(command(here.path(), &run).env("PATH", path).output().unwrap());
    let none = with_path("");
    assert!(none.code == 1 && none.err.contains("no `rustc` in PATH"), "{}", none.err);
    for part in ["https://rustup.rs", "apt install rustc", "--engine interp"] {
        assert!(none.err.contains(part), "{}", none.err);
    }
    let rustc = here.path().join("rustc");
    for (script, part) in [
        ("#!/bin/sh\necho I am broken >&2\nexit 3\n", "I am broken"),
        ("#!/bin/sh\nexit 0\n", "made no library"),
        ("not a program", "rustc"),
    ] {
        fs::write(&rustc, script).unwrap();
        fs::set_permissions(&rustc, fs::Permissions::from_mode(0o755)).unwrap();
        let broken = with_path(&format!("{}:/bin:/usr/bin", here.path().display()));
        assert!(
            broken.code == 1 && broken.err.contains(part) && broken.err.contains("--engine interp"),
            "{}",
            broken.err
        );
        assert!(!broken.err.contains("bug of neuroc"), "{}", broken.err);
    }
    let interp = with(INTERP, &["--cache", &cache]);
    let without = done(command(here.path(), &interp).env_clear().output().unwrap());
    assert_eq!(without.code, 0, "{}", without.err);
    fs::write(here.path().join("file"), "").unwrap();
    fails(&here, &["run", "m.neuro", "-o", "m.npz", "--cache", "file"], 1, &["kernel cache", "--cache DIR"]);
    let mut homeless = command(here.path(), &["run", "m.neuro", "-o", "m.npz"]);
    let homeless = done(homeless.env_remove("HOME").env_remove("XDG_CACHE_HOME").output().unwrap());
    assert!(
        homeless.code == 1 && homeless.err.contains("no HOME") && homeless.err.contains("--cache DIR"),
        "{}",
        homeless.err
    );
}

#[test]
fn two_runs_at_once_share_a_cold_cache() {
    let here = passive_folder("", "record c.soma.v");
    let runs = ["a.npz", "b.npz"].map(|output| {
        let run = ["run", "m.neuro", "--quiet", "-o", output, "--cache", "cold"];
        command(here.path(), &run).stderr(Stdio::piped()).spawn().unwrap()
    });
    for run in runs {
        let done = done(run.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{}", done.err);
    }
    assert_eq!(bytes(&here, "a.npz"), bytes(&here, "b.npz"));
    assert_eq!(fs::read_dir(here.path().join("cold")).unwrap().count(), 1, "one kernel and nothing left over");
}

/// Numbers to look at, not to pass or fail by: `cargo test --release cli -- --ignored --nocapture`.
#[test]
#[ignore = "measures, and a busy machine is no mistake"]
fn checking_an_example_takes_less_than_50_ms() {
    let here = folder(&[]);
    for file in examples() {
        let begin = Instant::now();
        fine(&here, &["check", &file]);
        let took = begin.elapsed();
        println!("{:>7.1} ms  {file}", took.as_secs_f64() * 1e3);
        assert!(took < Duration::from_millis(500), "{file}: {took:?}");
    }
}

/// The engines agree, and what is written for JAX holds what it says.
#[cfg(feature = "xla")]
#[test]
fn verify_and_stablehlo() {
    if crate::pjrt::cpu().is_none() {
        return;
    }
    let folder = folder(&[]);
    let (squid, cache) = (example("squid"), cache().display().to_string());
    let verify = ["verify", &squid, "--duration", "20ms", "--cache", &cache, "--within"];
    let table = fine(&folder, &[&verify[..], &["1e-9"]].concat()).out;
    for word in ["native f64", "native f32", "xla f64", "xla f32", "squid.soma.v (mV)", "spikes of squid"] {
        assert!(table.contains(word), "{table}");
    }
    let strict = neuroc(&folder, &[&verify[..], &["1e-30"]].concat());
    assert_eq!(strict.code, 1, "{}", strict.err);
    assert!(strict.err.contains("differs by more than 1e-30"), "{}", strict.err);

    fine(&folder, &["build", &squid, "--emit", "stablehlo", "-o", "out"]);
    let out = folder.path().join("out");
    let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let inputs = fs::File::open(out.join("inputs.npz")).unwrap();
    let mut inputs = NpzReader::new(inputs).unwrap();
    let names: Vec<String> = inputs.names().unwrap();
    for (function, described) in manifest["functions"].as_object().unwrap() {
        let text = fs::read_to_string(out.join(described["text"].as_str().unwrap())).unwrap();
        assert!(text.contains("func.func @main("), "{function}");
        let bytecode = fs::read(out.join(described["bytecode"].as_str().unwrap())).unwrap();
        assert!(bytecode.starts_with(b"ML\xefR"), "{function}");
        for argument in described["arguments"].as_array().unwrap() {
            if let Some(key) = argument["key"].as_str() {
                assert!(names.iter().any(|name| name.trim_end_matches(".npy") == key), "{key} in {names:?}");
            }
        }
    }
    let steps = &manifest["stretch"];
    let covered =
        steps["steps"].as_u64().unwrap() * steps["calls"].as_u64().unwrap() + steps["steps_left"].as_u64().unwrap();
    assert_eq!(covered, 10000);
    assert_eq!(steps["records"][0]["name"], "squid.soma.v");
    assert_eq!(steps["records"][0]["unit"], "mV");

    fails(&folder, &["build", &squid, "-o", "crate", "--device", "cuda"], 2, &["add `--emit stablehlo`"]);
    for (device, argument, other) in [("cpu", "slabs", "present"), ("cuda", "present", "slabs")] {
        let olive = example("inferior_olive/inferior_olive");
        fine(&folder, &["build", &olive, "--set", "side=4", "--emit", "stablehlo", "--device", device, "-o", device]);
        let manifest = fs::read_to_string(folder.path().join(device).join("manifest.json")).unwrap();
        assert!(manifest.contains(&format!("Cx36.{argument}\"")), "{device} {manifest}");
        assert!(!manifest.contains(&format!("Cx36.{other}\"")), "{device}");
    }
}

#[test]
fn runs_tell_of_rounded_delays_and_may_have_no_spikes() {
    let model = |delay: &str, level: &str| {
        format!(
            "synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
cell Lif {{ state v: mV = 11 mV; v' = -v / 10 ms; spike when v > {level} {{ v = 0 mV }} }}
network main {{ population a: Lif[3]; connect a -> a via Kick {{ rule = all_to_all(); weight = 1 mV; delay = {delay} }} }}
run {{ duration = 5 ms; dt = 0.1 ms; record spikes of a }}
"
        )
    };
    let (rounded, silent) = (model("0.77 ms", "10 mV"), model("0.8 ms", "90 mV"));
    let folder = folder(&[("rounded.neuro", &rounded), ("silent.neuro", &silent)]);
    let run = |file: &str, more: &[&str]| fine(&folder, &[&["run", file, "--engine", "interp"], more].concat());
    let told = run("rounded.neuro", &[]).err;
    assert!(told.contains("NU0410") && told.contains("0.77 ms become 0.8 ms"), "{told}");
    let told = run("rounded.neuro", &["--dt", "0.01ms"]).err;
    assert!(!told.contains("NU0410"), "{told}");
    let told = run("silent.neuro", &[]).err;
    assert!(told.contains("nothing to draw") && !told.contains("error"), "{told}");
    fails(&folder, &["run", "silent.neuro", "--engine", "interp", "--plot", "p.svg"], 1, &["nothing to draw"]);
}

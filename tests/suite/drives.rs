//! Tests of: drives with the spikes of a file, and delays of drives: the steps in which spikes arrive, equality with times that are written out and
//! with connections, file formats, and what is wrong with files.

use crate::cli::{folder, neuroc};
use crate::events::{checked, checked_in, column, compiled_ways, native_run, plain, same};
use crate::models::{Way, run};
use ndarray::Array2;
use ndarray_npy::{NpzWriter, write_npy};
use neuroc::codegen::plan::Precision;
use neuroc::driver::{Checked, Experiment, compile};
use neuroc::results::RunResult;
use std::fmt::Write;
use std::fs::File;
use std::path::Path;

/// Cells that count what arrives.
const COUNTING: &str = "
synapse Count { state n: 1 = 0; n' = 0 / 1 ms; on event(weight) { n += weight } current i = n * 0 nA }
synapse Exp {
    param tau = 5 ms; param erev = 0 mV
    state g: nS = 0 nS
    g' = -g / tau
    on event(weight: nS) { g += weight }
    current i = g * (v - erev)
}
synapse Kick { on event(weight: mV) { v += weight } }
cell Lif {
    state v: mV = -60 mV
    v' = (10 nS * (-60 mV - v) - i_syn) / 200 pF
    spike when v > -50 mV { v = -60 mV; refractory 2 ms }
}
";

fn ways() -> Vec<Way> {
    [Way::Plain, Way::Optimized, Way::Reread].into_iter().chain(compiled_ways()).collect()
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

/// What a run says before its first step.
fn said(checked: &Checked) -> Vec<String> {
    let compiled = compile(checked, &plain(), &mut |_, _, _| {}).unwrap_or_else(|d| panic!("{d:?}"));
    let told = match Experiment::new(compiled) {
        Ok(experiment) => experiment.warnings,
        Err(errors) => errors,
    };
    let label = |d: &neuroc::diag::Diagnostic| d.labels.first().map_or(String::new(), |label| label.message.clone());
    told.iter().map(|d| format!("{}: {}: {}", d.code.id(), d.message, label(d))).collect()
}

/// Numbers that look random, below so many.
fn draws(count: usize, below: u64) -> Vec<u64> {
    let mut state = 9_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..count).map(|_| next()).collect()
}

/// Every spike arrives in its step, also in the first one, at both sides of the ends of stretches, in the last one, and where several meet; on every
/// engine and with every number of threads. Those behind the end do not.
#[test]
fn spikes_of_a_file_arrive_in_their_steps() {
    let (cells, steps) = (37, 1600);
    let mut spikes: Vec<(u64, u64)> = draws(900, steps).into_iter().map(|s| s + 1).zip(draws(900, cells)).collect();
    spikes.extend([1, 2, 511, 512, 513, 514, 1023, 1024, 1025, 1026, 1599, 1600].map(|step| (step, 5)));
    spikes.extend([(1, 0), (1, 0), (1, 0), (1600, 36), (0, 7), (1601, 5), (9000, 5)]);
    let mut text = "t,cell\n".to_string();
    for (step, cell) in &spikes {
        let _ = writeln!(text, "{:.1},{cell}", *step as f64 * 0.1);
    }
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "s.csv", &text);
    let text = format!(
        "{COUNTING}
network main {{
    population a: Lif[{cells}]
    population b: Lif[3]
    drive a via Count from spikes(\"s.csv\") {{ weight = 1 }}
    drive a via Count as late from spikes(\"s.csv\") {{ weight = 0.5; delay = 1.2 ms }}
    drive b via Count from times(160 ms) {{ weight = 1 }}
}}
run {{ duration = 160 ms; dt = 0.1 ms; method = exp_euler; record a.{{Count.n, late.n}}; record b.Count.n }}"
    );
    let checked = checked_in(folder.path(), &text);
    let arrived = |step: u64, cell: u64, delay: u64| {
        // What is at 0 arrives in the first step.
        let there = |&&(at, of): &&(u64, u64)| of == cell && at.max(1) + delay <= step && at.max(1) + delay <= steps;
        spikes.iter().filter(there).count() as f64
    };
    let demand = |result: &RunResult, what: &str| {
        for cell in 0..cells {
            let now = column(result, "a.Count.n", cell as usize);
            let late = column(result, "a.late.n", cell as usize);
            for step in (0..=steps).filter(|step| step % 7 < 2 || (505..520).contains(step) || *step > 1590) {
                assert_eq!(now[step as usize], arrived(step, cell, 0), "{what}: cell {cell}, step {step}");
                assert_eq!(
                    late[step as usize],
                    0.5 * arrived(step, cell, 12),
                    "{what}: late, cell {cell}, step {step}"
                );
            }
        }
        assert_eq!(column(result, "b.Count.n", 2)[1599..], [0.0, 1.0], "{what}");
    };
    for way in ways() {
        demand(&run(&checked, &plain(), way), &format!("{way:?}"));
    }
    for threads in [1, 2, 3] {
        demand(&native_run(&checked, Precision::F64, threads), &format!("{threads} threads"));
    }
    demand(&native_run(&checked, Precision::F32, 2), "single precision");
}

/// The same bits as with times that are written out: with several at a time, with weights and delays that are drawn for the cells, at places of branched
/// cells and in all compartments of a region.
#[test]
fn spikes_of_a_file_are_those_of_written_times() {
    let folder = tempfile::tempdir().unwrap();
    let times = [0.1, 0.3, 0.33, 5.0, 5.0, 51.2, 51.3, 79.9, 80.0];
    let mut text = "cell;t [ms]\n".to_string();
    for t in times.iter().rev() {
        for cell in (0..9).rev() {
            let _ = writeln!(text, "{cell};{t}");
        }
    }
    write(folder.path(), "all.csv", &text);
    let some: String = text
        .lines()
        .filter(|line| line.starts_with('c') || "234".contains(&line[..1]))
        .map(|l| format!("{l}\n"))
        .collect();
    write(folder.path(), "some.csv", &some);
    let written = times.map(|t| format!("{t} ms")).join(", ");
    let text = |all: &str, some: &str| {
        format!(
            "use std.channels.hh.{{Leak}}
{COUNTING}
cell Tree {{
    section soma {{ length = 20 um; diam = 20 um; compartments = 1 }}
    section dend {{ from soma(1); length = 200 um; diam = 2 um; compartments = 5 }}
    region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }}
}}
network main {{
    population a: Lif[9]
    population trees: Tree[9]
    drive a via Exp from {all} {{ weight ~ uniform(1 nS, 2 nS) }}
    drive a via Exp as slow(tau = 20 ms) from {all} {{ weight = 3 nS; delay ~ uniform(0 ms, 60 ms) }}
    drive a[2..5] via Kick from {some} {{ weight = 4 mV; delay = 0.32 ms }}
    drive trees.dend(0.5) via Exp from {all} {{ weight = 1 nS; delay = 2 ms }}
    drive trees.all via Exp(tau = 3 ms) from {all} {{ weight ~ uniform(0.1 nS, 0.2 nS) }}
}}
run {{ duration = 80 ms; dt = 0.1 ms; method = cnexp; seed = 3; record a.{{v, Exp.g, slow.g}}; record trees.{{soma(0.5), dend(0.3)}}.v; record spikes of a }}"
        )
    };
    let of_file = checked_in(folder.path(), &text("spikes(\"all.csv\")", "spikes(\"some.csv\")"));
    let of_times = checked_in(folder.path(), &text(&format!("times({written})"), &format!("times({written})")));
    let plain_run = run(&of_times, &plain(), Way::Plain);
    assert!(plain_run.spikes[0].i.len() > 9);
    same(&plain_run, &run(&of_file, &plain(), Way::Plain), "interpreted");
    // Passes rewrite a product with a number of events, which the sum of a file's spikes is not.
    let optimized = run(&of_file, &plain(), Way::Optimized);
    assert_eq!(run(&of_times, &plain(), Way::Optimized).spikes, optimized.spikes);
    for way in [Way::Reread, Way::Native] {
        same(&optimized, &run(&of_file, &plain(), way), &format!("{way:?}"));
    }
    for threads in [1, 2, 3] {
        same(&optimized, &native_run(&of_file, Precision::F64, threads), &format!("{threads} threads"));
    }
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        crate::events::close(&optimized, &run(&of_file, &plain(), Way::Xla), 1e-9, "XLA");
    }
}

/// What cells have sent in an earlier run arrives as along connections: from an archive, a table of text and arrays of NumPy.
#[test]
fn spikes_of_an_earlier_run_arrive_as_along_connections() {
    let source = format!(
        "{COUNTING}
network main {{
    population a: Lif[20]
    population b: Lif[20]
    drive {{a, b}} via Exp from poisson(rate = 2 kHz) {{ weight = 2 nS }}
    connect a -> b via Exp {{ rule = one_to_one(); weight = 2 nS; delay = 1.7 ms }}
}}
run {{ duration = 90 ms; dt = 0.1 ms; method = exp_euler; record b.{{v, Exp.g}}; record spikes of {{a, b}} }}"
    );
    let folder = folder(&[("one.neuro", &source)]);
    for file in ["run.npz", "run.csv"] {
        let done = neuroc(&folder, &["run", "one.neuro", "--engine", "interp", "--quiet", "-o", file]);
        assert_eq!(done.code, 0, "{}", done.err);
    }
    let first = run(&checked(&source), &plain(), Way::Plain);
    let (t, i) = (&first.spikes[0].t, &first.spikes[0].i);
    assert!(t.len() > 100);
    let table = Array2::from_shape_fn((t.len(), 2), |(row, at)| if at == 0 { t[row] } else { i[row] as f64 });
    write_npy(folder.path().join("table.npy"), &table).unwrap();
    let mut archive = NpzWriter::new(File::create(folder.path().join("us.npz")).unwrap());
    archive.add_array("in_t_us", &table.column(0).mapv(|t| (t * 1e3).round())).unwrap();
    archive.add_array("in_cell", &table.column(1).mapv(|cell| cell as u32)).unwrap();
    archive.finish().unwrap();
    let bare: String = (0..t.len()).map(|row| format!("{}\t{}\n", t[row], i[row])).collect();
    write(folder.path(), "bare.csv", &bare);
    let files = [
        "\"run.npz\", column = \"a\"",
        "\"run.spikes.csv\", column = \"a\"",
        "\"table.npy\"",
        "\"us.npz\"",
        "\"bare.csv\"",
    ];
    for file in files {
        // The cells of `a` are there, and send nothing.
        let text = source.replace(
            "connect a -> b via Exp { rule = one_to_one(); weight = 2 nS; delay = 1.7 ms }",
            &format!("drive b via Exp from spikes({file}) {{ weight = 2 nS; delay = 1.7 ms }}"),
        );
        assert_ne!(text, source);
        let checked = checked_in(folder.path(), &text);
        assert_eq!(said(&checked).iter().filter(|d| !d.contains("after the end")).count(), 0, "{:?}", said(&checked));
        for way in [Way::Plain, Way::Native] {
            let second = run(&checked, &plain(), way);
            let other =
                if way == Way::Plain { first.clone() } else { run(&crate::events::checked(&source), &plain(), way) };
            same(&other, &second, &format!("{file}, {way:?}"));
        }
    }
}

/// A Poisson drive with a delay is silent until then, and its rate is that of the time at which spikes were sent.
#[test]
fn delays_of_poisson_drives() {
    let text = format!(
        "{COUNTING}
network main {{
    population a: Lif[1500]
    drive a via Count from poisson(rate = 1 kHz) {{ weight = 1; delay = 3 ms }}
    drive a via Count as pulse from poisson(rate = pulse(delay = 2 ms, duration = 4 ms, amplitude = 2 kHz)) {{ weight = 1; delay = 3 ms }}
    drive a via Count as drawn from poisson(rate = 1 kHz) {{ weight = 1; delay ~ uniform(0 ms, 4 ms) }}
}}
run {{ duration = 12 ms; dt = 0.1 ms; method = exp_euler; record a.{{Count.n, pulse.n, drawn.n}} }}"
    );
    let checked = checked(&text);
    let plain_run = run(&checked, &plain(), Way::Plain);
    same(&run(&checked, &plain(), Way::Optimized), &run(&checked, &plain(), Way::Native), "native");
    let sums = |name: &str, from: usize, to: usize| -> f64 {
        (0..1500).map(|cell| column(&plain_run, name, cell)).map(|c| c[to] - c[from]).sum()
    };
    // Steps 31 to 120 of the steady one, 51 to 90 of the pulse.
    for (name, first, last, mean) in [("a.Count.n", 30, 120, 9.0), ("a.pulse.n", 50, 90, 8.0)] {
        assert_eq!(sums(name, 0, first), 0.0, "{name}");
        let found = sums(name, first, last);
        assert!((found - 1500.0 * mean).abs() < 5.0 * (1500.0 * mean).sqrt(), "{name}: {found}");
        assert!(sums(name, first, first + 1) > 0.0 && sums(name, last - 1, last) > 0.0, "{name}");
    }
    assert_eq!(sums("a.pulse.n", 90, 120), 0.0);
    // Of a uniform delay of up to 4 ms half have begun after 2 ms; the mean number until 4 ms is 2.
    let found = sums("a.drawn.n", 0, 40);
    assert!((found - 3000.0).abs() < 5.0 * (1500.0 * (2.0 + 16.0 / 12.0f64)).sqrt(), "{found}");
}

/// What is odd about a file is told once, with a row; what is wrong stops the run, and names the row.
#[test]
fn what_is_odd_or_wrong_about_spikes_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let model = |call: &str, cells: &str| {
        let text = format!(
            "{COUNTING}
network main {{ population a: Lif[10]; drive a{cells} via Count from {call} {{ weight = 1 }} }}
run {{ duration = 10 ms; dt = 0.1 ms; record a.v }}"
        );
        said(&checked_in(folder.path(), &text))
    };
    let of_text = |text: &str, cells: &str| {
        write(folder.path(), "s.csv", text);
        model("spikes(\"s.csv\")", cells)
    };
    let odd: &[(&str, &[&str])] = &[
        ("t,i\n", &["NU0407: `s.csv` has no spikes: nothing arrives"]),
        ("t,i\n10,1\n", &[]),
        (
            "t,i\n10.1,1\n3,2\n11,1\n",
            &["NU0407: 2 of 3 spikes of `s.csv` arrive after the end of the run: they are left out"],
        ),
        (
            "# by hand\nt,i\n3,1\n3.0004,1\n\n3.25,2\n0,3\n",
            &["NU0410: 2 of 4 times in `s.csv` are not whole numbers of steps: 3.25 ms of line 6 become 3.3 ms"],
        ),
    ];
    for (text, expected) in odd {
        assert_eq!(of_text(text, ""), *expected, "{text}");
    }
    let wrong = [
        ("", "", "it is empty; a file without spikes has a heading, such as `t,cell`"),
        ("t,i\n1,3\n2,10\n", "", "line 3 is for cell 10, but the population has 10 cells (the first is 0)"),
        (
            "t,i\n1,3\n2,7\n",
            "[2..7]",
            "line 3 is for cell 7, but the drive leads to the cells 2..7 (the end is not included)",
        ),
        ("t,i\n1,-1\n", "", "line 2 has -1 where the number of a cell should be"),
        ("t,i\n1,1.5\n", "", "line 2 has 1.5 where the number of a cell should be"),
        ("t,i\n1,x\n", "", "line 2 has `x` where the number of a cell should be"),
        ("t,i\n-0.1,1\n", "", "line 2 has the time -0.1 ms, but a run begins at 0 ms"),
        ("t,i\nnan,1\n", "", "line 2 has the time NaN ms, but a time is a finite number"),
        ("t (s),i\ninf,1\n", "", "line 2 has the time inf ms, but a time is a finite number"),
        ("t,i\nsoon,1\n", "", "line 2 has `soon` where a time should be"),
        ("t,i\n1,1,1\n", "", "line 2 has 3 columns, not 2"),
        ("1\n", "", "line 1 has 1 column, not 2"),
        (
            "t (mV),i\n1,1\n",
            "",
            "its heading needs the names of a time and a cell, such as `t (ms)` and `cell`, but has `t (mV)`, `i`",
        ),
        ("population,cell,t_ms\na,1,1\nb,1,2\n", "", "it has spikes of `a`, `b`"),
    ];
    for (text, cells, expected) in wrong {
        assert_eq!(of_text(text, cells), [format!("NU0315: `s.csv` cannot be used: {expected}")], "{text}");
    }
    let named = [
        ("spikes(\"s.csv\", column = \"c\")", "t,i\n", "it has no column `population`"),
        ("spikes(\"s.npz\")", "t,i\n", "it is no .npz archive"),
        ("spikes(\"s.npy\")", "t,i\n", "it is not an .npy file"),
        ("spikes(\"gone.csv\")", "t,i\n", "there is no such file"),
        ("spikes(\"gone.npz\")", "t,i\n", "there is no such file"),
    ];
    for (call, text, expected) in named {
        for name in ["s.csv", "s.npz", "s.npy"] {
            write(folder.path(), name, text);
        }
        let said = model(call, "");
        assert!(said.len() == 1 && said[0].contains(expected), "{call}: {said:?}");
    }
    let mut archive = NpzWriter::new(File::create(folder.path().join("two.npz")).unwrap());
    for name in ["a.spikes.t", "a.spikes.i", "b.spikes.t", "b.spikes.i", "a.v.t", "a.v.cell"] {
        archive.add_array(name, &ndarray::Array1::from_vec(vec![1.0, 2.0])).unwrap();
    }
    archive.finish().unwrap();
    let said = model("spikes(\"two.npz\")", "");
    assert!(said[0].ends_with("it has spikes of `a`, `b`"), "{said:?}");
    assert_eq!(model("spikes(\"two.npz\", column = \"b\")", ""), [""; 0]);
    let said = model("spikes(\"two.npz\", column = \"c\")", "");
    assert!(said[0].contains("it has no spikes of `c`; its arrays are a.spikes.t, a.spikes.i"), "{said:?}");
}

/// A delay that changes with a parameter from outside, a longer run, a shorter step: the spikes go with them.
#[test]
fn spikes_of_a_file_follow_the_settings_of_a_run() {
    let model = format!(
        "{COUNTING}
network main {{
    param late = 1 ms
    population a: Lif[4]
    drive a via Count from spikes(\"s.csv\") {{ weight = 1; delay = late }}
}}
run {{ duration = 50 ms; dt = 0.1 ms; record a[1].Count.n every 0.1 ms }}"
    );
    let folder = folder(&[("m.neuro", &model), ("s.csv", "t_s,cell\n0.005,1\n0.0600,1\n")]);
    let arrivals = |arguments: &[&str]| {
        let done = neuroc(&folder, &[&["run", "m.neuro", "--quiet", "-o", "r.npz"], arguments].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        let result = RunResult::read_npz(&folder.path().join("r.npz")).unwrap();
        assert!(result.populations.iter().all(|p| p.name == "a"), "what is hidden is in no results");
        let n = column(&result, "a[1].Count.n", 0);
        (1..n.len()).filter(|&at| n[at] > n[at - 1]).map(|at| result.series[0].t[at]).collect::<Vec<f64>>()
    };
    let near = |found: Vec<f64>, expected: &[f64]| {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
    };
    for engine in ["interp", "native"] {
        near(arrivals(&["--engine", engine]), &[6.0]);
        near(arrivals(&["--engine", engine, "--duration", "100ms"]), &[6.0, 61.0]);
        near(arrivals(&["--engine", engine, "--set", "late=40ms"]), &[45.0]);
        near(arrivals(&["--engine", engine, "--dt", "0.02ms", "--duration", "70ms"]), &[6.0, 61.0]);
    }
}

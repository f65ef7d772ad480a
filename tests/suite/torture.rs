//! Tests of: torture. Models that once gave wrong numbers without a word, by the number of the defect.

use crate::models::{Way, run};
use neuroc::driver::{self, Checked, CompileOptions};
use neuroc::hir::{Method, Sources};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn checked(text: &str) -> Checked {
    let checked = driver::check_text("torture.neuro", Path::new(""), text, &Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some() && checked.diagnostics.is_empty(), "{said}");
    checked
}

/// The last sample of every cell of a recorded quantity.
fn last(checked: &Checked, options: &CompileOptions, way: Way, name: &str) -> Vec<f64> {
    let result = run(checked, options, way);
    let series = result.series_named(name).unwrap_or_else(|| panic!("`{name}` is not recorded"));
    let (rows, columns) = series.values.shape();
    (0..columns).map(|cell| series.values.get(rows - 1, cell)).collect()
}

fn with(method: Method) -> CompileOptions {
    CompileOptions { method: Some(method), ..CompileOptions::default() }
}

/// A persistent sodium current with an instantaneous gate, whose rates are written by hand.
#[test]
fn d1_a_textbook_rate_does_not_freeze_the_voltage() {
    let model = checked(
        "channel NaP {
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
            input up: ramp(delay = 0 ms, duration = 1000 ms, start = 0 uA/cm2, finish = 5 uA/cm2) -> p.soma
        }
        run { duration = 1000 ms; dt = 0.1 ms; record p.soma.v every 100 ms }",
    );
    let exact = last(&model, &with(Method::Rk4), Way::Optimized, "p.soma.v")[0];
    assert!((exact + 28.465).abs() < 1e-3, "{exact}");
    for &(method, name) in Method::ALL.iter().filter(|m| m.0.takes_every_model()) {
        let v = last(&model, &with(method), Way::Optimized, "p.soma.v")[0];
        assert!((v - exact).abs() < 0.02, "{name}: {v}, not {exact}");
    }
}

/// The calcium current of Goldman, Hodgkin and Katz, from voltages near 0: they all move alike.
#[test]
fn d1_a_textbook_calcium_current_does_not_jump() {
    let model = checked(
        "channel CaGHK {
            param p = 0.02 mS/cm2
            param cin = 0.0001
            param cout = 2.0
            let u = v / 12.5 mV
            gate m { inf = 0.8; tau = 1 ms; init = 0.8 }
            current i = p * m^2 * 12.5 mV * u * (cin - cout * exp(-u)) / (1 - exp(-u))
        }
        cell Axon { compartment soma { cm = 1 uF/cm2; v_init = 0 mV; insert CaGHK } }
        network main {
            population a: Axon[41]
            init a.soma.v = (index - 20) * (if index < 20 then 0.0003 mV else 0.000001 mV)
        }
        run { duration = 0.01 ms; dt = 0.01 ms; record a.soma.v }",
    );
    for way in [Way::Plain, Way::Optimized, Way::Native, Way::Single] {
        for &(method, name) in Method::ALL.iter().filter(|m| m.0.takes_every_model()) {
            for (cell, v) in last(&model, &with(method), way, "a.soma.v").into_iter().enumerate() {
                let begin = (cell as f64 - 20.0) * if cell < 20 { 0.0003 } else { 0.000001 };
                assert!((v - begin - 0.0032).abs() < 1e-5, "{way:?}, {name}: from {begin} to {v}");
            }
        }
    }
}

/// What is rectified is 0 below the threshold, whatever the decimals are.
#[test]
fn d2_an_exact_zero_stays_one() {
    for (vt, k) in [("-60", "0.7"), ("-50.1", "3"), ("-50", "3"), ("-40", "0.3"), ("-61.7", "1.1")] {
        for (what, exact) in [
            ("sqrt(REST)", 0.0),
            ("REST^0.5", 0.0),
            ("REST^1.5", 0.0),
            ("(if REST > 0 then 1 else 0)", 0.0),
            ("(if REST == 0 then 0 else 1)", 0.0),
            ("floor(REST)", 0.0),
            ("ceil(REST)", 0.0),
            ("heaviside(REST)", 1.0),
            ("clamp(ln(1 + REST), 0, 1)", 0.0),
        ] {
            let model = checked(&format!(
                "cell C {{
                    param vt = {vt} mV
                    param k = {k} mV
                    state v: mV = -70 mV
                    state s: 1 = 0
                    v' = 0 mV/ms
                    s' = ({} - s) / 1 ms
                }}
                network main {{ population p: C }}
                run {{ duration = 0.5 ms; dt = 0.01 ms; record p.s }}",
                what.replace("REST", "((max(v, vt) - vt) / k)")
            ));
            let plain = last(&model, &CompileOptions::default(), Way::Plain, "p.s")[0];
            assert!((plain - exact * (1.0 - (-0.5f64).exp())).abs() < 1e-12, "{what}: {plain}");
            let optimized = last(&model, &CompileOptions::default(), Way::Optimized, "p.s")[0];
            assert!((plain - optimized).abs() < 1e-12, "{what} with vt {vt} and k {k}: {plain}, then {optimized}");
        }
    }
}

/// In single precision, too, and where the threshold is divided by itself: what depends on no cell is rounded as what cells compute.
#[test]
fn d2_an_exact_zero_stays_one_in_single_precision() {
    let rest = [
        "(max(v, VT) - VT) / K",
        "max(v, VT) / K - VT / K",
        "(VT - min(v + 40 mV, VT)) / K",
        "max(v + VT, 2 * VT) / K - 2 * VT / K",
    ];
    let told = [
        "sqrt(REST)",
        "(if REST > 0 then 1 else 0)",
        "floor(REST)",
        "ceil(REST)",
        "REST^0.5",
        "(if REST == 0 then 0 else 1)",
    ];
    let mut cells = String::new();
    let mut network = String::new();
    let mut records = Vec::new();
    for (vt, k) in [("-60", "0.7"), ("-50.1", "3"), ("-50", "3"), ("-40.3", "0.3"), ("-61.7", "1.1")] {
        for written in [false, true] {
            for rest in rest {
                let at = records.len();
                let (params, vt, k) = match written {
                    false => (format!("param vt = {vt} mV; param k = {k} mV;"), "vt".to_string(), "k".to_string()),
                    true => (String::new(), format!("({vt} mV)"), format!("{k} mV")),
                };
                let rest = rest.replace("VT", &vt).replace('K', &k);
                let states: String = (0..told.len()).map(|n| format!("state s{n}: 1 = 0\n")).collect();
                let equations = told.iter().enumerate().map(|(n, told)| {
                    format!("s{n}' = ({} - s{n}) / 1 ms\n", told.replace("REST", &format!("({rest})")))
                });
                let equations: String = equations.collect();
                cells +=
                    &format!("cell C{at} {{ {params} state v: mV = -70 mV\n{states}v' = 0 mV/ms\n{equations} }}\n");
                network += &format!("population p{at}: C{at}\n");
                records.push((format!("p{at}"), format!("{rest} with {vt}, {k}")));
            }
        }
    }
    let recorded: String =
        records.iter().flat_map(|(name, _)| (0..told.len()).map(move |n| format!("record {name}.s{n}\n"))).collect();
    let model = checked(&format!(
        "{cells} network main {{ {network} }}\nrun {{ duration = 0.5 ms; dt = 0.01 ms; method = euler\n{recorded} }}"
    ));
    #[cfg(feature = "xla")]
    let xla = crate::pjrt::cpu().map(|_| Way::XlaSingle);
    #[cfg(not(feature = "xla"))]
    let xla = None;
    for way in [Way::Optimized, Way::Single].into_iter().chain(xla) {
        let result = run(&model, &CompileOptions::default(), way);
        for (name, what) in &records {
            for (n, told) in told.iter().enumerate() {
                let series = result.series_named(&format!("{name}.s{n}")).unwrap_or_else(|| panic!("{name}.s{n}"));
                let last = series.values.get(series.values.shape().0 - 1, 0);
                assert!(last == 0.0, "{way:?}: {told} of {what} gave {last}");
            }
        }
    }
}

/// A sigmoid without a width is a step.
#[test]
fn d2_a_slope_of_0_is_a_step() {
    let model = checked(
        "cell C {
            param width = 0 mV
            state v: mV = -70 mV
            state s: 1 = 0.5
            v' = 0 mV/ms
            s' = (sigmoid_rate(v, 1, -40 mV, width) - s) / 1 ms
        }
        network main { population p: C[2]; init p.v = -70 mV + index * 60 mV }
        run { duration = 40 ms; dt = 0.1 ms; record p.s }",
    );
    for way in [Way::Plain, Way::Optimized, Way::Native, Way::Single] {
        let s = last(&model, &CompileOptions::default(), way, "p.s");
        assert!(s[0].abs() < 1e-6 && (s[1] - 1.0).abs() < 1e-6, "{way:?}: {s:?}");
    }
}

/// A sine whose phase differs from cell to cell goes on past 65536 rad in single precision.
#[test]
fn d3_a_late_sine_is_right() {
    let model = checked(
        "cell L { state v: mV = 0 mV; input drive: mV/ms; v' = (drive * 1 ms - v) / 1 ms }
        network main {
            population a: L[8]
            input s: sine(delay = 0 ms, duration = 1e9 ms, amplitude = 3 mV/ms, period = 1 ms, phase = index) -> a.drive
        }
        run { duration = 11000.25 ms; dt = 0.25 ms; method = euler; record a.v every 0.25 ms }",
    );
    let exact = last(&model, &CompileOptions::default(), Way::Plain, "a.v");
    for (way, within) in [(Way::Native, 1e-9), (Way::Single, 1e-5)] {
        for (cell, v) in last(&model, &CompileOptions::default(), way, "a.v").into_iter().enumerate() {
            assert!((v - exact[cell]).abs() < within, "{way:?}, cell {cell}: {v}, not {}", exact[cell]);
        }
    }
}

/// Forms of 0/0 at the voltage where a gate begins.
#[test]
fn d6_gates_at_0_over_0_stay_gates() {
    let model = checked(
        "channel X {
            param gbar = 0.01 mS/cm2
            param erev = -40 mV
            let x = (v + 40 mV) / 10 mV
            gate m { alpha = 1 /ms * (exp(x) - 1) / x; beta = 1 /ms }
            gate n { alpha = 1 /ms / ((1 - exp(-x)) / x); beta = 1 /ms }
            gate k { alpha = 0.1 /ms/mV * (v + 40 mV) / (1 - 1 / exp((v + 40 mV) / 10 mV)); beta = 1 /ms; init = 0.1 }
        }
        cell C { compartment s { cm = 1 uF/cm2; v_init = -40 mV; insert X } }
        network main { population p: C }
        run { duration = 10 ms; dt = 0.01 ms; record p.s.X.{m, n, k} }",
    );
    for way in [Way::Plain, Way::Optimized, Way::Native, Way::Single] {
        for gate in ["p.s.X.m", "p.s.X.n", "p.s.X.k"] {
            let value = last(&model, &CompileOptions::default(), way, gate)[0];
            assert!((value - 0.5).abs() < 1e-6, "{way:?}: {gate} is {value}");
        }
    }
}

// ------------------------------------------------------------------------------------------- hostile files and bad names

/// A point cell, and room for more.
const DECAY: &str = "cell P { state x = 1; x' = -x / 1 ms } network main { population p: P[3] }
    run { duration = 1 ms; dt = 0.1 ms; method = euler; record p.x }";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn neuroc(folder: &Path, arguments: &[&str]) -> Output {
    let kernels = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let cache =
        if matches!(arguments[0], "run" | "build") { vec!["--cache".as_ref(), kernels.as_os_str()] } else { vec![] };
    Command::new(env!("CARGO_BIN_EXE_neuroc")).current_dir(folder).args(arguments).args(cache).output().unwrap()
}

/// What it says; the exit code is as expected and there is no panic.
fn says(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = neuroc(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

/// A directory whose name is Rust does not become a part of the kernel, which would run at once.
#[cfg(unix)]
#[test]
fn d5_a_path_with_a_line_break_is_no_code() {
    let here = folder(&[]);
    let hostile = "d\nconst _: () = { #[used] #[unsafe(link_section = \".init_array\")] static A: extern \"C\" fn() = { \
                   extern \"C\" fn f() { std::fs::write(\"PWNED\", \"x\").ok(); } f }; };\n";
    fs::create_dir_all(here.path().join(hostile)).unwrap();
    fs::write(here.path().join(hostile).join("y.neuro"), DECAY).unwrap();
    let model = format!("{hostile}/y.neuro");
    says(here.path(), &["run", &model, "-o", "o.npz", "--quiet"], 0);
    assert!(!here.path().join("PWNED").exists());
    for artefact in ["crate", "cdylib"] {
        says(here.path(), &["build", &model, "--emit", artefact, "-o", artefact], 0);
    }
    assert!(!here.path().join("PWNED").exists());
    let kernels = fs::read_to_string(here.path().join("crate/src/kernels.rs")).unwrap();
    assert!(kernels.lines().all(|line| !line.contains("#[used]") || line.trim_start().starts_with("//")), "{kernels}");
}

/// Populations that differ in case only, and names that are words of Rust, run and make crates that compile.
#[test]
fn d7_any_name_compiles() {
    let text = "cell P { state x = 1; x' = -x / 1 ms }
        network main { population a: P; population A: P[2]; population fn: P; population r#type: P }
        run { duration = 1 ms; dt = 0.1 ms; method = euler; record a.x; record A.x; record fn.x }"
        .replace("population r#type: P", "population self: P; population static: P");
    let docs = "//! A model\u{202e} with\r//! docs: TABLE, NAME and PRECISION.\n//! ```\n//! std::fs::write(\"PWNED\", \"x\").unwrap();\n//! ```\n";
    let here = folder(&[("static.neuro", &format!("{docs}{text}"))]);
    says(here.path(), &["run", "static.neuro", "-o", "o.npz", "--quiet"], 0);
    says(here.path(), &["build", "static.neuro", "-o", "made"], 0);
    // D13: what a model says of itself is no test, and no template.
    let check = Command::new(env!("CARGO"))
        .current_dir(here.path().join("made"))
        .args(["check", "--offline", "--quiet", "--all-targets"])
        .env("CARGO_TARGET_DIR", here.path().join("target"))
        .output()
        .unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    let made = |file: &str| fs::read_to_string(here.path().join("made").join(file)).unwrap();
    assert!(made("Cargo.toml").contains("doctest = false"));
    assert!(made("README.md").contains("docs: TABLE, NAME and PRECISION."), "{}", made("README.md"));
}

/// A chain of definitions that doubles is printed and compiled in linear time.
#[test]
fn d8_chains_of_definitions_stay_short() {
    let mut lets = String::from("let a0 = v / 1 mV\n");
    (1..60).for_each(|n| lets += &format!("let a{n} = 0.5 * a{} + a{0} * a{0} / 1e9\n", n - 1));
    let text = format!(
        "channel L {{ param g = 1 mS/cm2\n{lets} current i = g * (v + 65 mV) * a59 }}
        cell C {{ compartment s {{ area = 1000 um2; cm = 1 uF/cm2; v_init = -1 mV; insert L }} }}
        network main {{ population c: C }}
        run {{ duration = 1 ms; dt = 0.1 ms; record c.s.v }}"
    );
    let here = folder(&[("m.neuro", &text)]);
    for stage in ["ode", "ir", "ir-opt"] {
        let begin = Instant::now();
        let printed = neuroc(here.path(), &["emit", "m.neuro", "--stage", stage]);
        assert!(printed.status.success() && printed.stdout.len() < 1_000_000, "{stage}: {}", printed.stdout.len());
        assert!(begin.elapsed() < Duration::from_secs(30), "{stage}");
    }
}

/// Headers that promise more than there is, in every spelling that NumPy takes.
#[test]
fn d9_headers_of_arrays_are_read_as_numpy_reads_them() {
    let text = DECAY.replace("population p: P[3] }", "population p: P[3]; init p.x = file(\"d.npy\") }");
    let here = folder(&[("m.neuro", &text)]);
    let file = |version: u8, header: &str, data: &[u8]| {
        let length = header.len() as u32;
        let length = if version == 1 { length.to_le_bytes()[..2].to_vec() } else { length.to_le_bytes().to_vec() };
        [b"\x93NUMPY", &[version, 0][..], &length, header.as_bytes(), data].concat()
    };
    let three: Vec<u8> = [1.0f64, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let good = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n";
    fs::write(here.path().join("d.npy"), file(1, good, &three)).unwrap();
    let run = ["run", "m.neuro", "--engine", "interp", "--quiet", "-o", "o.npz"];
    says(here.path(), &run, 0);
    let far = " ".repeat(5000);
    let headers = [
        "{\"descr\": \"<f8\", \"fortran_order\": False, \"shape\": (1000000000000,), }\n".to_string(),
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'shape': (1000000000000,), }\n".into(),
        format!("{{{far}'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }}\n"),
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0xffffffffff,), }\n".into(),
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1_000_000_000_000,), }\n".into(),
        "{'descr': '<f8', 'fortran_order': False, 'sh\\x61pe': (1000000000000,), }\n".into(),
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999999,), }\n".into(),
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n".into(),
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }\n".into(),
    ];
    for header in &headers {
        fs::write(here.path().join("d.npy"), file(1, header, &three)).unwrap();
        let said = says(here.path(), &run, 1);
        assert!(said.contains("`d.npy` cannot be used"), "{header}: {said}");
    }
    let long = [b"\x93NUMPY\x02\x00\xff\xff\xff\xff".as_slice(), good.as_bytes(), &three].concat();
    fs::write(here.path().join("d.npy"), long).unwrap();
    assert!(says(here.path(), &run, 1).contains("its header is too long"));
    #[cfg(target_os = "linux")]
    {
        // What has no end is not read.
        fs::write(here.path().join("m.neuro"), text.replace("d.npy", "/dev/zero")).unwrap();
        assert!(says(here.path(), &run, 1).contains("it is no regular file"));
    }
}

/// What was there and is not neuroc's is not replaced, and links are not followed.
#[cfg(unix)]
#[test]
fn d10_builds_replace_nothing_foreign() {
    let here = folder(&[("m.neuro", DECAY), ("precious", "mine")]);
    let build =
        |artefact: &str, code: i32| says(here.path(), &["build", "m.neuro", "--emit", artefact, "-o", "out"], code);
    let out = here.path().join("out");
    let library = format!("{}m{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let mut cases = vec![("cdylib", vec!["m.h", library.as_str()])];
    if cfg!(feature = "xla") {
        cases.push(("stablehlo", vec!["manifest.json", "step.mlir"]));
    }
    for (artefact, files) in cases {
        for file in files {
            fs::create_dir_all(&out).unwrap();
            fs::write(out.join(file), "not yours").unwrap();
            assert!(build(artefact, 2).contains("was not made by neuroc"), "{file}");
            assert_eq!(fs::read_to_string(out.join(file)).unwrap(), "not yours");
            fs::remove_dir_all(&out).unwrap();
        }
        build(artefact, 0);
        build(artefact, 0);
        fs::remove_dir_all(&out).unwrap();
    }
    build("crate", 0);
    fs::remove_file(out.join("README.md")).unwrap();
    std::os::unix::fs::symlink("../precious", out.join("README.md")).unwrap();
    assert!(build("crate", 2).contains("is a link"));
    assert_eq!(fs::read_to_string(here.path().join("precious")).unwrap(), "mine");
    fs::remove_dir_all(&out).unwrap();
    fs::create_dir_all(out.join("src")).unwrap();
    fs::write(out.join("src/kernels.rs"), "// not made by neuroc").unwrap();
    assert!(build("crate", 2).contains("no crate that neuroc wrote"));
}

/// A kernel that somebody else could have put into the cache is made again.
#[cfg(unix)]
#[test]
fn d12_kernels_of_others_are_not_loaded() {
    use std::os::unix::fs::PermissionsExt;
    let here = folder(&[("m.neuro", DECAY)]);
    let run = || {
        let run = ["run", "m.neuro", "--threads", "1", "-o", "o.npz", "--cache", "cache"];
        let output = Command::new(env!("CARGO_BIN_EXE_neuroc")).current_dir(here.path()).args(run).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(run().contains("kernel compiled"));
    assert!(run().contains("kernel from the cache"));
    let entry = fs::read_dir(here.path().join("cache")).unwrap().next().unwrap().unwrap().path();
    fs::set_permissions(&entry, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(run().contains("kernel compiled"));
    assert!(run().contains("kernel from the cache"));
}

/// An expression that is only recorded ends a run, too, when it is not a number.
#[test]
fn d14_recorded_expressions_are_trapped() {
    let text = DECAY
        .replace("x' = -x / 1 ms", "x' = -1 /ms; let e = 1 / (x - 0.5) / (x - 0.5) * (x - 0.5)")
        .replace("p.x }", "p.{x, e} }");
    let here = folder(&[("m.neuro", &text.replace("dt = 0.1 ms", "dt = 0.125 ms"))]);
    for engine in ["interp", "native"] {
        let said = says(here.path(), &["run", "m.neuro", "--engine", engine, "--quiet", "-o", "o.npz"], 1);
        assert!(said.contains("NU0501") && said.contains("the recorded `p.e` of cell 0 is"), "{said}");
        assert!(said.contains("at t = 0.5 ms"), "{said}");
        let kept = neuroc::results::RunResult::read_npz(&here.path().join("o.npz")).unwrap();
        assert_eq!(kept.series_named("p.e").unwrap().t[..], [0.0, 0.125, 0.25, 0.375]);
    }
}

/// Neither a picture nor a message has control characters of a file.
#[test]
fn d17_control_characters_are_shown_and_not_obeyed() {
    let here = folder(&[("m.neuro", DECAY), ("w.neuro", "cell \u{1b}]0;title\u{7} {")]);
    says(here.path(), &["run", "m.neuro", "--engine", "interp", "--quiet", "-o", "o.npz"], 0);
    says(here.path(), &["plot", "o.npz", "-o", "o.svg", "--title", "a\u{1}b\u{1b}c"], 0);
    let svg = fs::read_to_string(here.path().join("o.svg")).unwrap();
    assert!(!svg.contains(['\u{1}', '\u{1b}']) && svg.contains("a\u{fffd}b\u{fffd}c"));
    let said = says(here.path(), &["check", "w.neuro"], 1);
    assert!(!said.contains(['\u{1b}', '\u{7}']), "{said:?}");
    let said = says(here.path(), &["check", "gone\u{1b}[2J.neuro"], 2);
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

/// Long chains and crowds of mistakes come to an end, and so does what is said of them.
#[test]
fn d11_large_files_are_read_in_time_that_they_are_worth() {
    let chain: String = (1..3000).map(|i| format!("let a{i} = a{} + 1\n", i - 1)).collect();
    let chain = format!(
        "cell C {{ state x = 0\n x' = a2999 / 1 ms\n let a0 = x\n {chain} }}\n network main {{ population p: C }}\n run {{ \
         duration = 1 ms; dt = 0.1 ms; record p.x }}"
    );
    let unknown: Vec<String> = (0..4000).map(|i| format!("u{i}")).collect();
    let unknown = format!("cell C {{ state x = 0\n x' = ({}) / 1 ms }}", unknown.join(" + "));
    let nested = format!("cell C {{ state x = {} }}", "run {} ".repeat(4000));
    let (head, links) = chain.split_once("let a0 = x\n").unwrap();
    let (links, tail) = links.split_once(" }").unwrap();
    let backwards = format!("{head} let a0 = x\n{} }}{tail}", links.lines().rev().collect::<Vec<_>>().join("\n"));
    let here = folder(&[
        ("backwards.neuro", &backwards),
        ("chain.neuro", &chain),
        ("unknown.neuro", &unknown),
        ("nested.neuro", &nested),
    ]);
    for name in ["chain.neuro", "backwards.neuro"] {
        says(here.path(), &["check", name], 0);
    }
    for name in ["unknown.neuro", "nested.neuro"] {
        let said = says(here.path(), &["check", name], 1);
        assert!(said.len() < 1_000_000, "{name}: {} bytes", said.len());
    }
}

/// What documents a model is text in the crate that is made of it, and nothing that its tests run.
#[test]
fn d13_documentation_is_no_test_of_a_crate() {
    let head = "//! A model.\n//!\n//! ```\n//! std::fs::write(\"PWNED\", \"x\").unwrap();\n//! ```\n//!\n//!     v' = -v\n//!\n//! TABLE, PRECISION and DOC.\n";
    let here = folder(&[("m.neuro", &format!("{head}{DECAY}"))]);
    says(here.path(), &["build", "m.neuro", "--emit", "crate", "-o", "out"], 0);
    let manifest = fs::read_to_string(here.path().join("out/Cargo.toml")).unwrap();
    assert!(manifest.contains("doctest = false"), "{manifest}");
    let readme = fs::read_to_string(here.path().join("out/README.md")).unwrap();
    assert!(readme.contains("TABLE, PRECISION and DOC."), "{readme}");
}

/// A carriage return ends a line as any other end of a line does.
#[test]
fn d18_lines_of_old_files_end() {
    let text = format!("// A comment.\n{}\n", DECAY.replace("x' = -x / 1 ms", "x' = -y / 1 ms"));
    let here = folder(&[("old.neuro", &text.replace('\n', "\r")), ("new.neuro", &text)]);
    let said = |name: &str| says(here.path(), &["check", name], 1).replace(name, "").replace('\r', "\n");
    assert!(said("old.neuro").contains(":2:"), "{}", said("old.neuro"));
    assert_eq!(said("old.neuro"), said("new.neuro"));
}

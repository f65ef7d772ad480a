//! What steps cost on TPUs, as XLA's cost model has it: squid and olive for every chip, as a table on stdout.
//!
//! In come examples and libtpu; out goes `benches/tpu.md` (`make tpu` writes it). It fails if a connected step of the olive moves more
//! bytes than it may.
//! Never true here: a measurement. Nothing runs.

use neuroc::codegen::plan::Precision;
use neuroc::driver::{CompileOptions, Experiment, check_file, compile};
use neuroc::passes::Backend;
use neuroc::pjrt::Plugin;
use neuroc::plugins::{Kind, Search};
use neuroc::tpu::{Job, Report, Target};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

const TARGETS: [&str; 4] = ["tpu:v4", "tpu:v5e", "tpu:v5p", "tpu:v6e"];

/// Models, settings, and how many bytes a step may move.
const MODELS: [(&str, &str, &[&str], Option<f64>); 6] = [
    ("squid, 1 cell", "squid.neuro", &[], None),
    ("squid, 125 000 cells", "squid.neuro", &["n=125000"], None),
    ("olive, 22^3 cells, unconnected", "inferior_olive/unconnected.neuro", &["side=22"], None),
    ("olive, 50^3 cells, unconnected", "inferior_olive/unconnected.neuro", &["side=50"], None),
    ("olive, 22^3 cells, connected", "inferior_olive/inferior_olive.neuro", &["side=22"], None),
    // A twentieth of gather and scatter-add over the edge list, 10.7 GB.
    ("olive, 50^3 cells, connected", "inferior_olive/inferior_olive.neuro", &["side=50"], Some(535e6)),
];

fn report(plugin: &Plugin, file: &str, set: &[&str], target: &str) -> Result<Report, String> {
    let checked = check_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(file));
    let set = set.iter().map(|s| s.to_string()).collect();
    let options = CompileOptions { set, backend: Backend::Xla, keep_all: true, ..CompileOptions::default() };
    let words = |errors: Vec<neuroc::diag::Diagnostic>| format!("{file}: {errors:?}");
    let compiled = compile(&checked, &options, &mut |_, _, _| {}).map_err(words)?;
    let experiment = Experiment::new(compiled).map_err(words)?;
    let plan = experiment.plan(Precision::F32).map_err(words)?;
    let built = Job { experiment: &experiment, plan: &plan }.compile(plugin, &Target::parse(target)?);
    built.map(|(_, report, _)| report).map_err(|error| format!("{file} for {target}: {error}"))
}

/// What is compiled: a model, its settings, a chip.
type Case = (String, &'static [&'static str], &'static str);

/// The reports of all cases, in their order. libtpu compiles in one thread, so each core takes the next case.
fn reports(plugin: &Plugin, cases: &[Case]) -> Result<Vec<Report>, String> {
    let next = AtomicUsize::new(0);
    let done: Vec<OnceLock<Result<Report, String>>> = cases.iter().map(|_| OnceLock::new()).collect();
    let work = || loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some((file, set, target)) = cases.get(at) else { break };
        let first = done[at].set(report(plugin, file, set, target)).is_ok();
        assert!(first, "a case is taken once");
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |cores| cores.get()) {
            scope.spawn(work);
        }
    });
    done.into_iter().map(|report| report.into_inner().expect("every case was taken")).collect()
}

fn table(plugin: &Plugin) -> Result<(), String> {
    let examples = examples()?;
    let models = MODELS.iter().flat_map(|(_, file, set, _)| TARGETS.map(|target| (file.to_string(), *set, target)));
    let each = examples.iter().flat_map(|file| TARGETS.map(|target| (file.clone(), [].as_slice(), target)));
    let cases: Vec<Case> = models.chain(each).collect();
    let mut reports = reports(plugin, &cases)?.into_iter();
    let mut report = || reports.next().expect("there is a report of every case");
    println!("# Steps on TPUs, estimated\n");
    println!(
        "Made by `make tpu`: libtpu compiles, nothing runs. One time step in f32; bytes as XLA's cost analysis counts them."
    );
    println!(
        "\"Time\" is the estimate of XLA's model of the chip, which is proportional to the bytes: arithmetic does not enter. The last column is the time in which memory at its peak moves the bytes.\n"
    );
    println!(
        "| model | chip | executable (kB) | memory (MB) | flops | transcendentals | bytes | form of the gather | time (us) | bytes / peak (us) |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut forms = Vec::new();
    for (name, _, _, most) in MODELS {
        for target in TARGETS {
            let report = report();
            let (Some(stretch), step) = (report.largest(), report.step) else {
                return Err(format!("{name}: no entry"));
            };
            let chosen =
                report.gathers.iter().flat_map(|g| &g.forms).find(|form| form.chosen).map_or("", |form| form.form);
            let time = step.seconds.map_or("unknown".into(), |s| format!("{:.2}", s * 1e6));
            println!(
                "| {name} | {} | {:.0} | {:.2} | {:.3e} | {:.3e} | {:.3e} | {chosen} | {time} | {:.2} |",
                report.chip.name,
                stretch.serialized as f64 / 1e3,
                stretch.total as f64 / 1e6,
                step.flops,
                step.transcendentals,
                step.bytes,
                report.seconds_of_memory * 1e6
            );
            for form in report.gathers.iter().flat_map(|g| &g.forms) {
                let cost = form.cost.as_ref().map_or_else(Clone::clone, |cost| {
                    let time = cost.seconds.map_or("unknown".into(), |s| format!("{:.2}", s * 1e6));
                    format!("{:.3e} | {time}", cost.bytes)
                });
                let mark = if form.chosen { "**" } else { "" };
                forms.push(format!("| {name} | {} | {mark}{}{mark} | {cost} |", report.chip.name, form.form));
            }
            if most.is_some_and(|most| step.bytes > most) {
                return Err(format!("{name} for {target}: {} bytes a step are too many", step.bytes));
            }
        }
    }
    println!("\n# Executables of every example\n\nSerialized, in kB, all entry points together.\n");
    println!("| example | v4 | v5e | v5p | v6e |\n|---|---|---|---|---|");
    for file in examples {
        let sizes = TARGETS.map(|_| {
            format!("{:.0}", report().memory.iter().map(|memory| memory.serialized).sum::<usize>() as f64 / 1e3)
        });
        println!("| {file} | {} |", sizes.join(" | "));
    }
    println!("\n# Forms of the gather\n\n| model | chip | form | bytes | time (us) |\n|---|---|---|---|---|");
    forms.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// The examples of the table, but for one whose truncated draws libtpu takes minutes to compile.
fn examples() -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for folder in ["", "inferior_olive/"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(folder);
        for entry in std::fs::read_dir(&path).map_err(|error| format!("{}: {error}", path.display()))? {
            let name = entry.map_err(|error| error.to_string())?.file_name().to_string_lossy().into_owned();
            // The table has no cells with sections and no edges that remember: the tests compile some of them.
            let words = ["use std.plasticity", "use data.", "\n    section ", "\n    morphology "];
            let is_left_out = |text: String| words.iter().any(|words| text.contains(words));
            if name.ends_with(".neuro")
                && name != "coba_hh.neuro"
                && !std::fs::read_to_string(path.join(&name)).is_ok_and(is_left_out)
            {
                names.push(format!("{folder}{name}"));
            }
        }
    }
    names.sort();
    Ok(names)
}

fn main() -> ExitCode {
    let plugin = match Search::everywhere().plugin(Kind::Tpu) {
        Ok(found) => Plugin::load(&found.path).map_err(|error| error.to_string()),
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            let demanded = std::env::var_os("NEUROC_TESTS_DEMAND_TOOLS").is_some();
            return if demanded { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    match plugin.and_then(|plugin| table(&plugin)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Does using XLA's plugins leave memory behind? `make leaks` asks LeakSanitizer and the operating system.
//!
//! In comes the CPU plugin (and libtpu, to compile); out goes a failure if an object, an error or a byte that a plugin has
//! made is not given back.
//! Never true here: that what finds nothing is believed. Leaks made on purpose must be found in the same run.
//!
//! Without arguments this program runs itself, with LeakSanitizer loaded before all else, so that it sees what plugins
//! allocate: they need not be compiled for it. What their global objects hold until the end is reachable, and no leak.

use neuroc::pjrt::{Argument, Client, CompileOptions, Error, Executable, Flag, Plugin, Topology};
use neuroc::plugins::{Kind, Search};
use std::process::{Command, ExitCode, Output};

/// GCC's runtime library of LeakSanitizer, by the name that the dynamic linker finds it by.
const SANITIZER: &str = "liblsan.so.0";
/// How a program ends that LeakSanitizer has found leaks in.
const FOUND: i32 = 23;
/// How often everything is done.
const ROUNDS: usize = 20;
/// Runs of a small program, after which the process may be larger by less than what the smallest object takes.
const RUNS: usize = 20_000;
const GROWTH: usize = 64 * RUNS;

const SUM: &str =
    "func.func @main(%x: tensor<f64> {tf.aliasing_output = 0 : i32}, %y: tensor<f64>) -> (tensor<f64>, tensor<f64>) {
        %sum = stablehlo.add %x, %y : tensor<f64>
        %product = stablehlo.multiply %x, %y : tensor<f64>
        return %sum, %product : tensor<f64>, tensor<f64>
    }";

/// What the program is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// All that neuroc does with devices.
    Use,
    /// The same, but a buffer is not freed in each round.
    ForgetBuffer,
    /// The same, but an event is not freed in each round.
    ForgetEvent,
    /// All that it does with devices that are not here.
    Compile,
    /// Small programs, many times; it fails if the process grows.
    Grow,
}

impl Task {
    const ALL: [Task; 5] = [Task::Use, Task::ForgetBuffer, Task::ForgetEvent, Task::Compile, Task::Grow];

    fn name(self) -> &'static str {
        match self {
            Task::Use => "use",
            Task::ForgetBuffer => "forget-buffer",
            Task::ForgetEvent => "forget-event",
            Task::Compile => "compile",
            Task::Grow => "grow",
        }
    }

    fn plugin(self) -> Kind {
        match self {
            Task::Use | Task::ForgetBuffer | Task::ForgetEvent | Task::Grow => Kind::Cpu,
            Task::Compile => Kind::Tpu,
        }
    }

    fn run(self, plugin: &Plugin) -> Result<(), Error> {
        match self {
            Task::Use | Task::ForgetBuffer | Task::ForgetEvent => {
                let client = Client::new(plugin, &[])?;
                (0..ROUNDS).try_for_each(|_| self.use_devices(&client))?;
                (0..3).try_for_each(|_| Client::new(plugin, &[]).map(drop))
            }
            Task::Compile => (0..3).try_for_each(|_| {
                let topology = Topology::new(plugin, "v5e:2x2")?;
                topology.platform_name()?;
                topology.platform_version()?;
                let program = SUM.replace("f64", "f32");
                let compiled = topology.compile(program.as_bytes(), &CompileOptions::default())?;
                compiled.cost_analysis()?;
                compiled.memory()?;
                compiled.serialize()?;
                refused(topology.compile(b"nonsense", &CompileOptions::default()));
                refused(Topology::new(plugin, "v5e:three"));
                Ok(())
            }),
            Task::Grow => grow(plugin),
        }
    }

    /// Programs, buffers and events are made, used and freed, and every kind of error is met.
    fn use_devices(self, client: &Client) -> Result<(), Error> {
        let options = CompileOptions::default();
        let program = client.compile(SUM.as_bytes(), &options)?;
        program.cost_analysis()?;
        program.memory()?;
        let again = client.load(&program.serialize()?)?;
        let mut x = client.buffer(&[1.0], &[])?;
        let y = client.buffer(&[2.0], &[])?;
        for program in [&program, &again] {
            let (mut results, end) = program.launch(vec![Argument::Donate(x), Argument::Keep(&y)])?;
            end.is_ready()?;
            x = results.remove(0);
            let kept = program.execute(vec![Argument::Keep(&x), Argument::Keep(&y)])?;
            kept[1].to_vec::<f64>()?;
            end.wait()?;
            if self == Task::ForgetEvent {
                // It holds no memory but the plugin's.
                std::mem::forget(program.launch(vec![Argument::Keep(&x), Argument::Keep(&y)])?.1);
            }
        }
        if self == Task::ForgetBuffer {
            // A single number has no dimensions: no memory but the plugin's.
            std::mem::forget(client.buffer(&[2.0], &[])?);
        }
        x.device_id()?;
        x.bytes_on_device()?;
        x.address()?;
        x.is_deleted()?;
        client.devices()[0].memory_stats()?;
        client.plugin().attributes()?;
        refused(client.compile(b"nonsense", &options));
        let flags = vec![("xla_no_such_flag".into(), Flag::Bool(true))];
        refused(client.compile(SUM.as_bytes(), &CompileOptions { flags, device: None }));
        refused(client.load(b"nonsense"));
        refused(program.execute(vec![Argument::Keep(&x)]));
        let pair = client.buffer(&[1.0, 2.0], &[2])?;
        refused(program.execute(vec![Argument::Keep(&pair), Argument::Keep(&y)]));
        refused(Topology::new(&client.plugin(), "nowhere"));
        Ok(())
    }
}

fn refused<T>(result: Result<T, Error>) {
    assert!(result.is_err(), "what is wrong is refused");
}

/// Fails if the process is larger after many runs and many errors. That finds what is held to no end, too.
fn grow(plugin: &Plugin) -> Result<(), Error> {
    let client = Client::new(plugin, &[])?;
    let program = client.compile(SUM.as_bytes(), &CompileOptions::default())?;
    let y = client.buffer(&[2.0], &[])?;
    let runs = |program: &Executable, n: usize| -> Result<(), Error> {
        let mut x = client.buffer(&[1.0], &[])?;
        for _ in 0..n {
            x = program.execute(vec![Argument::Donate(x), Argument::Keep(&y)])?.remove(0);
            x.to_vec::<f64>()?;
            refused(program.execute(vec![Argument::Keep(&x)]));
        }
        Ok(())
    };
    runs(&program, RUNS / 10)?;
    let before = resident();
    runs(&program, RUNS)?;
    let grown = resident().saturating_sub(before);
    println!("{grown} bytes more after {RUNS} runs");
    assert!(grown < GROWTH, "at most {GROWTH} are expected");
    Ok(())
}

/// The memory of this process that is in use.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("Linux tells") * 4096
}

/// This program again, for one task.
fn child(task: Task, sanitizer: bool) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("it runs"));
    command.arg(task.name());
    if sanitizer {
        command.env("LD_PRELOAD", SANITIZER).env("LSAN_OPTIONS", format!("exitcode={FOUND}"));
    }
    command.output().expect("what runs can be run")
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn check() -> Result<(), String> {
    for task in Task::ALL {
        if Search::everywhere().plugin(task.plugin()).is_err() {
            let message = format!("SKIPPED: {}, without a plugin for {}", task.name(), task.plugin());
            if std::env::var_os("NEUROC_TESTS_DEMAND_TOOLS").is_some() || task.plugin() == Kind::Cpu {
                return Err(message);
            }
            println!("{message}");
            continue;
        }
        let output = child(task, task != Task::Grow);
        let (told, code) = (told(&output), output.status.code());
        let summary = told.lines().find(|line| line.starts_with("SUMMARY: ")).unwrap_or("nothing found");
        match (task, code) {
            (Task::Use | Task::Compile, Some(0)) => println!("{}: {summary}", task.name()),
            (Task::Grow, Some(0)) => println!("{}: {}", task.name(), told.trim()),
            (Task::ForgetBuffer | Task::ForgetEvent, Some(FOUND)) => println!("{}: {summary}", task.name()),
            (Task::ForgetBuffer | Task::ForgetEvent, Some(0)) => {
                return Err(format!(
                    "{}: what was left behind on purpose was not found; is {SANITIZER} installed (it comes with gcc), and may \
                     processes trace each other?\n{told}",
                    task.name()
                ));
            }
            (_, _) => return Err(format!("{}: {}\n{told}", task.name(), output.status)),
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let Some(task) = Task::ALL.into_iter().find(|task| argument.as_deref() == Some(task.name())) else {
        return match check() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        };
    };
    let search = Search::everywhere();
    let plugin = Plugin::load(&search.plugin(task.plugin()).expect("the parent has found it").path);
    match plugin.and_then(|plugin| task.run(&plugin)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

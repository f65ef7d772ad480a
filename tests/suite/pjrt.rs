//! XLA's plugins: programs on the CPU plugin, compilation for TPUs through libtpu, and what goes wrong.

use neuroc::pjrt::{
    Argument, ArrayType, Bf16, Client, CompileOptions, Element, ElementType, Error, Executable, Flag, Plugin, Topology,
    Value,
};
use neuroc::plugins::{Kind, Search};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The plugin for a kind of device. Where there is none, a test says so and ends; where all tools are demanded, it
/// fails.
fn plugin(kind: Kind) -> Option<Plugin> {
    match Search::everywhere().plugin(kind) {
        Ok(found) => Some(Plugin::load(&found.path).unwrap()),
        Err(why) => {
            crate::lacks(&format!("SKIPPED: {why}\n`make plugins` installs what the tests need"));
            None
        }
    }
}

/// XLA's CPU plugin.
pub(crate) fn cpu() -> Option<Client> {
    plugin(Kind::Cpu).map(|plugin| Client::new(&plugin, Kind::Cpu.client_options()).unwrap())
}

fn compile(client: &Client, program: &str) -> Executable {
    client.compile(program.as_bytes(), &CompileOptions::default()).unwrap()
}

fn array(element: ElementType, dims: &[usize]) -> ArrayType {
    ArrayType { element, dims: dims.to_vec() }
}

#[test]
fn numbers_of_every_type_go_there_and_back() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(client: &Client, numbers: &[T]) {
        let buffer = client.buffer(numbers, &[numbers.len()]).unwrap();
        assert_eq!(buffer.array_type(), &array(T::TYPE, &[numbers.len()]));
        assert_eq!(buffer.to_vec::<T>().unwrap(), numbers);
    }
    let Some(client) = cpu() else { return };
    check(&client, &[-65.0f64, f64::MIN_POSITIVE, f64::INFINITY]);
    check(&client, &[-65.0f32, f32::MIN_POSITIVE, f32::NEG_INFINITY]);
    check(&client, &[Bf16::from(-65.0), Bf16::from(1.0)]);
    check(&client, &[i8::MIN, 0, i8::MAX]);
    check(&client, &[i16::MIN, 0, i16::MAX]);
    check(&client, &[i32::MIN, 0, i32::MAX]);
    check(&client, &[i64::MIN, 0, i64::MAX]);
    check(&client, &[u8::MAX, 0]);
    check(&client, &[u16::MAX, 0]);
    check(&client, &[u32::MAX, 0]);
    check(&client, &[u64::MAX, 0]);
    check(&client, &[true, false, true]);
    check::<f32>(&client, &[]);
    let single = client.buffer(&[7.5f64], &[]).unwrap();
    assert_eq!(single.array_type(), &array(ElementType::F64, &[]));
    assert_eq!(single.to_vec::<f64>().unwrap(), [7.5]);
}

#[test]
fn a_program_adds_in_every_type() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(client: &Client, a: [T; 6], b: [T; 6], sum: [T; 6]) {
        let ty = array(T::TYPE, &[2, 3]);
        let program = format!(
            "module @sum {{ func.func @main(%a: {ty}, %b: {ty}) -> {ty} {{
                %c = stablehlo.add %a, %b : {ty}
                return %c : {ty}
            }} }}"
        );
        let add = compile(client, &program);
        assert_eq!(add.outputs(), [ty]);
        let (a_there, b_there) = (client.buffer(&a, &[2, 3]).unwrap(), client.buffer(&b, &[2, 3]).unwrap());
        let result = add.execute(vec![Argument::Keep(&a_there), Argument::Keep(&b_there)]).unwrap();
        assert_eq!(result[0].to_vec::<T>().unwrap(), sum);
        assert_eq!(a_there.to_vec::<T>().unwrap(), a, "a kept argument stays");
    }
    let Some(client) = cpu() else { return };
    assert_eq!(client.platform_name(), "cpu");
    check(&client, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0f64], [0.5; 6], [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]);
    check(&client, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0f32], [0.5; 6], [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]);
    check(&client, [1, 2, 3, 4, 5, i32::MAX], [1; 6], [2, 3, 4, 5, 6, i32::MIN]);
    check(&client, [1, 2, 3, 4, 5, u32::MAX], [1; 6], [2, 3, 4, 5, 6, 0]);
    check(&client, [1, 2, 3, 4, 5, u64::MAX], [2; 6], [3, 4, 5, 6, 7, 1]);
    let bf16 = |x: f32| Bf16::from(x);
    check(&client, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(bf16), [bf16(0.5); 6], [1.5, 2.5, 3.5, 4.5, 5.5, 6.5].map(bf16));
}

/// Adds `%step` to `%x` as often as `%n` says; the other results are the count and whether it is even.
const LOOP: &str =
    "func.func @main(%x: tensor<4xf64> {tf.aliasing_output = 0 : i32}, %step: tensor<f64>, %n: tensor<i64>)
        -> (tensor<4xf64>, tensor<i64>, tensor<i1>) {
    %zero = stablehlo.constant dense<0> : tensor<i64>
    %one = stablehlo.constant dense<1> : tensor<i64>
    %two = stablehlo.constant dense<2> : tensor<i64>
    %steps = stablehlo.broadcast_in_dim %step, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i64>, tensor<4xf64>
    cond {
        %more = stablehlo.compare LT, %i, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
    } do {
        %j = stablehlo.add %i, %one : tensor<i64>
        %z = stablehlo.add %y, %steps : tensor<4xf64>
        stablehlo.return %j, %z : tensor<i64>, tensor<4xf64>
    }
    %rest = stablehlo.remainder %r#0, %two : tensor<i64>
    %even = stablehlo.compare EQ, %rest, %zero : (tensor<i64>, tensor<i64>) -> tensor<i1>
    return %r#1, %r#0, %even : tensor<4xf64>, tensor<i64>, tensor<i1>
}";

#[test]
fn a_loop_has_several_results() {
    let Some(client) = cpu() else { return };
    let program = compile(&client, LOOP);
    let outputs = [array(ElementType::F64, &[4]), array(ElementType::I64, &[]), array(ElementType::Pred, &[])];
    assert_eq!(program.outputs(), outputs);
    let x = client.buffer(&[0.0, 1.0, 2.0, 3.0], &[4]).unwrap();
    let step = client.buffer(&[0.25], &[]).unwrap();
    for (n, even) in [(1000i64, true), (7, false), (0, true)] {
        let n_there = client.buffer(&[n], &[]).unwrap();
        let arguments = vec![Argument::Keep(&x), Argument::Keep(&step), Argument::Keep(&n_there)];
        let results = program.execute(arguments).unwrap();
        let first = n as f64 * 0.25;
        assert_eq!(results[0].to_vec::<f64>().unwrap(), [first, first + 1.0, first + 2.0, first + 3.0]);
        assert_eq!(results[1].to_vec::<i64>().unwrap(), [n]);
        assert_eq!(results[2].to_vec::<bool>().unwrap(), [even]);
    }
}

#[test]
fn donated_memory_is_used_again_and_kept_memory_is_not() {
    let Some(client) = cpu() else { return };
    let program = compile(
        &client,
        "func.func @main(%x: tensor<1000xf64> {tf.aliasing_output = 0 : i32}) -> tensor<1000xf64> {
            %y = stablehlo.add %x, %x : tensor<1000xf64>
            return %y : tensor<1000xf64>
        }",
    );
    assert_eq!(program.memory().unwrap().aliased, 8000);
    let x = client.buffer(&[1.0; 1000], &[1000]).unwrap();
    let mut y = program.execute(vec![Argument::Keep(&x)]).unwrap().remove(0);
    assert!(!x.is_deleted().unwrap());
    assert_eq!(x.to_vec::<f64>().unwrap(), [1.0; 1000]);
    let before = y.address().unwrap();
    for _ in 0..9 {
        y = program.execute(vec![Argument::Donate(y)]).unwrap().remove(0);
    }
    assert_eq!(y.to_vec::<f64>().unwrap(), [1024.0; 1000]);
    assert_eq!(y.address().unwrap(), before, "the result lies where the donated argument lay");
}

#[test]
fn runs_can_be_started_before_those_before_them_end() {
    let Some(client) = cpu() else { return };
    let program = compile(&client, LOOP);
    let step = client.buffer(&[1.0], &[]).unwrap();
    let n = client.buffer(&[100_000i64], &[]).unwrap();
    let mut x = client.buffer(&[0.0; 4], &[4]).unwrap();
    let mut ends = Vec::new();
    for _ in 0..5 {
        let arguments = vec![Argument::Donate(x), Argument::Keep(&step), Argument::Keep(&n)];
        let (mut results, end) = program.launch(arguments).unwrap();
        x = results.remove(0);
        ends.push(end);
    }
    assert_eq!(x.to_vec::<f64>().unwrap(), [500_000.0; 4]);
    for end in ends {
        end.wait().unwrap();
    }
}

#[test]
fn a_program_runs_on_the_device_that_was_asked_for() {
    let Some(client) = cpu() else { return };
    let program = "func.func @main() -> tensor<i32> {
        %x = stablehlo.constant dense<42> : tensor<i32>
        return %x : tensor<i32>
    }";
    for device in client.devices() {
        assert!(!device.kind().is_empty() && !device.description().is_empty());
        let options = CompileOptions { device: Some(device.id()), ..CompileOptions::default() };
        let program = client.compile(program.as_bytes(), &options).unwrap();
        let results = program.execute(Vec::new()).unwrap();
        assert_eq!(results[0].to_vec::<i32>().unwrap(), [42]);
        assert_eq!(results[0].device_id().unwrap(), device.id());
        let there = device.buffer(&[1u64], &[1]).unwrap();
        assert_eq!(there.device_id().unwrap(), device.id());
    }
}

#[test]
fn a_compiled_program_tells_its_cost_and_can_be_kept() {
    let Some(client) = cpu() else { return };
    let program = compile(
        &client,
        "module @rates { func.func @main(%v: tensor<1000xf32>) -> tensor<1000xf32> {
            %e = stablehlo.exponential %v : tensor<1000xf32>
            return %e : tensor<1000xf32>
        } }",
    );
    assert!(program.name().contains("rates"), "{}", program.name());
    let cost = program.cost_analysis().unwrap();
    assert_eq!(cost.get("transcendentals"), Some(&Value::Float(1000.0)), "{cost:?}");
    assert_eq!(cost.get("bytes accessed"), Some(&Value::Float(8000.0)), "{cost:?}");
    let memory = program.memory().unwrap();
    assert_eq!((memory.arguments, memory.outputs, memory.aliased), (4000, 4000, 0));
    let bytes = program.serialize().unwrap();
    let again = client.load(&bytes).unwrap();
    let v = client.buffer(&[0f32; 1000], &[1000]).unwrap();
    assert_eq!(again.execute(vec![Argument::Keep(&v)]).unwrap()[0].to_vec::<f32>().unwrap(), [1.0; 1000]);
}

#[test]
fn flags_reach_xla() {
    let Some(client) = cpu() else { return };
    let with = |name: &str, flag: Flag| {
        let options = CompileOptions { flags: vec![(name.into(), flag)], ..CompileOptions::default() };
        client.compile(LOOP.as_bytes(), &options)
    };
    with("xla_cpu_enable_fast_math", Flag::Bool(true)).unwrap();
    with("xla_backend_optimization_level", Flag::Int(1)).unwrap();
    let error = with("xla_no_such_flag", Flag::Bool(true)).unwrap_err();
    assert!(error.to_string().contains("xla_no_such_flag"), "{error}");
}

#[test]
fn a_wrong_program_is_refused_in_xlas_words() {
    let Some(client) = cpu() else { return };
    let refuse = |program: &str| match client.compile(program.as_bytes(), &CompileOptions::default()) {
        Err(Error::InvalidProgram(text)) => text,
        other => panic!("{other:?}"),
    };
    refuse("this is not a program");
    let text = refuse(
        "func.func @main(%a: tensor<2xf64>, %b: tensor<3xf64>) -> tensor<2xf64> {
            %c = \"stablehlo.add\"(%a, %b) : (tensor<2xf64>, tensor<3xf64>) -> tensor<2xf64>
            return %c : tensor<2xf64>
        }",
    );
    assert!(text.contains("stablehlo.add") || text.contains("shape"), "{text}");
    let text = refuse(
        "func.func @main() -> tensor<f64> {
            %c = \"stablehlo.no_such_op\"() : () -> tensor<f64>
            return %c : tensor<f64>
        }",
    );
    assert!(text.contains("no_such_op"), "{text}");
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let Some(client) = cpu() else { return };
    let program = compile(&client, LOOP);
    let x = client.buffer(&[0.0; 4], &[4]).unwrap();
    let error = program.execute(vec![Argument::Keep(&x)]).unwrap_err();
    assert!(error.to_string().contains("argument"), "{error}");
    let long = client.buffer(&[0.0; 5], &[5]).unwrap();
    let step = client.buffer(&[1.0], &[]).unwrap();
    let n = client.buffer(&[1i64], &[]).unwrap();
    let arguments = vec![Argument::Keep(&long), Argument::Keep(&step), Argument::Keep(&n)];
    let error = program.execute(arguments).unwrap_err();
    assert!(!error.to_string().is_empty());
    assert!(matches!(client.buffer(&[1.0, 2.0], &[3]), Err(Error::Mismatch(_))));
    assert!(matches!(x.to_vec::<f32>(), Err(Error::Mismatch(_))));
    assert!(matches!(x.read(&mut [0.0f64; 3]), Err(Error::Mismatch(_))));
    // Two clients of one plugin: a buffer of one is no argument for the other.
    let other = Client::new(&client.plugin(), &[]).unwrap();
    let foreign = other.buffer(&[0.0; 4], &[4]).unwrap();
    let error = program.execute(vec![Argument::Keep(&foreign), Argument::Keep(&step), Argument::Keep(&n)]).unwrap_err();
    assert!(error.to_string().contains("another client"), "{error}");
}

#[test]
fn memory_that_does_not_suffice_is_an_error() {
    let Some(client) = cpu() else { return };
    let program = "func.func @main(%x: tensor<f64>) -> tensor<1250000000000xf64> {
        %y = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f64>) -> tensor<1250000000000xf64>
        return %y : tensor<1250000000000xf64>
    }";
    let program = compile(&client, program);
    let x = client.buffer(&[1.0], &[]).unwrap();
    let run = program.execute(vec![Argument::Keep(&x)]);
    assert!(matches!(run, Err(Error::OutOfMemory(_))), "{run:?}");
    // And the client goes on.
    assert_eq!(x.to_vec::<f64>().unwrap(), [1.0]);
}

/// A shared library, by rustc.
fn library(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (file, library) = (folder.join(format!("{name}.rs")), folder.join(format!("{name}.so")));
    std::fs::write(&file, source).unwrap();
    let made = Command::new("rustc")
        .args(["--edition=2024", "--crate-type=cdylib", "-Cpanic=abort", "-o"])
        .args([&library, &file])
        .status();
    assert!(made.unwrap().success());
    library
}

/// A plugin that is the one that `PLUGIN` names, but for a call, by the number `CALL`, that fails from the time `FROM` on
/// with the status `CODE` and the words `WORDS`.
const FAILING: &str = r#"
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

type Function = unsafe extern "C" fn(*mut usize) -> *mut c_void;
const HEAD: usize = 5;
const ERROR: usize = 0xE0;
static mut REAL: [usize; 512] = [0; 512];
static mut TABLE: [usize; 512] = [0; 512];
static CALLS: AtomicUsize = AtomicUsize::new(0);

fn number(name: &str) -> usize {
    std::env::var(name).unwrap().parse().unwrap()
}

unsafe fn real(call: usize, args: *mut usize) -> *mut c_void {
    unsafe { std::mem::transmute::<usize, Function>(REAL[HEAD + call])(args) }
}

unsafe extern "C" fn destroy(args: *mut usize) -> *mut c_void {
    unsafe { if *args.add(2) == ERROR { std::ptr::null_mut() } else { real(0, args) } }
}

unsafe extern "C" fn message(args: *mut usize) -> *mut c_void {
    unsafe {
        if *args.add(2) != ERROR {
            return real(1, args);
        }
        let words = std::env::var("WORDS").unwrap().leak();
        *args.add(3) = words.as_ptr() as usize;
        *args.add(4) = words.len();
    }
    std::ptr::null_mut()
}

unsafe extern "C" fn code(args: *mut usize) -> *mut c_void {
    unsafe {
        if *args.add(2) != ERROR {
            return real(2, args);
        }
        *args.add(3).cast::<i32>() = number("CODE") as i32;
    }
    std::ptr::null_mut()
}

unsafe extern "C" fn failing(args: *mut usize) -> *mut c_void {
    if CALLS.fetch_add(1, Ordering::Relaxed) >= number("FROM") {
        return ERROR as *mut c_void;
    }
    unsafe { real(number("CALL"), args) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetPjrtApi() -> *const usize {
    let file = CString::new(std::env::var("PLUGIN").unwrap()).unwrap();
    unsafe {
        let get = dlsym(dlopen(file.as_ptr(), 2), c"GetPjrtApi".as_ptr());
        let table = std::mem::transmute::<*mut c_void, extern "C" fn() -> *const usize>(get)();
        let words = (*table / 8).min(512);
        let (kept, changed) = ((&raw mut REAL).cast::<usize>(), (&raw mut TABLE).cast::<usize>());
        std::ptr::copy_nonoverlapping(table, kept, words);
        std::ptr::copy_nonoverlapping(table, changed, words);
        *changed = words * 8;
        for (call, function) in [(0, destroy as Function), (1, message), (2, code), (number("CALL"), failing)] {
            *changed.add(HEAD + call) = function as usize;
        }
        changed
    }
}
"#;

/// The numbers of calls in the plugin's table.
const BUFFER_FROM_HOST: usize = 22;
const EXECUTE: usize = 55;
const EVENT_AWAIT: usize = 8;

#[test]
fn a_run_whose_device_fails_says_so() {
    let Some(plugin) = plugin(Kind::Cpu) else { return };
    let folder = tempfile::tempdir().unwrap();
    let failing = library(folder.path(), "failing", FAILING);
    let run = |call: usize, from: usize, code: i32, words: &str| {
        let out = Command::new(env!("CARGO_BIN_EXE_neuroc"))
            .args(["run", "examples/squid.neuro", "--engine", "xla", "--duration", "100ms", "--quiet"])
            .args(["--plugin".as_ref(), failing.as_os_str(), "-o".as_ref(), folder.path().join("out.npz").as_os_str()])
            .env("PLUGIN", plugin.path())
            .env("CALL", call.to_string())
            .env("FROM", from.to_string())
            .env("CODE", code.to_string())
            .env("WORDS", words)
            .output()
            .unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    // The plugin by itself does what it should, so that it is the failures that are told.
    assert_eq!(run(EXECUTE, usize::MAX, 0, "").0, Some(0));
    let memory = "Out of memory while trying to allocate 4294967296 bytes.";
    let lost = "the device has gone";
    let cuda = "failed to synchronize: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered";
    let other = "what nobody has thought of";
    for (call, from, code, words, said) in [
        // While numbers go there, at the first step, at a later one, and while a run is waited for.
        (BUFFER_FROM_HOST, 0, 8, memory, "the device's memory does not suffice: "),
        (EXECUTE, 1, 8, memory, "the device's memory does not suffice: "),
        (EXECUTE, 2, 14, lost, "the device failed: "),
        (EVENT_AWAIT, 6, 15, lost, "the device failed: "),
        (EXECUTE, 1, 13, cuda, "the device failed: "),
        (EXECUTE, 1, 13, other, "XLA failed in PJRT_LoadedExecutable_Execute (internal): "),
    ] {
        let (status, stderr) = run(call, from, code, words);
        assert_eq!(status, Some(1), "{call} {code}: {stderr}");
        assert!(stderr.contains(&format!("error: {said}{words}")), "{call} {code}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

#[test]
fn what_is_no_plugin_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.so");
    assert_eq!(Plugin::load(&missing).unwrap_err(), Error::NoFile(missing));
    let text = folder.path().join("text.so");
    std::fs::write(&text, "not a library").unwrap();
    assert!(matches!(Plugin::load(&text), Err(Error::NotALibrary { .. })));
    let library = |name: &str, source: &str| library(folder.path(), name, source);
    let other = library("other", "#[unsafe(no_mangle)] pub extern \"C\" fn something() {}");
    assert!(matches!(Plugin::load(&other), Err(Error::NotAPlugin(_))));
    // A plugin of a future that broke the interface.
    let future = library(
        "future",
        "#[repr(C)] pub struct Api(usize, usize, usize, usize, i32, i32);
        static API: Api = Api(40, 0, 24, 0, 1, 5);
        #[unsafe(no_mangle)] pub extern \"C\" fn GetPjrtApi() -> *const Api { &API }",
    );
    let error = Plugin::load(&future).unwrap_err();
    assert!(matches!(&error, Error::Version { found, .. } if (found.major, found.minor) == (1, 5)), "{error:?}");
    // A plugin whose table ends before its first call.
    let empty = library(
        "empty",
        "#[repr(C)] pub struct Api(usize, usize, usize, usize, i32, i32);
        static API: Api = Api(40, 0, 24, 0, 0, 1);
        #[unsafe(no_mangle)] pub extern \"C\" fn GetPjrtApi() -> *const Api { &API }",
    );
    let error = Plugin::load(&empty).unwrap_err().to_string();
    assert!(error.contains("PJRT_Plugin_Initialize"), "{error}");
}

/// The memory of this process that is in use.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn nothing_is_left_behind() {
    let Some(client) = cpu() else { return };
    let numbers = vec![1.0; 1 << 20];
    let program = "func.func @main(%x: tensor<1048576xf64> {tf.aliasing_output = 0 : i32})
            -> (tensor<1048576xf64>, tensor<1048576xf64>) {
        %y = stablehlo.add %x, %x : tensor<1048576xf64>
        %z = stablehlo.multiply %x, %x : tensor<1048576xf64>
        return %y, %z : tensor<1048576xf64>, tensor<1048576xf64>
    }";
    let run = |program: &Executable| {
        let x = client.buffer(&numbers, &[1 << 20]).unwrap();
        let kept = program.execute(vec![Argument::Keep(&x)]).unwrap();
        let given = program.execute(vec![Argument::Donate(x)]).unwrap();
        assert_eq!(kept[1].to_vec::<f64>().unwrap()[7], 1.0);
        drop(given);
        assert!(program.execute(vec![]).is_err(), "an error is freed too");
    };
    let program = compile(&client, program);
    let objects = client.live_objects();
    (0..10).for_each(|_| run(&program));
    let before = resident();
    (0..200).for_each(|_| run(&program));
    // Each time takes 40 MB; other tests may run in this process.
    let grown = resident().saturating_sub(before);
    assert!(grown < 1 << 30, "{grown} bytes after 200 runs");
    assert_eq!(client.live_objects(), objects);
    // Programs, whose code is small and which are compiled anew.
    let small = |_| drop(compile(&client, LOOP));
    (0..5).for_each(small);
    let before = resident();
    (0..50).for_each(small);
    let grown = resident().saturating_sub(before);
    assert!(grown < 1 << 30, "{grown} bytes after 50 compilations");
    assert_eq!(client.live_objects(), objects);
    drop(program);
    assert_eq!(client.live_objects(), 0);
}

#[test]
fn clients_come_and_go() {
    let Some(plugin) = plugin(Kind::Cpu) else { return };
    for _ in 0..20 {
        let client = Client::new(&plugin, &[]).unwrap();
        let buffer = client.buffer(&[1.0], &[1]).unwrap();
        // What came from a client keeps it.
        drop(client);
        assert_eq!(buffer.to_vec::<f64>().unwrap(), [1.0]);
    }
}

#[test]
fn programs_are_compiled_for_tpus_that_are_not_here() {
    let Some(plugin) = plugin(Kind::Tpu) else { return };
    let program = LOOP.replace("f64", "f32");
    for (name, devices, kind) in
        [("v4:2x2x1", 8, "TPU v4"), ("v5e:2x2", 4, "TPU v5"), ("v5p:2x2x1", 4, "TPU v5"), ("v6e:2x2", 4, "TPU v6")]
    {
        let topology = Topology::new(&plugin, name).unwrap();
        assert_eq!(topology.platform_name().unwrap(), "tpu", "{name}");
        assert_eq!(topology.device_kinds().len(), devices, "{name}");
        assert!(topology.device_kinds()[0].starts_with(kind), "{name}: {:?}", topology.device_kinds());
        let compiled = topology.compile(program.as_bytes(), &CompileOptions::default()).unwrap();
        assert_eq!(compiled.outputs()[0], array(ElementType::F32, &[4]), "{name}");
        let cost = compiled.cost_analysis().unwrap();
        assert!(matches!(cost.get("flops"), Some(Value::Float(flops)) if *flops > 0.0), "{name}: {cost:?}");
        let memory = compiled.memory().unwrap();
        assert!(memory.code > 0 && memory.arguments > 0, "{name}: {memory:?}");
        assert!(compiled.serialize().unwrap().len() > 100, "{name}");
    }
    let error = Topology::new(&plugin, "v5e:three").unwrap_err();
    assert!(matches!(&error, Error::NoTopology { name, .. } if name == "v5e:three"), "{error:?}");
    let topology = Topology::new(&plugin, "v5e:2x2").unwrap();
    let refused = topology.compile(b"nonsense", &CompileOptions::default());
    assert!(matches!(refused, Err(Error::InvalidProgram(_))), "{refused:?}");
}

/// Runs `neuroc devices` where no plugin is but those that are in `cache` and in `environment`.
fn devices(cache: &Path, environment: Option<&Path>, path: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuroc"));
    command.arg("devices").args(arguments).env("XDG_CACHE_HOME", cache).env("PATH", path).env_remove("VIRTUAL_ENV");
    environment.map(|folder| command.env("VIRTUAL_ENV", folder));
    command.output().unwrap()
}

#[test]
fn devices_tells_where_it_looked_in_vain() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = devices(folder.path(), None, "", &[]);
    assert!(nothing.status.success());
    let out = String::from_utf8(nothing.stdout).unwrap();
    let cache = folder.path().join("neuroc/plugins");
    for part in ["native ", "interp ", "no plugin found", "neuroc devices --install cpu", "VIRTUAL_ENV", "python3"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(out.contains(&cache.display().to_string()), "{out}");
    let json = devices(folder.path(), None, "", &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["plugins"], serde_json::json!([]));
    assert_eq!(json["engines"][0]["lanes"], serde_json::json!({"f64": 8, "f32": 16}));
    assert_eq!(json["places"].as_array().unwrap().len(), 4);
    // What cannot be installed without Python is said, and nothing is made.
    let failed = devices(folder.path(), None, "", &["--install", "cpu"]);
    assert_eq!(failed.status.code(), Some(1));
    let message = String::from_utf8(failed.stderr).unwrap();
    assert!(message.contains("apt install python3-pip"), "{message}");
    assert!(!cache.exists());
    let wrong = devices(folder.path(), None, "", &["--install", "abacus"]);
    assert_eq!(wrong.status.code(), Some(2));
    let wrong = devices(folder.path(), None, "", &["--plugin", "/no/such/plugin.so"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("/no/such/plugin.so"));
}

#[test]
fn devices_lists_plugins_and_devices() {
    let Some(plugin) = plugin(Kind::Cpu) else { return };
    // The plugin in a virtual environment, and a broken one where plugins are installed.
    let folder = tempfile::tempdir().unwrap();
    let environment = folder.path().join("venv");
    let packages = environment.join("lib/python3.11/site-packages/xla_plugins/xla_cpu_pjrt");
    std::fs::create_dir_all(&packages).unwrap();
    let link = packages.join("xla_cpu_pjrt.so");
    std::os::unix::fs::symlink(plugin.path(), &link).unwrap();
    let broken = folder.path().join("neuroc/plugins/tpu/libtpu");
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join("libtpu.so"), "no library").unwrap();
    let json = devices(folder.path(), Some(&environment), "", &["--json"]);
    assert_eq!(String::from_utf8_lossy(&json.stderr), "", "plugins are quiet");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let entry = |kind: &str| json["plugins"].as_array().unwrap().iter().find(|p| p["kind"] == kind).unwrap().clone();
    assert!(entry("tpu")["error"].as_str().unwrap().contains("libtpu.so"));
    let cpu = entry("cpu");
    assert_eq!(cpu["path"], link.display().to_string());
    assert_eq!(cpu["platform"], "cpu");
    assert_eq!(cpu["pjrt"], plugin.version().to_string());
    assert_eq!(cpu["devices"][0]["id"], 0);
    let text = devices(folder.path(), None, "", &["--plugin", &link.display().to_string()]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("cpu:0") && !text.contains("libtpu"), "{text}");
}

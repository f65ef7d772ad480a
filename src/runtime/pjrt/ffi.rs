//! The one file that calls plugins: objects of theirs that are freed exactly once, and safe functions on them.
//!
//! In come paths, bytes and handles; out go handles, bytes and a [`Failure`] where the plugin reports one.
//! Never true here: that a handle outlives the client it came from, that a plugin's code is unloaded while the
//! process lives, or that memory of ours is touched by a plugin after a function has returned.
#![allow(unsafe_code)]

use super::abi::{self, Args, Call, NamedValue, NamedValueValue, Opaque, Program, Zero, named};
use super::element::{Bf16, ElementType};
use super::error::{Code, Error, Failure};
use super::options::Value;
use super::plugin::Version;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A plugin in this process.
pub struct Library {
    path: PathBuf,
    version: Version,
    table: *const abi::Api,
    // Keeps the code in memory.
    _code: libloading::Library,
}

// SAFETY: the table is constant, and PJRT's calls may come from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// The plugins loaded so far. They own threads and static objects that cannot be taken down, so none is ever unloaded.
static LOADED: Mutex<BTreeMap<PathBuf, &'static Library>> = Mutex::new(BTreeMap::new());

/// What plugins are told by the environment, for want of another way, unless the user has told them otherwise: to
/// keep what they log from stderr.
const QUIET: &[(&str, &str)] = &[
    ("TF_CPP_MIN_LOG_LEVEL", "3"),
    ("TPU_STDERR_LOG_LEVEL", "3"),
    ("TPU_MIN_LOG_LEVEL", "3"),
    ("TPU_LOG_DIR", "disabled"),
];

/// And where there is no TPU: not to look for one, neither in the network nor in words on stderr, and that several
/// processes may compile at the same time. (Where there is one, only one process can hold it, and libtpu sees to
/// that.)
const WITHOUT_TPU: &[(&str, &str)] = &[
    ("TPU_SKIP_MDS_QUERY", "1"),
    ("TPU_ACCELERATOR_TYPE", "v5litepod-4"),
    ("TPU_WORKER_HOSTNAMES", "localhost"),
    ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1"),
];

/// Sets variables for plugins before the first of them is loaded.
fn prepare_environment(loaded: &BTreeMap<PathBuf, &'static Library>) {
    if !loaded.is_empty() {
        return;
    }
    let entries = |folder: &str| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let tpu = entries("/dev").any(|entry| entry.file_name().to_string_lossy().starts_with("accel"))
        || entries("/dev/vfio").any(|entry| entry.file_name() != "vfio");
    let variables = QUIET.iter().chain(if tpu { &[] } else { WITHOUT_TPU });
    for (name, value) in variables {
        if std::env::var_os(name).is_none() {
            // SAFETY: the standard library locks the environment against all Rust code. Foreign code that reads it on
            // other threads comes with plugins, and none is loaded yet.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

impl Library {
    /// Loads a plugin, once in the life of the process.
    pub fn open(path: &Path) -> Result<&'static Library, Error> {
        let path = path.canonicalize().map_err(|_| Error::NoFile(path.to_path_buf()))?;
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = loaded.get(&path) {
            return Ok(library);
        }
        prepare_environment(&loaded);
        // SAFETY: initialisers of the library run. That it is meant to be loaded, the user says.
        let code = unsafe { libloading::Library::new(&path) }
            .map_err(|error| Error::NotALibrary { path: path.clone(), why: error.to_string() })?;
        // SAFETY: PJRT defines the type of this symbol.
        let get = unsafe { code.get::<unsafe extern "C" fn() -> *const abi::Api>(b"GetPjrtApi\0") };
        let get = *get.map_err(|_| Error::NotAPlugin(path.clone()))?;
        // SAFETY: it takes nothing.
        let table = unsafe { get() };
        // SAFETY: a table that is not null lives as long as the library and starts with its head.
        let Some(head) = (unsafe { table.as_ref() }) else {
            return Err(Error::NotAPlugin(path));
        };
        let version = Version { major: head.version.major, minor: head.version.minor };
        if version.major != Version::MAJOR {
            return Err(Error::Version { path, found: version });
        }
        let library = Library { path: path.clone(), version, table, _code: code };
        // SAFETY: the call takes nothing.
        let started = unsafe { library.call(Call::Plugin_Initialize, abi::Nothing::ZERO) };
        if let Err(failure) = started {
            // Its threads may run already: the code stays.
            std::mem::forget(library);
            return Err(failure.starting(&path));
        }
        let library: &'static Library = Box::leak(Box::new(library));
        loaded.insert(path, library);
        Ok(library)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of the interface that it was made for.
    pub fn version(&self) -> Version {
        self.version
    }

    /// A function of the table.
    fn entry(&self, call: Call) -> Option<*const c_void> {
        // SAFETY: the table lives as long as the library.
        let bytes = unsafe { (*self.table).struct_size };
        let end = size_of::<abi::Api>() + (call as usize + 1) * size_of::<*const c_void>();
        if end > bytes {
            return None;
        }
        // SAFETY: the head is followed by pointers to functions, and this one lies within the table.
        let entry = unsafe { *self.table.add(1).cast::<*const c_void>().add(call as usize) };
        (!entry.is_null()).then_some(entry)
    }

    /// Makes a call and gives back what it has written into its arguments.
    ///
    /// # Safety
    /// `A` must be what `call` takes, and its pointers must be good for as long as the call needs them.
    unsafe fn call<A: Args>(&self, call: Call, args: A) -> Result<A, Failure> {
        let Some(entry) = self.entry(call) else {
            let text = format!("the plugin `{}` does not offer {}; a newer one may", self.path.display(), call.name());
            return Err(Failure { call: call.name(), code: Code::Unimplemented, text });
        };
        let mut args = Padded::new(args);
        // SAFETY: all entries but the two of `failure` have this type.
        let function = unsafe { std::mem::transmute::<*const c_void, abi::Fallible>(entry) };
        // SAFETY: the caller vouches for the arguments; a plugin that knows more fields finds them zero, which is
        // "absent".
        let error = unsafe { function((&raw mut args).cast()) };
        if error.is_null() { Ok(args.args) } else { Err(self.failure(call, error)) }
    }

    /// Reads an error of the plugin and frees it.
    fn failure(&self, call: Call, error: *mut Opaque) -> Failure {
        let code = match self.entry(Call::Error_GetCode) {
            // SAFETY: the call takes an error and gives a code. Its own failure has no meaning that could be passed on.
            Some(_) => match unsafe { self.call(Call::Error_GetCode, abi::Int { object: error, ..Zero::ZERO }) } {
                Ok(args) => Code::of(args.int),
                Err(_) => Code::Unknown,
            },
            None => Code::Unknown,
        };
        let mut text = String::from("(the plugin gives no reason)");
        if let Some(entry) = self.entry(Call::Error_Message) {
            let mut args = Padded::new(abi::Text { object: error, ..Zero::ZERO });
            // SAFETY: this entry has this type.
            let function = unsafe { std::mem::transmute::<*const c_void, abi::Silent>(entry) };
            // SAFETY: the error is alive.
            unsafe { function((&raw mut args).cast()) };
            // SAFETY: the text lives as long as the error.
            text = unsafe { string(args.args.text, args.args.len) };
        }
        if let Some(entry) = self.entry(Call::Error_Destroy) {
            let mut args = Padded::new(abi::Object { object: error, ..Zero::ZERO });
            // SAFETY: this entry has this type.
            let function = unsafe { std::mem::transmute::<*const c_void, abi::Silent>(entry) };
            // SAFETY: the error is alive and used no more.
            unsafe { function((&raw mut args).cast()) };
        }
        Failure { call: call.name(), code, text }
    }

    /// What the plugin says of itself.
    pub fn attributes(&self) -> Result<Vec<(String, Value)>, Failure> {
        // SAFETY: the call takes nothing; the list lives as long as the process.
        unsafe {
            let args = self.call(Call::Plugin_Attributes, abi::PluginAttributes::ZERO)?;
            Ok(values(args.list, args.len))
        }
    }

    /// Sets up its devices.
    pub fn client(&'static self, options: &[(&str, Value)]) -> Result<ClientHandle, Failure> {
        let options = Options::new(options);
        let args = abi::ClientCreate { options: options.list.as_ptr(), options_len: options.list.len(), ..Zero::ZERO };
        // SAFETY: the options live during the call.
        let args = unsafe { self.call(Call::Client_Create, args) }?;
        Ok(ClientHandle(Arc::new(Handle::new(self, args.client, Call::Client_Destroy))))
    }

    /// Describes devices that need not be here.
    pub fn topology(&'static self, name: &str, options: &[(&str, Value)]) -> Result<TopologyHandle, Failure> {
        let options = Options::new(options);
        let args = abi::TopologyCreate {
            name: name.as_ptr().cast(),
            name_len: name.len(),
            options: options.list.as_ptr(),
            options_len: options.list.len(),
            ..Zero::ZERO
        };
        // SAFETY: name and options live during the call.
        let args = unsafe { self.call(Call::TopologyDescription_Create, args) }?;
        Ok(TopologyHandle(Arc::new(Handle::new(self, args.topology, Call::TopologyDescription_Destroy))))
    }
}

/// Arguments with room behind them for all fields that the interface may have gained.
#[repr(C)]
struct Padded<A> {
    args: A,
    room: [u64; 64],
}

impl<A: Args> Padded<A> {
    fn new(mut args: A) -> Padded<A> {
        args.set_size(size_of::<Padded<A>>());
        Padded { args, room: [0; 64] }
    }
}

/// Text of a plugin's.
///
/// # Safety
/// `start` must point to `len` bytes, or be null.
unsafe fn string(start: *const c_char, len: usize) -> String {
    // SAFETY: the caller vouches for it.
    String::from_utf8_lossy(unsafe { list(start.cast::<u8>(), len) }).into_owned()
}

/// A list of a plugin's.
///
/// # Safety
/// `start` must point to `len` values that live as long as the result is used, or be null.
unsafe fn list<'a, T>(start: *const T, len: usize) -> &'a [T] {
    if start.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// Named values of a plugin's; a kind that is not known is left out.
///
/// # Safety
/// `start` must point to `len` values.
unsafe fn values(start: *const NamedValue, len: usize) -> Vec<(String, Value)> {
    // SAFETY: the caller vouches for it.
    let read = |value: &NamedValue| unsafe {
        let content = match value.kind {
            named::TEXT => Value::Text(string(value.value.text, value.len)),
            named::INT => Value::Int(value.value.int),
            named::INTS => Value::Ints(list(value.value.ints, value.len).to_vec()),
            named::FLOAT => Value::Float(value.value.float),
            named::BOOL => Value::Bool(value.value.bool != 0),
            _ => return None,
        };
        Some((string(value.name, value.name_len), content))
    };
    // SAFETY: the caller vouches for it.
    unsafe { list(start, len) }.iter().filter_map(read).collect()
}

/// Named values for a plugin, which point into ours.
struct Options<'a> {
    list: Vec<NamedValue>,
    _values: &'a [(&'a str, Value)],
}

impl<'a> Options<'a> {
    fn new(values: &'a [(&'a str, Value)]) -> Options<'a> {
        let list = values.iter().map(|(name, value)| {
            let (kind, value, len) = match value {
                Value::Text(text) => (named::TEXT, NamedValueValue { text: text.as_ptr().cast() }, text.len()),
                Value::Int(int) => (named::INT, NamedValueValue { int: *int }, 1),
                Value::Ints(ints) => (named::INTS, NamedValueValue { ints: ints.as_ptr() }, ints.len()),
                Value::Float(float) => (named::FLOAT, NamedValueValue { float: *float }, 1),
                Value::Bool(bool) => (named::BOOL, NamedValueValue { bool: u8::from(*bool) }, 1),
            };
            NamedValue {
                struct_size: size_of::<NamedValue>(),
                extensions: ptr::null(),
                name: name.as_ptr().cast(),
                name_len: name.len(),
                kind,
                value,
                len,
            }
        });
        Options { list: list.collect(), _values: values }
    }
}

/// The text of a program with a zero behind it, which is not counted: MLIR's lexer knows the end by it, and not all
/// plugins copy a program before they parse it.
fn terminated(code: &[u8]) -> Vec<u8> {
    code.iter().copied().chain([0]).collect()
}

/// A program as plugins take it; from [`terminated`].
fn program(terminated: &[u8]) -> abi::Program {
    const FORMAT: &str = "mlir";
    Program {
        code: terminated.as_ptr().cast(),
        code_len: terminated.len() - 1,
        format: FORMAT.as_ptr().cast(),
        format_len: FORMAT.len(),
        ..Zero::ZERO
    }
}

/// An object of a plugin's, freed when dropped, before what it came from.
struct Handle {
    library: &'static Library,
    raw: *mut Opaque,
    destroy: Call,
    parent: Option<Arc<Handle>>,
    children: AtomicUsize,
}

// SAFETY: PJRT's objects may be used and freed on any thread.
unsafe impl Send for Handle {}
// SAFETY: PJRT's objects lock themselves.
unsafe impl Sync for Handle {}

impl Handle {
    fn new(library: &'static Library, raw: *mut Opaque, destroy: Call) -> Handle {
        Handle { library, raw, destroy, parent: None, children: AtomicUsize::new(0) }
    }

    fn child(parent: &Arc<Handle>, raw: *mut Opaque, destroy: Call) -> Handle {
        parent.children.fetch_add(1, Ordering::Relaxed);
        let library = parent.library;
        Handle { library, raw, destroy, parent: Some(parent.clone()), children: AtomicUsize::new(0) }
    }

    /// # Safety
    /// As for [`Library::call`].
    unsafe fn call<A: Args>(&self, call: Call, args: A) -> Result<A, Failure> {
        // SAFETY: the caller vouches for it.
        unsafe { self.library.call(call, args) }
    }

    /// # Safety
    /// `call` must take an object of this kind and give text.
    unsafe fn text(&self, call: Call) -> Result<String, Failure> {
        // SAFETY: the caller vouches for the call; the text lives as long as the object.
        unsafe {
            let args = self.call(call, abi::Text { object: self.raw, ..Zero::ZERO })?;
            Ok(string(args.text, args.len))
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the object is alive, and `destroy` ends objects of this kind. A failure to free has no consequence
        // that anyone could act on.
        let _ = unsafe { self.call(self.destroy, abi::Object { object: self.raw, ..Zero::ZERO }) };
        if let Some(parent) = &self.parent {
            parent.children.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A `PJRT_Client`.
#[derive(Clone)]
pub struct ClientHandle(Arc<Handle>);

/// A `PJRT_TopologyDescription`.
#[derive(Clone)]
pub struct TopologyHandle(Arc<Handle>);

/// A `PJRT_Device`, which belongs to its client.
#[derive(Clone)]
pub struct DeviceHandle {
    client: Arc<Handle>,
    raw: *mut Opaque,
}

// SAFETY: as for `Handle`.
unsafe impl Send for DeviceHandle {}
// SAFETY: as for `Handle`.
unsafe impl Sync for DeviceHandle {}

/// A `PJRT_Buffer`.
pub struct BufferHandle(Handle);

/// A `PJRT_Executable`: compiled, for whatever device.
pub struct CompiledHandle(Handle);

/// A `PJRT_LoadedExecutable`: ready to run on a client's device.
pub struct LoadedHandle(Handle);

/// A `PJRT_Event`.
pub struct EventHandle(Handle);

impl ClientHandle {
    /// How many objects that came from this client are alive.
    pub fn children(&self) -> usize {
        self.0.children.load(Ordering::Relaxed)
    }

    /// The kind of its devices: cpu, cuda, tpu.
    pub fn platform_name(&self) -> Result<String, Failure> {
        // SAFETY: the call takes a client and gives text.
        unsafe { self.0.text(Call::Client_PlatformName) }
    }

    /// What it is made of.
    pub fn platform_version(&self) -> Result<String, Failure> {
        // SAFETY: the call takes a client and gives text.
        unsafe { self.0.text(Call::Client_PlatformVersion) }
    }

    /// The devices that this process may use.
    pub fn devices(&self) -> Result<Vec<DeviceHandle>, Failure> {
        // SAFETY: the call takes a client; devices live as long as it does.
        let devices = unsafe {
            let args = abi::Objects { object: self.0.raw, ..Zero::ZERO };
            let args = self.0.call(Call::Client_AddressableDevices, args)?;
            list(args.list, args.len)
        };
        Ok(devices.iter().map(|&raw| DeviceHandle { client: self.0.clone(), raw }).collect())
    }

    /// Compiles MLIR.
    pub fn compile(&self, code: &[u8], options: &[u8]) -> Result<LoadedHandle, Failure> {
        let code = terminated(code);
        let program = Padded::new(program(&code));
        let args = abi::ClientCompile {
            client: self.0.raw,
            program: &raw const program.args,
            options: options.as_ptr().cast(),
            options_len: options.len(),
            ..Zero::ZERO
        };
        // SAFETY: program and options live during the call, which only reads them.
        let args = unsafe { self.0.call(Call::Client_Compile, args) }?;
        Ok(LoadedHandle(Handle::child(&self.0, args.executable, Call::LoadedExecutable_Destroy)))
    }

    /// Loads what [`CompiledHandle::serialize`] gave.
    pub fn load(&self, bytes: &[u8]) -> Result<LoadedHandle, Failure> {
        let args =
            abi::Deserialize { client: self.0.raw, bytes: bytes.as_ptr().cast(), len: bytes.len(), ..Zero::ZERO };
        // SAFETY: the bytes live during the call.
        let args = unsafe { self.0.call(Call::Executable_DeserializeAndLoad, args) }?;
        Ok(LoadedHandle(Handle::child(&self.0, args.executable, Call::LoadedExecutable_Destroy)))
    }
}

impl DeviceHandle {
    /// # Safety
    /// `call` must take a description of a device and `A` be its arguments.
    unsafe fn described<A: Args>(&self, call: Call, args: impl FnOnce(*mut Opaque) -> A) -> Result<A, Failure> {
        // SAFETY: the device lives as long as its client; the caller vouches for the rest.
        unsafe {
            let device = abi::ObjectOf { object: self.raw, ..Zero::ZERO };
            let description = self.client.call(Call::Device_GetDescription, device)?.other;
            self.client.call(call, args(description))
        }
    }

    /// Its number among all devices of the client.
    pub fn id(&self) -> Result<i32, Failure> {
        // SAFETY: the call takes a description and gives an integer.
        let args = unsafe { self.described(Call::DeviceDescription_Id, |d| abi::Int { object: d, ..Zero::ZERO }) }?;
        Ok(args.int)
    }

    /// Text about it, by one of the calls that take a description and give text.
    fn text(&self, call: Call) -> Result<String, Failure> {
        // SAFETY: `kind` and `description` pass such calls; the text lives as long as the description.
        unsafe {
            let args = self.described(call, |d| abi::Text { object: d, ..Zero::ZERO })?;
            Ok(string(args.text, args.len))
        }
    }

    /// What the vendor calls it.
    pub fn kind(&self) -> Result<String, Failure> {
        self.text(Call::DeviceDescription_Kind)
    }

    /// In words.
    pub fn description(&self) -> Result<String, Failure> {
        self.text(Call::DeviceDescription_ToString)
    }

    /// Bytes in use, the most that were, and the most that can be.
    pub fn memory(&self) -> Result<(i64, Option<i64>, Option<i64>), Failure> {
        let args = abi::DeviceMemoryStats { device: self.raw, ..Zero::ZERO };
        // SAFETY: the device lives as long as its client.
        let args = unsafe { self.client.call(Call::Device_MemoryStats, args) }?;
        Ok((
            args.bytes_in_use,
            (args.peak_bytes_in_use_is_set != 0).then_some(args.peak_bytes_in_use),
            (args.bytes_limit_is_set != 0).then_some(args.bytes_limit),
        ))
    }

    /// Copies numbers to it; they are row-major.
    pub fn buffer<T: Element>(&self, data: &[T], dims: &[i64]) -> Result<BufferHandle, Failure> {
        let expected = count(dims);
        if expected != Some(data.len()) {
            let text = format!("{} numbers cannot fill an array of shape {dims:?}", data.len());
            return Err(ours(Call::Client_BufferFromHostBuffer, text));
        }
        let args = abi::BufferFromHost {
            client: self.client.raw,
            data: data.as_ptr().cast(),
            element: code(T::TYPE),
            dims: dims.as_ptr(),
            dims_len: dims.len(),
            semantics: abi::COPY_DURING_CALL,
            device: self.raw,
            ..Zero::ZERO
        };
        // SAFETY: data holds as many numbers as the dimensions say and lives during the call, which copies it.
        let args = unsafe { self.client.call(Call::Client_BufferFromHostBuffer, args) }?;
        let buffer = BufferHandle(Handle::child(&self.client, args.buffer, Call::Buffer_Destroy));
        if !args.done.is_null() {
            EventHandle(Handle::child(&self.client, args.done, Call::Event_Destroy)).wait()?;
        }
        Ok(buffer)
    }
}

impl TopologyHandle {
    /// The kind of its devices.
    pub fn platform_name(&self) -> Result<String, Failure> {
        // SAFETY: the call takes a topology and gives text.
        unsafe { self.0.text(Call::TopologyDescription_PlatformName) }
    }

    /// What compiles for them.
    pub fn platform_version(&self) -> Result<String, Failure> {
        // SAFETY: the call takes a topology and gives text.
        unsafe { self.0.text(Call::TopologyDescription_PlatformVersion) }
    }

    /// What the vendor calls each of its devices.
    pub fn kinds(&self) -> Result<Vec<String>, Failure> {
        // SAFETY: the first call takes a topology, the others one of its descriptions, which live as long as it does.
        unsafe {
            let args = abi::Objects { object: self.0.raw, ..Zero::ZERO };
            let args = self.0.call(Call::TopologyDescription_GetDeviceDescriptions, args)?;
            let kind = |&description: &*mut Opaque| {
                let args = abi::Text { object: description, ..Zero::ZERO };
                let args = self.0.call(Call::DeviceDescription_Kind, args)?;
                Ok(string(args.text, args.len))
            };
            list(args.list, args.len).iter().map(kind).collect()
        }
    }

    /// Compiles MLIR.
    pub fn compile(&self, code: &[u8], options: &[u8]) -> Result<CompiledHandle, Failure> {
        let code = terminated(code);
        let program = Padded::new(program(&code));
        let args = abi::TopologyCompile {
            topology: self.0.raw,
            program: &raw const program.args,
            options: options.as_ptr().cast(),
            options_len: options.len(),
            ..Zero::ZERO
        };
        // SAFETY: program and options live during the call, which only reads them.
        let args = unsafe { self.0.call(Call::Compile, args) }?;
        Ok(CompiledHandle(Handle::child(&self.0, args.executable, Call::Executable_Destroy)))
    }
}

impl CompiledHandle {
    /// The name of the program.
    pub fn name(&self) -> Result<String, Failure> {
        // SAFETY: the call takes an executable and gives text.
        unsafe { self.0.text(Call::Executable_Name) }
    }

    /// The types of its results, as the interface numbers them, and their dimensions.
    pub fn outputs(&self) -> Result<Vec<(i32, Vec<i64>)>, Failure> {
        // SAFETY: the calls take an executable; the lists live as long as it does.
        unsafe {
            let args = abi::OutputElementTypes { executable: self.0.raw, ..Zero::ZERO };
            let args = self.0.call(Call::Executable_OutputElementTypes, args)?;
            let types = list(args.list, args.len);
            let args = abi::OutputDimensions { executable: self.0.raw, ..Zero::ZERO };
            let args = self.0.call(Call::Executable_OutputDimensions, args)?;
            let ranks = list(args.ranks, args.outputs);
            let mut dims = list(args.dims, ranks.iter().sum());
            let mut outputs = Vec::new();
            for (&element, &rank) in types.iter().zip(ranks) {
                let (these, rest) = dims.split_at(rank);
                outputs.push((element, these.to_vec()));
                dims = rest;
            }
            Ok(outputs)
        }
    }

    /// The number of its results.
    fn outputs_len(&self) -> Result<usize, Failure> {
        let args = abi::Count { object: self.0.raw, ..Zero::ZERO };
        // SAFETY: the call takes an executable and gives a number.
        Ok(unsafe { self.0.call(Call::Executable_NumOutputs, args) }?.count)
    }

    /// What XLA estimates that a run costs.
    pub fn cost(&self) -> Result<Vec<(String, Value)>, Failure> {
        let args = abi::CostAnalysis { executable: self.0.raw, ..Zero::ZERO };
        // SAFETY: the call takes an executable; the list lives as long as it does.
        unsafe {
            let args = self.0.call(Call::Executable_GetCostAnalysis, args)?;
            Ok(values(args.list, args.len))
        }
    }

    /// Bytes of code, arguments, results, results in the place of arguments, temporaries.
    pub fn memory(&self) -> Result<[i64; 5], Failure> {
        let args = abi::CompiledMemoryStats { executable: self.0.raw, ..Zero::ZERO };
        // SAFETY: the call takes an executable.
        let args = unsafe { self.0.call(Call::Executable_GetCompiledMemoryStats, args) }?;
        Ok([args.generated_code, args.arguments, args.outputs, args.aliased, args.temporaries])
    }

    /// As bytes that [`ClientHandle::load`] takes.
    pub fn serialize(&self) -> Result<Vec<u8>, Failure> {
        let args = abi::Serialize { executable: self.0.raw, ..Zero::ZERO };
        // SAFETY: the call takes an executable; its bytes live until their owner is deleted, which is done once.
        unsafe {
            let args = self.0.call(Call::Executable_Serialize, args)?;
            let bytes = list(args.bytes.cast::<u8>(), args.len).to_vec();
            if let Some(delete) = args.delete {
                delete(args.owner);
            }
            Ok(bytes)
        }
    }
}

impl LoadedHandle {
    /// What was compiled.
    pub fn compiled(&self) -> Result<CompiledHandle, Failure> {
        let args = abi::ObjectOf { object: self.0.raw, ..Zero::ZERO };
        // SAFETY: the call takes a loaded executable and gives an object of its own.
        let args = unsafe { self.0.call(Call::LoadedExecutable_GetExecutable, args) }?;
        Ok(CompiledHandle(match &self.0.parent {
            Some(client) => Handle::child(client, args.other, Call::Executable_Destroy),
            None => Handle::new(self.0.library, args.other, Call::Executable_Destroy),
        }))
    }

    /// Starts a run. Arguments whose index is in `kept` are not donated, even where the program would take them.
    pub fn execute(
        &self,
        compiled: &CompiledHandle,
        arguments: &[&BufferHandle],
        kept: &[i64],
    ) -> Result<(Vec<BufferHandle>, EventHandle), Failure> {
        let call = Call::LoadedExecutable_Execute;
        let client = self.0.parent.as_ref().ok_or_else(|| ours(call, "an executable without a client".into()))?;
        // A plugin trusts that all objects are its own.
        if !arguments.iter().all(|b| b.0.parent.as_ref().is_some_and(|owner| Arc::ptr_eq(owner, client))) {
            return Err(ours(call, "an argument belongs to another client than the program".into()));
        }
        let arguments: Vec<*mut Opaque> = arguments.iter().map(|buffer| buffer.0.raw).collect();
        let mut outputs: Vec<*mut Opaque> = vec![ptr::null_mut(); compiled.outputs_len()?];
        let mut done: *mut Opaque = ptr::null_mut();
        let options = Padded::new(abi::ExecuteOptions { kept: kept.as_ptr(), kept_len: kept.len(), ..Zero::ZERO });
        let argument_lists = [arguments.as_ptr()];
        let output_lists = [outputs.as_mut_ptr()];
        let args = abi::Execute {
            executable: self.0.raw,
            options: &raw const options.args,
            arguments: argument_lists.as_ptr(),
            devices: 1,
            arguments_len: arguments.len(),
            outputs: output_lists.as_ptr(),
            done: &raw mut done,
            ..Zero::ZERO
        };
        // SAFETY: there is one device, for which there are so many arguments, room for as many results as the program
        // has, and room for one event; all lists live during the call.
        unsafe { self.0.call(call, args) }?;
        let outputs =
            outputs.into_iter().map(|raw| BufferHandle(Handle::child(client, raw, Call::Buffer_Destroy))).collect();
        Ok((outputs, EventHandle(Handle::child(client, done, Call::Event_Destroy))))
    }
}

impl BufferHandle {
    /// The type of its elements as the interface numbers it, and its dimensions.
    pub fn array(&self) -> Result<(i32, Vec<i64>), Failure> {
        // SAFETY: the calls take a buffer; the list lives as long as it does.
        unsafe {
            let element = self.0.call(Call::Buffer_ElementType, abi::Int { object: self.0.raw, ..Zero::ZERO })?.int;
            let args = abi::BufferDimensions { buffer: self.0.raw, ..Zero::ZERO };
            let args = self.0.call(Call::Buffer_Dimensions, args)?;
            Ok((element, list(args.dims, args.len).to_vec()))
        }
    }

    /// The room that it takes.
    pub fn bytes_on_device(&self) -> Result<usize, Failure> {
        let args = abi::Count { object: self.0.raw, ..Zero::ZERO };
        // SAFETY: the call takes a buffer and gives a number.
        Ok(unsafe { self.0.call(Call::Buffer_OnDeviceSizeInBytes, args) }?.count)
    }

    /// The number of its device.
    pub fn device_id(&self) -> Result<i32, Failure> {
        // SAFETY: the first call takes a buffer and gives its device, the second a device and gives its description,
        // the third a description and gives an integer; all live as long as the client.
        unsafe {
            let object = abi::ObjectOf { object: self.0.raw, ..Zero::ZERO };
            let object = self.0.call(Call::Buffer_Device, object)?.other;
            let object = self.0.call(Call::Device_GetDescription, abi::ObjectOf { object, ..Zero::ZERO })?.other;
            Ok(self.0.call(Call::DeviceDescription_Id, abi::Int { object, ..Zero::ZERO })?.int)
        }
    }

    /// Where it lies in its device's memory.
    pub fn address(&self) -> Result<usize, Failure> {
        let args = abi::Count { object: self.0.raw, ..Zero::ZERO };
        // SAFETY: the call takes a buffer and gives a number.
        Ok(unsafe { self.0.call(Call::Buffer_UnsafePointer, args) }?.count)
    }

    /// Whether its memory was freed or donated.
    pub fn is_deleted(&self) -> Result<bool, Failure> {
        let args = abi::Truth { object: self.0.raw, ..Zero::ZERO };
        // SAFETY: the call takes a buffer and gives yes or no.
        Ok(unsafe { self.0.call(Call::Buffer_IsDeleted, args) }?.truth != 0)
    }

    /// Waits until its numbers are there.
    pub fn wait(&self) -> Result<(), Failure> {
        let args = abi::ObjectOf { object: self.0.raw, ..Zero::ZERO };
        // SAFETY: the call takes a buffer and gives an event of its own.
        let event = unsafe { self.0.call(Call::Buffer_ReadyEvent, args) }?.other;
        EventHandle(self.sibling(event, Call::Event_Destroy)).wait()
    }

    fn sibling(&self, raw: *mut Opaque, destroy: Call) -> Handle {
        match &self.0.parent {
            Some(client) => Handle::child(client, raw, destroy),
            None => Handle::new(self.0.library, raw, destroy),
        }
    }

    /// Copies its numbers, row-major, when they are there.
    pub fn read<T: Element>(&self, out: &mut [T]) -> Result<(), Failure> {
        let call = Call::Buffer_ToHostBuffer;
        let (element, dims) = self.array()?;
        if element != code(T::TYPE) || count(&dims) != Some(out.len()) {
            let text = format!("{} numbers of type {} cannot take an array of shape {dims:?}", out.len(), T::TYPE);
            return Err(ours(call, text));
        }
        let minor_to_major: Vec<i64> = (0..dims.len() as i64).rev().collect();
        let tiled = abi::Tiled { minor_to_major: minor_to_major.as_ptr(), rank: minor_to_major.len(), ..Zero::ZERO };
        let layout = Padded::new(abi::Layout { tiled, kind: abi::TILED, ..Zero::ZERO });
        let args = abi::BufferToHost {
            buffer: self.0.raw,
            layout: &raw const layout.args,
            data: out.as_mut_ptr().cast(),
            len: size_of_val(out),
            ..Zero::ZERO
        };
        // SAFETY: `out` has room for all numbers and is borrowed until the copy is done, for which the event below
        // waits.
        let args = unsafe { self.0.call(call, args) }?;
        if !args.done.is_null() {
            let done = EventHandle(self.sibling(args.done, Call::Event_Destroy));
            if let Err(failure) = done.wait() {
                // Until it has happened numbers may go to `out`, which the caller has back then.
                while matches!(done.is_ready(), Ok(false)) {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                return Err(failure);
            }
        }
        T::make_valid(out);
        Ok(())
    }
}

impl EventHandle {
    /// Waits until it has happened.
    pub fn wait(&self) -> Result<(), Failure> {
        // SAFETY: the call takes an event.
        unsafe { self.0.call(Call::Event_Await, abi::Object { object: self.0.raw, ..Zero::ZERO }) }.map(|_| ())
    }

    /// Whether it has happened.
    pub fn is_ready(&self) -> Result<bool, Failure> {
        let args = abi::Truth { object: self.0.raw, ..Zero::ZERO };
        // SAFETY: the call takes an event and gives yes or no.
        Ok(unsafe { self.0.call(Call::Event_IsReady, args) }?.truth != 0)
    }
}

/// What is wrong before the plugin is asked.
fn ours(call: Call, text: String) -> Failure {
    Failure { call: call.name(), code: Code::InvalidArgument, text }
}

/// The number of elements of an array.
fn count(dims: &[i64]) -> Option<usize> {
    dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?))
}

/// As `PJRT_Buffer_Type` numbers it.
pub fn code(element: ElementType) -> i32 {
    match element {
        ElementType::Pred => 1,
        ElementType::I8 => 2,
        ElementType::I16 => 3,
        ElementType::I32 => 4,
        ElementType::I64 => 5,
        ElementType::U8 => 6,
        ElementType::U16 => 7,
        ElementType::U32 => 8,
        ElementType::U64 => 9,
        ElementType::F16 => 10,
        ElementType::F32 => 11,
        ElementType::F64 => 12,
        ElementType::Bf16 => 13,
    }
}

/// A number that arrays on the host are made of.
///
/// # Safety
/// `TYPE` must have the size and the meaning of `Self`, without bytes that are not set, and after `make_valid` any
/// bytes must be good values.
pub unsafe trait Element: Copy + Default + Send + Sync + 'static {
    /// Its type.
    const TYPE: ElementType;

    /// Makes good values of what a plugin has written.
    #[doc(hidden)]
    fn make_valid(_written: &mut [Self]) {}
}

macro_rules! elements {
    ($($type:ty = $element:ident),*) => {
        $(
            // SAFETY: a plain number, of which all bytes are good.
            unsafe impl Element for $type {
                const TYPE: ElementType = ElementType::$element;
            }
        )*
    };
}
elements!(i8 = I8, i16 = I16, i32 = I32, i64 = I64, u8 = U8, u16 = U16, u32 = U32, u64 = U64, f32 = F32, f64 = F64);

// SAFETY: 16 bits, all good.
unsafe impl Element for Bf16 {
    const TYPE: ElementType = ElementType::Bf16;
}

// SAFETY: one byte; `make_valid` leaves no other value than 0 and 1.
unsafe impl Element for bool {
    const TYPE: ElementType = ElementType::Pred;

    fn make_valid(written: &mut [bool]) {
        // SAFETY: the same bytes, as what they may be before.
        let bytes = unsafe { std::slice::from_raw_parts_mut(written.as_mut_ptr().cast::<u8>(), written.len()) };
        for byte in bytes {
            *byte = u8::from(*byte != 0);
        }
    }
}

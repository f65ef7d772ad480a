//! Sources to shared libraries, through `rustc` and a cache.
//!
//! In come the files of a crate; out goes the path of its library, compiled now or found in the cache.
//! Never true here: that an entry of the cache is used unchecked, or seen by another process half-written.

use super::EngineError;
use crate::cache;
use crate::cache::trusted;
use crate::codegen::rust::SourceFile;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, UNIX_EPOCH};
use std::{env, fs, io};

/// Where to compile and with what.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompileOptions {
    /// The cache; by default `$XDG_CACHE_HOME/neuroc` or `~/.cache/neuroc`.
    pub cache: Option<PathBuf>,
    /// The Rust compiler; by default the `rustc` that the shell would find.
    pub rustc: Option<PathBuf>,
}

/// A compiled library.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The library.
    pub library: PathBuf,
    /// Whether it was in the cache.
    pub cached: bool,
    /// How long it took to find or make it.
    pub seconds: f64,
}

/// `target-cpu=native`, since plain x86-64-v4 halves throughput. Panics unwind, so that the entry point can turn a compiler
/// bug into an error. One codegen unit: kernels are few, large functions. `prefer-no-gather` is added on x86-64, where LLVM
/// would make slow hardware gathers of indexed loads.
const FLAGS: &[&str] = &[
    "--edition=2024",
    "--crate-type=cdylib",
    "--cap-lints=allow",
    "-Copt-level=3",
    "-Ctarget-cpu=native",
    "-Cpanic=unwind",
    "-Ccodegen-units=1",
    "-Cdebuginfo=0",
    "-Cstrip=symbols",
];

fn flags() -> Vec<&'static str> {
    let mut flags = FLAGS.to_vec();
    if cfg!(target_arch = "x86_64") {
        flags.push("-Ctarget-feature=+prefer-no-gather");
    }
    flags
}

const LIBRARY: &str = "kernels.so";
const CHECKSUM: &str = "kernels.so.blake3";

/// Finds or makes the library of a crate whose root is `src/lib.rs`.
pub fn compile(files: &[SourceFile], options: &CompileOptions) -> Result<Compiled, EngineError> {
    let start = Instant::now();
    let rustc = find_rustc(options)?;
    let cache = options.cache.clone().map_or_else(default_cache, Ok)?;
    let entry = cache.join(key(files, &rustc));
    let done = |cached| Compiled { library: entry.join(LIBRARY), cached, seconds: start.elapsed().as_secs_f64() };
    if intact(&entry) {
        return Ok(done(true));
    }
    let trouble = |what: &str, path: &Path, error: io::Error| {
        EngineError(format!(
            "the kernel cache: {what} `{}` failed: {error}; `--cache DIR` names another folder for it",
            path.display()
        ))
    };
    fs::create_dir_all(&cache).map_err(|e| trouble("making", &cache, e))?;
    sweep(&cache);
    let work =
        tempfile::Builder::new().prefix("new-").tempdir_in(&cache).map_err(|e| trouble("writing in", &cache, e))?;
    for file in files {
        let path = work.path().join(&file.path);
        let folder = path.parent().unwrap_or(work.path());
        fs::create_dir_all(folder).map_err(|e| trouble("making", folder, e))?;
        fs::write(&path, &file.text).map_err(|e| trouble("writing", &path, e))?;
    }
    if let Err(error) = run_rustc(&rustc, work.path()) {
        return Err(match error {
            Failure::Here(message) => EngineError(message),
            Failure::Source(message) => {
                let kept = work.keep();
                // Not among what is swept away.
                let told = cache.join(format!("refused-{}", entry_name(&entry)));
                let kept = if fs::rename(&kept, &told).is_ok() { told } else { kept };
                EngineError(format!(
                    "rustc refuses the generated kernel, which is a bug of neuroc. Please report it with the source kept in \
                     {}; `--engine interp` still works.\n{message}",
                    kept.display()
                ))
            }
        });
    }
    let library = work.path().join(LIBRARY);
    let bytes = fs::read(&library).map_err(|e| trouble("reading", &library, e))?;
    let checksum = work.path().join(CHECKSUM);
    fs::write(&checksum, blake3::hash(&bytes).to_hex().as_str()).map_err(|e| trouble("writing", &checksum, e))?;
    let work = work.keep();
    if fs::rename(&work, &entry).is_err() {
        // Another process was faster, or the entry there is corrupt.
        if !intact(&entry) {
            let old = cache.join(format!("old-{}-{}", std::process::id(), entry_name(&entry)));
            let _ = fs::rename(&entry, &old);
            let _ = fs::remove_dir_all(&old);
            if let Err(error) = fs::rename(&work, &entry)
                && !intact(&entry)
            {
                return Err(trouble("making", &entry, error));
            }
        }
        let _ = fs::remove_dir_all(&work);
    }
    Ok(done(false))
}

fn entry_name(entry: &Path) -> String {
    entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Removes folders that processes began in which died since, and that were compiled in more than a day ago.
fn sweep(cache: &Path) {
    const OLD: std::time::Duration = std::time::Duration::from_secs(24 * 3600);
    let Ok(entries) = fs::read_dir(cache) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let left = name.starts_with("new-") || name.starts_with("old-");
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if left && age.is_some_and(|age| age > OLD) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Is the library there as it was made, and by nobody else?
fn intact(entry: &Path) -> bool {
    if ![entry, &entry.join(LIBRARY), &entry.join(CHECKSUM)].into_iter().all(trusted) {
        return false;
    }
    let (Ok(bytes), Ok(checksum)) = (fs::read(entry.join(LIBRARY)), fs::read_to_string(entry.join(CHECKSUM))) else {
        return false;
    };
    blake3::hash(&bytes).to_hex().as_str() == checksum
}

enum Failure {
    /// The machine lacks something.
    Here(String),
    /// The source is wrong.
    Source(String),
}

fn run_rustc(rustc: &Path, folder: &Path) -> Result<(), Failure> {
    // Run in the folder, so that no path of this machine gets into the library.
    let output = Command::new(rustc)
        .current_dir(folder)
        .args(flags())
        .args(["--crate-name=kernels", "-o", LIBRARY, "src/lib.rs"])
        .output()
        .map_err(|error| Failure::Here(format!("{}: {error}\n{HELP}", rustc.display())))?;
    if output.status.success() {
        return match folder.join(LIBRARY).is_file() {
            true => Ok(()),
            false => Err(Failure::Here(format!("`{}` made no library.\n{HELP}", rustc.display()))),
        };
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if message.contains("linker `") && message.contains("not found") {
        return Err(Failure::Here(format!(
            "rustc needs a C linker (Debian and Ubuntu: apt install gcc); `--engine interp` works without.\n{message}"
        )));
    }
    if message.contains("the Rust edition")
        || message.contains("no default toolchain")
        || message.contains("error: rustup")
    {
        return Err(Failure::Here(format!("{message}\n{HELP}")));
    }
    if output.status.code().is_none() {
        return Err(Failure::Here(format!("rustc was stopped ({})", output.status)));
    }
    // Only what rustc says about our files is about our files.
    if !message.contains("--> src/") {
        let (name, status) = (rustc.display(), output.status);
        return Err(Failure::Here(format!("`{name}` failed ({status}):\n{}\n{HELP}", message.trim_end())));
    }
    Err(Failure::Source(message))
}

const HELP: &str = "The native engine compiles kernels with rustc 1.89 or newer. Install it from https://rustup.rs (or, where \
                    that is new enough, with `apt install rustc`); `--engine interp` works without.";

fn find_rustc(options: &CompileOptions) -> Result<PathBuf, EngineError> {
    let name = format!("rustc{}", env::consts::EXE_SUFFIX);
    let in_path = || {
        let path = env::var_os("PATH")?;
        let found = env::split_paths(&path).map(|folder| folder.join(&name)).find(|file| is_program(file))?;
        // It runs in a folder of its own, where a relative entry would lead elsewhere.
        std::path::absolute(found).ok()
    };
    match &options.rustc {
        Some(rustc) if rustc.is_file() => Ok(std::path::absolute(rustc).unwrap_or_else(|_| rustc.clone())),
        Some(rustc) => Err(EngineError(format!("there is no Rust compiler at {}.\n{HELP}", rustc.display()))),
        None => in_path().ok_or_else(|| EngineError(format!("there is no `rustc` in PATH.\n{HELP}"))),
    }
}

/// Is there a Rust compiler that these options would find? Whether it works shows when it is asked to.
pub fn is_there(options: &CompileOptions) -> bool {
    find_rustc(options).is_ok()
}

/// Would the shell run it?
fn is_program(file: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    file.is_file()
}

/// Where kernels are kept if nobody says.
pub fn default_cache() -> Result<PathBuf, EngineError> {
    let lost = || EngineError("there is no HOME for the kernel cache; name a folder for it with `--cache DIR`".into());
    cache::folder().ok_or_else(lost)
}

/// What the library depends on: the sources, the flags, the compiler and the processor. Asking `rustc -vV` would cost more than
/// all the rest of a warm start, so the compiler is known by its file, and behind rustup by what rustup knows of its toolchains.
fn key(files: &[SourceFile], rustc: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut text = |part: &str| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    };
    for file in files {
        text(&file.path);
        text(&file.text);
    }
    flags().into_iter().for_each(&mut text);
    text(&processor());
    text(&stamp(rustc));
    text(&fs::canonicalize(rustc).map(|path| stamp(&path)).unwrap_or_default());
    text(&env::var("RUSTUP_TOOLCHAIN").unwrap_or_default());
    let home = env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".rustup")));
    if let Some(home) = home {
        text(&stamp(&home.join("settings.toml")));
        text(&stamp(&home.join("update-hashes")));
    }
    hasher.finalize().to_hex()[..32].to_string()
}

/// A file's path, size and time of change.
pub(super) fn stamp(path: &Path) -> String {
    let mut stamp = path.display().to_string();
    if let Ok(data) = fs::metadata(path) {
        let changed = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let _ = write!(stamp, " {} {:?}", data.len(), changed);
    }
    stamp
}

/// The processor, since a cache may be shared by machines and libraries are made for one.
pub(super) fn processor() -> String {
    let mut processor = env::consts::ARCH.to_string();
    if let Ok(info) = fs::read_to_string("/proc/cpuinfo") {
        let told =
            |line: &&str| ["model name", "flags", "Features", "CPU part"].iter().any(|key| line.starts_with(key));
        let mut lines: Vec<&str> = info.lines().filter(told).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.iter().for_each(|line| processor.push_str(line));
    }
    processor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Vec<SourceFile> {
        vec![SourceFile { path: "src/lib.rs".into(), text: text.into() }]
    }

    const GOOD: &str = "#[unsafe(no_mangle)]\npub extern \"C\" fn one() -> u32 {\n    1\n}\n";

    #[test]
    fn a_library_is_made_once_and_made_again_when_it_is_broken() {
        let cache = tempfile::tempdir().unwrap();
        let options = CompileOptions { cache: Some(cache.path().join("deep/cache")), rustc: None };
        let first = compile(&source(GOOD), &options).unwrap();
        assert!(!first.cached);
        let bytes = fs::read(&first.library).unwrap();
        let second = compile(&source(GOOD), &options).unwrap();
        assert!(second.cached && second.library == first.library);
        fs::write(&first.library, &bytes[..bytes.len() / 2]).unwrap();
        let third = compile(&source(GOOD), &options).unwrap();
        assert!(!third.cached && third.library == first.library);
        assert_eq!(fs::read(&third.library).unwrap(), bytes, "the same source gives the same bytes");
        let entries = fs::read_dir(cache.path().join("deep/cache")).unwrap().count();
        assert_eq!(entries, 1, "nothing is left over");
    }

    #[test]
    fn two_at_once_get_one_library() {
        let cache = tempfile::tempdir().unwrap();
        let options = CompileOptions { cache: Some(cache.path().into()), rustc: None };
        let both = std::thread::scope(|scope| {
            let make = || compile(&source(GOOD), &options).unwrap().library;
            [scope.spawn(make), scope.spawn(make)].map(|thread| thread.join().unwrap())
        });
        assert_eq!(both[0], both[1]);
        assert!(both[0].is_file());
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_compiler_is_explained() {
        let options = CompileOptions { cache: None, rustc: Some("/no/such/rustc".into()) };
        let EngineError(message) = compile(&source(GOOD), &options).unwrap_err();
        for part in ["/no/such/rustc", "https://rustup.rs", "apt install rustc", "--engine interp"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_refused_source_is_kept() {
        let cache = tempfile::tempdir().unwrap();
        let options = CompileOptions { cache: Some(cache.path().into()), rustc: None };
        let EngineError(message) = compile(&source("fn f() -> u32 {}\n"), &options).unwrap_err();
        assert!(message.contains("bug of neuroc") && message.contains("mismatched types"), "{message}");
        let kept = fs::read_dir(cache.path()).unwrap().next().unwrap().unwrap().path();
        assert!(message.contains(&kept.display().to_string()) && kept.join("src/lib.rs").is_file(), "{message}");
    }
}

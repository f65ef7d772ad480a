//! Fetching plugins: Python wheels, through pip, unpacked into a folder.
//!
//! In comes a kind of device; out goes the plugin's path.
//! Never true here: a folder that is half full, or a change outside of the folder of plugins.

use super::{Kind, library_in};
use std::fmt;
use std::fs;
use std::io::{IsTerminal, stderr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a plugin could not be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallError {
    /// There is no Python.
    NoPython(String),
    /// Python has no pip.
    NoPip(String),
    /// The package index cannot be reached.
    NoNetwork(String),
    /// The disk is full, or may not be written.
    Disk(String),
    /// There is no such wheel for this machine or this Python.
    NoWheel(String),
    /// pip fails in another way.
    Pip(String),
}

const HELP: &str = "Debian and Ubuntu: apt install python3-pip";

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallError::NoPython(why) => {
                write!(f, "plugins come as Python wheels, and python3 does not run ({why}); {HELP}")
            }
            InstallError::NoPip(why) => {
                write!(f, "plugins are fetched by pip, which python3 lacks; {HELP}\n{why}")
            }
            InstallError::NoNetwork(why) => write!(f, "the Python package index cannot be reached\n{why}"),
            InstallError::Disk(why) => write!(f, "the plugin cannot be written: {why}"),
            InstallError::NoWheel(why) => {
                write!(f, "the Python package index has no such plugin for this machine and this Python\n{why}")
            }
            InstallError::Pip(why) => write!(f, "pip failed\n{why}"),
        }
    }
}

impl std::error::Error for InstallError {}

impl Kind {
    /// What pip is asked for, and whether with what that needs. CUDA's own libraries are an extra of the package for
    /// JAX; the plugin finds them by their place relative to its own.
    fn wheels(self) -> (&'static str, bool) {
        match self {
            Kind::Cpu => ("xla-cpu-pjrt==0.0.1", false),
            Kind::Cuda => ("jax-cuda13-plugin[with-cuda]==0.10.2", true),
            Kind::Tpu => ("libtpu==0.0.52", false),
        }
    }
}

/// Installs a plugin below the folder of plugins, unless it is there. Calls `fetching` before what may take long.
pub fn install(kind: Kind, folder: &Path, fetching: impl FnOnce()) -> Result<PathBuf, InstallError> {
    install_with(Path::new("python3"), kind, folder, fetching)
}

fn install_with(python: &Path, kind: Kind, folder: &Path, fetching: impl FnOnce()) -> Result<PathBuf, InstallError> {
    let place = folder.join(kind.name());
    if let Some(library) = library_in(kind, &place) {
        return Ok(library);
    }
    let disk = |path: &Path, error: std::io::Error| InstallError::Disk(format!("`{}`: {error}", path.display()));
    let pip = || {
        let mut command = Command::new(python);
        command.args(["-m", "pip"]).env("PIP_USER", "0").stdin(Stdio::null());
        command
    };
    let version = pip().arg("--version").output().map_err(|error| InstallError::NoPython(error.to_string()))?;
    if !version.status.success() {
        return Err(InstallError::NoPip(text(&version.stderr)));
    }
    fs::create_dir_all(folder).map_err(|error| disk(folder, error))?;
    let new = tempfile::Builder::new().prefix("new-").tempdir_in(folder).map_err(|error| disk(folder, error))?;
    let (wheels, with_needs) = kind.wheels();
    let mut command = pip();
    command.args(["install", "--no-input", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:"]);
    command.arg("--target").arg(new.path());
    if !with_needs {
        command.arg("--no-deps");
    }
    // Progress is for people: on stderr, which stdout is not for, and only on a terminal.
    let terminal = stderr().is_terminal();
    let progress = terminal.then(|| stderr().as_fd().try_clone_to_owned().ok()).flatten();
    match progress {
        Some(stderr) => command.stdout(stderr),
        None => command.arg("--quiet").stdout(Stdio::null()),
    };
    fetching();
    let done = command.arg(wheels).output().map_err(|error| InstallError::NoPython(error.to_string()))?;
    if !done.status.success() {
        return Err(told(&text(&done.stderr), folder));
    }
    if library_in(kind, new.path()).is_none() {
        return Err(InstallError::Pip(format!("`{wheels}` holds no plugin where one was expected")));
    }
    let new = new.keep();
    if let Err(error) = fs::rename(&new, &place) {
        // Another process was faster, or what is there is no plugin.
        if library_in(kind, &place).is_none() {
            let old = folder.join(format!("old-{}-{kind}", std::process::id()));
            let _ = fs::rename(&place, &old);
            let _ = fs::remove_dir_all(&old);
            let renamed = fs::rename(&new, &place);
            if renamed.is_err() && library_in(kind, &place).is_none() {
                let _ = fs::remove_dir_all(&new);
                return Err(disk(&place, error));
            }
        }
        let _ = fs::remove_dir_all(&new);
    }
    library_in(kind, &place).ok_or_else(|| InstallError::Disk(format!("`{}` went away", place.display())))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_string()
}

/// What pip's words mean.
fn told(words: &str, folder: &Path) -> InstallError {
    let has = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    // A long story is told from its end; of what pip tries again and again, the last time.
    let lines: Vec<&str> =
        words.lines().filter(|l| !l.contains("Retry(total=") || l.contains("Retry(total=0,")).collect();
    let end = lines[lines.len().saturating_sub(12)..].join("\n");
    let disk = ["No space left on device", "Disk quota exceeded", "Permission denied", "Read-only file system"];
    if let Some(what) = disk.into_iter().find(|what| words.contains(what)) {
        let folder = folder.display();
        InstallError::Disk(format!("{what}, in `{folder}` or in the folder for temporary files (TMPDIR names another)"))
    } else if has(&[
        "NewConnectionError",
        "Failed to establish a new connection",
        "name resolution",
        "ConnectTimeout",
        "ReadTimeout",
        "ProxyError",
        "SSLError",
        "Network is unreachable",
        "Connection refused",
        "Connection broken",
    ]) {
        InstallError::NoNetwork(end)
    } else if has(&["No matching distribution", "is not a supported wheel"]) {
        InstallError::NoWheel(end)
    } else {
        InstallError::Pip(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A `python3` that does as a script says when pip is to install; `$target` is where to.
    fn python(folder: &Path, script: &str) -> PathBuf {
        let file = folder.join("python3");
        let text = format!(
            "#!/bin/sh\ncase \"$*\" in *--version*) exit 0;; esac\n\
             while [ \"$1\" != --target ]; do shift; done\ntarget=$2\n{script}\n"
        );
        // Another process writes it: what other tests start meanwhile would keep a file of this one open, and open files cannot be run.
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""]).arg(&file).arg(text);
        assert!(shell.status().unwrap().success());
        file
    }

    const LIBRARY: &str = "libtpu/libtpu.so";
    const GOOD: &str =
        "mkdir -p \"$target/libtpu\" && echo x > \"$target/libtpu/libtpu.so\" && echo once >> \"$0.log\"";

    #[test]
    fn a_plugin_is_installed_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let python = python(folder.path(), GOOD);
        let plugins = folder.path().join("deep/plugins");
        let library = plugins.join("tpu").join(LIBRARY);
        assert_eq!(install_with(&python, Kind::Tpu, &plugins, || ()).unwrap(), library);
        assert_eq!(install_with(&python, Kind::Tpu, &plugins, || ()).unwrap(), library);
        assert_eq!(fs::read_to_string(folder.path().join("python3.log")).unwrap(), "once\n");
        // What is broken is replaced.
        fs::remove_file(&library).unwrap();
        assert_eq!(install_with(&python, Kind::Tpu, &plugins, || ()).unwrap(), library);
        assert!(library.is_file());
        assert_eq!(fs::read_dir(&plugins).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn two_at_once_get_one_plugin() {
        let folder = tempfile::tempdir().unwrap();
        let python = python(folder.path(), GOOD);
        let plugins = folder.path().join("plugins");
        std::thread::scope(|scope| {
            let install = || install_with(&python, Kind::Tpu, &plugins, || ()).unwrap();
            let threads = [scope.spawn(install), scope.spawn(install)];
            threads.into_iter().for_each(|thread| assert!(thread.join().unwrap().is_file()));
        });
        assert_eq!(fs::read_dir(&plugins).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_is_explained_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let plugins = folder.path().join("plugins");
        let fail = |script: &str| {
            let python = python(folder.path(), script);
            let error = install_with(&python, Kind::Cpu, &plugins, || ()).unwrap_err();
            assert_eq!(fs::read_dir(&plugins).unwrap().count(), 0, "{error}");
            error
        };
        let say = |words: &str| fail(&format!("echo '{words}' >&2; echo x > \"$target/half\"; exit 1"));
        let unreachable = "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution\n\
                           ERROR: No matching distribution found for xla-cpu-pjrt";
        assert!(matches!(say(unreachable), InstallError::NoNetwork(_)));
        let again = "WARNING: Retrying (Retry(total=1, connect=None)) after ReadTimeout\n\
                     WARNING: Retrying (Retry(total=0, connect=None)) after ReadTimeout";
        assert!(matches!(say(again), InstallError::NoNetwork(words) if words.lines().count() == 1));
        let full = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device";
        assert!(matches!(say(full), InstallError::Disk(_)));
        assert!(matches!(say("ERROR: No matching distribution found for x"), InstallError::NoWheel(_)));
        assert!(matches!(say("ERROR: something new"), InstallError::Pip(words) if words.contains("something new")));
        assert!(matches!(fail("exit 0"), InstallError::Pip(_)), "a wheel without a plugin");
    }

    #[test]
    fn a_missing_python_is_explained() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no-python3");
        let error = install_with(&missing, Kind::Cpu, folder.path(), || ()).unwrap_err();
        assert!(matches!(error, InstallError::NoPython(_)) && error.to_string().contains("apt install python3-pip"));
        let file = folder.path().join("python3");
        fs::write(&file, "#!/bin/sh\necho 'No module named pip' >&2; exit 1\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let error = install_with(&file, Kind::Cpu, folder.path(), || ()).unwrap_err();
        assert!(matches!(error, InstallError::NoPip(_)) && error.to_string().contains("No module named pip"));
        // Where the folder of plugins cannot be made.
        let blocked = folder.path().join("python3/plugins");
        let error = install_with(&python(folder.path(), GOOD), Kind::Cpu, &blocked, || ()).unwrap_err();
        assert!(matches!(error, InstallError::Disk(_)), "{error}");
    }
}

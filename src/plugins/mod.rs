//! Where XLA's plugins are on this machine.
//!
//! In come a few well-known places; out go the plugins found there, and where there was none.
//! Never true here: a plugin is loaded, or a search that fails without saying where it looked.

pub mod install;

use crate::cache;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kind of device, by the name that `--device` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// This machine's processor.
    Cpu,
    /// NVIDIA's GPUs.
    Cuda,
    /// Google's TPUs; without one, compiling for them.
    Tpu,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Cpu, Kind::Cuda, Kind::Tpu];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "cpu",
            Kind::Cuda => "cuda",
            Kind::Tpu => "tpu",
        }
    }

    /// What a client on its devices is told. XLA's processor plugin otherwise makes four devices of one processor, and has four threads
    /// look for work on as few as one core: unconnected olive cells, 8000 in f32 on one core, took 2.3 times as long. That for GPUs
    /// otherwise takes three quarters of the memory at its start, and leaves the next program too little.
    pub fn client_options(self) -> &'static [(&'static str, crate::pjrt::Value)] {
        match self {
            Kind::Cpu => &[("cpu_device_count", crate::pjrt::Value::Int(1))],
            Kind::Cuda => &[("preallocate", crate::pjrt::Value::Bool(false))],
            Kind::Tpu => &[],
        }
    }

    /// By its name.
    pub fn of(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Where wheels have the plugin, below a folder of Python packages.
    fn libraries(self) -> &'static [&'static str] {
        match self {
            Kind::Cpu => &["xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"],
            Kind::Cuda => &["jax_plugins/xla_cuda13/xla_cuda_plugin.so", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"],
            Kind::Tpu => &["libtpu/libtpu.so"],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A plugin on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// For which devices it is, as its name and place tell.
    pub kind: Kind,
    /// The file.
    pub path: PathBuf,
}

/// A place where plugins may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What place it is.
    pub name: &'static str,
    /// Its folder, or why there is none.
    pub folder: Result<PathBuf, String>,
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The plugins, at most one for each kind and place, first those that are preferred.
    pub found: Vec<Found>,
    /// Where was looked.
    pub places: Vec<Place>,
}

impl Search {
    /// Looks in all places: next to the program, where `neuroc devices --install` puts plugins, in Python's packages.
    pub fn everywhere() -> Search {
        Search::within(vec![next_to_program(), installed(), virtual_environment(), python()])
    }

    /// Looks in places.
    fn within(places: Vec<Place>) -> Search {
        let mut found: Vec<Found> = Vec::new();
        for place in &places {
            let Ok(folder) = &place.folder else { continue };
            for kind in Kind::ALL {
                let path = library_in(kind, &folder.join(kind.name())).or_else(|| library_in(kind, folder));
                if let Some(path) = path.or_else(|| bare_in(kind, folder))
                    && !found.iter().any(|other| other.path == path)
                {
                    found.push(Found { kind, path });
                }
            }
        }
        Search { found, places }
    }

    /// The plugin for a kind of device, or why there is none.
    pub fn plugin(&self, kind: Kind) -> Result<&Found, String> {
        self.found.iter().find(|found| found.kind == kind).ok_or_else(|| {
            format!(
                "there is no XLA plugin for {kind} devices; `neuroc devices --install {kind}` installs one, \
                 `--plugin PATH` names one\n{}",
                self.looked()
            )
        })
    }

    /// Where was looked, a place per line.
    pub fn looked(&self) -> String {
        let line = |place: &Place| match &place.folder {
            Ok(folder) => format!("looked in {}: {}", place.name, folder.display()),
            Err(why) => format!("did not look in {}: {why}", place.name),
        };
        self.places.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The plugin in a folder of Python packages.
fn library_in(kind: Kind, folder: &Path) -> Option<PathBuf> {
    kind.libraries().iter().map(|library| folder.join(library)).find(|file| file.is_file())
}

/// The plugin's file by itself, as it may lie next to a program.
fn bare_in(kind: Kind, folder: &Path) -> Option<PathBuf> {
    let files = kind.libraries().iter().filter_map(|library| Some(folder.join(Path::new(library).file_name()?)));
    files.into_iter().find(|file| file.is_file())
}

fn next_to_program() -> Place {
    let folder = env::current_exe().map_err(|error| format!("the program does not know its own file: {error}"));
    let folder = folder.map(|file| file.parent().map(|folder| folder.join("plugins")).unwrap_or_default());
    Place { name: "the folder next to the program", folder }
}

/// The folder that `neuroc devices --install` fills, or why there is none.
pub fn folder() -> Result<PathBuf, String> {
    let cache = cache::folder().ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("plugins"))
}

fn installed() -> Place {
    Place { name: "the installed plugins", folder: folder() }
}

fn virtual_environment() -> Place {
    let name = "the active virtual environment";
    let Some(root) = env::var_os("VIRTUAL_ENV").map(PathBuf::from) else {
        return Place { name, folder: Err("VIRTUAL_ENV is not set".into()) };
    };
    let versions = std::fs::read_dir(root.join("lib")).into_iter().flatten().flatten();
    let mut packages: Vec<PathBuf> = versions
        .filter(|version| version.file_name().to_string_lossy().starts_with("python"))
        .map(|version| version.path().join("site-packages"))
        .filter(|packages| packages.is_dir())
        .collect();
    packages.sort();
    let none = || format!("{} has no folder of packages", root.display());
    Place { name, folder: packages.pop().ok_or_else(none) }
}

/// The packages of the `python3` that the shell would find.
fn python() -> Place {
    let name = "Python's packages";
    let ask = "import sysconfig; print(sysconfig.get_paths()['platlib'])";
    let folder = match Command::new("python3").args(["-I", "-c", ask]).output() {
        Err(error) => Err(format!("python3: {error}")),
        Ok(output) if !output.status.success() => Err(format!("python3 failed ({})", output.status)),
        Ok(output) => Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())),
    };
    Place { name, folder }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn plugins_are_found_where_wheels_have_them() {
        let folder = tempfile::tempdir().unwrap();
        let touch = |file: &str| {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            file
        };
        let place = |path: &str| Place { name: "a test", folder: Ok(folder.path().join(path)) };
        let bare = touch("first/libtpu.so");
        let packages = touch("second/libtpu/libtpu.so");
        let installed = touch("third/cpu/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
        let search = Search::within(vec![place("first"), place("second"), place("third"), place("none")]);
        let paths: Vec<_> = search.found.iter().map(|found| &found.path).collect();
        assert_eq!(paths, [&bare, &packages, &installed]);
        assert_eq!(search.plugin(Kind::Tpu).unwrap().path, bare);
        let missing = search.plugin(Kind::Cuda).unwrap_err();
        assert!(missing.contains("neuroc devices --install cuda"), "{missing}");
        for place in ["first", "second", "third", "none"] {
            assert!(missing.contains(&folder.path().join(place).display().to_string()), "{missing}");
        }
    }
}

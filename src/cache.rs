//! The folder of what can be made again.
//!
//! In comes the environment; out goes where kernels, executables and plugins are kept, if there is such a place, and whom it belongs to.
//! Never true here: the folder is made, or anything in it is read.

use std::env;
use std::path::{Path, PathBuf};

/// Is this file or folder the user's own, or the administrator's, and not everybody's to change? What runs is taken from no other.
#[cfg(unix)]
pub fn trusted(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(path).is_ok_and(|m| (m.uid() == user || m.uid() == 0) && m.mode() & 0o002 == 0)
}

/// Is this file or folder the user's own, or the administrator's, and not everybody's to change? Where that cannot be told: yes.
#[cfg(not(unix))]
pub fn trusted(path: &Path) -> bool {
    path.exists()
}

/// `$XDG_CACHE_HOME/neuroc` or `~/.cache/neuroc`; none if neither variable names a folder.
pub fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("neuroc"))
}

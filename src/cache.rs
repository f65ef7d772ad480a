//! The folder of what can be made again.
//!
//! In comes the environment; out goes where kernels, executables and plugins are kept, if there is such a place.
//! Never true here: the folder is made, or anything in it is looked at.

use std::env;
use std::path::PathBuf;

/// `$XDG_CACHE_HOME/neuroc` or `~/.cache/neuroc`; none if neither variable names a folder.
pub fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("neuroc"))
}

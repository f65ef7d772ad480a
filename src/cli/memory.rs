//! What this machine has: memory, and space on its disks.
//!
//! In comes nothing, or a path; out goes how many bytes a process can have at most, where the system tells.
//! Never true here: a guess.

pub use crate::units::bytes as told;
use std::fs;
use std::path::Path;

/// The memory and swap space of the machine, or what the process may have of it if that is less: the limits of its control groups, and of
/// its address space.
pub fn most() -> Option<f64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes = |key: &str| {
        let line = info.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let machine = (kibibytes("MemTotal")? + kibibytes("SwapTotal").unwrap_or(0.0)) * 1024.0;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limits_of_groups(&groups);
    let group = limits.iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<f64>().ok());
    Some(group.chain(address_space()).fold(machine, f64::min))
}

/// The files with the limits of control groups, of version 1 and 2, and of all groups around them. In a container the group's own
/// folder may be the root of what is seen.
fn limits_of_groups(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|c| c == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let folders = Path::new(path).ancestors().map(|folder| folder.display().to_string());
        files.extend(folders.map(|folder| format!("{root}{}/{file}", folder.trim_end_matches('/'))));
    }
    files.extend(["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"].map(str::to_owned));
    files
}

/// The limit that `ulimit -v` sets.
fn address_space() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|l| l.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The free space of the disk that a file or directory is going to be on.
#[cfg(unix)]
pub fn free(path: &Path) -> Option<f64> {
    if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        // A device or a pipe.
        return None;
    }
    let place =
        path.ancestors().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p }).find(|p| p.exists())?;
    let disk = rustix::fs::statvfs(place).ok()?;
    Some(disk.f_bavail as f64 * disk.f_frsize as f64)
}

/// The free space of the disk that a file or directory is going to be on.
#[cfg(not(unix))]
pub fn free(_path: &Path) -> Option<f64> {
    None
}

/// A number of bytes such as `2GB`, `500 MB` or `1.5GiB`.
pub fn size(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..at].trim(), text[at..].to_ascii_lowercase());
    let factor = match unit.as_str() {
        "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0f64.powi(2),
        "gib" => 1024.0f64.powi(3),
        "tib" => 1024.0f64.powi(4),
        _ => return Err("a size such as 2GB or 500MB is needed".into()),
    };
    let number = number.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0);
    number.map(|x| x * factor).ok_or_else(|| "a size such as 2GB or 500MB is needed".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("2GB"), Ok(2e9));
        assert_eq!(size("1.5 gib"), Ok(1.5 * 1073741824.0));
        for wrong in ["", "2", "GB", "-1GB", "nanGB", "2GBs", "1e999GB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    /// A job of a batch system is in a group of its own, which the root knows nothing of.
    #[test]
    fn d4_limits_of_a_group_and_of_those_around_it_count() {
        let files = limits_of_groups("12:cpu,memory:/slurm/job_7\n0::/user/a b\n3:pids:/x\n");
        assert!(files.contains(&"/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes".to_string()), "{files:?}");
        assert!(files.contains(&"/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes".to_string()), "{files:?}");
        assert!(files.contains(&"/sys/fs/cgroup/user/a b/memory.max".to_string()), "{files:?}");
        assert!(!files.iter().any(|file| file.contains("/x")), "{files:?}");
    }
}

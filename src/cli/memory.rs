//! The memory of this machine.
//!
//! In comes nothing; out goes how many bytes a process can have at most, where the system tells.
//! Never true here: a guess.

use std::fs;

/// The memory and swap space of the machine, or the limit of the control group if that is lower.
pub fn most() -> Option<f64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes = |key: &str| {
        let line = info.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let machine = (kibibytes("MemTotal")? + kibibytes("SwapTotal").unwrap_or(0.0)) * 1024.0;
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<f64>().ok())
        .fold(machine, f64::min);
    Some(group)
}

/// Bytes for people.
pub fn gigabytes(bytes: f64) -> String {
    match bytes / 1e9 {
        g if g < 10.0 => format!("{g:.2} GB"),
        g if g < 1e6 => format!("{g:.0} GB"),
        g => format!("{g:.1e} GB"),
    }
}

//! What can go wrong, in XLA's own words where XLA speaks.
//!
//! In come a plugin's status code and text and the call that gave them; out goes an [`Error`].
//! Never true here: that two failures which need different advice share a variant.

use super::plugin::Version;
use std::fmt;
use std::path::{Path, PathBuf};

/// A failure of a plugin or of its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// There is no such file.
    NoFile(PathBuf),
    /// The file is not a shared library, or not one for this machine.
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// What the dynamic linker says.
        why: String,
    },
    /// The library has no `GetPjrtApi`.
    NotAPlugin(PathBuf),
    /// The plugin speaks another major version of the interface.
    Version {
        /// The plugin.
        path: PathBuf,
        /// Its version.
        found: Version,
    },
    /// The plugin finds no device to drive, or cannot set it up.
    NoDevice {
        /// The plugin.
        path: PathBuf,
        /// The plugin's words.
        text: String,
    },
    /// Another process holds the device.
    DeviceBusy {
        /// The plugin.
        path: PathBuf,
        /// The plugin's words.
        text: String,
    },
    /// There is no such topology of devices.
    NoTopology {
        /// What was asked for.
        name: String,
        /// The plugin's words.
        text: String,
    },
    /// The program is not valid StableHLO; XLA's words.
    InvalidProgram(String),
    /// A device's memory does not suffice; XLA's words.
    OutOfMemory(String),
    /// A device failed or went away, and with it what it held; XLA's words.
    DeviceLost(String),
    /// The plugin or the device cannot do this; XLA's words.
    Unsupported(String),
    /// Numbers, types or shapes do not fit together; seen before XLA was asked.
    Mismatch(String),
    /// Any other failure.
    Failed {
        /// The call, as the C interface names it.
        call: &'static str,
        /// The kind of failure.
        code: Code,
        /// XLA's words.
        text: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoFile(path) => write!(f, "there is no plugin `{}`", path.display()),
            Error::NotALibrary { path, why } => {
                write!(f, "`{}` cannot be loaded as a shared library: {why}", path.display())
            }
            Error::NotAPlugin(path) => {
                write!(f, "`{}` is a shared library but no PJRT plugin: it has no `GetPjrtApi`", path.display())
            }
            Error::Version { path, found } => write!(
                f,
                "the plugin `{}` speaks PJRT {found}, this neuroc {}.x: another version of one of them is needed",
                path.display(),
                Version::MAJOR
            ),
            Error::NoDevice { path, text } => {
                write!(f, "the plugin `{}` finds no device that it can use: {text}", path.display())
            }
            Error::DeviceBusy { path, text } => {
                write!(f, "another process holds the device of the plugin `{}`: {text}", path.display())
            }
            Error::NoTopology { name, text } => write!(f, "the plugin knows no devices `{name}`: {text}"),
            Error::InvalidProgram(text) => write!(f, "XLA rejects the program: {text}"),
            Error::OutOfMemory(text) => write!(f, "the device's memory does not suffice: {text}"),
            Error::DeviceLost(text) => write!(f, "the device failed: {text}"),
            Error::Unsupported(text) => write!(f, "XLA cannot do this here: {text}"),
            Error::Mismatch(text) => f.write_str(text),
            Error::Failed { call, code, text } => write!(f, "XLA failed in {call} ({code}): {text}"),
        }
    }
}

impl std::error::Error for Error {}

/// The kinds of failure that XLA distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are all there is to them")]
pub enum Code {
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
    /// A number that the interface did not define when this was written.
    Undefined(i32),
}

impl Code {
    /// From the C interface.
    pub(super) fn of(number: i32) -> Code {
        match number {
            1 => Code::Cancelled,
            2 => Code::Unknown,
            3 => Code::InvalidArgument,
            4 => Code::DeadlineExceeded,
            5 => Code::NotFound,
            6 => Code::AlreadyExists,
            7 => Code::PermissionDenied,
            8 => Code::ResourceExhausted,
            9 => Code::FailedPrecondition,
            10 => Code::Aborted,
            11 => Code::OutOfRange,
            12 => Code::Unimplemented,
            13 => Code::Internal,
            14 => Code::Unavailable,
            15 => Code::DataLoss,
            16 => Code::Unauthenticated,
            other => Code::Undefined(other),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Code::Cancelled => "cancelled",
            Code::Unknown => "unknown",
            Code::InvalidArgument => "invalid argument",
            Code::DeadlineExceeded => "deadline exceeded",
            Code::NotFound => "not found",
            Code::AlreadyExists => "already exists",
            Code::PermissionDenied => "permission denied",
            Code::ResourceExhausted => "resource exhausted",
            Code::FailedPrecondition => "failed precondition",
            Code::Aborted => "aborted",
            Code::OutOfRange => "out of range",
            Code::Unimplemented => "unimplemented",
            Code::Internal => "internal",
            Code::Unavailable => "unavailable",
            Code::DataLoss => "data loss",
            Code::Unauthenticated => "unauthenticated",
            Code::Undefined(number) => return write!(f, "code {number}"),
        };
        f.write_str(name)
    }
}

/// CUDA's names of failures behind which a device, or what a process has on it, is of no more use.
const LOST: &[&str] = &[
    "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "CUDA_ERROR_ECC_UNCORRECTABLE",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_NVLINK_UNCORRECTABLE",
    "CUDA_ERROR_SYSTEM_NOT_READY",
];

/// What a plugin answered when a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// The call, as the C interface names it.
    pub call: &'static str,
    pub code: Code,
    pub text: String,
}

impl Failure {
    /// While a device computes or moves numbers.
    pub fn running(self) -> Error {
        // XLA passes what CUDA says of a broken device on as an internal failure.
        if self.code == Code::Internal && LOST.iter().any(|words| self.text.contains(words)) {
            return Error::DeviceLost(self.text);
        }
        match self.code {
            Code::ResourceExhausted => Error::OutOfMemory(self.text),
            Code::Unavailable | Code::DataLoss | Code::Aborted => Error::DeviceLost(self.text),
            Code::Unimplemented => Error::Unsupported(self.text),
            Code::Cancelled
            | Code::Unknown
            | Code::InvalidArgument
            | Code::DeadlineExceeded
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Internal
            | Code::Unauthenticated
            | Code::Undefined(_) => Error::Failed { call: self.call, code: self.code, text: self.text },
        }
    }

    /// While a program is compiled: what XLA cannot verify comes as an invalid argument, what it cannot parse as
    /// unknown.
    pub fn compiling(self) -> Error {
        let refused = matches!(self.code, Code::InvalidArgument | Code::Unknown);
        if refused { Error::InvalidProgram(self.text) } else { self.running() }
    }

    /// While a plugin sets up its devices.
    pub fn starting(self, path: &Path) -> Error {
        if self.code == Code::Unimplemented {
            return Error::Unsupported(self.text);
        }
        let path = path.to_path_buf();
        // libtpu tells only in words that its lock is taken.
        let held = self.text.contains("already in use") || self.text.contains("libtpu_lockfile");
        if held { Error::DeviceBusy { path, text: self.text } } else { Error::NoDevice { path, text: self.text } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: Code) -> Failure {
        Failure { call: "PJRT_Event_Await", code, text: "these words".into() }
    }

    #[test]
    fn each_kind_of_failure_is_told_apart() {
        let words = String::from("these words");
        assert_eq!(failure(Code::ResourceExhausted).running(), Error::OutOfMemory(words.clone()));
        assert_eq!(failure(Code::Unavailable).running(), Error::DeviceLost(words.clone()));
        assert_eq!(failure(Code::DataLoss).running(), Error::DeviceLost(words.clone()));
        let broken = "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered";
        let broken = Failure { call: "PJRT_Event_Await", code: Code::Internal, text: broken.into() };
        assert!(matches!(broken.running(), Error::DeviceLost(_)));
        assert!(matches!(failure(Code::Internal).running(), Error::Failed { .. }));
        assert_eq!(failure(Code::Unimplemented).compiling(), Error::Unsupported(words.clone()));
        assert_eq!(failure(Code::InvalidArgument).compiling(), Error::InvalidProgram(words.clone()));
        let path = Path::new("libtpu.so");
        assert!(matches!(failure(Code::Unavailable).starting(path), Error::NoDevice { .. }));
        let lock =
            "Internal error when accessing libtpu multi-process lockfile. Run \"$ sudo rm /tmp/libtpu_lockfile\".";
        let held = Failure { call: "PJRT_Client_Create", code: Code::Aborted, text: lock.into() };
        assert!(matches!(held.starting(path), Error::DeviceBusy { .. }));
    }

    #[test]
    fn codes_keep_their_numbers() {
        assert_eq!(Code::of(8), Code::ResourceExhausted);
        assert_eq!(Code::of(16), Code::Unauthenticated);
        assert_eq!(Code::of(99).to_string(), "code 99");
    }
}

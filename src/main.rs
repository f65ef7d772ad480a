//! The `neuroc` command: see [`neuroc::cli`].

fn main() -> std::process::ExitCode {
    neuroc::cli::main()
}

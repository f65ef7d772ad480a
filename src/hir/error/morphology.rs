//! What can be wrong with the sections and regions of a cell, and with places in it.

use super::instead;
use crate::diag::{Code, Diagnostic};
use crate::hir::Cell;
use crate::morphology::swc::{Fault, SwcError};
use crate::source::Span;
use crate::syntax::ast::Name;
use std::path::Path;

/// What is wrong with the morphology of a cell, or with a place in it.
pub(in crate::hir) enum MorphologyError<'e> {
    /// A place stands where the cells are named that have it; and a population whose cells have places, if there is one.
    PlaceOfNoCells { place: &'e str, population: Option<&'e str>, span: Span },
    /// A place is told by its distance.
    PlaceAsLength { span: Span },
    /// A member that only cells without sections have.
    OtherForm { what: &'static str, span: Span, section: Span },
    /// `morphology = ` is followed by something that is no file of a shape.
    NoShape { span: Span },
    /// The file of a shape cannot be read.
    CannotRead { file: &'e Path, error: std::io::Error, span: Span },
    /// Something is wrong with a file.
    Swc { error: &'e SwcError, line: Option<Span>, other: Option<Span>, file: &'e str, span: Span },
    /// A region or a `compartments` block without sections.
    NothingToCut { what: &'static str, span: Span },
    /// A section lacks a key.
    SectionLacks { section: &'e Name, key: &'static str, example: &'static str },
    /// How many compartments a section has depends on what is not known before the run.
    NotCut { section: &'e str, key: &'static str, span: Span },
    /// A cell has too many compartments.
    TooMany { cell: &'e Name, most: usize },
    /// A length, a diameter, or a number of compartments is not above zero.
    NotPositive { what: &'e str, span: Span },
    /// A number of compartments is not whole, or too large.
    Count { span: Span, most: usize },
    /// A number of the shape is known in a run only.
    NotConstant { what: &'e str, span: Span },
    /// Something has a second value.
    Twice { what: &'e str, again: Span, first: Span },
    /// Regions of other sections have one name: `up, down` and `up_down`.
    RegionsAlike { name: &'e str, again: Span, first: Span },
    /// Only the diameter changes along a section.
    NoTaper { key: &'e Name, span: Span },
    /// There is no such section: how many have its name with a number, or whether there is one without.
    UnknownSection { written: &'e str, known: &'e [&'e str], counted: usize, alone: bool, span: Span },
    /// Two sections begin nowhere.
    TwoRoots { second: &'e Name, first: &'e Name },
    /// Sections begin at each other.
    Loop { section: &'e Name },
    /// A place is not along its section.
    Outside { span: Span },
    /// No region gives a section a value.
    NotCovered { section: &'e Name, regions: &'e str, key: &'static str, example: &'static str },
    /// A channel is in a compartment twice.
    InsertedTwice { channel: &'e str, section: &'e str, again: Span, first: Span },
    /// A pool is in a section twice.
    PoolTwice { pool: &'e str, section: &'e str, again: Span, first: Span },
    /// A pool has a shell, and nothing diffuses in it.
    ShellWithoutDiffusion { pool: &'e Name, span: Span },
    /// A value of the whole cell differs from compartment to compartment.
    NotOfTheCell { symbol: &'e str, span: Span, read: &'e str },
    /// A value of a region, or of all compartments, is made of what a channel or a pool of another region has: of which, and is a parameter of the cell what
    /// both could read?
    OfARegion { symbol: &'e str, span: Span, read: &'e str, region: &'e str, is_param: bool },
    /// Two places are named in one path.
    PlacedTwice { again: Span, first: Span },
    /// A place is named where none can be.
    NoPlaceHere { span: Span },
    /// A place is named in a cell without sections.
    NoSections { cell: &'e Cell, span: Span },
    /// No place is named in a cell with sections.
    PlaceMissing { what: &'static str, section: &'e str, span: Span },
    /// There is nothing of this name at a place.
    NotThere { quantity: &'e str, place: &'e str, span: Span, known: &'e [&'e str] },
    /// What is recorded in each compartment of some sections is one thing in some of them and another in others: channels of these regions; the first
    /// section of each, and whether some compartments have both.
    SeveralRegions {
        quantity: &'e str,
        word: &'e str,
        regions: &'e [&'e str],
        words: &'e [&'e str],
        both: bool,
        span: Span,
    },
    /// Something that cells with sections do not have yet.
    NotYet { what: &'static str, span: Span },
    /// Something stands behind a place that something is led to.
    BehindPlace { what: &'static str, place: &'e str, rest: &'e str, span: Span },
    /// A clamp of a place that has no electrode.
    NoElectrode { clamp: &'e str, span: Span },
    /// A synapse without a current sits on a cell with sections.
    NoCurrent { span: Span },
    /// A synapse on a cell with sections has events that move the voltage: where.
    MovesVoltage { moved: Span, span: Span },
    /// A spike rule does not look at the voltage of a place.
    SpikePlace { span: Span, section: &'e str, level: &'e str },
}

impl From<MorphologyError<'_>> for Diagnostic {
    fn from(error: MorphologyError<'_>) -> Diagnostic {
        use MorphologyError as E;
        match error {
            E::PlaceOfNoCells { place, population, span } => {
                let message = format!("`{place}` is a place in cells, and no population is named");
                let d = Diagnostic::new(Code::BadTarget, span, message, "of which cells?");
                population.into_iter().fold(d, |d, population| d.help(format!("write `{population}.{place}`")))
            }
            E::PlaceAsLength { span } => {
                let message = "a place along a section is a number from 0, its start, to 1, its end";
                Diagnostic::new(Code::DimensionMismatch, span, message, "a length")
                    .help("divide by the length of the section: 150 um along one of 200 um is `(0.75)`")
            }
            E::OtherForm { what, span, section } => {
                let message = format!("a cell with sections has no {what}");
                Diagnostic::new(Code::BadMorphology, span, message, "not in a cell with sections")
                    .see(section, "this makes it one")
                    .help("what its membrane has stands in regions: `region all { ... }`")
            }
            E::NoShape { span } => {
                Diagnostic::new(Code::BadMorphology, span, "this is no file of a shape", "a file is needed")
                    .help("write `morphology = swc(\"cell.swc\")`; the name is relative to the model file")
            }
            E::CannotRead { file, error, span } => {
                let message = format!("cannot read `{}`", file.display());
                let why = match error.kind() {
                    std::io::ErrorKind::NotFound => "there is no such file".to_string(),
                    std::io::ErrorKind::PermissionDenied => "it may not be read".to_string(),
                    _ => error.to_string().to_lowercase(),
                };
                Diagnostic::new(Code::CannotRead, span, message, why).note("file names are relative to the model file")
            }
            E::Swc { error, line, other, file, span } => swc(error, line, other, file, span),
            E::NothingToCut { what, span } => {
                let message = format!("the cell has {what}, but no section");
                Diagnostic::new(Code::BadMorphology, span, message, "of no section")
                    .help("add `section soma { length = 20 um; diam = 20 um }`")
            }
            E::SectionLacks { section, key, example } => {
                let message = format!("section `{}` lacks `{key}`", section.text);
                Diagnostic::new(Code::MissingKey, section.span, message, "its shape is not known")
                    .help(format!("add `{example}`"))
            }
            E::NotCut { section, key, span } => {
                let message =
                    format!("how many compartments section `{section}` has depends on a `{key}` that is not known");
                Diagnostic::new(Code::NotConstant, span, message, "known in a run only")
                    .note("without another rule, compartments are a tenth of a length constant at 100 Hz long (`d_lambda = 0.1`)")
                    .help("say it without `ra` and `cm`: `compartments { max_length = 20 um }`, or `{ count = 5 }`")
            }
            E::TooMany { cell, most } => {
                let message = format!("cell `{}` has more than {most} compartments", cell.text);
                Diagnostic::new(Code::BadMorphology, cell.span, message, "cut too finely")
            }
            E::NotPositive { what, span } => {
                let message = format!("{what} is above zero");
                Diagnostic::new(Code::BadMorphology, span, message, "not above zero")
            }
            E::Count { span, most } => {
                let message = format!("a section has a whole number of compartments, from 1 to {most}");
                Diagnostic::new(Code::BadMorphology, span, message, "no such number")
            }
            E::NotConstant { what, span } => {
                let message = format!("{what} is not known before the run");
                Diagnostic::new(Code::NotConstant, span, message, "a number is needed, or a `const`")
                    .note("the shape of a cell is settled when the model is read; no parameter changes it")
            }
            E::Twice { what, again, first } => {
                let message = format!("{what} is there twice");
                Diagnostic::new(Code::DuplicateKey, again, message, "again").see(first, "first")
            }
            E::RegionsAlike { name, again, first } => {
                let message = format!("two regions are called `{name}`, as their sections with `_` between");
                Diagnostic::new(Code::DuplicateKey, again, message, "the second")
                    .see(first, "the first")
                    .help("name the sections of one in another order, or rename a section")
            }
            E::NoTaper { key, span } => {
                let message = format!("`{}` is one number", key.text);
                Diagnostic::new(Code::BadMorphology, span, message, "only the diameter changes along a section")
            }
            E::UnknownSection { written, known, counted, alone, span } => {
                let message = format!("the cell has no section `{written}`");
                let d = Diagnostic::new(Code::BadMorphology, span, message, "no such section");
                let word = written.split('[').next().unwrap_or(written);
                match counted {
                    0 if alone => d.help(format!("there is one `{word}`, without a number: write `{word}`")),
                    0 => instead(d, written, known),
                    1 => d.help(format!("it has one: `{word}[0]`")),
                    n => d.help(format!("it has {n}: `{word}[0]` to `{word}[{}]`", n - 1)),
                }
            }
            E::TwoRoots { second, first } => {
                let message = format!("section `{}` does not begin at another", second.text);
                Diagnostic::new(Code::BadMorphology, second.span, message, "apart from the rest of the cell")
                    .see(first.span, "the root is this one")
                    .help(format!("add `from {}(1)` to it", first.text))
            }
            E::Loop { section } => {
                let message = format!("section `{}` begins at itself, through others perhaps", section.text);
                Diagnostic::new(Code::BadMorphology, section.span, message, "on a loop")
                    .help("one section, the root, has no `from` line; from it all others are reached")
            }
            E::Outside { span } => {
                let message = "a place in a section is a number from 0 (its start) to 1 (its end)";
                Diagnostic::new(Code::BadMorphology, span, message, "not from 0 to 1")
            }
            E::NotCovered { section, regions, key, example } => {
                let message = format!("no region gives `{key}` to section `{regions}`");
                Diagnostic::new(Code::MissingKey, section.span, message, format!("its `{key}` is not known"))
                    .help(format!("add `{example}` to a region of it, such as `region all {{ ... }}`"))
            }
            E::InsertedTwice { channel, section, again, first } => {
                let message = format!("section `{section}` has two channels `{channel}`");
                let d = Diagnostic::new(Code::BadMorphology, again, message, "again").see(first, "first");
                d.help(format!(
                    "insert it in regions that share no section, or name one of them: `insert {channel} as {channel}2`"
                ))
            }
            E::PoolTwice { pool, section, again, first } => {
                let message = format!("section `{section}` has two pools `{pool}`");
                let d = Diagnostic::new(Code::BadMorphology, again, message, "again").see(first, "first");
                d.help("give it to regions that share no section, each with the channels that it sees")
            }
            E::ShellWithoutDiffusion { pool, span } => {
                let message = format!("pool `{}` has a `shell`, but no `diffusion`", pool.text);
                Diagnostic::new(Code::BadMorphology, span, message, "tells where ions diffuse, and nothing else")
                    .note("the equation of a pool says by itself how deep it is: a current enters it as a concentration per time")
                    .help("add `diffusion = 0.22 um2/ms`, or leave `shell` out")
            }
            E::NotOfTheCell { symbol, span, read } => {
                let message = format!("`{symbol}` is one value of the cell, and `{read}` differs from place to place");
                Diagnostic::new(Code::BadMorphology, span, message, "differs from place to place")
                    .help("say so where it is used: in the values of a region, and in what it inserts")
            }
            E::OfARegion { symbol, span, read, region, is_param } => {
                let message = format!("`{symbol}` cannot read `{read}`, which is of region `{region}`");
                let label = "of a channel or a pool of that region";
                Diagnostic::new(Code::BadMorphology, span, message, label).help(match is_param {
                    true => "let both read a parameter of the cell: `param x = ...` outside of the regions",
                    false => "have both in one region: its channels and pools read each other",
                })
            }
            E::PlacedTwice { again, first } => {
                Diagnostic::new(Code::BadTarget, again, "a path leads to one place in a cell", "a second place")
                    .see(first, "the first")
            }
            E::NoPlaceHere { span } => {
                let message = "no place in a cell can be named here";
                Diagnostic::new(Code::BadMorphology, span, message, "a place in a cell")
                    .note("places are named in `spike when`, in `record`, and where inputs, clamps, synapses and junctions are")
            }
            E::NoSections { cell, span } => {
                let message = format!("cell `{}` has no sections", cell.name);
                let d = Diagnostic::new(Code::BadTarget, span, message, "a place in a section");
                match cell.compartments.first() {
                    Some(first) => d.help(format!("its compartments have names: `{}`", first.name)),
                    None => d,
                }
            }
            E::PlaceMissing { what, section, span } => {
                let message = format!("{what} of a cell with sections needs a place");
                Diagnostic::new(Code::BadTarget, span, message, "where in the cell?").help(match what {
                    "a quantity" => format!(
                        "the middle of a section is `{section}(0.5)`; `all` in place of it records each compartment"
                    ),
                    _ => format!("the middle of a section is `{section}(0.5)`"),
                })
            }
            E::SeveralRegions { quantity, word, regions, words, both, span } => {
                let (first, rest) = (regions.first().copied().unwrap_or(""), regions.get(1..).unwrap_or(&[]));
                let rest: Vec<String> = rest.iter().map(|region| format!("`{region}`")).collect();
                let message = format!(
                    "`{quantity}` is not one quantity in `{word}`: region `{first}` has one, {} another",
                    rest.join(" and ")
                );
                let mut parts: Vec<&str> = Vec::new();
                words.iter().for_each(|word| {
                    if !parts.contains(word) {
                        parts.push(word);
                    }
                });
                let d = Diagnostic::new(Code::BadTarget, span, message, "of which region?");
                match &parts[..] {
                    _ if both => {
                        let name = quantity.split('.').next().unwrap_or(quantity);
                        d.help(format!("give one of the synapses another name, and record that: `via {name} as other`"))
                    }
                    [_, _, ..] => {
                        d.help(format!("record sections of one region at a time, such as `{}.{quantity}`", parts[0]))
                    }
                    _ => d.help("record sections of one region at a time"),
                }
            }
            E::NotThere { quantity: "", place, span, known } => {
                let message = format!("`{place}` is a place; which quantity there?");
                let d = Diagnostic::new(Code::BadTarget, span, message, "a place");
                d.help(format!("for example `{place}.v`")).note(format!("it has {}", known.join(", ")))
            }
            E::NotThere { quantity, place, span, known } => {
                let message = format!("there is no `{quantity}` at `{place}`");
                let d = Diagnostic::new(Code::BadTarget, span, message, "not there");
                instead(d, quantity, known)
            }
            E::NotYet { what, span } => {
                let message = format!("{what} of a cell with sections cannot be compiled yet");
                Diagnostic::new(Code::Unsupported, span, message, "not yet")
            }
            E::BehindPlace { what, place, rest, span } => {
                let message = format!("{what} of a cell with sections is at a place, and acts on its voltage");
                Diagnostic::new(Code::BadTarget, span, message, format!("leads to `{rest}` of the place"))
                    .help(format!("write `{place}`"))
            }
            E::NoElectrode { clamp, span } => {
                let message = "the clamp of a cell with sections needs an electrode";
                Diagnostic::new(Code::BadTarget, span, message, "held through which resistance?").help(format!(
                    "write its resistance: `clamp {clamp}: ... via 1 Mohm -> ...`; a small one holds the voltage tightly"
                ))
            }
            E::NoCurrent { span } => {
                let message = "a synapse on a cell with sections acts by its current";
                Diagnostic::new(Code::BadTarget, span, message, "the synapse has none")
                    .help("events that add to a potential have no compartment to charge; give the synapse a `current`")
            }
            E::MovesVoltage { moved, span } => {
                let message = "this synapse moves `v`, and only cells without sections have a `v` that events can move";
                Diagnostic::new(Code::BadTarget, span, message, "in a cell with sections")
                    .see(moved, "moved here")
                    .help("leave it to the `current` of the synapse to change the voltage")
            }
            E::SpikePlace { span, section, level } => {
                let message = "a cell with sections spikes when the voltage of a place crosses a level";
                Diagnostic::new(Code::BadSpike, span, message, "not the voltage of a place")
                    .help(format!("write `spike when {section}(0.5).v crosses {level}`"))
            }
        }
    }
}

/// What is wrong with an SWC file, shown in the file where it has a place there.
fn swc(error: &SwcError, line: Option<Span>, other: Option<Span>, file: &str, span: Span) -> Diagnostic {
    let say = |message: String, label: &str| match line {
        Some(line) => Diagnostic::new(Code::BadMorphology, line, message, label).see(span, "the cell's shape"),
        None => Diagnostic::new(Code::BadMorphology, span, message, label),
    };
    let with = |d: Diagnostic, label: &str| match other {
        Some(other) => d.see(other, label),
        None => d,
    };
    match &error.fault {
        Fault::Empty => say(format!("`{file}` has no points"), "nothing to make a cell of"),
        Fault::Columns(found) => say(format!("a point has seven columns, and this line has {found}"), "not a point")
            .note("they are: id, type, x, y, z, radius, parent; places and radius in um; `#` begins a comment"),
        Fault::Number(column, text) => {
            let what = match *column {
                "id" | "type" => "a whole number from 0",
                "parent" => "the id of a point, or -1",
                _ => "a number of um, at most 1e9",
            };
            say(format!("`{text}` is no {column}"), &format!("the {column} is {what}"))
        }
        Fault::Radius => say("the radius of a point is above zero".into(), "not above zero")
            .note("a compartment without thickness has no area, and lets no current through"),
        Fault::Twice(id) => with(say(format!("two points have the id {id}"), "again"), "first"),
        Fault::NoParent(parent) => {
            let d = say(format!("there is no point {parent}"), "its parent is not there");
            if *parent == 0 { d.help("the root's parent is -1") } else { d }
        }
        Fault::Loop(id) => say(format!("point {id} descends from itself"), "on a loop")
            .help("one point, the root, has the parent -1; all others lead to it"),
        Fault::TwoRoots => with(say("the file has a second tree".into(), "a second root"), "the first root")
            .note("a cell is one tree; what lies apart from it would get no current")
            .help("give it the parent that it is joined to, or delete its points"),
        Fault::NoSoma => say(format!("no point of `{file}` is of the soma"), "none has the type 1")
            .help("give type 1 to the points of the soma; where there is none, to the point that shall be the root"),
        Fault::TwoSomas => with(say("the soma is in pieces".into(), "points of type 1 that are apart"), "the others"),
        Fault::NoLength => {
            with(say("this section has no length".into(), "where it ends"), "where it begins, at the same place")
                .help("delete the point, and join its children to its parent")
        }
    }
}

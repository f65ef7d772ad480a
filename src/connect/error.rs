//! What can be wrong with a rule, in words.

use super::MOST_ENTRIES;
use std::fmt;

/// Why there is no connectivity.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are the numbers in the sentences below")]
pub enum ConnectError {
    /// No rule of this name.
    UnknownRule { name: String, known: Vec<&'static str>, nearest: Option<&'static str> },
    /// The rule has no such argument.
    UnknownArgument { rule: &'static str, name: String, known: Vec<&'static str> },
    /// The rule needs another argument.
    MissingArgument { rule: &'static str, name: &'static str },
    /// An argument is given twice.
    RepeatedArgument { rule: &'static str, name: &'static str },
    /// An argument is NaN or infinite.
    NotFinite { argument: &'static str, value: f64 },
    /// An argument that counts is no count.
    NotWhole { argument: &'static str, value: f64 },
    /// An argument that must be above zero is not.
    NotPositive { argument: &'static str, value: f64 },
    /// An argument is larger than what is there.
    TooLarge { argument: &'static str, value: u64, most: u64 },
    /// A target would have the mean and the largest of the outputs of a convolution.
    TwoPools,
    /// An argument is below zero.
    Negative { argument: &'static str, value: f64 },
    /// A probability is outside [0, 1].
    NotProbability { argument: &'static str, value: f64 },
    /// `r_max` does not reach the nearest cell.
    RadiusTooSmall { r_max: f64 },
    /// `width` makes every weight vanish.
    WidthTooSmall { width: f64 },
    /// No offset lies strictly inside the radius on this grid.
    NoNeighbours { radius: f64, sizes: Vec<usize> },
    /// One offset would be needed for as many cells as there are, or more.
    DegreeTooLarge { degree: f64, offset: [i64; 3], wanted: u64, cells: usize, most: f64 },
    /// More partners are asked for than there are.
    TooFewPartners { wanted: u64, partners: u64, within: bool },
    /// `one_to_one` between populations of different sizes.
    DifferentSizes { source: usize, target: usize },
    /// A rule of distances between populations on different grids.
    DifferentGrids { rule: &'static str, source: Vec<usize>, target: Vec<usize> },
    /// Windows that move over the source give other places than the target has.
    WindowsDoNotFit {
        rule: &'static str,
        source: Vec<usize>,
        target: Vec<usize>,
        outputs: [i64; 2],
        channels: Option<i64>,
    },
    /// Junctions by a rule that has a direction.
    OnlyDirected { rule: &'static str },
    /// Junctions that would join a cell with itself, or two cells several times.
    JunctionsOnce { argument: &'static str },
    /// `one_to_one` for junctions within one population.
    OnlySelf,
    /// A grid has one to three dimensions.
    Dimensions { count: usize },
    /// A size is zero.
    NoCells { sizes: Vec<usize> },
    /// More cells than 32-bit numbers.
    TooManyCells { sizes: Vec<usize> },
    /// The list would be too long.
    TooMany { entries: f64 },
    /// An entry names a cell that is not there.
    OutOfRange { row: usize, end: &'static str, value: u32, size: usize },
    /// An entry joins a cell with itself.
    SelfConnection { row: usize, cell: u32 },
    /// A list of junctions has an entry twice.
    Repeated { row: usize, first: usize, source: u32, target: u32 },
}

/// How edges of a list without lines are counted.
pub(super) const COUNTED: &str = " (the first is 0)";

/// An edge of a list, by its number.
pub(super) fn edge(row: usize) -> String {
    format!("edge {row}")
}

impl ConnectError {
    /// What is wrong with an entry of a list, whose rows are called what `place` says, and counted as `counted` says; nothing if
    /// it is no entry that is wrong.
    pub(super) fn of_entry(&self, place: impl Fn(usize) -> String, counted: &str) -> Option<String> {
        use ConnectError as E;
        match *self {
            E::OutOfRange { row, end, value, size } => Some(format!(
                "{}{counted} has the {end} {value}, but the population has {size} cells (the first is 0)",
                place(row)
            )),
            E::SelfConnection { row, cell } => Some(format!("{}{counted} joins cell {cell} with itself", place(row))),
            E::Repeated { row, first, source, target } => {
                Some(format!("{}{counted} is {} again: from {source} to {target}", place(row), place(first)))
            }
            E::UnknownRule { .. }
            | E::UnknownArgument { .. }
            | E::MissingArgument { .. }
            | E::RepeatedArgument { .. }
            | E::NotFinite { .. }
            | E::NotWhole { .. }
            | E::NotPositive { .. }
            | E::TooLarge { .. }
            | E::TwoPools
            | E::Negative { .. }
            | E::NotProbability { .. }
            | E::RadiusTooSmall { .. }
            | E::WidthTooSmall { .. }
            | E::NoNeighbours { .. }
            | E::DegreeTooLarge { .. }
            | E::TooFewPartners { .. }
            | E::DifferentSizes { .. }
            | E::DifferentGrids { .. }
            | E::WindowsDoNotFit { .. }
            | E::OnlyDirected { .. }
            | E::JunctionsOnce { .. }
            | E::OnlySelf
            | E::Dimensions { .. }
            | E::NoCells { .. }
            | E::TooManyCells { .. }
            | E::TooMany { .. } => None,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ConnectError as E;
        match self {
            E::UnknownRule { name, known, nearest } => {
                write!(f, "there is no rule `{name}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; is `{nearest}` meant?"),
                    None => write!(f, "; the rules are {}", known.join(", ")),
                }
            }
            E::UnknownArgument { rule, name, known } if known.is_empty() => {
                write!(f, "`{rule}` has no argument `{name}`; it has none")
            }
            E::UnknownArgument { rule, name, known } => {
                write!(f, "`{rule}` has no argument `{name}`, but {}", known.join(", "))
            }
            E::MissingArgument { rule, name } => write!(f, "`{rule}` needs the argument `{name}`"),
            E::RepeatedArgument { rule, name } => write!(f, "`{name}` is given to `{rule}` twice"),
            E::NotFinite { argument, value } => write!(f, "`{argument}` is {value}, but must be a finite number"),
            E::NotWhole { argument, value } => {
                write!(f, "`{argument}` is {value}, but must be a whole number from 0 to {}", u32::MAX)
            }
            E::NotPositive { argument, value } => write!(f, "`{argument}` is {value}, but must be larger than 0"),
            E::TooLarge { argument, value, most } => write!(f, "`{argument}` is {value}, but so far at most {most}"),
            E::TwoPools => {
                write!(f, "a target has the mean of its places (`pool`) or the largest (`max_pool`), not both")
            }
            E::Negative { argument, value } => write!(f, "`{argument}` is {value}, but must not be negative"),
            E::NotProbability { argument, value } => {
                write!(f, "`{argument}` is {value}, but a probability lies between 0 and 1")
            }
            E::RadiusTooSmall { r_max } => {
                write!(f, "`r_max` is {r_max}, but the nearest cells are 1 apart: it must be at least 1")
            }
            E::WidthTooSmall { width } => {
                write!(
                    f,
                    "`width` is {width}, so small against the distance of 1 that the weight of every neighbour is 0"
                )
            }
            E::NoNeighbours { radius, sizes } => {
                write!(
                    f,
                    "on a grid of {} no two cells are less than {radius} apart (`r_max`, but at most half the largest size)",
                    Grid(sizes)
                )
            }
            E::DegreeTooLarge { degree, offset: [x, y, z], wanted, cells, most } => write!(
                f,
                "`degree` is {degree}, which needs {wanted} connections at the offset ({x}, {y}, {z}), but fewer than the {cells} \
                 cells can have one: at most a degree of about {most:.1} fits this neighbourhood"
            ),
            E::TooFewPartners { wanted, partners, within } => write!(
                f,
                "{wanted} different partners are wanted for each cell, but there are only {partners}{}",
                if *within { " others" } else { "" }
            ),
            E::DifferentSizes { source, target } => {
                write!(f, "`one_to_one` needs equal sizes, but there are {source} sources and {target} targets")
            }
            E::DifferentGrids { rule, source, target } => write!(
                f,
                "`{rule}` needs both populations on the same grid, but the source's is {} and the target's {}",
                Grid(source),
                Grid(target)
            ),
            E::WindowsDoNotFit { rule, source, outputs: [0, _] | [_, 0], .. } => {
                write!(f, "no window of this `{rule}` fits into the source's grid of {}", Grid(source))
            }
            E::WindowsDoNotFit { rule, source, target, outputs: [x, y], channels } => {
                let channels = channels.unwrap_or(target.get(2).map_or(1, |&channels| channels as i64));
                let mut needed = vec![*x as usize, *y as usize, channels as usize];
                while needed.len() > 1 && needed.last() == Some(&1) {
                    needed.pop();
                }
                write!(
                    f,
                    "on the source's grid of {} this `{rule}` has places for {} cells, but the target's grid is {}",
                    Grid(source),
                    Grid(&needed),
                    Grid(target)
                )
            }
            E::OnlyDirected { rule } => {
                write!(f, "`{rule}` leads from one population to another, and joins no junctions")
            }
            E::JunctionsOnce { argument } => {
                write!(
                    f,
                    "junctions join different cells, each pair once: `{argument}` is of connections through synapses"
                )
            }
            E::OnlySelf => write!(f, "`one_to_one` within one population would join each cell with itself"),
            E::Dimensions { count } => write!(f, "a grid has 1, 2 or 3 dimensions, not {count}"),
            E::NoCells { sizes } => write!(f, "a grid of {} has no cells", Grid(sizes)),
            E::TooManyCells { sizes } => {
                write!(f, "a grid of {} has more than {} cells", Grid(sizes), u32::MAX)
            }
            E::TooMany { entries } => {
                write!(f, "about {entries:.3e} connections are too many: at most {MOST_ENTRIES} can be stored")
            }
            E::OutOfRange { .. } | E::SelfConnection { .. } | E::Repeated { .. } => {
                f.write_str(&self.of_entry(edge, COUNTED).unwrap_or_default())
            }
        }
    }
}

impl std::error::Error for ConnectError {}

/// Sizes as `4 x 4 x 4`.
struct Grid<'a>(&'a [usize]);

impl fmt::Display for Grid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (d, size) in self.0.iter().enumerate() {
            write!(f, "{}{size}", if d > 0 { " x " } else { "" })?;
        }
        Ok(())
    }
}

//! Connectivity: which cells of a population, or of two, are joined.
//!
//! In come a rule with its numbers, the grids of the populations, a seed and a stream; out go entries `(target, source)`, or
//! junctions as such pairs that count in both directions, and compressed lists of them ([`Csr`]).
//! Never true here: that a list depends on threads, on the platform or on anything but rule, grids, seed and stream; that a
//! random rule other than `fixed_total_number` joins a cell with itself unless it is told to; or that a mistake in an edge list is skipped.
//!
//! Every draw belongs to a counter (a cell or an offset, and the number of the draw), so no list is an accident of the order
//! in which it is built. Integers below `n` are made of 64 random bits and are uniform to one part in `2^64 / n`.

mod all_to_all;
mod choose;
mod csr;
mod distance;
mod edges;
mod error;
mod file;
mod fixed_in_degree;
mod fixed_out_degree;
mod fixed_total_number;
mod one_to_one;
mod probability;
mod shape;
mod table;
mod torus_radial;
mod windows;

#[cfg(test)]
mod tests;

pub use csr::{Csr, directed_csr, directed_from_entries};
pub use error::ConnectError;
pub use file::{EdgeList, read_edges, read_junctions, read_pairs};
pub use shape::{Ends, Shape};
pub use table::{Absent, ArgumentInfo, RULES, RuleInfo};

use crate::runtime::rng::Draw;
use windows::Windows;

/// An entry `(target, source)`: what happens at the source acts on the target.
pub type Entry = (u32, u32);

/// No list is longer than this: places in it are 32-bit numbers.
pub const MOST_ENTRIES: u64 = u32::MAX as u64;

/// A target has the largest of no more outputs in each direction: what arrives at each of them is added up for itself.
pub const MOST_POOLED: u64 = 8;

/// Which cells are joined. What the rules mean in detail is written in [`RULES`] and at the head of each rule's file.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// Neighbours on a torus, by shells of equal distance.
    TorusRadial {
        /// Mean number of connections of a cell.
        degree: f64,
        /// Neighbours are nearer than this, in grid steps.
        r_max: f64,
        /// Length over which the weight `exp(-(r / width)^2)` falls, in grid steps.
        width: f64,
    },
    /// Every cell with every other.
    AllToAll,
    /// Cell `i` with cell `i` of the other population.
    OneToOne,
    /// Every pair by chance.
    Probability {
        /// The chance.
        p: f64,
    },
    /// Every target has `n` sources.
    FixedInDegree {
        /// How many.
        n: u64,
        /// Which ones may be among them.
        partners: Partners,
    },
    /// Every source has `n` targets.
    FixedOutDegree {
        /// How many.
        n: u64,
        /// Which ones may be among them.
        partners: Partners,
    },
    /// `n` connections, each from any source to any target; pairs may come several times.
    FixedTotalNumber {
        /// How many.
        n: u64,
    },
    /// Every pair by a chance that falls with the distance on the torus.
    Distance {
        /// The chance at distance 0.
        p_max: f64,
        /// The chance is `p_max * exp(-(d / sigma)^2)`; in grid steps.
        sigma: f64,
    },
    /// Windows that move over the grid and share their weights, from all channels to all channels.
    Convolution {
        /// Width and height of a window.
        kernel: u64,
        /// How far apart windows are.
        stride: u64,
        /// How many cells that are not there stand around the grid.
        padding: u64,
        /// Of so many outputs in each direction a target has the mean.
        pool: u64,
        /// Or the largest.
        max_pool: u64,
        /// Which of those the connections lead to, row by row, if a target has the largest.
        place: u64,
    },
    /// Windows that move over each channel.
    Pooling {
        /// Width and height of a window.
        kernel: u64,
        /// How far apart windows are.
        stride: u64,
        /// How many cells that are not there stand around the grid.
        padding: u64,
    },
    /// Entries from a list.
    Edges(Vec<Entry>),
}

/// With whom cells of a random rule may be connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Partners {
    /// Cells may meet themselves.
    pub autapses: bool,
    /// A pair may come several times.
    pub multapses: bool,
}

/// The numbers that connections share.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// How many there are: by target channel, source channel, row and column of the window, the last fastest.
    pub sizes: [usize; 4],
    /// Which of them each connection has, in the order of [`directed`].
    pub entry: Vec<u32>,
}

/// The junctions within one population: pairs `(A, B)`, each unordered pair of different cells at most once.
///
/// Rules that speak of directions join two cells if either direction would be there. The order is each rule's own and part
/// of what is promised; [`directed_csr`] gives both directions.
pub fn undirected(rule: &Rule, shape: &Shape, seed: u64, stream: u32) -> Result<Vec<Entry>, ConnectError> {
    rule.check()?;
    shape.check()?;
    let draw = Draw { seed, stream };
    match rule {
        Rule::TorusRadial { degree, r_max, width } => torus_radial::undirected(*degree, *r_max, *width, shape, draw),
        Rule::AllToAll => all_to_all::undirected(shape),
        Rule::OneToOne => Err(ConnectError::OnlySelf),
        Rule::Probability { p } => probability::undirected(*p, shape, draw),
        Rule::FixedInDegree { partners, .. } | Rule::FixedOutDegree { partners, .. } if partners.autapses => {
            Err(ConnectError::JunctionsOnce { argument: "autapses" })
        }
        Rule::FixedInDegree { partners, .. } | Rule::FixedOutDegree { partners, .. } if partners.multapses => {
            Err(ConnectError::JunctionsOnce { argument: "multapses" })
        }
        Rule::FixedInDegree { n, partners } => {
            Ok(edges::once(&fixed_in_degree::directed(*n, *partners, Ends::Within(shape), draw)?))
        }
        Rule::FixedOutDegree { n, partners } => {
            Ok(edges::once(&fixed_out_degree::directed(*n, *partners, Ends::Within(shape), draw)?))
        }
        Rule::FixedTotalNumber { n } => fixed_total_number::undirected(*n, shape, draw),
        Rule::Distance { p_max, sigma } => distance::undirected(*p_max, *sigma, shape, draw),
        Rule::Convolution { .. } => Err(ConnectError::OnlyDirected { rule: "convolution" }),
        Rule::Pooling { .. } => Err(ConnectError::OnlyDirected { rule: "pooling" }),
        Rule::Edges(entries) => edges::undirected(entries, shape),
    }
}

/// The directed connections within one population or from one to another, each entry at most once (a list of edges stays as
/// it is, `fixed_total_number` and rules with `multapses` draw anew each time, and a convolution has an entry for each number of its kernel). Other random rules,
/// without `autapses`, and `all_to_all` never give a cell itself as its source; `one_to_one` within one population does nothing else.
pub fn directed(rule: &Rule, ends: Ends<'_>, seed: u64, stream: u32) -> Result<Vec<Entry>, ConnectError> {
    rule.check()?;
    ends.source().check()?;
    ends.target().check()?;
    let draw = Draw { seed, stream };
    match rule {
        Rule::TorusRadial { degree, r_max, width } => torus_radial::directed(*degree, *r_max, *width, ends, draw),
        Rule::AllToAll => all_to_all::directed(ends),
        Rule::OneToOne => one_to_one::directed(ends),
        Rule::Probability { p } => probability::directed(*p, ends, draw),
        Rule::FixedInDegree { n, partners } => fixed_in_degree::directed(*n, *partners, ends, draw),
        Rule::FixedOutDegree { n, partners } => fixed_out_degree::directed(*n, *partners, ends, draw),
        Rule::FixedTotalNumber { n } => fixed_total_number::directed(*n, ends, draw),
        Rule::Distance { p_max, sigma } => distance::directed(*p_max, *sigma, ends, draw),
        Rule::Convolution { .. } | Rule::Pooling { .. } => rule.windows().map_or(Ok(Vec::new()), |w| w.entries(ends)),
        Rule::Edges(entries) => edges::directed(entries, ends),
    }
}

/// Do the grids fit the windows of a rule, if it has some? Nothing else is looked at.
pub fn windows_fit(rule: &Rule, ends: Ends<'_>) -> Result<(), ConnectError> {
    rule.check()?;
    rule.windows().map_or(Ok(()), |windows| windows.along(ends).map(|_| ()))
}

/// Which numbers connections share, in the order of [`directed`]; `None` where each has its own.
pub fn kernel(rule: &Rule, ends: Ends<'_>) -> Result<Option<Kernel>, ConnectError> {
    rule.check()?;
    ends.source().check()?;
    ends.target().check()?;
    rule.windows().filter(|windows| !windows.within_channel).map(|windows| windows.kernel(ends)).transpose()
}

/// How many entries [`undirected`] gives for so many cells, both directions counted: exactly, or the most that is likely.
pub fn expected_entries(rule: &Rule, cells: f64) -> f64 {
    match rule {
        Rule::TorusRadial { degree, .. } => degree * cells,
        Rule::AllToAll => cells * (cells - 1.0),
        Rule::OneToOne => 0.0,
        Rule::Probability { p } => p * cells * (cells - 1.0),
        Rule::FixedInDegree { n, .. } | Rule::FixedOutDegree { n, .. } => 2.0 * *n as f64 * cells,
        Rule::FixedTotalNumber { n } => 2.0 * *n as f64,
        // The sum over the plane or the space is at most the integral over each dimension, and no more than all cells.
        Rule::Distance { p_max, sigma } => {
            let near = (std::f64::consts::PI.sqrt() * sigma + 1.0).powi(3);
            p_max * cells * near.min(cells)
        }
        Rule::Convolution { .. } | Rule::Pooling { .. } => 0.0,
        Rule::Edges(entries) => 2.0 * entries.len() as f64,
    }
}

/// How many entries [`directed`] gives between such grids: exactly, or about.
pub fn expected_directed(rule: &Rule, source: &Shape, target: &Shape) -> f64 {
    let [sources, targets] = [source, target].map(|shape| shape.cells() as f64);
    match *rule {
        Rule::TorusRadial { degree, .. } => degree * targets,
        Rule::AllToAll => sources * targets,
        Rule::OneToOne => targets,
        Rule::Probability { p } => p * sources * targets,
        Rule::FixedInDegree { n, .. } => n as f64 * targets,
        Rule::FixedOutDegree { n, .. } => n as f64 * sources,
        Rule::FixedTotalNumber { n } => n as f64,
        // As above, with what is known of each dimension.
        Rule::Distance { p_max, sigma } => {
            let near = |size: i64| (std::f64::consts::PI.sqrt() * sigma + 1.0).min(size as f64);
            p_max * targets * source.padded().map(near).iter().product::<f64>()
        }
        Rule::Convolution { kernel, pool, .. } => {
            let channels = source.sizes.get(2).map_or(1.0, |&channels| channels as f64);
            targets * channels * (kernel as f64 * pool as f64).powi(2)
        }
        Rule::Pooling { kernel, .. } => targets * (kernel as f64).powi(2),
        Rule::Edges(ref entries) => entries.len() as f64,
    }
}

impl Rule {
    /// With connections that lead to one of the outputs of which a target has the largest, row by row. Of any other rule nothing changes.
    pub fn at_place(self, number: u64) -> Rule {
        match self {
            Rule::Convolution { kernel, stride, padding, pool, max_pool, .. } => {
                Rule::Convolution { kernel, stride, padding, pool, max_pool, place: number }
            }
            other => other,
        }
    }

    /// The windows of a rule that has some.
    fn windows(&self) -> Option<Windows> {
        match *self {
            Rule::Convolution { kernel, stride, padding, pool, max_pool, place } => {
                let place = (max_pool > 1).then_some(place);
                let pool = pool.max(max_pool);
                Some(Windows { rule: "convolution", kernel, stride, padding, pool, place, within_channel: false })
            }
            Rule::Pooling { kernel, stride, padding } => {
                let (pool, place) = (1, None);
                Some(Windows { rule: "pooling", kernel, stride, padding, pool, place, within_channel: true })
            }
            Rule::TorusRadial { .. }
            | Rule::AllToAll
            | Rule::OneToOne
            | Rule::Probability { .. }
            | Rule::FixedInDegree { .. }
            | Rule::FixedOutDegree { .. }
            | Rule::FixedTotalNumber { .. }
            | Rule::Distance { .. }
            | Rule::Edges(_) => None,
        }
    }

    /// Can these numbers mean something, whatever the population?
    fn check(&self) -> Result<(), ConnectError> {
        match *self {
            Rule::TorusRadial { degree, r_max, width } => {
                finite("degree", degree)?;
                finite("r_max", r_max)?;
                positive("width", width)?;
                if degree < 0.0 {
                    return Err(ConnectError::Negative { argument: "degree", value: degree });
                }
                if r_max < 1.0 {
                    return Err(ConnectError::RadiusTooSmall { r_max });
                }
                Ok(())
            }
            Rule::Probability { p } => chance("p", p),
            Rule::Distance { p_max, sigma } => {
                chance("p_max", p_max)?;
                positive("sigma", sigma)
            }
            Rule::Convolution { kernel, stride, pool, max_pool, .. } => {
                positive("kernel", kernel as f64)?;
                positive("stride", stride as f64)?;
                positive("pool", pool as f64)?;
                positive("max_pool", max_pool as f64)?;
                match (pool, max_pool) {
                    (2.., 2..) => Err(ConnectError::TwoPools),
                    (_, ..=MOST_POOLED) => Ok(()),
                    _ => Err(ConnectError::TooLarge { argument: "max_pool", value: max_pool, most: MOST_POOLED }),
                }
            }
            Rule::Pooling { kernel, stride, .. } => {
                positive("kernel", kernel as f64)?;
                positive("stride", stride as f64)
            }
            Rule::AllToAll
            | Rule::OneToOne
            | Rule::FixedInDegree { .. }
            | Rule::FixedOutDegree { .. }
            | Rule::FixedTotalNumber { .. }
            | Rule::Edges(_) => Ok(()),
        }
    }
}

fn finite(argument: &'static str, value: f64) -> Result<(), ConnectError> {
    if value.is_finite() { Ok(()) } else { Err(ConnectError::NotFinite { argument, value }) }
}

fn positive(argument: &'static str, value: f64) -> Result<(), ConnectError> {
    finite(argument, value)?;
    if value > 0.0 { Ok(()) } else { Err(ConnectError::NotPositive { argument, value }) }
}

fn chance(argument: &'static str, value: f64) -> Result<(), ConnectError> {
    finite(argument, value)?;
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(ConnectError::NotProbability { argument, value }) }
}

/// Refuses a list that would be too long, before it is made.
fn room(entries: f64) -> Result<(), ConnectError> {
    if entries <= MOST_ENTRIES as f64 { Ok(()) } else { Err(ConnectError::TooMany { entries }) }
}

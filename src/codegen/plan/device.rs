//! What a plan decides for devices that work on whole arrays, one kernel launch after the other.
//!
//! In come a [`Plan`], the numbers of cells and the edges; out goes a [`DevicePlan`]: shapes, the form of every gather and how
//! steps are grouped into straight lines.
//! Never true here: an operation of StableHLO.

use super::lattice::Lattice;
use super::slabs::Slabs;
use super::ties::Tie;
use super::travel::DeliveryForm;
use super::{Plan, Precision, Relation};
use crate::runtime::edges::Edges;
use crate::step::{FieldId, SpaceId};
use std::ops::Range;
use std::sync::Arc;

/// Everything that a device program is specialized for, besides its plan.
#[derive(Debug, Clone, PartialEq)]
pub struct DevicePlan {
    /// The number of cells of every space, and of the edges that remember; 0 of other edges.
    pub sizes: Vec<usize>,
    /// For every space the form of each entry of its edge table.
    pub gathers: Vec<Vec<GatherForm>>,
    /// For all branched cells of the plan their maps, in the order of [`Trees::ties`](super::Trees::ties).
    pub ties: Vec<Vec<Tie>>,
    /// The form of every delivery.
    pub deliveries: Vec<DeliveryForm>,
    /// The number of samples of every series.
    pub samples: Vec<usize>,
    /// The most steps in a line: from 1 to 32.
    pub unroll: u32,
    /// A line is a loop over its steps; otherwise they are written one after the other.
    pub rolled: bool,
    /// Random numbers are computed in double precision and rounded once, whatever the precision of the plan.
    pub wide_draws: bool,
    /// Terms of a Poisson distribution that are added before the device asks whether an element needs more.
    pub poisson_ahead: u32,
    /// Cell-steps between two visits of the host, about.
    pub visit: usize,
}

/// What computes: it decides which form of a program is fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceClass {
    /// XLA's compiler for processors.
    Cpu,
    /// A chip that works on whole arrays at once, whose time goes into beginning a loop's next round rather than into an array's length.
    Accelerator,
}

/// How cells get what comes along their edges.
///
/// The forms differ in the order in which a cell's edges are added up, so their results differ by rounding, and in nothing else.
/// XLA's compiler for processors fuses a gather, what edges compute and their sum into one scalar loop; only at the border of a loop
/// it stops, so there [`GatherForm::Slabs`] is that border: 8000 olive cells with ten junctions each take 102 us for a step's
/// junctions (f32; f64: 154) where a gather and scattered additions take 144 (175), and the padded list 310
/// (520).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatherForm {
    /// A table of `rows` sources for every cell, padded with the cell itself, and a truth value for each that says whether there is
    /// such an edge; a dense sum over the rows.
    Padded {
        /// The most edges that a cell has.
        rows: usize,
    },
    /// The same table, but a gather and an addition for each row. Edges are added in the order of the list. Where a TPU has a
    /// SparseCore (v5p, v6e), XLA hands these gathers to it; its cost model counts their operands and knows no time for them.
    Rows {
        /// The most edges that a cell has.
        rows: usize,
    },
    /// A loop over the rows of [`Slabs`]: each is a gather, what edges compute, and an addition to the sums of one slab. Edges are added in
    /// the order of the list. The program is as long for many edges as for few. For processors only: hundreds of short rounds of
    /// a loop are no work for other chips.
    Slabs(Slabs),
    /// Rectangles of an array with a halo, one for each displacement, and a bit for each that says whether there is such an edge.
    /// Edges are added in the order of their displacements.
    Shifts(Lattice),
    /// Every cell with every other, and a truth value for each pair; a dense sum over the sources. For few cells only.
    Pairs,
}

/// More displacements than this are no lattice: each is code of its own.
const MOST_SHIFTS: usize = 512;
/// More pairs than this are not worth a try.
const MOST_PAIRS: usize = 1 << 20;

impl GatherForm {
    /// A few words for people.
    pub fn name(&self) -> &'static str {
        match self {
            GatherForm::Padded { .. } => "padded list, one gather",
            GatherForm::Rows { .. } => "padded list, a gather per row",
            GatherForm::Slabs(_) => "slabs of sorted cells, a gather per row",
            GatherForm::Shifts(_) => "shifts of a lattice",
            GatherForm::Pairs => "all pairs",
        }
    }

    /// All forms that the edges of a relation can have on a device; `sizes` are those of the grid of their targets.
    pub fn candidates(edges: &Edges, sizes: &[usize], relation: &Relation, class: DeviceClass) -> Vec<GatherForm> {
        let within = relation.is_within();
        let rows = most_edges(edges);
        let mut forms = vec![GatherForm::Padded { rows }];
        if rows == 0 {
            return forms;
        }
        match class {
            DeviceClass::Cpu => forms.push(GatherForm::Slabs(Slabs::new(edges, sizes, within))),
            DeviceClass::Accelerator => {}
        }
        forms.push(GatherForm::Rows { rows });
        // In what follows edges have no place of their own.
        if !within || !relation.numbers.fields.is_empty() {
            return forms;
        }
        forms.extend(Lattice::find(edges, sizes, MOST_SHIFTS).map(GatherForm::Shifts));
        let cells = edges.offsets.len() - 1;
        if cells * cells <= MOST_PAIRS && pairs(edges).is_some() {
            forms.push(GatherForm::Pairs);
        }
        forms
    }
}

pub(super) fn most_edges(edges: &Edges) -> usize {
    edges.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
}

/// For [`GatherForm::Pairs`]: whether there is an edge, `[source, target]`. None if two cells have two such edges.
pub fn pairs(edges: &Edges) -> Option<Vec<bool>> {
    let cells = edges.offsets.len() - 1;
    let mut pairs = vec![false; cells * cells];
    for (target, bounds) in edges.offsets.windows(2).enumerate() {
        for &source in &edges.sources[bounds[0] as usize..bounds[1] as usize] {
            if std::mem::replace(&mut pairs[source as usize * cells + target], true) {
                return None;
            }
        }
    }
    Some(pairs)
}

/// Steps written one after the other for other devices than processors.
const UNROLL: u32 = 4;
/// Steps in a line that is a loop: as many as a word has bits for events.
const ROLLED: u32 = 32;

/// A term more for all elements is part of a kernel that is there anyway; a round of a loop whose end the device finds is a kernel of its own, and
/// the host waits for it. So many terms are enough for most steps of means below one; a processor takes 20 us for them and 10 000 cells, and asks.
const POISSON_AHEAD: u32 = 4;

impl DevicePlan {
    /// Decides for a plan and its surroundings, which fit each other; the form of each delivery is decided, and the maps of branched cells
    /// are added by whoever knows them.
    ///
    /// On a processor a line is a loop over its steps: of steps written one after the other, XLA computes parts of the first again
    /// in the second (unconnected olive as JAX writes it, f32: 101, 46 and 40 million cell-steps/s with 1, 2 and 4 steps in a
    /// loop's body).
    pub fn new(
        plan: &Plan,
        class: DeviceClass,
        sizes: &[usize],
        grids: &[Vec<usize>],
        edges: &[(SpaceId, Arc<Edges>)],
        samples: &[usize],
        deliveries: Vec<DeliveryForm>,
    ) -> DevicePlan {
        let form = |(space, relation): (usize, &Relation)| {
            let edges = edges.iter().rfind(|(id, _)| *id == relation.space).map(|(_, edges)| edges);
            let rows = edges.map_or(0, |edges| most_edges(edges));
            match (class, edges) {
                (DeviceClass::Cpu, Some(edges)) if rows > 0 => GatherForm::Slabs(Slabs::new(
                    edges,
                    grids.get(space).map_or(&[][..], |grid| grid),
                    relation.is_within(),
                )),
                (DeviceClass::Cpu | DeviceClass::Accelerator, _) => GatherForm::Padded { rows },
            }
        };
        let of_space = |space: &super::SpacePlan| -> Vec<GatherForm> {
            space.edges.iter().map(|&edge| form((space.space.0 as usize, plan.relation(edge)))).collect()
        };
        let cells = plan.spaces.len();
        let mut all = vec![0; sizes.len()];
        all[..cells].copy_from_slice(&sizes[..cells]);
        for (delivery, form) in plan.deliveries.iter().zip(&deliveries) {
            if let DeliveryForm::Remembered(remembered) = form {
                all[delivery.space.0 as usize] = remembered.edges;
            }
        }
        let travels = deliveries.iter().any(|form| *form != DeliveryForm::Nothing);
        DevicePlan {
            sizes: all,
            gathers: plan.spaces.iter().map(of_space).collect(),
            ties: Vec::new(),
            deliveries,
            samples: samples.to_vec(),
            unroll: match class {
                DeviceClass::Cpu => ROLLED,
                // Cells wait for each other after every step, so that nothing is gained from several of them in a line.
                DeviceClass::Accelerator if travels => 1,
                DeviceClass::Accelerator => UNROLL,
            },
            rolled: class == DeviceClass::Cpu,
            wide_draws: true,
            poisson_ahead: match class {
                DeviceClass::Cpu => 0,
                DeviceClass::Accelerator => POISSON_AHEAD,
            },
            visit: match class {
                DeviceClass::Cpu => VISIT,
                DeviceClass::Accelerator => ACCELERATOR_VISIT,
            },
        }
    }
}

/// A stretch of a run between two visits of the host: samples at equal distances.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// Steps from one sample to the next.
    pub every: u32,
    /// How many samples.
    pub samples: u32,
    /// What is sampled: states and outputs, and which cells of them.
    pub fields: Vec<(FieldId, Range<usize>)>,
}

/// How the steps of a [`Stretch`] are grouped into straight lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// Several samples in every line.
    Samples {
        /// How many.
        samples: u32,
    },
    /// Several lines from one sample to the next: `lines` of `steps` each, and one of `rest` if that is not 0.
    Steps {
        /// How many lines.
        lines: u32,
        /// Steps in each.
        steps: u32,
        /// Steps in the last.
        rest: u32,
    },
}

/// Cell-steps between two visits of the host to a processor: about a tenth of a second on one core.
const VISIT: usize = 4_000_000;
/// The same for an accelerator, whose memory passes a terabyte a second: a step of a cell takes a hundred bytes or more.
const ACCELERATOR_VISIT: usize = 1_000_000_000;
/// Steps between two visits of the host, however few cells there are.
const MOST_STEPS: usize = 4_000;
/// Bytes of samples and events that a visit brings.
const MOST_BYTES: usize = 64 << 20;

impl Stretch {
    /// A stretch for a run of so many steps that is sampled every `every` of them, or more often if they are many. None if the run
    /// is shorter than that.
    pub fn new(
        plan: &Plan,
        device: &DevicePlan,
        every: u64,
        fields: &[(FieldId, Range<usize>)],
        steps: u64,
    ) -> Option<Stretch> {
        let cells: usize = device.sizes.iter().sum();
        let most = (device.visit / cells.max(1)).clamp(1, MOST_STEPS);
        let every = (1..=every.min(most as u64)).rev().find(|n| every.is_multiple_of(*n))? as usize;
        let real = match plan.precision {
            Precision::F64 => 8,
            Precision::F32 | Precision::Bf16 => 4,
        };
        let of_sample: usize = fields.iter().map(|(_, cells)| cells.len() * real).sum();
        let of_word: usize =
            plan.spaces.iter().zip(&device.sizes).map(|(space, cells)| 4 * space.events.len() * cells).sum();
        // Between two samples there is part of a word at least; short lines fill it with several.
        let of_sample = of_sample + of_word * every.div_ceil((u32::BITS / 2).max(device.unroll) as usize);
        let most = (most / every).min(MOST_BYTES / of_sample.max(1)).max(1) as u64;
        let all = steps / every as u64;
        // Equal parts leave the fewest steps over.
        let samples = all.checked_div(all.div_ceil(most))? as u32;
        (samples > 0).then(|| Stretch { every: every as u32, samples, fields: fields.to_vec() })
    }

    /// How many steps it takes.
    pub fn steps(&self) -> u32 {
        self.every * self.samples
    }

    /// Groups the steps into lines of at most so many.
    pub fn grouping(&self, unroll: u32) -> Grouping {
        if self.every <= unroll {
            let most = (unroll / self.every).min(self.samples);
            let samples = (1..=most).rev().find(|n| self.samples.is_multiple_of(*n));
            return Grouping::Samples { samples: samples.unwrap_or(1) };
        }
        // A divisor needs no shorter line at the end; a much shorter line than allowed is not worth that.
        let divisor = (unroll.div_ceil(2)..=unroll).rev().find(|n| self.every.is_multiple_of(*n));
        let steps = divisor.unwrap_or(unroll);
        Grouping::Steps { lines: self.every / steps, steps, rest: self.every % steps }
    }

    /// The steps of the longest line.
    pub fn most_in_line(&self, unroll: u32) -> u32 {
        match self.grouping(unroll) {
            Grouping::Samples { samples } => samples * self.every,
            Grouping::Steps { steps, .. } => steps,
        }
    }

    /// How many lines there are.
    pub fn lines(&self, unroll: u32) -> u32 {
        match self.grouping(unroll) {
            Grouping::Samples { samples } => self.samples / samples,
            Grouping::Steps { lines, rest, .. } => self.samples * (lines + u32::from(rest > 0)),
        }
    }

    /// How many lines share a word of events, with as many bits for each as the longest has steps.
    pub fn lines_in_word(&self, unroll: u32) -> u32 {
        (u32::BITS / self.most_in_line(unroll)).max(1)
    }

    /// How many words of events a cell has.
    pub fn words(&self, unroll: u32) -> u32 {
        self.lines(unroll).div_ceil(self.lines_in_word(unroll))
    }

    /// The step, counted from the start of the stretch, that a bit of a word of events stands for.
    pub fn step_of_bit(&self, unroll: u32, word: u32, bit: u32) -> u32 {
        let steps = self.most_in_line(unroll);
        self.step_at(unroll, word * self.lines_in_word(unroll) + bit / steps, bit % steps)
    }

    /// The step, counted from the start of the stretch, at a place in a line.
    pub fn step_at(&self, unroll: u32, line: u32, place: u32) -> u32 {
        match self.grouping(unroll) {
            Grouping::Samples { samples } => line * samples * self.every + place,
            Grouping::Steps { lines, steps, rest } => {
                let lines = lines + u32::from(rest > 0);
                line / lines * self.every + line % lines * steps + place
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_in_one_line() {
        for every in 1..=41 {
            for samples in [1, 2, 3, 12] {
                for unroll in [1, 4, 8, 32] {
                    let stretch = Stretch { every, samples, fields: Vec::new() };
                    let length = |line: u32| match stretch.grouping(unroll) {
                        Grouping::Samples { samples } => samples * every,
                        Grouping::Steps { lines, steps, rest } => {
                            if line % (lines + u32::from(rest > 0)) < lines {
                                steps
                            } else {
                                rest
                            }
                        }
                    };
                    let mut seen = Vec::new();
                    for line in 0..stretch.lines(unroll) {
                        assert!(length(line) <= unroll, "{every} {samples} {unroll}");
                        seen.extend((0..length(line)).map(|place| stretch.step_at(unroll, line, place)));
                        let (of_word, bits) = (stretch.lines_in_word(unroll), stretch.most_in_line(unroll));
                        assert!(of_word * bits <= u32::BITS && line / of_word < stretch.words(unroll));
                        for place in 0..length(line) {
                            let bit = line % of_word * bits + place;
                            let step = stretch.step_of_bit(unroll, line / of_word, bit);
                            assert_eq!(step, stretch.step_at(unroll, line, place), "{every} {samples} {unroll}");
                        }
                    }
                    assert_eq!(seen, (0..stretch.steps()).collect::<Vec<_>>(), "{every} {samples} {unroll}");
                }
            }
        }
    }
}

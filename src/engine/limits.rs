//! How fast this machine can be at the most: what each kind of work costs when a kernel does nothing else.
//!
//! In come a precision, a number of threads, an amount of memory and the networks of a model; out come seconds per operation,
//! per byte, per step of edges and per meeting of the threads.
//! Never true here: a number from a data sheet. Each is measured with a kernel of `limits.ir`, made by the same compiler, for
//! the same lanes and threads as a model's.

use super::native::{NativeEngine, NativeOptions};
use super::{Edges, Engine, EngineError, Setup};
use crate::codegen::plan::cost::{Cost, Degree, StepCost, Work, costs};
use crate::codegen::plan::{Plan, PlanOptions, Precision, Relation, plan};
use crate::runtime::threads::{Barrier, Pool};
use crate::step::{Program, SpaceId, parse, verify};
use std::sync::Arc;
use std::time::Instant;

/// Programs that do one thing each.
const PROGRAM: &str = include_str!("limits.ir");

/// A measurement lasts at least so long, and the best of some counts.
const SECONDS: f64 = 0.004;
const ROUNDS: usize = 5;

/// Cells per thread where only computing counts: few enough for the nearest cache, many enough for a thread.
const CELLS: usize = 1024;

/// Seconds, with all threads at work.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// One operation on one number; a fused multiply-add is one operation.
    pub operation: f64,
    /// One division or square root.
    pub division: f64,
    /// One exponential, `2^x`.
    pub exponential: f64,
    /// The operations in that exponential.
    pub exponential_operations: f64,
    /// One random number: uniform, normal, exponential; none where the model draws none.
    pub draws: Option<[f64; 3]>,
    /// One byte read or written in order, in memory as large as the model's.
    pub byte: f64,
    /// One step of each network: read its table, gather one number for every edge and add it up.
    pub networks: Vec<f64>,
    /// One meeting of all threads; 0 for one thread.
    pub meeting: f64,
}

/// What a step of one space asks of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// How many cells it has.
    pub cells: usize,
    /// How many the busiest thread would have if all had as many: lanes past the last cell are worked on too, and threads get
    /// whole blocks.
    pub busy_cells: usize,
    /// The average step of a cell.
    pub step: StepCost,
    /// For each loop over edges: the place of its network in [`Limits::networks`], and what one edge gathers.
    pub networks: Vec<(usize, f64)>,
}

/// What can hold a run up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Operations but divisions.
    Arithmetic,
    /// Divisions and square roots: they have a unit of their own, which works beside the others.
    Division,
    /// Memory read and written in order: states, cell parameters, edge tables, exchanged values.
    Memory,
    /// Values of other cells, with their table.
    Gather,
    /// Threads that wait for each other.
    Barrier,
}

impl Bound {
    /// Every bound.
    pub const ALL: [Bound; 5] = [Bound::Arithmetic, Bound::Division, Bound::Memory, Bound::Gather, Bound::Barrier];
}

impl Limits {
    /// The seconds of so much work, divisions left out.
    fn computing(&self, work: &Work) -> f64 {
        let exponential = self.exponential / self.exponential_operations;
        let draws = self.draws.map_or(0.0, |[uniform, normal, exponential]| {
            work.uniform_draws * uniform + work.normal_draws * normal + work.exponential_draws * exponential
        });
        (work.plain + work.fused + work.function_operations) * self.operation
            + work.exponential_operations * exponential
            + draws
    }

    /// The least seconds per cell and step, over all spaces, that each bound allows.
    pub fn predict(&self, loads: &[Load]) -> [(Bound, f64); 5] {
        let cells: usize = loads.iter().map(|load| load.cells).sum();
        let seconds = |bound: Bound, load: &Load| match bound {
            Bound::Arithmetic => self.computing(&load.step.done) * load.busy_cells as f64,
            Bound::Division => {
                let done = &load.step.done;
                (done.divisions + done.function_divisions) * self.division * load.busy_cells as f64
            }
            Bound::Memory => load.step.bytes.streamed() * self.byte * load.cells as f64,
            Bound::Gather => {
                let each = |(network, gathers): &(usize, f64)| self.networks[*network] * gathers.max(1.0);
                load.networks.iter().map(each).sum::<f64>()
            }
            // A space without edges has no meetings.
            Bound::Barrier => f64::from(u8::from(!load.networks.is_empty())) * self.meeting,
        };
        let all = |bound: Bound| loads.iter().fold(0.0, |sum, load| sum + seconds(bound, load));
        Bound::ALL.map(|bound| (bound, all(bound) / cells.max(1) as f64))
    }
}

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted<'a> {
    /// The number type.
    pub precision: Precision,
    /// Where and with how many threads.
    pub native: NativeOptions,
    /// The memory that the model goes through again and again.
    pub bytes: f64,
    /// Whether it needs random numbers.
    pub draws: bool,
    /// Its edge tables.
    pub networks: Vec<&'a Arc<Edges>>,
}

/// Measures.
pub fn measure(wanted: &Wanted) -> Result<Limits, EngineError> {
    let program = parse(PROGRAM).map_err(|e| EngineError(format!("limits.ir: {e}")))?;
    let verified = verify(program.clone()).map_err(|e| EngineError(format!("limits.ir: {e:?}")))?;
    let options = PlanOptions { precision: wanted.precision, vectors: None, sizes: None };
    let plan = plan(&verified, &options)?;
    let bench = Bench { program: &program, plan: &plan, costs: costs(&plan), native: &wanted.native };
    let threads = wanted.native.threads;
    let few = CELLS * threads;
    let each = |space: &str| -> Result<f64, EngineError> { Ok(bench.seconds(space, few, None)? / few as f64) };

    let multiply = bench.cost("multiply")?;
    let operation = each("multiply")? / (multiply.body.fused + multiply.body.plain);
    let exponential = bench.cost("exponential")?;
    let counted = exponential.body;
    let of_exponential = each("exponential")? - counted.plain * operation;
    let division = each("divide")? / bench.cost("divide")?.body.divisions;
    let draws = match wanted.draws {
        true => Some([each("uniform")?, each("normal")?, each("exponential_draw")?]),
        false => None,
    };
    let meeting = meeting(threads);

    let stream = bench.cost("stream")?;
    let alone = [Degree { edges: 0.0, places: 0.0 }];
    // Threads must have enough to do between two meetings.
    let least = if threads > 1 { few } else { CELLS / 4 };
    let cells = ((wanted.bytes / stream.memory(&alone)) as usize).max(least);
    let none = Arc::new(Edges { offsets: vec![0; cells + 1], sources: Vec::new() });
    let step = between(bench.seconds("stream", cells, Some(&none))?, meeting);
    let byte = step / (cells as f64 * stream.step(1, &alone).bytes.streamed());
    let network = |edges: &&Arc<Edges>| {
        let edges = among_themselves(edges);
        Ok(between(bench.seconds("gather", edges.offsets.len() - 1, Some(&edges))?, meeting))
    };
    Ok(Limits {
        operation,
        division,
        exponential: of_exponential / counted.exponentials,
        exponential_operations: counted.exponential_operations / counted.exponentials,
        draws,
        byte,
        networks: wanted.networks.iter().map(network).collect::<Result<_, EngineError>>()?,
        meeting,
    })
}

/// Edges as they are measured, where cells of one space are joined: those of a population that sends to a smaller one, with cells that nothing
/// leads to behind the others.
fn among_themselves(edges: &Arc<Edges>) -> Arc<Edges> {
    let sources = edges.sources.iter().max().map_or(0, |&last| last as usize + 1);
    let Some(&all) = edges.offsets.last().filter(|_| edges.offsets.len() <= sources) else { return Arc::clone(edges) };
    let mut offsets = edges.offsets.clone();
    offsets.resize(sources + 1, all);
    Arc::new(Edges { offsets, sources: edges.sources.clone() })
}

/// A step without the meeting at its end; with it, if both are too short to tell apart.
fn between(step: f64, meeting: f64) -> f64 {
    if step > meeting { step - meeting } else { step }
}

struct Bench<'a> {
    program: &'a Program,
    plan: &'a Plan,
    costs: Vec<(usize, Cost)>,
    native: &'a NativeOptions,
}

impl Bench<'_> {
    fn cost(&self, space: &str) -> Result<&Cost, EngineError> {
        let cost = self.costs.iter().find(|(_, cost)| cost.space == space);
        cost.map(|(_, cost)| cost).ok_or_else(|| EngineError(format!("limits.ir has no `{space}`")))
    }

    /// The best time of a step of one space.
    fn seconds(&self, space: &str, cells: usize, edges: Option<&Arc<Edges>>) -> Result<f64, EngineError> {
        let is = |s: &crate::step::Space| s.name == space;
        let of = |relation: &Relation| {
            let empty = Arc::new(Edges { offsets: vec![0], sources: Vec::new() });
            let edges = if is(self.program.space(relation.to)) { edges.cloned() } else { Some(empty) };
            edges.map(|edges| (relation.space, edges))
        };
        let edges: Vec<(SpaceId, Arc<Edges>)> = self.plan.relations.iter().filter_map(of).collect();
        let plain = self.program.spaces.iter().take(self.plan.spaces.len());
        let sizes = plain.map(|s| if is(s) { cells } else { 0 });
        let sizes = sizes.chain(edges.iter().map(|(_, edges)| edges.sources.len())).collect();
        let setup = Setup { sizes, edges, ..Setup::default() };
        let mut engine = NativeEngine::new(self.plan, &setup, self.native)?;
        engine.init()?;
        let mut spikes = Vec::new();
        let (mut now, mut steps) = (0, 1u32);
        let mut run = |steps: u32| {
            let begin = Instant::now();
            engine.step(now, steps, &mut spikes)?;
            now += u64::from(steps);
            Ok::<f64, EngineError>(begin.elapsed().as_secs_f64())
        };
        // The first steps bring everything into the caches.
        while run(steps)? < SECONDS && steps < 1 << 24 {
            steps *= 2;
        }
        let rounds = (0..ROUNDS).map(|_| run(steps)).collect::<Result<Vec<f64>, EngineError>>()?;
        Ok(rounds.into_iter().fold(f64::INFINITY, f64::min) / f64::from(steps))
    }
}

/// The best time in which so many threads meet once.
fn meeting(threads: usize) -> f64 {
    if threads < 2 {
        return 0.0;
    }
    const TIMES: u32 = 2000;
    let barrier = Arc::new(Barrier::new(threads));
    let job = Arc::clone(&barrier);
    let mut pool = Pool::new(threads, move |member| {
        for _ in 0..TIMES {
            if !job.wait(member) {
                return;
            }
        }
    });
    if pool.threads() < threads {
        // The machine would not do this either: it takes fewer threads.
        return 0.0;
    }
    let mut round = || {
        let begin = Instant::now();
        pool.run();
        begin.elapsed().as_secs_f64() / f64::from(TIMES)
    };
    (0..=ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::plan::cost::Bytes;

    #[test]
    fn the_programs_that_measure_do_what_they_say() {
        let program = verify(parse(PROGRAM).unwrap()).unwrap();
        let plan = plan(&program, &PlanOptions::default()).unwrap();
        let bench = |space: &str| costs(&plan).into_iter().find(|(_, cost)| cost.space == space).unwrap().1;
        assert_eq!((bench("multiply").body.fused, bench("multiply").body.plain), (16.0, 0.0));
        assert_eq!(bench("exponential").body.exponentials, 4.0);
        assert_eq!(bench("divide").body.divisions, 2.0);
        assert_eq!(bench("normal").body.normal_draws, 1.0);
        let stream = bench("stream");
        assert_eq!((stream.loads, stream.stores, stream.exchanged, stream.fused), (8.0, 8.0, 1.0, false));
        assert_eq!(bench("gather").edges[0].gathers, 1.0);
    }

    #[test]
    fn edges_from_a_larger_population_are_measured_too() {
        let wide = Arc::new(Edges { offsets: vec![0, 1, 3], sources: vec![4, 0, 2] });
        let among = among_themselves(&wide);
        assert_eq!((&among.offsets[..], &among.sources), (&[0, 1, 3, 3, 3, 3][..], &wide.sources));
        let narrow = Arc::new(Edges { offsets: vec![0, 1, 2, 3], sources: vec![1, 0, 1] });
        assert_eq!(among_themselves(&narrow), narrow);
    }

    #[test]
    fn predictions_are_sums_over_populations() {
        let limits = Limits {
            operation: 1.0,
            division: 10.0,
            exponential: 30.0,
            exponential_operations: 15.0,
            draws: Some([100.0, 200.0, 300.0]),
            byte: 0.5,
            networks: vec![1000.0, 3000.0],
            meeting: 600.0,
        };
        let done = Work {
            plain: 2.0,
            fused: 3.0,
            divisions: 1.0,
            exponentials: 2.0,
            exponential_operations: 30.0,
            functions: 1.0,
            function_operations: 5.0,
            function_divisions: 1.0,
            normal_draws: 1.0,
            ..Work::default()
        };
        // 10 operations, 2 exponentials of 30, one normal draw; the 2 divisions go beside them
        assert_eq!(limits.computing(&done), 10.0 + 60.0 + 200.0);
        let bytes = Bytes { loaded: 8.0, stored: 4.0, table: 44.0, gathered: 40.0, exchanged: 4.0 };
        let joined = StepCost { work: Work::default(), done, bytes };
        let apart = StepCost { bytes: Bytes { loaded: 2.0, ..Bytes::default() }, ..StepCost::default() };
        let loads = [
            Load { cells: 100, busy_cells: 128, step: joined, networks: vec![(1, 2.0), (0, 1.0)] },
            Load { cells: 300, busy_cells: 304, step: apart, networks: vec![] },
        ];
        let expected = [
            (Bound::Arithmetic, 270.0 * 128.0 / 400.0),
            (Bound::Division, 20.0 * 128.0 / 400.0),
            (Bound::Memory, (60.0 * 0.5 * 100.0 + 2.0 * 0.5 * 300.0) / 400.0),
            (Bound::Gather, 7000.0 / 400.0),
            (Bound::Barrier, 600.0 / 400.0),
        ];
        assert_eq!(limits.predict(&loads), expected);
    }
}

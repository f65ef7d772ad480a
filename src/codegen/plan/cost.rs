//! What a time step costs, counted in the plan.
//!
//! In comes a [`Plan`]; out go, for every space, the operations and the numbers moved for one cell and one step, as the
//! emitted loops have them: what stays in registers while steps are fused moves once in a window, what a connected kernel
//! streams moves every step.
//! Never true here: a time, or a property of a machine; those are measured.
//!
//! # What counts as what
//!
//! A *flop* is an operation on one number: sum, product, comparison, selection, rounding, division and square root are one, a
//! fused multiply-add is two. Elementary functions count as what they consist of in [`crate::runtime::math`], found by running them
//! on a number that counts. Random numbers and recorded series are mostly integer work and memory: they are counted apart, as
//! draws and samples. Singles among lanes in `f64` are two to a place: their operations count half, as functions and flops they count
//! whole. Work on numbers that all cells share is done once for all of them and not counted. Of branched cells each element counts as a cell; what
//! it adds to another, and its row of equations, are work of its own.

mod counted;
#[cfg(test)]
mod tests;

use super::{Expr, Home, KernelPlan, Nest, Plan, Precision, SpacePlan, Stmt};
use crate::runtime::lanes::Scalar;
use crate::runtime::machine::Bank;
use crate::runtime::math;
use crate::step::{BinaryOp, Distribution, Elementary, Type, UnaryOp};
use counted::{Counted, Inside};
use std::ops::{Add, AddAssign, Mul};

/// Operations.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Sums, products, comparisons, selections and the like, those inside functions not among them.
    pub plain: f64,
    /// Fused multiply-adds, those inside functions not among them.
    pub fused: f64,
    /// Divisions and square roots, those inside functions not among them.
    pub divisions: f64,
    /// Exponentials, to whatever base and with or without 1 subtracted.
    pub exponentials: f64,
    /// Other elementary functions.
    pub functions: f64,
    /// What the exponentials consist of: operations (a fused multiply-add is one).
    pub exponential_operations: f64,
    /// What the other functions consist of: operations without divisions.
    pub function_operations: f64,
    /// Divisions and square roots inside functions.
    pub function_divisions: f64,
    /// Floating-point operations, all of the above.
    pub flops: f64,
    /// Random numbers from the uniform distribution.
    pub uniform_draws: f64,
    /// Random numbers from the normal distribution.
    pub normal_draws: f64,
    /// Random numbers from the exponential distribution.
    pub exponential_draws: f64,
    /// Recorded series looked up, cell by cell.
    pub samples: f64,
}

impl Add for Work {
    type Output = Work;

    fn add(self, other: Work) -> Work {
        Work {
            plain: self.plain + other.plain,
            fused: self.fused + other.fused,
            divisions: self.divisions + other.divisions,
            exponentials: self.exponentials + other.exponentials,
            functions: self.functions + other.functions,
            exponential_operations: self.exponential_operations + other.exponential_operations,
            function_operations: self.function_operations + other.function_operations,
            function_divisions: self.function_divisions + other.function_divisions,
            flops: self.flops + other.flops,
            uniform_draws: self.uniform_draws + other.uniform_draws,
            normal_draws: self.normal_draws + other.normal_draws,
            exponential_draws: self.exponential_draws + other.exponential_draws,
            samples: self.samples + other.samples,
        }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        *self = *self + other;
    }
}

impl Mul<f64> for Work {
    type Output = Work;

    fn mul(self, times: f64) -> Work {
        Work {
            plain: self.plain * times,
            fused: self.fused * times,
            divisions: self.divisions * times,
            exponentials: self.exponentials * times,
            functions: self.functions * times,
            exponential_operations: self.exponential_operations * times,
            function_operations: self.function_operations * times,
            function_divisions: self.function_divisions * times,
            flops: self.flops * times,
            uniform_draws: self.uniform_draws * times,
            normal_draws: self.normal_draws * times,
            exponential_draws: self.exponential_draws * times,
            samples: self.samples * times,
        }
    }
}

impl Work {
    /// The same work on singles among lanes in `f64`.
    fn of_singles(self) -> Work {
        let half = self * 0.5;
        Work { exponentials: self.exponentials, functions: self.functions, flops: self.flops, ..half }
    }

    /// Random numbers of any distribution.
    pub fn draws(&self) -> f64 {
        self.uniform_draws + self.normal_draws + self.exponential_draws
    }
}

/// What the step kernel of a space does.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The name of the space.
    pub space: String,
    /// Bytes of a number.
    pub real: f64,
    /// Whether steps are fused: blocks outermost, states in registers. Kernels with edges have steps outermost.
    pub fused: bool,
    /// Each cell, when its block is loaded: once in a window if steps are fused, else every step.
    pub block: Work,
    /// Each cell and step.
    pub body: Work,
    /// Each edge and step, by edge loop.
    pub edges: Vec<EdgeCost>,
    /// Numbers of a cell that a block loads.
    pub loads: f64,
    /// Numbers of a cell that a block stores: once in a window if steps are fused, else every step.
    pub stores: f64,
    /// Numbers of a cell that are stored every step in any case.
    pub writes: f64,
    /// Numbers of a cell that other cells read: written a second time every step, where they find them.
    pub exchanged: f64,
    /// Numbers that a cell keeps in memory: states and cell parameters.
    pub kept: f64,
}

/// What a loop over edges does.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeCost {
    /// The entry of the edge table of the space.
    pub entry: usize,
    /// Operations of one edge.
    pub work: Work,
    /// Numbers of the source that one edge reads.
    pub gathers: f64,
}

/// The size of an edge table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Degree {
    /// Edges per cell, on average.
    pub edges: f64,
    /// Places in the table per cell: every lane of a block has as many as its cell with most edges.
    pub places: f64,
}

/// One step of one cell, on average over cells and steps.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepCost {
    /// The operations that the model asks for.
    pub work: Work,
    /// The operations done: lanes without an edge do what the others do.
    pub done: Work,
    /// Bytes moved.
    pub bytes: Bytes,
}

/// Bytes moved for one cell and one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bytes {
    /// States and cell parameters read.
    pub loaded: f64,
    /// States written.
    pub stored: f64,
    /// The edge table read: four bytes for each place, and each cell's number of edges.
    pub table: f64,
    /// Values of other cells read.
    pub gathered: f64,
    /// Values written for other cells to read.
    pub exchanged: f64,
}

impl Bytes {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.streamed() + self.gathered
    }

    /// What lies in memory one after the other.
    pub fn streamed(&self) -> f64 {
        self.loaded + self.stored + self.table + self.exchanged
    }
}

impl Cost {
    /// The average step of a cell in windows of so many steps, with tables of these sizes (one for each relation of the space).
    ///
    /// # Panics
    /// If a table is missing.
    pub fn step(&self, window: u32, degrees: &[Degree]) -> StepCost {
        let once = if self.fused { 1.0 / f64::from(window) } else { 1.0 };
        let own = self.block * once + self.body;
        let mut step = StepCost {
            work: own,
            done: own,
            bytes: Bytes {
                loaded: self.loads * self.real * once,
                stored: (self.stores * once + self.writes) * self.real,
                exchanged: self.exchanged * self.real,
                ..Bytes::default()
            },
        };
        for edge in &self.edges {
            let degree = degrees[edge.entry];
            step.work += edge.work * degree.edges;
            step.done += edge.work * degree.places;
            step.bytes.table += size_of::<u32>() as f64 * degree.places + self.real;
            step.bytes.gathered += edge.gathers * self.real * degree.places;
        }
        step
    }

    /// Bytes that a cell has in memory: what it keeps, its places in edge tables, and the two copies that other cells read.
    pub fn memory(&self, degrees: &[Degree]) -> f64 {
        let tables = self.edges.iter().map(|edge| size_of::<u32>() as f64 * degrees[edge.entry].places + self.real);
        (self.kept + 2.0 * self.exchanged) * self.real + tables.sum::<f64>()
    }
}

/// The costs of all spaces that do something in a step, in order.
pub fn costs(plan: &Plan) -> Vec<(usize, Cost)> {
    let step = |space: &SpacePlan| {
        let passes = space.step().map(|kernel| cost(plan, space, kernel));
        Some((space.space.0 as usize, passes.reduce(Cost::then)?))
    };
    plan.spaces.iter().filter_map(step).collect()
}

impl Cost {
    /// One pass and another.
    fn then(mut self, other: Cost) -> Cost {
        self.edges.extend(other.edges);
        Cost {
            block: self.block + other.block,
            body: self.body + other.body,
            loads: self.loads + other.loads,
            stores: self.stores + other.stores,
            writes: self.writes + other.writes,
            exchanged: self.exchanged + other.exchanged,
            ..self
        }
    }
}

fn cost(plan: &Plan, space: &SpacePlan, kernel: &KernelPlan) -> Cost {
    let of_stmt = |stmt: &Stmt| {
        let single = stmt.local.is_some_and(|local| kernel.locals[local as usize].ty == Type::Single);
        match plan.precision {
            Precision::F64 if single => of(&stmt.expr, Precision::F32).of_singles(),
            Precision::F64 | Precision::F32 | Precision::Bf16 => of(&stmt.expr, plan.precision),
        }
    };
    let work = |stmts: &[Stmt]| stmts.iter().fold(Work::default(), |sum, stmt| sum + of_stmt(stmt));
    let changed = kernel.registers.iter().filter(|register| register.changes);
    let edge = |edges: &super::EdgePlan| {
        let adds = Work { plain: edges.adds.len() as f64, flops: edges.adds.len() as f64, ..Work::default() };
        let gathers = edges.body.iter().filter(|stmt| matches!(stmt.expr, Expr::There(_))).count();
        EdgeCost { entry: edges.edges as usize, work: work(&edges.body) + adds, gathers: gathers as f64 }
    };
    let kept = |home: &&Home| match home {
        Home::Slot(s, Bank::State | Bank::Cell | Bank::Temp, _) | Home::Flat(s, _) => *s == space.space,
        _ => false,
    };
    // Of branched cells: what comes along a map, what is added along one, and a row of equations.
    let along = kernel.cell.iter().chain(&kernel.body).filter(|stmt| matches!(stmt.expr, Expr::Along(..))).count();
    let (adds, rows) = (kernel.adds.len() as f64, f64::from(u8::from(kernel.solves.is_some())));
    let added = Work { plain: adds, flops: adds, ..Work::default() };
    // What a kernel that goes by itself shares, it writes every step; a pass what it has stored.
    let shared = match kernel.nest {
        Nest::Blocks => 0,
        Nest::Steps => space.shared.len(),
        Nest::Pass => space.shared.iter().filter(|shared| shared.pass == kernel.pass).count(),
    };
    Cost {
        space: space.name.clone(),
        real: match plan.precision {
            Precision::F64 => 8.0,
            // Counted are native loops, which store no bf16.
            Precision::F32 | Precision::Bf16 => 4.0,
        },
        fused: kernel.nest == Nest::Blocks,
        block: work(&kernel.cell),
        body: work(&kernel.body) + added + ROW * rows,
        edges: kernel.edges.iter().map(edge).collect(),
        loads: kernel.registers.iter().filter(|register| register.used).count() as f64
            + along as f64
            + adds
            + ROW_LOADS * rows,
        stores: changed.count() as f64,
        writes: kernel.stores.len() as f64 + adds + ROW_STORES * rows,
        exchanged: shared as f64,
        kept: plan.homes.iter().filter(kept).count() as f64,
    }
}

/// What an element of a branched cell costs when equations along the tree are solved ([`crate::runtime::branches::solve`]): towards the root a sum and its
/// quotient, and two products with it for the parent and its right-hand side; on the way back what comes along the link from the parent's solution.
const ROW: Work = Work {
    plain: 15.0,
    fused: 0.0,
    divisions: 1.0,
    exponentials: 0.0,
    functions: 0.0,
    exponential_operations: 0.0,
    function_operations: 0.0,
    function_divisions: 0.0,
    flops: 16.0,
    uniform_draws: 0.0,
    normal_draws: 0.0,
    exponential_draws: 0.0,
    samples: 0.0,
};
const ROW_LOADS: f64 = 12.0;
const ROW_STORES: f64 = 4.0;

/// The work of one operation in lanes.
fn of(expr: &Expr, precision: Precision) -> Work {
    let plain = |n: u32| Work { plain: f64::from(n), flops: f64::from(n), ..Work::default() };
    let division = Work { divisions: 1.0, flops: 1.0, ..Work::default() };
    let exponential = |inside: Inside| Work {
        exponentials: 1.0,
        exponential_operations: f64::from(inside.plain + inside.fused),
        function_divisions: f64::from(inside.divisions),
        flops: f64::from(inside.plain + 2 * inside.fused + inside.divisions),
        ..Work::default()
    };
    let function = |inside: Inside| Work {
        functions: 1.0,
        function_operations: f64::from(inside.plain + inside.fused),
        function_divisions: f64::from(inside.divisions),
        flops: f64::from(inside.plain + 2 * inside.fused + inside.divisions),
        ..Work::default()
    };
    match *expr {
        // Not computed for a cell, or only named.
        Expr::Uniform(_)
        | Expr::Time(_)
        | Expr::StepIndex
        | Expr::Copy(_)
        | Expr::There(_)
        | Expr::OfEdge(_)
        | Expr::Along(..) => Work::default(),
        Expr::Index | Expr::Emit(..) | Expr::Select(..) => plain(1),
        Expr::Fma(..) => Work { fused: 1.0, flops: 2.0, ..Work::default() },
        Expr::Unary(op, _) => match op {
            UnaryOp::Neg
            | UnaryOp::Abs
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Narrow
            | UnaryOp::Widen
            | UnaryOp::Not => plain(1),
            // A magnitude, a comparison and a selection.
            UnaryOp::Nonzero | UnaryOp::Finite => plain(3),
            UnaryOp::Sqrt => division,
            UnaryOp::Exp | UnaryOp::Exp2 | UnaryOp::Expm1 | UnaryOp::Exp2m1 | UnaryOp::Exp2rel => {
                exponential(inside(op, precision))
            }
            // A bound, a magnitude, a comparison, a selection and a quotient around `expm1`.
            UnaryOp::Linoid => plain(4) + division + exponential(inside(UnaryOp::Expm1, precision)),
            UnaryOp::Ln
            | UnaryOp::Log2
            | UnaryOp::Log10
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Sinh
            | UnaryOp::Cosh
            | UnaryOp::Tanh => function(inside(op, precision)),
        },
        Expr::Approximate(name, tolerance, _) => {
            let inside = match precision {
                Precision::F64 => counted::inside::<f64>(|x| name.of(tolerance, x)),
                Precision::F32 | Precision::Bf16 => counted::inside::<f32>(|x| name.of(tolerance, x)),
            };
            match name {
                Elementary::Exp | Elementary::Exp2 | Elementary::Expm1 | Elementary::Exp2m1 | Elementary::Exp2rel => {
                    exponential(inside)
                }
                Elementary::Ln | Elementary::Log2 | Elementary::Log10 => function(inside),
            }
        }
        Expr::Binary(op, ..) => match op {
            BinaryOp::Div => division,
            BinaryOp::Pow => function(match precision {
                Precision::F64 => counted::inside::<f64>(|x| math::pow(x, x)),
                Precision::F32 | Precision::Bf16 => counted::inside::<f32>(|x| math::pow(x, x)),
            }),
            // As many terms as lead to 1: how many there are depends on the mean.
            BinaryOp::Poisson => function(match precision {
                Precision::F64 => counted::inside::<f64>(|x| math::poisson(x, x)),
                Precision::F32 | Precision::Bf16 => counted::inside::<f32>(|x| math::poisson(x, x)),
            }),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or => plain(1),
        },
        Expr::Draw(distribution, ..) => match distribution {
            Distribution::Uniform => Work { uniform_draws: 1.0, ..Work::default() },
            Distribution::Normal => Work { normal_draws: 1.0, ..Work::default() },
            Distribution::Exponential => Work { exponential_draws: 1.0, ..Work::default() },
        },
        Expr::Sample(..) => Work { samples: 1.0, ..Work::default() },
    }
}

/// What a function of one number consists of.
fn inside(op: UnaryOp, precision: Precision) -> Inside {
    match precision {
        Precision::F64 => function_inside::<f64>(op),
        Precision::F32 | Precision::Bf16 => function_inside::<f32>(op),
    }
}

fn function_inside<T: Scalar>(op: UnaryOp) -> Inside {
    counted::inside::<T>(|x: Counted<T>| match op {
        UnaryOp::Exp => math::exp(x),
        UnaryOp::Exp2 => math::exp2(x),
        UnaryOp::Expm1 => math::expm1(x),
        UnaryOp::Exp2m1 => math::exp2m1(x),
        UnaryOp::Exp2rel => math::exp2rel(x),
        UnaryOp::Ln => math::ln(x),
        UnaryOp::Log2 => math::log2(x),
        UnaryOp::Log10 => math::log10(x),
        UnaryOp::Sin => math::sin(x),
        UnaryOp::Cos => math::cos(x),
        UnaryOp::Tan => math::tan(x),
        UnaryOp::Sinh => math::sinh(x),
        UnaryOp::Cosh => math::cosh(x),
        UnaryOp::Tanh => math::tanh(x),
        UnaryOp::Linoid => math::linoid(x),
        UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Nonzero
        | UnaryOp::Finite
        | UnaryOp::Narrow
        | UnaryOp::Widen
        | UnaryOp::Not => x,
    })
}

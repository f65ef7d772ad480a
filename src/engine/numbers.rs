//! The numbers of a kernel, computed on the host: what depends on no cell.
//!
//! In come a kernel's plan, the uniform table and the series; out go the values of its numbers, in `f64` and bit for bit those that
//! the interpreter and native kernels compute.
//! Never true here: a number depends on a cell, or is rounded to the kernel's precision.

use crate::codegen::plan::{Expr, KernelPlan, Operand, Stmt};
use crate::runtime::series::{Sample, Series};
use crate::step::{Value, eval_binary, eval_fma, eval_unary};

/// What numbers are computed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Surroundings {
    /// The uniform table.
    pub uniforms: Vec<f64>,
    /// The series table; each series has a sample.
    pub series: Vec<Vec<Sample>>,
}

/// The numbers of one run of a kernel.
#[derive(Debug, Clone)]
pub struct Numbers<'a> {
    kernel: &'a KernelPlan,
    surroundings: &'a Surroundings,
    values: Vec<Option<Value>>,
}

impl<'a> Numbers<'a> {
    /// Computes those that do not depend on time.
    pub fn new(kernel: &'a KernelPlan, surroundings: &'a Surroundings) -> Numbers<'a> {
        let mut numbers = Numbers { kernel, surroundings, values: vec![None; kernel.locals.len()] };
        numbers.compute(&kernel.call, 0);
        numbers
    }

    /// Computes those that depend on time, at the start of a step.
    pub fn at(&mut self, step: u64) {
        self.compute(&self.kernel.time, step);
    }

    /// The value of a number.
    pub fn get(&self, local: u32) -> Value {
        self.values[local as usize].expect("the plan computes numbers before they are used")
    }

    fn compute(&mut self, stmts: &[Stmt], step: u64) {
        for stmt in stmts {
            let local = stmt.local.expect("a number has a name");
            let value = self.evaluate(stmt.expr, step).expect("the verifier checks the types of operands");
            self.values[local as usize] = Some(value);
        }
    }

    fn operand(&self, operand: Operand) -> Value {
        match operand {
            Operand::Real(x) => Value::Real(x),
            Operand::Single(x) => Value::Single(x),
            Operand::Bool(truth) => Value::Mask(truth),
            Operand::Call(local) | Operand::Time(local) => self.get(local),
            Operand::Lanes(_) | Operand::Register(_) => panic!("the plan keeps lanes out of numbers"),
        }
    }

    fn evaluate(&self, expr: Expr, step: u64) -> Option<Value> {
        let at = |operand| self.operand(operand);
        Some(match expr {
            Expr::Uniform(index) => Value::Real(self.surroundings.uniforms[index as usize]),
            Expr::Time(dt) => Value::Real(step as f64 * self.surroundings.uniforms[dt as usize]),
            Expr::StepIndex => Value::Real(step as f64),
            Expr::Copy(a) => at(a),
            Expr::Unary(op, a) => eval_unary(op, at(a))?,
            Expr::Approximate(function, tolerance, a) => Value::Real(function.of(tolerance, at(a).real()?)),
            Expr::Binary(op, a, b) => eval_binary(op, at(a), at(b))?,
            Expr::Fma(a, b, c) => eval_fma(at(a), at(b), at(c))?,
            Expr::Select(c, a, b) => {
                let chosen = if at(c).mask()? { at(a) } else { at(b) };
                Value::Real(chosen.real()?)
            }
            Expr::Sample(series, t) => {
                Value::Real(Series::new(&self.surroundings.series[series as usize]).at(at(t).real()?))
            }
            Expr::Index | Expr::There(_) | Expr::OfEdge(_) | Expr::Along(..) | Expr::Draw(..) | Expr::Emit(..) => {
                panic!("the plan computes it in lanes")
            }
        })
    }
}

//! The loops of a kernel whose cells read what others have.
//!
//! In comes the plan of a kernel with edges; out go its two loops over blocks: what each loads and computes for a block before its own
//! work, and what it asks for ahead.
//! Never true here: a value is loaded or computed that nothing in the loop needs.
//!
//! What is the same in all steps is computed again for every block and step: it would be loaded otherwise, and in no network tried so far
//! is there anything of it but parameters.

use super::{Home, KernelPlan, Nest, Operand, Shared, Stmt};
use crate::runtime::machine::Bank;
use crate::step::FieldId;

/// What the two loops over blocks of a kernel with edges do besides the edges and the body.
#[derive(Debug, Clone, PartialEq)]
pub struct Connected {
    /// Before the edges of a block.
    pub before_edges: Prologue,
    /// The buffers of which the first loop asks for what the second one reads.
    pub asks: Vec<Bank>,
    /// Before the body.
    pub before_body: Prologue,
    /// For each shared field its value at the end of a step, where the kernel shares it itself.
    pub shares: Vec<Operand>,
}

/// What a loop loads and computes for a block, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prologue {
    /// Registers.
    pub loads: Vec<Load>,
    /// Lanes that are the same in all steps.
    pub cell: Vec<Stmt>,
}

/// A register is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Its number.
    pub register: u32,
    /// From an entry of what the cells share; else from where its field is.
    pub shared: Option<u32>,
}

impl Connected {
    /// Of a kernel with edges, in a space that shares these fields.
    pub(super) fn new(kernel: &KernelPlan, shared: &[Shared], homes: &[Home]) -> Connected {
        let shared = if kernel.nest == Nest::Steps { shared } else { &[] };
        let of_edges = kernel.edges.iter().flat_map(|edges| &edges.body);
        let added = kernel.edges.iter().flat_map(|edges| &edges.adds).map(|(_, value)| *value);
        let edges = of_edges.flat_map(|stmt| stmt.expr.operands()).chain(added).collect();
        let shares: Vec<Operand> = shared.iter().map(|shared| at_the_end(kernel, shared.field)).collect();
        let stored = kernel.stores.iter().map(|(_, value)| *value);
        let updates = kernel.updates.iter().map(|(_, value)| *value);
        let body = kernel.body.iter().flat_map(|stmt| stmt.expr.operands());
        let body = body.chain(stored).chain(updates).chain(shares.clone()).collect();
        let before_body = Prologue::new(kernel, body, &[]);
        let bank = |field: FieldId| match homes[field.0 as usize] {
            Home::Slot(_, bank, _) => Some(bank),
            Home::Uniform(_) | Home::Series(_) | Home::Event(..) | Home::Flat(..) | Home::Edges | Home::Register => {
                None
            }
        };
        let of_register = |register: u32| kernel.registers[register as usize].field;
        let touched = before_body.loads.iter().map(|load| of_register(load.register));
        let touched = touched.chain(kernel.stores.iter().map(|(field, _)| *field));
        let touched: Vec<FieldId> = touched.chain(kernel.updates.iter().map(|(r, _)| of_register(*r))).collect();
        let read = |wanted: &Bank| touched.iter().any(|field| bank(*field) == Some(*wanted));
        let asks = [Bank::State, Bank::Cell, Bank::Data, Bank::Temp].into_iter().filter(read).collect();
        Connected { before_edges: Prologue::new(kernel, edges, shared), asks, before_body, shares }
    }
}

impl Prologue {
    /// What some operands need; `shared` fields come from what the cells share.
    fn new(kernel: &KernelPlan, mut needed: Vec<Operand>, shared: &[Shared]) -> Prologue {
        let mut cell: Vec<Stmt> = Vec::new();
        for stmt in kernel.cell.iter().rev() {
            if stmt.local.is_some_and(|local| needed.contains(&Operand::Lanes(local))) {
                needed.extend(stmt.expr.operands());
                cell.push(*stmt);
            }
        }
        cell.reverse();
        let load = |(register, of): (u32, &super::Register)| Load {
            register,
            shared: shared.iter().position(|shared| shared.field == of.field).map(|entry| entry as u32),
        };
        let needed = |(register, _): &(u32, &super::Register)| needed.contains(&Operand::Register(*register));
        Prologue { loads: (0..).zip(&kernel.registers).filter(needed).map(load).collect(), cell }
    }
}

/// The value of a shared field at the end of a step.
fn at_the_end(kernel: &KernelPlan, field: FieldId) -> Operand {
    let register = kernel.registers.iter().position(|register| register.field == field);
    let register = register.expect("the plan gives shared fields a register") as u32;
    let update = kernel.updates.iter().find(|(changed, _)| *changed == register);
    update.map_or(Operand::Register(register), |(_, value)| *value)
}

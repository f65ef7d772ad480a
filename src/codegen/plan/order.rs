//! In which order the body computes its values: so that few are live at once.
//!
//! In goes a kernel whose body stands in the order of the model's text; out comes the same body, its statements in another order where
//! that keeps fewer lane values live. From the end on, the statement comes next that makes the fewest values live that were not, among
//! those whose value nobody above still waits for; the later one of the text where several do. Never changed here: what a statement
//! computes, and the order of events. Takes time linear in the body but for a logarithm.

use super::build::pressure;
use super::{Expr, KernelPlan, Operand, Stmt};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Orders the body so that fewer lane values are live at once, if that can be had.
pub fn order(plan: &mut KernelPlan) {
    let before = pressure(plan);
    let text = std::mem::take(&mut plan.body);
    plan.body = backwards(plan, &text).into_iter().map(|at| text[at]).collect();
    if pressure(plan) >= before {
        plan.body = text;
    }
}

/// The positions of the body's statements in their new order.
fn backwards(plan: &KernelPlan, body: &[Stmt]) -> Vec<usize> {
    let graph = Graph::new(plan, body);
    let mut waiting: Vec<usize> = graph.readers.iter().map(Vec::len).collect();
    let mut live = vec![false; graph.values];
    let at_the_end = plan.updates.iter().map(|(_, value)| *value).chain(plan.adds.iter().map(|add| add.value));
    at_the_end.filter_map(|value| graph.value(plan, value)).for_each(|value| live[value] = true);
    // How many values a statement makes live, less the one that ends with it.
    let cost = |at: usize, live: &[bool]| {
        let more = graph.reads[at].iter().filter(|value| !live[**value]).count() as i64;
        more - i64::from(body[at].local.is_some())
    };
    let mut ready: BinaryHeap<(Reverse<i64>, usize)> = BinaryHeap::new();
    ready.extend((0..body.len()).filter(|at| waiting[*at] == 0).map(|at| (Reverse(cost(at, &live)), at)));
    let mut taken = vec![false; body.len()];
    let mut order = Vec::with_capacity(body.len());
    while let Some((_, at)) = ready.pop() {
        if std::mem::replace(&mut taken[at], true) {
            continue;
        }
        order.push(at);
        for &value in &graph.reads[at] {
            if !std::mem::replace(&mut live[value], true) {
                // Those that read it too have become cheaper.
                let cheaper = graph.read_by[value].iter().filter(|at| waiting[**at] == 0 && !taken[**at]);
                ready.extend(cheaper.map(|at| (Reverse(cost(*at, &live)), *at)));
            }
        }
        for &above in &graph.follows[at] {
            waiting[above] -= 1;
            if waiting[above] == 0 {
                ready.push((Reverse(cost(above, &live)), above));
            }
        }
    }
    order.reverse();
    order
}

/// Who reads what in a body. Values are numbered: first the statements, then the registers that change.
struct Graph {
    values: usize,
    /// Which statement computes a local.
    place: BTreeMap<u32, usize>,
    /// Of each statement, the values it reads, each once.
    reads: Vec<Vec<usize>>,
    /// Of each value, the statements that read it.
    read_by: Vec<Vec<usize>>,
    /// Of each statement, those that must come after it.
    readers: Vec<Vec<usize>>,
    /// Of each statement, those that must come before it.
    follows: Vec<Vec<usize>>,
}

impl Graph {
    fn new(plan: &KernelPlan, body: &[Stmt]) -> Graph {
        let values = body.len() + plan.registers.len();
        let place = body.iter().enumerate().filter_map(|(at, stmt)| Some((stmt.local?, at))).collect();
        let mut graph = Graph {
            values,
            place,
            reads: Vec::with_capacity(body.len()),
            read_by: vec![vec![]; values],
            readers: vec![vec![]; body.len()],
            follows: vec![vec![]; body.len()],
        };
        let mut event = None;
        for (at, stmt) in body.iter().enumerate() {
            let mut reads: Vec<usize> =
                stmt.expr.operands().into_iter().filter_map(|operand| graph.value(plan, operand)).collect();
            reads.sort_unstable();
            reads.dedup();
            for &value in &reads {
                graph.read_by[value].push(at);
                if value < body.len() {
                    graph.readers[value].push(at);
                    graph.follows[at].push(value);
                }
            }
            graph.reads.push(reads);
            if let Expr::Emit(..) = stmt.expr
                && let Some(earlier) = event.replace(at)
            {
                graph.readers[earlier].push(at);
                graph.follows[at].push(earlier);
            }
        }
        graph
    }

    /// The value behind an operand, if keeping it takes a register of the machine.
    fn value(&self, plan: &KernelPlan, operand: Operand) -> Option<usize> {
        match operand {
            Operand::Lanes(local) => self.place.get(&local).copied(),
            Operand::Register(r) if plan.registers[r as usize].changes => Some(self.readers.len() + r as usize),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::codegen::plan::{Expr, KernelPlan, Operand, PlanOptions, Role, plan};
    use crate::step::{parse, verify};
    use rustc_hash::FxHashSet as HashSet;

    /// The step kernel of a space with a state.
    fn kernel(step: &str) -> KernelPlan {
        let text = format!(
            "program \"p\"\nspace @a\nstate @a.x over @a\nevent @e over @a = spikes 0\nevent @f over @a = spikes 1\n\
             fn init {{\n over @a {{\n %0 = const 1.0\n store @a.x, %0\n }}\n}}\nfn step {{\n over @a {{\n{step}\n }}\n}}\n"
        );
        let program = verify(parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))).unwrap_or_else(|e| panic!("{e}"));
        let plan = plan(&program, &PlanOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        plan.spaces[0].kernel(Role::Step, 0).unwrap().clone()
    }

    /// Powers of a state, all computed first and then added up, so that in this order all are live at once.
    fn powers(count: usize) -> String {
        let mut step = "%0 = field @a.x\n%1 = mul %0, %0\n".to_string();
        (1..count).for_each(|k| step += &format!("%{} = exp %{k}\n", k + 1));
        step += &format!("%{} = add %0, %1\n", count + 1);
        (2..=count).for_each(|k| step += &format!("%{} = add %{}, %{k}\n", count + k, count + k - 1));
        step
    }

    #[test]
    fn values_are_used_as_soon_as_they_are_there() {
        let count = 20;
        let kernel = kernel(&format!("{} store @a.x, %{}", powers(count), 2 * count));
        assert_eq!(kernel.body.len(), 2 * count);
        // The power, the sum, and what comes next of one of them.
        assert!(kernel.pressure <= 3, "{}", kernel.pressure);
        let mut there = HashSet::default();
        for stmt in &kernel.body {
            for operand in stmt.expr.operands() {
                assert!(
                    !matches!(operand, Operand::Lanes(local) if !there.contains(&local)),
                    "{stmt:?} reads what comes later"
                );
            }
            there.extend(stmt.local);
        }
    }

    #[test]
    fn events_stay_in_their_order() {
        let mut step = powers(20);
        step += "%50 = lt %20, %19\n%51 = lt %1, %0\nemit @f, %50\nemit @e, %51\nstore @a.x, %40";
        let events = kernel(&step)
            .body
            .iter()
            .filter_map(|stmt| match stmt.expr {
                Expr::Emit(event, _) => Some(event),
                _ => None,
            })
            .collect::<Vec<_>>();
        assert_eq!(events, [1, 0]);
    }

    #[test]
    fn what_cannot_be_better_stays_as_the_text_has_it() {
        let kernel = kernel("%0 = field @a.x\n%1 = exp %0\n%2 = exp %1\n%3 = mul %2, %0\nstore @a.x, %3");
        let names: Vec<u32> = kernel.body.iter().filter_map(|stmt| stmt.local).collect();
        assert!(names.is_sorted() && names.len() == 3);
    }
}

//! The plan as text.
//!
//! In comes a [`Plan`]; out go lines to read and to compare: the same plan gives the same bytes.
//! Never true here: a decision is made or hidden.

use super::{
    Add, BATCH, BLOCKS_AHEAD, Connected, Delivery, Equations, Expr, Home, KernelPlan, Mean, Nest, Operand, Plan,
    Prologue, SpacePlan, Stmt, Trees, Usage,
};
use crate::runtime::branched::Task;
use crate::step::{Distribution, FieldId, Map, Role, SpaceId};
use std::fmt::{self, Display, Formatter};

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {:?} in {}", self.name, self.precision.name())?;
        writeln!(f, "threads: contiguous ranges of blocks, at least {} cells each", self.min_cells)?;
        table(f, self, "uniforms (f64)", &self.uniforms)?;
        table(f, self, "series", &self.series)?;
        table(f, self, "in 16 bits", &self.narrow)?;
        for group in self.groups.iter().filter(|group| !group.is_alone()) {
            let names: Vec<&str> = group.spaces.iter().map(|&at| self.spaces[at as usize].name.as_str()).collect();
            let recorded = match group.observed {
                0 => String::new(),
                passes => format!(", of what is recorded: {passes}"),
            };
            writeln!(f, "together: {} (passes of a step: {}{recorded})", names.join(", "), group.passes)?;
        }
        for trees in &self.trees {
            print_trees(f, self, trees)?;
        }
        for delivery in &self.deliveries {
            let [from, to] = [delivery.from, delivery.to].map(|space| &self.spaces[space.0 as usize].name);
            let Delivery { name: of, event, .. } = delivery;
            let (event, sums) = (name(self, *event), delivery.sums());
            let sums: Vec<&str> = sums.iter().map(|sum| name(self, *sum)).collect();
            let (sums, how) = (sums.join(" and "), if delivery.remembers().is_some() { "due" } else { "step" });
            writeln!(
                f,
                "events along {of}: {event} of {from} to {to}, by row of the sender, [{how}][cell], into {sums}"
            )?;
        }
        for space in self.all_kernels() {
            writeln!(f)?;
            print_space(f, self, space)?;
        }
        Ok(())
    }
}

/// What the spaces of branched cells do by turns.
fn print_trees(f: &mut Formatter<'_>, plan: &Plan, trees: &Trees) -> fmt::Result {
    let space = |space: u32| &plan.spaces[space as usize].name;
    table(f, plan, "  flat [field][place]", &trees.fields)?;
    let tie = |(from, map, to): &(SpaceId, Map, SpaceId)| format!("{} {} {}", space(from.0), map.name(), space(to.0));
    let ties: Vec<String> = (0..).zip(&trees.ties).map(|(at, map): (u32, _)| format!("{at} {}", tie(map))).collect();
    writeln!(f, "  along: {}", ties.join(", "))?;
    for (role, tasks) in ["init", "step", "observe"].into_iter().zip(&trees.tasks).filter(|(_, t)| !t.is_empty()) {
        let task = |task: &Task| match *task {
            Task::Clear { field } => format!("clear flat[{field}]"),
            Task::Kernel { space: at, pass } => format!("{} pass {pass}", space(at)),
        };
        writeln!(f, "  {role}: {}", tasks.iter().map(task).collect::<Vec<_>>().join("; "))?;
    }
    Ok(())
}

fn table(f: &mut Formatter<'_>, plan: &Plan, title: &str, fields: &[FieldId]) -> fmt::Result {
    if !fields.is_empty() {
        let names: Vec<String> = fields.iter().enumerate().map(|(i, id)| format!("{i} {}", name(plan, *id))).collect();
        writeln!(f, "{title}: {}", names.join(", "))?;
    }
    Ok(())
}

fn name(plan: &Plan, field: FieldId) -> &str {
    &plan.fields[field.0 as usize]
}

fn print_space(f: &mut Formatter<'_>, plan: &Plan, space: &SpacePlan) -> fmt::Result {
    let SpacePlan { name, vectors, block, pressure, .. } = space;
    writeln!(f, "space {name}: blocks of {block} cells, vectors per group {vectors} ({pressure} live lane values)")?;
    let banks = [
        ("state", &space.state),
        ("cell", &space.cell),
        ("output", &space.output),
        ("data", &space.data),
        ("temp", &space.temp),
    ];
    for (title, fields) in banks {
        table(f, plan, &format!("  {title} [block][slot][lane]"), fields)?;
    }
    table(f, plan, "  read once, then 0", &space.swept)?;
    table(f, plan, "  events", &space.events)?;
    if !space.edges.is_empty() {
        let edges = |&number: &u32| {
            let relation = plan.relation(number);
            match relation.is_within() {
                true => relation.name.clone(),
                false => format!("{} from {}", relation.name, plan.spaces[relation.from.0 as usize].name),
            }
        };
        writeln!(f, "  edges [block][row][lane]: {}", space.edges.iter().map(edges).collect::<Vec<_>>().join(", "))?;
    }
    let shared: Vec<FieldId> = space.shared.iter().map(|shared| shared.field).collect();
    let alone = plan.groups.iter().any(|group| group.is_alone() && group.spaces.contains(&space.space.0));
    let buffers = if alone { "[now, next][field][cell]" } else { "[field][cell]" };
    table(f, plan, &format!("  shared {buffers}"), &shared)?;
    for kernel in &space.kernels {
        print_kernel(f, plan, kernel)?;
    }
    Ok(())
}

fn print_kernel(f: &mut Formatter<'_>, plan: &Plan, kernel: &KernelPlan) -> fmt::Result {
    let role = match kernel.role {
        Role::Init => "init",
        Role::Step => "step",
        Role::Observe => "observe",
    };
    let (window, pressure) = (kernel.window, kernel.pressure);
    match kernel.nest {
        Nest::Blocks | Nest::Steps if kernel.pass > 0 => {
            writeln!(f, "  kernel {role}, pass {}, {pressure} live lane values {{", kernel.pass)?;
        }
        Nest::Blocks | Nest::Steps => {
            writeln!(f, "  kernel {role}, up to {window} steps per run, {pressure} live lane values {{")?;
        }
        Nest::Pass => writeln!(f, "  kernel {role}, pass {}, {pressure} live lane values {{", kernel.pass)?,
    }
    if let Some(Equations { x, own, link, rhs, from, parent }) = kernel.solves {
        let from = from.map_or(String::new(), |from| format!(", from flat[{from}]"));
        writeln!(
            f,
            "    solve flat[{x}]: own flat[{own}], link flat[{link}], rhs flat[{rhs}]{from}, up along {parent}"
        )?;
        return writeln!(f, "  }}");
    }
    stmts(f, plan, kernel, "once per run, f64", "    ", &kernel.call)?;
    columns(f, "    spread: ", &kernel.spread)?;
    stmts(f, plan, kernel, "once per step, f64", "    ", &kernel.time)?;
    columns(f, "    row: ", &kernel.row)?;
    for Mean { name, local, .. } in &kernel.means {
        writeln!(f, "    {name}: Poisson, of mean {}", kernel.locals[*local as usize].name)?;
    }
    if let Some(connected) = &kernel.connected {
        return print_connected(f, plan, kernel, connected);
    }
    writeln!(f, "    for each block {{")?;
    for register in kernel.registers.iter().filter(|register| register.used) {
        let changes = if register.changes { ", changes" } else { "" };
        writeln!(f, "      load {} from {}{changes}", register.name, place(plan, register.field))?;
    }
    stmts(f, plan, kernel, "once per block", "      ", &kernel.cell)?;
    for &local in &kernel.held {
        writeln!(f, "      hold {} as long as its counter stays", kernel.locals[local as usize].name)?;
    }
    writeln!(f, "      {} {{", steps(kernel))?;
    stmts(f, plan, kernel, "every step", "        ", &kernel.body)?;
    for &(field, value) in &kernel.stores {
        writeln!(f, "        store {} to {}", operand(kernel, value), place(plan, field))?;
    }
    for Add { tie, sum, value } in &kernel.adds {
        writeln!(f, "        add {} to flat[{sum}] along {tie}", operand(kernel, *value))?;
    }
    for &(register, value) in &kernel.updates {
        writeln!(f, "        {} := {}", kernel.registers[register as usize].name, operand(kernel, value))?;
    }
    writeln!(f, "      }}")?;
    for register in kernel.registers.iter().filter(|register| register.changes) {
        writeln!(f, "      store {} to {}", register.name, place(plan, register.field))?;
    }
    writeln!(f, "    }}\n  }}")
}

/// What a loop loads and computes for a block.
fn prologue(f: &mut Formatter<'_>, plan: &Plan, kernel: &KernelPlan, prologue: &Prologue) -> fmt::Result {
    for load in &prologue.loads {
        let register = &kernel.registers[load.register as usize];
        match load.shared {
            Some(entry) => writeln!(f, "          load {} from now[{entry}]", register.name)?,
            None => writeln!(f, "          load {} from {}", register.name, place(plan, register.field))?,
        }
    }
    stmts(f, plan, kernel, "of cells", "          ", &prologue.cell)
}

/// The loop over the steps of a run.
fn steps(kernel: &KernelPlan) -> &'static str {
    if kernel.takes_one_step() { "for the step" } else { "for each step" }
}

/// The loops of a kernel with edges.
fn print_connected(f: &mut Formatter<'_>, plan: &Plan, kernel: &KernelPlan, connected: &Connected) -> fmt::Result {
    let local = |local: u32| &kernel.locals[local as usize].name;
    writeln!(f, "    {} {{", steps(kernel))?;
    writeln!(f, "      for each {BATCH} blocks {{")?;
    writeln!(f, "        for each block {{")?;
    let asks: Vec<String> = connected.asks.iter().map(|bank| format!("{bank:?}").to_lowercase()).collect();
    writeln!(f, "          where memory is far, ask for {}, edges {BLOCKS_AHEAD} blocks ahead", asks.join(", "))?;
    prologue(f, plan, kernel, &connected.before_edges)?;
    for &sum in &kernel.sums {
        writeln!(f, "          {} := 0.0", local(sum))?;
    }
    for edges in &kernel.edges {
        writeln!(f, "          for each row of edges[{}] {{", edges.edges)?;
        stmts(f, plan, kernel, "every edge", "            ", &edges.body)?;
        for &(sum, value) in &edges.adds {
            writeln!(f, "            {} += {}", local(sum), operand(kernel, value))?;
        }
        writeln!(f, "          }}")?;
    }
    writeln!(f, "        }}\n        then for each block {{")?;
    for (number, &sum) in kernel.sums.iter().enumerate() {
        writeln!(f, "          load {} from sums[{number}]", local(sum))?;
    }
    prologue(f, plan, kernel, &connected.before_body)?;
    stmts(f, plan, kernel, "every step", "          ", &kernel.body)?;
    for &(field, value) in &kernel.stores {
        writeln!(f, "          store {} to {}", operand(kernel, value), place(plan, field))?;
    }
    for &(register, value) in &kernel.updates {
        let field = kernel.registers[register as usize].field;
        writeln!(f, "          store {} to {}", operand(kernel, value), place(plan, field))?;
    }
    for (entry, &value) in connected.shares.iter().enumerate() {
        writeln!(f, "          share {} as next[{entry}]", operand(kernel, value))?;
    }
    writeln!(f, "        }}\n      }}")?;
    match kernel.nest {
        Nest::Blocks | Nest::Pass => writeln!(f, "    }}\n  }}"),
        Nest::Steps => writeln!(f, "      meet; swap now and next\n    }}\n  }}"),
    }
}

fn columns(f: &mut Formatter<'_>, title: &str, columns: &[super::Column]) -> fmt::Result {
    let column = |column: &super::Column| {
        let usage = match column.usage {
            Usage::Spread => "",
            Usage::Counter => " (counter)",
        };
        format!("{}{usage}", column.name)
    };
    if columns.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}{}", columns.iter().map(column).collect::<Vec<_>>().join(", "))
}

fn stmts(
    f: &mut Formatter<'_>,
    plan: &Plan,
    kernel: &KernelPlan,
    title: &str,
    indent: &str,
    stmts: &[Stmt],
) -> fmt::Result {
    if !stmts.is_empty() {
        writeln!(f, "{indent}{title}:")?;
    }
    for stmt in stmts {
        let result = stmt.local.map_or(String::new(), |local| format!("{} = ", kernel.locals[local as usize].name));
        let origin = stmt.origin.map_or(String::new(), |id| {
            let origin = &plan.origins[id.0 as usize];
            format!("  // {}:{}", origin.file, origin.line)
        });
        writeln!(f, "{indent}  {result}{}{origin}", expr(kernel, &stmt.expr))?;
    }
    Ok(())
}

fn expr(kernel: &KernelPlan, expr: &Expr) -> String {
    let head = match *expr {
        Expr::Uniform(index) => format!("uniforms[{index}]"),
        Expr::Time(dt) => format!("step * uniforms[{dt}]"),
        Expr::StepIndex => "step".into(),
        Expr::Index => "index".into(),
        Expr::There(field) => format!("shared[{field}] of the source"),
        Expr::OfEdge(number) => format!("number {number} of the edge"),
        Expr::Along(tie, field) => format!("flat[{field}] along {tie}"),
        Expr::Copy(_) => "copy".into(),
        Expr::Unary(op, _) => op.name().into(),
        Expr::Approximate(function, tolerance, _) => format!("{} within {} of", function.name(), tolerance.name()),
        Expr::Binary(op, ..) => op.name().into(),
        Expr::Fma(..) => "fma".into(),
        Expr::Select(..) => "select".into(),
        Expr::Draw(distribution, stream, _) => {
            let distribution = match distribution {
                Distribution::Uniform => "uniform",
                Distribution::Normal => "normal",
                Distribution::Exponential => "exponential",
            };
            format!("draw {distribution} {stream},")
        }
        Expr::Sample(series, _) => format!("sample series[{series}],"),
        Expr::Emit(event, _) => format!("emit event {event},"),
    };
    let operands: Vec<String> = expr.operands().into_iter().map(|o| operand(kernel, o)).collect();
    if operands.is_empty() { head } else { format!("{head} {}", operands.join(", ")) }
}

fn operand(kernel: &KernelPlan, operand: Operand) -> String {
    match operand {
        Operand::Real(x) => format!("{x:?}"),
        Operand::Single(x) => format!("{x:?}f32"),
        Operand::Bool(b) => b.to_string(),
        Operand::Call(local) | Operand::Time(local) | Operand::Lanes(local) => {
            kernel.locals[local as usize].name.clone()
        }
        Operand::Register(register) => kernel.registers[register as usize].name.clone(),
    }
}

fn place(plan: &Plan, field: FieldId) -> String {
    match plan.homes[field.0 as usize] {
        Home::Uniform(index) => format!("uniforms[{index}]"),
        Home::Series(index) => format!("series[{index}]"),
        Home::Slot(_, bank, slot) => format!("{}[{slot}]", format!("{bank:?}").to_lowercase()),
        Home::Event(_, event) => format!("event {event}"),
        Home::Flat(_, field) => format!("flat[{field}]"),
        Home::Edges => "the edges".into(),
        Home::Register => "no memory".into(),
    }
}

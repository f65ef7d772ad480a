//! `kernels.rs` of a generated crate: one function per kernel.
//!
//! In comes a [`Plan`]; out goes the file.
//! Never true here: a choice that the plan has not made.

use super::layout::Text;
use crate::codegen::plan::{
    BATCH, BLOCKS_AHEAD, Column, Connected, EdgePlan, Equations, Expr, Home, KernelPlan, Local, Mean, Nest, Operand,
    PRE, Plan, Precision, Prologue, Shared, SpacePlan, Stmt, Trees, Usage, identifier,
};
use crate::runtime::machine::Bank;
use crate::step::{BinaryOp, Distribution, Elementary, FieldId, OriginId, Role, Tolerance, Type, UnaryOp};

/// The whole file.
pub fn file(plan: &Plan) -> String {
    let mut functions = Text::default();
    let mut table = Vec::new();
    let passes = plan.passes();
    let others = plan.other_passes();
    let places: Vec<(Role, u32)> = [(Role::Init, others), (Role::Step, passes), (Role::Observe, others)]
        .into_iter()
        .flat_map(|(role, passes)| (0..passes).map(move |pass| (role, pass)))
        .collect();
    for space in plan.all_kernels() {
        let mut row = Vec::new();
        for &(role, pass) in &places {
            row.push(match space.kernel(role, pass) {
                Some(kernel) => {
                    functions.line("");
                    Emitter { plan, space, kernel }.function(&mut functions);
                    format!("Some({})", function_name(plan, space, kernel))
                }
                None => "None".to_string(),
            });
        }
        table.push(format!("[{}]", row.join(", ")));
    }
    let mut text = Text::default();
    text.line(format!("//! The kernels of `{}`, made by neuroc.", plan.name));
    text.line("//!");
    text.line("//! A kernel works on whole blocks of cells; a buffer is `[block][slot][lane]`.");
    text.line("");
    let used = |words: &[&str]| -> String {
        let always = ["Call", "Numbering"];
        let mentioned = |word: &&str| functions.mentions(word) || always.contains(word);
        words.iter().copied().filter(mentioned).collect::<Vec<_>>().join(", ")
    };
    let import = |text: &mut Text, module: &str, words: &[&str]| {
        let words = used(words);
        if words.contains(", ") {
            text.line(format!("use crate::runtime::{module}::{{{words}}};"));
        } else if !words.is_empty() {
            text.line(format!("use crate::runtime::{module}::{words};"));
        }
    };
    let numbered = functions.out_has(&[".index::<", ".uniform", ".normal", ".exponential"]);
    import(&mut text, "branches", &["Branches", "System", "solve"]);
    import(&mut text, "call", if numbered { &["Call", "Numbering"] } else { &["Call"] });
    import(&mut text, "elementwise", &["all_lanes", "map"]);
    let mut lanes = vec!["F32x16", "F64x8", "Lanes", "Narrow", "Pair", "Scalar"];
    if functions.mentions("any") || functions.out_has(&[".and(", ".or(", ".not()", ".any()"]) {
        lanes.insert(3, "Mask");
    }
    lanes.push("ask_for");
    let lanes: Vec<&str> = lanes
        .into_iter()
        .filter(|word| match *word {
            "Lanes" | "Mask" => true,
            "Scalar" => functions.out_has(&["Real::from_f64", ".to_f64()"]),
            word => functions.mentions(word),
        })
        .collect();
    text.line(format!("use crate::runtime::lanes::{{{}}};", lanes.join(", ")).replace("{Lanes}", "Lanes"));
    if functions.out_has(&["math::"]) {
        text.line("use crate::runtime::math;");
    }
    if functions.out_has(&["approximate::"]) {
        text.line("use crate::runtime::math::approximate::{self, Tolerance};");
    }
    import(&mut text, "rng", &["Draw", "Held"]);
    text.line("");
    text.line("/// The number type of states, parameters and outputs.");
    text.line(format!("pub type Real = {};", plan.precision.name()));
    text.line("");
    text.line("/// A kernel.");
    text.line("pub type Kernel = fn(Call<'_, Real>);");
    text.line("");
    text.line(match passes {
        1 => "/// The init, step and observe kernel of every space.",
        _ if others > 1 => "/// The kernels of every space: those of the passes of init, of a step, and of observe.",
        _ => "/// The init kernel of every space, those of the passes of a step, and the observe kernel.",
    });
    text.line("#[rustfmt::skip]");
    text.open(format!("pub const KERNELS: [[Option<Kernel>; {}]; {}] = [", places.len(), table.len()));
    table.iter().for_each(|row| text.line(format!("{row},")));
    text.close("];");
    text.append(&functions);
    text.finish()
}

/// What the spaces of a plan are called in Rust: lower-case letters, no word of the language, no name twice.
pub fn names<'p>(spaces: impl IntoIterator<Item = &'p SpacePlan>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for space in spaces {
        let name = identifier(&space.name);
        let name = if KEYWORDS.contains(&name.as_str()) { format!("{name}_") } else { name };
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
        names.extend(free);
    }
    names
}

/// Words that name nothing in Rust.
pub const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// `squid_step`; where a step is done in several passes, `squid_step_0`.
fn function_name(plan: &Plan, space: &SpacePlan, kernel: &KernelPlan) -> String {
    let at = plan.all_kernels().position(|s| s.space == space.space);
    let name = at.and_then(|at| names(plan.all_kernels()).into_iter().nth(at));
    let name = name.unwrap_or_else(|| identifier(&space.name));
    let of_group =
        plan.groups.iter().find(|group| group.spaces.contains(&space.space.0)).map_or(1, |group| group.passes);
    let of_trees = plan.trees.iter().find(|trees| trees.spaces.contains(&space.space)).map_or(1, Trees::passes);
    let passes = of_group.max(of_trees);
    let of_edges = at.is_some_and(|at| at >= plan.spaces.len());
    match kernel.role {
        Role::Step if of_edges && kernel.pass == PRE => format!("{name}_pre"),
        Role::Step if of_edges && kernel.pass == PRE + 1 => format!("{name}_post"),
        Role::Step if of_edges => format!("{name}_post_{}", kernel.pass - PRE),
        Role::Init if kernel.pass > 0 => format!("{name}_init_{}", kernel.pass),
        Role::Observe if kernel.pass > 0 => format!("{name}_observe_{}", kernel.pass),
        Role::Init => format!("{name}_init"),
        Role::Step if passes > 1 => format!("{name}_step_{}", kernel.pass),
        Role::Step => format!("{name}_step"),
        Role::Observe => format!("{name}_observe"),
    }
}

fn distribution_name(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Uniform => "uniform",
        Distribution::Normal => "normal",
        Distribution::Exponential => "exponential",
    }
}

fn draw_source(stream: u64) -> String {
    format!("Draw {{ seed: window.seed, stream: {stream} }}")
}

struct Emitter<'a> {
    plan: &'a Plan,
    space: &'a SpacePlan,
    kernel: &'a KernelPlan,
}

impl Emitter<'_> {
    fn function(&self, out: &mut Text) {
        let body = match (&self.kernel.connected, self.kernel.solves) {
            (_, Some(equations)) => self.solution(equations),
            (None, None) => self.blocks(),
            (Some(connected), None) => self.connected_blocks(connected),
        };
        let mut numbers = Text::at(1);
        self.numbers(&mut numbers, &self.kernel.call);
        if !self.kernel.row.is_empty() {
            self.rows(&mut numbers);
        }
        for mean in self.of_run() {
            let local = &self.kernel.locals[mean.local as usize];
            numbers.line(format!("let {} = math::Poisson::new(Real::from_f64({}));", mean.name, local.name));
        }
        self.spread(&mut numbers, &self.kernel.spread);

        let space = &self.space.name;
        out.line(match self.kernel.role {
            Role::Init => format!("/// Sets the cell parameters and initial states of `{space}`."),
            Role::Step if self.kernel.nest == Nest::Pass => {
                format!("/// Pass {} of a time step of `{space}`.", self.kernel.pass)
            }
            Role::Step => format!("/// Advances `{space}` through a window of time steps."),
            Role::Observe => format!("/// Computes the recorded quantities of `{space}`."),
        });
        out.open(format!("pub fn {}(call: Call<'_, Real>) {{", function_name(self.plan, self.space, self.kernel)));
        let vector = match self.plan.precision {
            Precision::F64 => "F64x8",
            Precision::F32 => "F32x16",
            Precision::Bf16 => panic!("native code stores no bf16"),
        };
        let vector = match self.space.vectors {
            1 => vector.to_string(),
            2 => format!("Pair<{vector}>"),
            4 => format!("Pair<Pair<{vector}>>"),
            other => panic!("no group has {other} vectors"),
        };
        out.line(format!("type V = {vector};"));
        if self.kernel.has_singles() {
            out.line(match self.plan.precision {
                Precision::F64 => "type S = <V as Narrow>::Single;",
                Precision::F32 => "type S = V;",
                Precision::Bf16 => panic!("native code stores no bf16"),
            });
        }
        let parts = [
            "state", "cell", "output", "data", "temp", "uniforms", "series", "window", "cells", "spikes", "order",
            "links", "branches",
        ];
        let branched = self.is_branched();
        let mut parts: Vec<&str> = parts
            .into_iter()
            .filter(|part| numbers.mentions(part) || body.mentions(part) || (branched && *part == "branches"))
            .collect();
        if parts.len() < 13 {
            parts.push("..");
        }
        out.line(format!("let Call {{ {} }} = call;", parts.join(", ")));
        if branched {
            let parts = ["flat", "at", "ties", "blocks"].into_iter().filter(|part| body.mentions(part));
            let parts = parts.chain(self.kernel.solves.iter().flat_map(|_| ["cells", "side"]));
            out.line(format!("let Branches {{ {}, .. }} = branches;", parts.collect::<Vec<_>>().join(", ")));
        }
        out.append(&numbers);
        out.append(&body);
        out.close("}");
    }

    /// The distributions that are the same in all steps.
    fn of_run(&self) -> impl Iterator<Item = &Mean> {
        self.kernel.means.iter().filter(|mean| !self.kernel.is_of_time(mean.local))
    }

    /// Those that every step has its own of.
    fn of_step(&self) -> impl Iterator<Item = &Mean> {
        self.kernel.means.iter().filter(|mean| self.kernel.is_of_time(mean.local))
    }

    /// Do lanes use a column?
    fn spreads(&self, column: &Column) -> bool {
        column.usage != Usage::Spread || !self.kernel.means.iter().any(|mean| mean.only && mean.local == column.local)
    }

    /// The rows of the table of numbers per step.
    fn rows(&self, out: &mut Text) {
        out.line("/// The numbers of one time step.");
        out.open("struct Row {");
        for mean in self.of_step() {
            out.line(format!("{}: math::Poisson<Real>,", mean.name));
        }
        for column in self.kernel.row.iter().filter(|column| self.spreads(column)) {
            let ty = match (column.usage, self.kernel.locals[column.local as usize].ty) {
                (Usage::Counter, _) => "u64",
                (Usage::Spread, Type::Real) => "Real",
                (Usage::Spread, Type::Single) => "f32",
                (Usage::Spread, Type::Mask) => "bool",
            };
            out.line(format!("{}: {ty},", column.name));
        }
        out.close("}");
        out.open("let row = |step: u64| {");
        self.numbers(out, &self.kernel.time);
        let field = |column: &Column| {
            let local = &self.kernel.locals[column.local as usize];
            match (column.usage, local.ty) {
                (Usage::Counter, _) => format!("{}: {} as u64", column.name, local.name),
                (Usage::Spread, Type::Real) => format!("{}: Real::from_f64({})", column.name, local.name),
                (Usage::Spread, Type::Single | Type::Mask) => local.name.clone(),
            }
        };
        let distribution = |mean: &Mean| {
            let local = &self.kernel.locals[mean.local as usize];
            format!("{}: math::Poisson::new(Real::from_f64({}))", mean.name, local.name)
        };
        let columns = self.kernel.row.iter().filter(|column| self.spreads(column));
        out.record("Row ", &self.of_step().map(distribution).chain(columns.map(field)).collect::<Vec<_>>(), "");
        out.close("};");
        out.line(if self.kernel.takes_one_step() {
            "let row = row(window.first_step);"
        } else {
            "let rows: Vec<Row> = (window.first_step..window.first_step + window.steps).map(row).collect();"
        });
    }

    /// Numbers on their way into lanes.
    fn spread(&self, out: &mut Text, columns: &[Column]) {
        for column in columns.iter().filter(|column| self.spreads(column)) {
            let local = &self.kernel.locals[column.local as usize];
            out.line(match (column.usage, local.ty) {
                (Usage::Counter, _) => format!("let {} = {} as u64;", column.name, local.name),
                (Usage::Spread, Type::Real) => format!("let {0} = V::splat(Real::from_f64({0}));", local.name),
                (Usage::Spread, Type::Single) => format!("let {0} = S::splat({0});", local.name),
                (Usage::Spread, Type::Mask) => format!("let {0} = all_lanes::<V>({0});", local.name),
            });
        }
    }

    /// The loop over blocks.
    fn blocks(&self) -> Text {
        let kernel = self.kernel;
        let mut body = Text::at(self.depth(2));
        self.spread_row(&mut body);
        self.lanes(&mut body, &kernel.body);
        for &(field, value) in &kernel.stores {
            body.line(self.store(&self.operand(value), field));
        }
        // What is added is of the beginning of the step, as registers have it until they are updated.
        for add in &kernel.adds {
            let (value, sum) = (self.operand(add.value), flat_field(add.sum));
            body.line(format!("ties[{}].add(&mut flat[{sum}..], block, {value});", add.tie));
        }
        for &(register, value) in &kernel.updates {
            body.line(format!("{} = {};", kernel.registers[register as usize].name, self.operand(value)));
        }

        let mut inside = Text::at(2);
        for register in kernel.registers.iter().filter(|register| register.used) {
            let from = self.place(register.field);
            let mutable = if register.changes { "mut " } else { "" };
            inside.line(format!("let {mutable}{} = V::load({from});", register.name));
        }
        self.lanes(&mut inside, &kernel.cell);
        for (number, &local) in kernel.held.iter().enumerate() {
            let draw = kernel.body.iter().find(|stmt| stmt.local == Some(local));
            let Some(Stmt { expr: Expr::Draw(distribution, stream, _), .. }) = draw.copied() else {
                panic!("only draws are held")
            };
            let (numbering, name) = (self.numbering(), distribution_name(distribution));
            inside.line(format!("let draw{number} = {};", draw_source(stream)));
            let draw = format!("|counter| {numbering}.{name}::<V>(block, draw{number}, counter)");
            inside.line(format!("let mut held{number} = Held::new({draw});"));
        }
        self.steps(&mut inside, &body);
        for register in kernel.registers.iter().filter(|register| register.changes) {
            inside.line(self.store(&register.name, register.field));
        }
        // At the end: until then what is read can stay where it is.
        for register in kernel.registers.iter().filter(|r| r.used && self.space.swept.contains(&r.field)) {
            inside.line(self.store("V::splat(0.0)", register.field));
        }

        let mut out = Text::at(1);
        out.open(if self.is_branched() { "for block in blocks {" } else { "for block in 0..cells.blocks(V::LANES) {" });
        self.banks(&mut out, &inside, true);
        out.append(&inside);
        out.close("}");
        out
    }

    /// Equations along the branches of cells.
    fn solution(&self, Equations { x, own, link, rhs, from, parent }: Equations) -> Text {
        let mut out = Text::at(1);
        let field = |(name, field): (&str, u32)| format!("{name}: {}", flat_field(field));
        let from = from.map_or("from: None".to_owned(), |from| format!("from: Some({})", flat_field(from)));
        let fields = [("own", own), ("link", link), ("rhs", rhs), ("x", x)].map(field);
        let fields: Vec<String> = fields.into_iter().chain([from]).collect();
        out.record("let system = System ", &fields, ";");
        let one = if self.plan.precision == Precision::F64 { "F64x8" } else { "F32x16" };
        out.line(format!("solve::<V, {one}>(flat, system, ties[{parent}], side, cells);"));
        out
    }

    /// Are its cells branched?
    fn is_branched(&self) -> bool {
        self.plan.trees.iter().any(|trees| trees.spaces.contains(&self.space.space))
    }

    /// The loop over steps of a kernel with edges, and in it two loops over blocks by turns: what edges bring to some blocks,
    /// then the update of these.
    fn connected_blocks(&self, connected: &Connected) -> Text {
        let kernel = self.kernel;
        let mut out = Text::at(1);
        if kernel.nest == Nest::Steps {
            out.line("let (mut now, mut next) = (links.now, links.next);");
            if self.space.shared.len() > 1 {
                out.line(format!("let width = now.len() / {};", self.space.shared.len()));
            }
        } else {
            for (number, edges) in kernel.edges.iter().enumerate().filter(|(_, edges)| arriving(edges).next().is_some())
            {
                out.line(format!("let from{number} = links.edges[{}].values;", edges.edges));
                let fields = self.shared_by(edges).len();
                if fields > 1 {
                    out.line(format!("let width{number} = from{number}.len() / {fields};"));
                }
            }
        }
        out.line(format!("let mut sums = [[V::splat(0.0); {}]; {BATCH}];", kernel.sums.len()));
        let mut body = Text::at(self.depth(1));
        self.spread_row(&mut body);
        if !self.is_branched() {
            body.line("let blocks = 0..cells.blocks(V::LANES);");
        }
        for (number, edges) in kernel.edges.iter().enumerate() {
            self.arrivals(&mut body, number, edges);
        }
        body.open(format!("for first in blocks.clone().step_by({BATCH}) {{"));
        body.line(format!("let some = first..blocks.end.min(first + {BATCH});"));
        body.open("for (block, sums) in some.clone().zip(&mut sums) {");
        self.edges_of_block(&mut body, connected);
        for (number, &sum) in kernel.sums.iter().enumerate() {
            body.line(format!("sums[{number}] = {};", kernel.locals[sum as usize].name));
        }
        body.close("}");
        body.open("for (block, sums) in some.zip(&sums) {");
        self.update_of_block(&mut body, connected);
        body.close("}");
        body.close("}");
        if kernel.nest == Nest::Steps {
            body.open("if !(links.share)(next) {");
            body.line("return;");
            body.close("}");
            body.line("std::mem::swap(&mut now, &mut next);");
        }
        self.steps(&mut out, &body);
        out
    }

    /// What edges read where they come from.
    fn shared_by(&self, edges: &EdgePlan) -> &[Shared] {
        let relation = self.plan.relation(self.space.edges[edges.edges as usize]);
        &self.plan.spaces[relation.from.0 as usize].shared
    }

    /// What holds the values of the sources of edges, and the number of its values for each field.
    fn arriving_from(&self, number: usize) -> [String; 2] {
        match self.kernel.nest {
            Nest::Steps => ["now".into(), "width".into()],
            Nest::Blocks | Nest::Pass => [format!("from{number}"), format!("width{number}")],
        }
    }

    /// The sums over all edges of a block's cells; asks for what the update of the block will read.
    fn edges_of_block(&self, out: &mut Text, connected: &Connected) {
        let kernel = self.kernel;
        out.open("if links.far {");
        for &bank in &connected.asks {
            let (bank, size) = (bank_name(bank), times(self.slots(bank)));
            out.line(format!("ask_for({bank}, block * {size}, {size});"));
        }
        for (number, edges) in kernel.edges.iter().enumerate() {
            let (at, fields) = (edges.edges, self.shared_by(edges).len());
            let [from, _] = match arriving(edges).next() {
                Some(_) => self.arriving_from(number),
                None => ["&[]".to_string(), String::new()],
            };
            out.line(format!("links.edges[{at}].ask_for::<V>(block + {BLOCKS_AHEAD}, {from}, {fields});"));
        }
        out.close("}");
        let mut inside = Text::at(self.depth(3));
        self.prologue(&mut inside, &connected.before_edges);
        if inside.mentions("own") {
            out.line("let own = cells.start(block, V::LANES) as usize;");
        }
        let local = |local: u32| &kernel.locals[local as usize].name;
        for &sum in &kernel.sums {
            inside.line(format!("let mut {} = V::splat(0.0);", local(sum)));
        }
        for (number, edges) in kernel.edges.iter().enumerate() {
            inside.open(format!("for edge in links.edges[{}].rows::<V>(block) {{", edges.edges));
            if arriving(edges).next().is_some() {
                inside.line(format!("let arrived = arriving{number}.next_row();"));
            }
            for (field, (name, _)) in arriving(edges).enumerate() {
                inside.line(format!("let {} = arrived[{field}];", local(name)));
            }
            let relation = self.plan.relation(self.space.edges[edges.edges as usize]);
            let count = relation.numbers.fields.len();
            for stmt in &edges.body {
                if let (Expr::OfEdge(number), Some(own)) = (stmt.expr, stmt.local) {
                    let (name, at) = (local(own), edges.edges);
                    inside.line(format!("let {name} = links.edges[{at}].number::<V>(&edge, {number}, {count});"));
                }
            }
            self.lanes(&mut inside, &edges.body);
            for &(sum, value) in &edges.adds {
                inside.line(format!("{0} = edge.add({0}, {1});", local(sum), self.operand(value)));
            }
            inside.close("}");
        }
        self.banks(out, &inside, false);
        out.append(&inside);
    }

    /// The new values of a block's cells, from the sums over their edges.
    fn update_of_block(&self, out: &mut Text, connected: &Connected) {
        let kernel = self.kernel;
        let mut inside = Text::at(self.depth(3));
        for (number, &sum) in kernel.sums.iter().enumerate() {
            inside.line(format!("let {} = sums[{number}];", kernel.locals[sum as usize].name));
        }
        self.prologue(&mut inside, &connected.before_body);
        self.lanes(&mut inside, &kernel.body);
        for &(field, value) in &kernel.stores {
            inside.line(self.store(&self.operand(value), field));
        }
        for &(register, value) in &kernel.updates {
            inside.line(self.store(&self.operand(value), kernel.registers[register as usize].field));
        }
        if !connected.shares.is_empty() {
            inside.line("let own = cells.start(block, V::LANES) as usize;");
        }
        for (entry, &value) in connected.shares.iter().enumerate() {
            inside.line(format!("{}.store(&mut next[{}]);", self.operand(value), own_entry(entry)));
        }
        self.banks(out, &inside, true);
        out.append(&inside);
    }

    /// What brings the values of the cells at the other ends of edges, if they matter.
    fn arrivals(&self, out: &mut Text, number: usize, edges: &EdgePlan) {
        // The last field of the buffer, or the only one, needs no end.
        let [from, width] = self.arriving_from(number);
        let slice = |(_, field)| match (field, self.shared_by(edges).len()) {
            (0, 1) => from.clone(),
            (0, _) => format!("&{from}[..{width}]"),
            (1, _) => format!("&{from}[{width}..]"),
            (field, _) => format!("&{from}[{field} * {width}..]"),
        };
        let fields: Vec<String> = arriving(edges).map(slice).collect();
        if !fields.is_empty() {
            // Of branched cells some take their steps after others.
            let behind = if self.is_branched() { ".from_block::<V>(blocks.start)" } else { "" };
            let rows = format!("links.edges[{}]{behind}", edges.edges);
            let head = format!("let mut arriving{number} = {rows}.arrivals::<V, {}>", fields.len());
            out.call_with_list(&head, &fields, ";");
        }
    }

    /// What a loop loads and computes for a block.
    fn prologue(&self, out: &mut Text, prologue: &Prologue) {
        for load in &prologue.loads {
            let register = &self.kernel.registers[load.register as usize];
            let from = match load.shared {
                Some(entry) => format!("&now[{}]", own_entry(entry as usize)),
                None => self.place(register.field),
            };
            out.line(format!("let {} = V::load({from});", register.name));
        }
        self.lanes(out, &prologue.cell);
    }

    /// The loop over steps, or its only turn: without a loop what lies in memory can wait there until it is used, and need not be kept in registers
    /// all the time (4000 cells with two conductances: 1.2 times as fast).
    fn steps(&self, out: &mut Text, body: &Text) {
        let numbered = body.mentions("step");
        if self.kernel.takes_one_step() {
            if numbered {
                out.line("let step = window.first_step;");
            }
            out.append(body);
            return;
        }
        out.open(match (self.kernel.row.is_empty(), numbered) {
            (true, true) => "for step in window.first_step..window.first_step + window.steps {",
            (true, false) => "for _ in 0..window.steps {",
            (false, true) => "for (step, row) in (window.first_step..).zip(&rows) {",
            (false, false) => "for row in &rows {",
        });
        out.append(body);
        out.close("}");
    }

    /// How deep the body of the loop over steps lies in a loop nest.
    fn depth(&self, around: usize) -> usize {
        around + usize::from(!self.kernel.takes_one_step())
    }

    /// The numbers of a step on their way into lanes.
    fn spread_row(&self, out: &mut Text) {
        for column in self.kernel.row.iter().filter(|column| self.spreads(column)) {
            match (column.usage, self.kernel.locals[column.local as usize].ty) {
                (Usage::Counter, _) => {}
                (Usage::Spread, Type::Real) => out.line(format!("let {0} = V::splat(row.{0});", column.name)),
                (Usage::Spread, Type::Single) => out.line(format!("let {0} = S::splat(row.{0});", column.name)),
                (Usage::Spread, Type::Mask) => out.line(format!("let {0} = all_lanes::<V>(row.{0});", column.name)),
            }
        }
    }

    /// The buffers of one block, those that `inside` uses; to be read only where it does not `store`.
    fn banks(&self, out: &mut Text, inside: &Text, store: bool) {
        for bank in [Bank::State, Bank::Cell, Bank::Output, Bank::Data, Bank::Temp] {
            let writable = match bank {
                Bank::State | Bank::Output | Bank::Temp => true,
                Bank::Cell => self.kernel.role == Role::Init,
                Bank::Data => false,
            };
            let (name, size) = (bank_name(bank), times(self.slots(bank)));
            if inside.mentions(name) {
                let writable = if store && writable && self.changes(bank) { "mut " } else { "" };
                out.line(format!("let {name} = &{writable}{name}[block * {size}..][..{size}];"));
            }
        }
    }

    /// Does the kernel store into a buffer?
    fn changes(&self, bank: Bank) -> bool {
        let swept = |field: &FieldId| self.space.swept.contains(field);
        let registers = self.kernel.registers.iter();
        let changed = registers.filter(|r| r.changes || (r.used && swept(&r.field))).map(|register| register.field);
        let mut stored = self.kernel.stores.iter().map(|(field, _)| *field).chain(changed);
        stored.any(|field| matches!(self.plan.homes[field.0 as usize], Home::Slot(_, b, _) if b == bank))
    }

    /// How many slots a block has in a buffer.
    fn slots(&self, bank: Bank) -> usize {
        match bank {
            Bank::State => self.space.state.len(),
            Bank::Cell => self.space.cell.len(),
            Bank::Output => self.space.output.len(),
            Bank::Data => self.space.data.len(),
            Bank::Temp => self.space.temp.len(),
        }
    }

    fn slot(&self, field: FieldId) -> (&'static str, String) {
        let (bank, slot) = match self.plan.homes[field.0 as usize] {
            Home::Slot(_, bank, slot) => (bank, slot),
            Home::Flat(_, field) => return ("flat", format!("{} + block * V::LANES..", flat_field(field))),
            Home::Uniform(_) | Home::Series(_) | Home::Event(..) | Home::Edges | Home::Register => {
                panic!("the plan loads and stores fields that have a place")
            }
        };
        let at = match slot {
            0 => String::new(),
            slot => format!("{}..", times(slot as usize)),
        };
        (bank_name(bank), at)
    }

    /// The slice that begins with a field.
    fn place(&self, field: FieldId) -> String {
        let (bank, at) = self.slot(field);
        if at.is_empty() { bank.to_string() } else { format!("&{bank}[{at}]") }
    }

    fn store(&self, value: &str, field: FieldId) -> String {
        let (bank, at) = self.slot(field);
        if at.is_empty() { format!("{value}.store({bank});") } else { format!("{value}.store(&mut {bank}[{at}]);") }
    }

    fn comment(&self, out: &mut Text, last: &mut Option<OriginId>, origin: Option<OriginId>) {
        if let Some(id) = origin
            && *last != origin
        {
            let origin = &self.plan.origins[id.0 as usize];
            out.line(format!("// {}:{}", origin.file, origin.line));
            *last = Some(id);
        }
    }

    /// Operations on numbers, in `f64`.
    fn numbers(&self, out: &mut Text, stmts: &[Stmt]) {
        let mut last = None;
        for stmt in stmts {
            self.comment(out, &mut last, stmt.origin);
            let local = stmt.local.expect("a number has a name");
            let Local { name, ty } = &self.kernel.locals[local as usize];
            let head = format!("let {name} = ");
            let float = if *ty == Type::Single { "f32" } else { "f64" };
            let at = |operand: Operand| self.number(operand);
            match stmt.expr {
                Expr::Uniform(index) => out.line(format!("{head}uniforms[{index}];")),
                Expr::Time(dt) => out.line(format!("{head}step as f64 * uniforms[{dt}];")),
                Expr::StepIndex => out.line(format!("{head}step as f64;")),
                Expr::Copy(a) => out.line(format!("{head}{};", at(a))),
                Expr::Unary(UnaryOp::Neg, Operand::Real(x)) => out.line(format!("{head}{};", real(-x, "f64"))),
                Expr::Unary(UnaryOp::Neg, a) => out.line(format!("{head}-{};", at(a))),
                Expr::Unary(UnaryOp::Not, a) => out.line(format!("{head}!{};", at(a))),
                Expr::Unary(UnaryOp::Narrow, a) => out.line(format!("{head}{} as f32;", at(a))),
                Expr::Unary(op, a) => out.line(format!("{head}{}({});", number_function(op, float), at(a))),
                Expr::Approximate(function, tolerance, a) => {
                    out.line(format!("{head}{}", approximate(function, tolerance, &at(a))))
                }
                Expr::Binary(op, a, b) => match number_operator(op) {
                    Ok(operator) => out.line(format!("{head}{} {operator} {};", at(a), at(b))),
                    Err(function) => out.call(&format!("{head}{function}"), &[at(a), at(b)], ";"),
                },
                Expr::Fma(a, b, c) => out.call(&format!("{head}{float}::mul_add"), &[at(a), at(b), at(c)], ";"),
                Expr::Select(c, a, b) => out.call(&format!("{head}f64::select"), &[at(c), at(a), at(b)], ";"),
                Expr::Sample(series, t) => out.line(format!("{head}series[{series}].at({});", at(t))),
                Expr::Index | Expr::There(_) | Expr::OfEdge(_) | Expr::Along(..) | Expr::Draw(..) | Expr::Emit(..) => {
                    panic!("the plan computes it in lanes")
                }
            }
        }
    }

    fn number(&self, operand: Operand) -> String {
        match operand {
            Operand::Real(x) => real(x, "f64"),
            Operand::Single(x) if x.is_finite() => format!("{x:?}f32"),
            Operand::Single(x) => real(f64::from(x), "f32"),
            Operand::Bool(b) => b.to_string(),
            Operand::Call(local) | Operand::Time(local) => self.kernel.locals[local as usize].name.clone(),
            Operand::Lanes(_) | Operand::Register(_) => panic!("the plan keeps lanes out of numbers"),
        }
    }

    /// Operations on lanes.
    fn lanes(&self, out: &mut Text, stmts: &[Stmt]) {
        let mut last = None;
        for stmt in stmts {
            self.comment(out, &mut last, stmt.origin);
            let name = stmt.local.map_or("", |local| &self.kernel.locals[local as usize].name);
            let single = stmt.local.is_some_and(|local| self.kernel.locals[local as usize].ty == Type::Single);
            let head = format!("let {name} = ");
            let at = |operand: Operand| self.operand(operand);
            match stmt.expr {
                Expr::Index => out.line(format!("{head}{}.index::<V>(block);", self.numbering())),
                Expr::Along(tie, field) => {
                    let field = flat_field(field);
                    out.line(format!("{head}ties[{tie}].load::<V>(&flat[{field}..], block);"));
                }
                Expr::There(_) | Expr::OfEdge(_) => {} // the loop over edges has it already
                Expr::Copy(a) => out.line(format!("{head}{};", at(a))),
                Expr::Unary(UnaryOp::Narrow | UnaryOp::Widen, a) if self.plan.precision == Precision::F32 => {
                    out.line(format!("{head}{};", at(a)));
                }
                Expr::Approximate(function, tolerance, a) => {
                    out.line(format!("{head}{}", approximate(function, tolerance, &at(a))));
                }
                Expr::Unary(op, a) => match unary(op) {
                    Form::Prefix(operator) => out.line(format!("{head}{operator}{};", at(a))),
                    Form::Method(method) => out.line(format!("{head}{}.{method}();", at(a))),
                    Form::Function(function) => out.call(&format!("{head}{function}"), &[at(a)], ";"),
                },
                Expr::Binary(BinaryOp::Poisson, u, mean) => match self.kernel.distribution(mean) {
                    Some(Mean { name, local, .. }) => {
                        let row = if self.kernel.is_of_time(*local) { "row." } else { "" };
                        out.call(&format!("{head}{row}{name}.number"), &[at(u)], ";");
                    }
                    None => out.call(&format!("{head}math::poisson"), &[at(u), at(mean)], ";"),
                },
                Expr::Binary(op, a, b) => match binary(op) {
                    Form::Prefix(operator) => out.line(format!("{head}{} {operator} {};", at(a), at(b))),
                    Form::Method(method) => out.line(format!("{head}{}.{method}({});", at(a), at(b))),
                    Form::Function(function) => out.call(&format!("{head}{function}"), &[at(a), at(b)], ";"),
                },
                Expr::Fma(a, b, c) => {
                    out.call(&format!("{head}{}::mul_add", if single { "S" } else { "V" }), &[at(a), at(b), at(c)], ";")
                }
                Expr::Select(c, a, b) => out.call(&format!("{head}V::select"), &[at(c), at(a), at(b)], ";"),
                Expr::Draw(distribution, stream, counter) => {
                    let held = self.kernel.held.iter().position(|held| stmt.local == Some(*held));
                    self.draw(out, &head, held, distribution, stream, counter);
                }
                Expr::Sample(series, t) => {
                    let sample = format!("|_, t| Real::from_f64(series[{series}].at(t.to_f64()))");
                    out.call(&format!("{head}map"), &[at(t), sample], ";");
                }
                Expr::Emit(event, mask) => {
                    let mask = at(mask);
                    out.open(format!("if {mask}.any() {{"));
                    out.line(format!("cells.emit(spikes, block, step, {event}, {mask});"));
                    out.close("}");
                }
                Expr::Uniform(_) | Expr::Time(_) | Expr::StepIndex => panic!("the plan computes it as a number"),
            }
        }
    }

    /// What knows the numbers of cells: where there are edges, cells stand in an order of their own.
    fn numbering(&self) -> &'static str {
        let of_edges = self.plan.spaces.iter().all(|space| space.space != self.space.space);
        if self.space.edges.is_empty() && !of_edges && !self.is_branched() { "cells" } else { "order" }
    }

    /// A draw; `held` numbers one that steps share.
    fn draw(
        &self,
        out: &mut Text,
        head: &str,
        held: Option<usize>,
        distribution: Distribution,
        stream: u64,
        counter: Operand,
    ) {
        let column = |columns: &[Column], local: u32| {
            let counter = columns.iter().find(|column| column.local == local && column.usage == Usage::Counter);
            counter.expect("the plan lists every counter").name.clone()
        };
        let (each, counter) = match counter {
            Operand::Real(x) => ("", (x as u64).to_string()),
            Operand::Call(local) => ("", column(&self.kernel.spread, local)),
            Operand::Time(local) => ("", format!("row.{}", column(&self.kernel.row, local))),
            Operand::Lanes(_) | Operand::Register(_) => ("_each", self.operand(counter)),
            Operand::Single(_) | Operand::Bool(_) => panic!("the verifier checks that a counter is real"),
        };
        if let Some(number) = held {
            return out.call(&format!("{head}held{number}.at"), &[counter], ";");
        }
        let function = format!("{head}{}.{}{each}::<V>", self.numbering(), distribution_name(distribution));
        out.call(&function, &["block".into(), draw_source(stream), counter], ";");
    }

    fn operand(&self, operand: Operand) -> String {
        match operand {
            Operand::Real(x) => match self.plan.precision {
                Precision::F64 => format!("V::splat({})", real(x, "Real")),
                Precision::F32 => format!("V::splat({})", real_f32(x as f32)),
                Precision::Bf16 => panic!("native code stores no bf16"),
            },
            Operand::Single(x) => {
                format!("S::splat({})", if x.is_finite() { format!("{x:?}") } else { real(f64::from(x), "f32") })
            }
            Operand::Bool(b) => format!("all_lanes::<V>({b})"),
            Operand::Call(local) | Operand::Time(local) | Operand::Lanes(local) => {
                self.kernel.locals[local as usize].name.clone()
            }
            Operand::Register(register) => self.kernel.registers[register as usize].name.clone(),
        }
    }
}

/// The values that arrive along edges: the local and the exchanged field of each.
fn arriving(edges: &EdgePlan) -> impl Iterator<Item = (u32, u32)> {
    edges.body.iter().filter_map(|stmt| {
        let Expr::There(field) = stmt.expr else { return None };
        Some((stmt.local.expect("a value has a name"), field))
    })
}

/// Where a field begins that maps of branched cells reach.
fn flat_field(field: u32) -> String {
    format!("at[{field}]")
}

/// Where in what all cells share the block's own values of a shared field are.
fn own_entry(entry: usize) -> String {
    match entry {
        0 => "own..".to_string(),
        1 => "width + own..".to_string(),
        entry => format!("{entry} * width + own.."),
    }
}

impl KernelPlan {
    /// Is a number another one in every step?
    fn is_of_time(&self, number: u32) -> bool {
        self.time.iter().any(|stmt| stmt.local == Some(number))
    }
}

fn bank_name(bank: Bank) -> &'static str {
    match bank {
        Bank::State => "state",
        Bank::Cell => "cell",
        Bank::Output => "output",
        Bank::Data => "data",
        Bank::Temp => "temp",
    }
}

fn times(slots: usize) -> String {
    if slots == 1 { "V::LANES".into() } else { format!("{slots} * V::LANES") }
}

/// A number as a literal of type `ty`.
fn real(x: f64, ty: &str) -> String {
    if x.is_nan() {
        format!("{ty}::NAN")
    } else if x.is_infinite() {
        format!("{ty}::{}INFINITY", if x < 0.0 { "NEG_" } else { "" })
    } else {
        format!("{x:?}")
    }
}

fn real_f32(x: f32) -> String {
    if x.is_finite() { format!("{x:?}") } else { real(f64::from(x), "Real") }
}

/// How an operation on lanes is written.
enum Form {
    Prefix(&'static str),
    Method(&'static str),
    Function(&'static str),
}

fn unary(op: UnaryOp) -> Form {
    match op {
        UnaryOp::Neg => Form::Prefix("-"),
        UnaryOp::Abs => Form::Method("abs"),
        UnaryOp::Sqrt => Form::Method("sqrt"),
        UnaryOp::Floor => Form::Method("floor"),
        UnaryOp::Ceil => Form::Method("ceil"),
        UnaryOp::Not => Form::Method("not"),
        UnaryOp::Narrow => Form::Method("narrow"),
        UnaryOp::Widen => Form::Function("V::widen"),
        UnaryOp::Exp => Form::Function("math::exp"),
        UnaryOp::Exp2 => Form::Function("math::exp2"),
        UnaryOp::Expm1 => Form::Function("math::expm1"),
        UnaryOp::Exp2m1 => Form::Function("math::exp2m1"),
        UnaryOp::Exp2rel => Form::Function("math::exp2rel"),
        UnaryOp::Ln => Form::Function("math::ln"),
        UnaryOp::Log2 => Form::Function("math::log2"),
        UnaryOp::Log10 => Form::Function("math::log10"),
        UnaryOp::Sin => Form::Function("math::sin"),
        UnaryOp::Cos => Form::Function("math::cos"),
        UnaryOp::Tan => Form::Function("math::tan"),
        UnaryOp::Sinh => Form::Function("math::sinh"),
        UnaryOp::Cosh => Form::Function("math::cosh"),
        UnaryOp::Tanh => Form::Function("math::tanh"),
        UnaryOp::Linoid => Form::Function("math::linoid"),
        UnaryOp::Nonzero => Form::Function("math::nonzero"),
        UnaryOp::Finite => Form::Function("math::finite"),
    }
}

fn binary(op: BinaryOp) -> Form {
    match op {
        BinaryOp::Add => Form::Prefix("+"),
        BinaryOp::Sub => Form::Prefix("-"),
        BinaryOp::Mul => Form::Prefix("*"),
        BinaryOp::Div => Form::Prefix("/"),
        BinaryOp::Pow => Form::Function("math::pow"),
        BinaryOp::Min => Form::Method("min"),
        BinaryOp::Max => Form::Method("max"),
        BinaryOp::Lt => Form::Method("lt"),
        BinaryOp::Le => Form::Method("le"),
        BinaryOp::Gt => Form::Method("gt"),
        BinaryOp::Ge => Form::Method("ge"),
        BinaryOp::Eq => Form::Method("eq"),
        BinaryOp::Ne => Form::Method("ne"),
        BinaryOp::And => Form::Method("and"),
        BinaryOp::Or => Form::Method("or"),
        BinaryOp::Poisson => Form::Function("math::poisson"),
    }
}

/// The call of a function within a tolerance, and the end of its statement.
fn approximate(function: Elementary, tolerance: Tolerance, x: &str) -> String {
    format!("approximate::{}(Tolerance::{tolerance:?}, {x});", function.name())
}

/// The function of a number of type `float`; `std`'s own where it has the same meaning.
fn number_function(op: UnaryOp, float: &str) -> String {
    match (op, unary(op)) {
        (UnaryOp::Abs, _) => format!("{float}::abs"),
        (UnaryOp::Sqrt, _) => format!("{float}::sqrt"),
        (UnaryOp::Floor, _) => format!("{float}::floor"),
        (UnaryOp::Ceil, _) => format!("{float}::ceil"),
        (UnaryOp::Widen, _) => "f64::from".into(),
        (_, Form::Function(function)) => function.into(),
        (_, Form::Prefix(_) | Form::Method(_)) => panic!("negation, not and narrow are written otherwise"),
    }
}

/// The operator of two numbers, or the function.
fn number_operator(op: BinaryOp) -> Result<&'static str, &'static str> {
    match op {
        BinaryOp::Add => Ok("+"),
        BinaryOp::Sub => Ok("-"),
        BinaryOp::Mul => Ok("*"),
        BinaryOp::Div => Ok("/"),
        BinaryOp::Pow => Err("math::pow"),
        BinaryOp::Min => Err("Lanes::min"),
        BinaryOp::Max => Err("Lanes::max"),
        BinaryOp::Lt => Ok("<"),
        BinaryOp::Le => Ok("<="),
        BinaryOp::Gt => Ok(">"),
        BinaryOp::Ge => Ok(">="),
        BinaryOp::Eq => Ok("=="),
        BinaryOp::Ne => Ok("!="),
        BinaryOp::And => Ok("&"),
        BinaryOp::Or => Ok("|"),
        BinaryOp::Poisson => Err("math::poisson"),
    }
}

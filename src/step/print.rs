//! The text form, written.
//!
//! In comes any [`Program`]; out goes its text, the same bytes for the same program, which [`super::parse`] reads back
//! unchanged (every NaN reads back as the one NaN of the text form).
//! Never true here: a broken program makes it panic; an id that points nowhere prints as `@?7`.

use super::{
    Distribution, Field, FieldId, FieldKind, Guard, Map, Op, OpKind, OriginId, Program, Rate, Region, Role, Solve,
    Source, Space, SpaceId, SpaceKind, Stage, Surrogate,
};
use std::fmt::Write;

/// Prints a program.
pub fn print(program: &Program) -> String {
    let mut out = format!("program {}\n", quoted(&program.name));
    for (i, origin) in program.origins.iter().enumerate() {
        line(&mut out, format_args!("origin #{i} {}:{}", quoted(&origin.file), origin.line));
    }
    for space in &program.spaces {
        line(&mut out, format_args!("{}", space_declaration(program, space)));
    }
    for field in &program.fields {
        line(&mut out, format_args!("{}", field_declaration(program, field)));
    }
    for function in &program.functions {
        let steps = if function.steps == 1 { String::new() } else { format!(" steps {}", function.steps) };
        line(&mut out, format_args!("{}{steps} {{", function_heading(function.role)));
        for stage in &function.stages {
            match stage {
                Stage::Region(region) => region_text(program, region, &mut out),
                Stage::Solve(solve) => line(&mut out, format_args!("  {}", print_solve(program, solve))),
            }
        }
        out.push_str("}\n");
    }
    out
}

fn region_text(program: &Program, region: &Region, out: &mut String) {
    line(out, format_args!("  {} {{", region_heading(program, region)));
    for op in &region.ops {
        line(out, format_args!("    {}", print_op(program, op)));
    }
    out.push_str("  }\n");
}

/// `fn step`.
pub(super) fn function_heading(role: Role) -> String {
    format!("fn {}", role_name(role))
}

/// `over @ei when @e.spikes along source delay @ei.delay`.
pub(super) fn region_heading(program: &Program, region: &Region) -> String {
    let mut out = match (region.rate, region.over) {
        (Rate::Once, None) => "once".into(),
        (Rate::Every, None) => "every".into(),
        (Rate::Once, Some(space)) => format!("once over {}", space_name(program, space)),
        (Rate::Every, Some(space)) => format!("over {}", space_name(program, space)),
    };
    if let Some(Guard { event, along: map, delay }) = region.guard {
        let _ = write!(out, " when {}{}", field_name(program, event), along(map));
        if let Some(delay) = delay {
            let _ = write!(out, " delay {}", field_name(program, delay));
        }
    }
    out
}

/// A solve, as it stands in a function.
pub(super) fn print_solve(program: &Program, solve: &Solve) -> String {
    let name = |f| field_name(program, f);
    let [x, own, link, rhs] = [solve.x, solve.own, solve.link, solve.rhs].map(name);
    let from = solve.from.map_or(String::new(), |f| format!(", from {}", name(f)));
    format!("solve tree {x}: own {own}, link {link}, rhs {rhs}{from}{}", origin_suffix(solve.origin))
}

/// One operation, as it stands in a region.
pub(super) fn print_op(program: &Program, op: &Op) -> String {
    let mut out = String::new();
    if let Some(result) = op.result {
        let _ = write!(out, "%{} = ", result.0);
    }
    if op.exact {
        out.push_str("exact ");
    }
    out.push_str(&op_name(&op.kind));
    let field = |f: FieldId| format!(" {}", field_name(program, f));
    match op.kind {
        OpKind::Const(x) => {
            let _ = write!(out, " {}", number(x));
        }
        OpKind::Bool(b) => {
            let _ = write!(out, " {b}");
        }
        OpKind::Field(f) => out.push_str(&field(f)),
        OpKind::Gather(f, map) => {
            let _ = write!(out, "{}{}", field(f), along(Some(map)));
        }
        OpKind::Back(f, map, _) | OpKind::Accumulate(f, map, _) => {
            let _ = write!(out, "{}{},", field(f), along(map));
        }
        OpKind::Sample(f, _) | OpKind::Store(f, _) | OpKind::Emit(f, _) => {
            let _ = write!(out, "{},", field(f));
        }
        OpKind::Spike(surrogate, _) => out.push_str(&surrogate_text(surrogate)),
        OpKind::Draw(distribution, stream, _) => {
            let _ = write!(out, " {} {stream},", distribution_name(distribution));
        }
        OpKind::Approximate(function, tolerance, _) => {
            let _ = write!(out, " {} {},", function.name(), tolerance.name());
        }
        OpKind::Time
        | OpKind::StepIndex
        | OpKind::Index
        | OpKind::Unary(..)
        | OpKind::Binary(..)
        | OpKind::Fma(..)
        | OpKind::SpikeBy(..)
        | OpKind::Select(..) => {}
    }
    let operands: Vec<String> = op.kind.operands().iter().map(|v| format!("%{}", v.0)).collect();
    if !operands.is_empty() {
        let _ = write!(out, " {}", operands.join(", "));
    }
    out.push_str(&origin_suffix(op.origin));
    out
}

/// The word of an operation in the text form.
pub fn op_name(kind: &OpKind) -> String {
    match kind {
        OpKind::Const(_) => "const".into(),
        OpKind::Bool(_) => "bool".into(),
        OpKind::Field(_) => "field".into(),
        OpKind::Gather(..) => "gather".into(),
        OpKind::Back(..) => "back".into(),
        OpKind::Spike(..) => "spike".into(),
        OpKind::SpikeBy(..) => "spike_by".into(),
        OpKind::Accumulate(..) => "accumulate".into(),
        OpKind::Time => "time".into(),
        OpKind::StepIndex => "step_index".into(),
        OpKind::Index => "index".into(),
        OpKind::Unary(op, _) => op.name().into(),
        OpKind::Approximate(..) => "approximate".into(),
        OpKind::Binary(op, ..) => op.name().into(),
        OpKind::Fma(..) => "fma".into(),
        OpKind::Select(..) => "select".into(),
        OpKind::Draw(..) => "draw".into(),
        OpKind::Sample(..) => "sample".into(),
        OpKind::Store(..) => "store".into(),
        OpKind::Emit(..) => "emit".into(),
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Init => "init",
        Role::Step => "step",
        Role::Observe => "observe",
    }
}

pub(super) fn distribution_name(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Uniform => "uniform",
        Distribution::Normal => "normal",
        Distribution::Exponential => "exponential",
    }
}

/// The surrogate of a spike, with a space before it and a comma behind.
fn surrogate_text(surrogate: Surrogate) -> String {
    match surrogate {
        Surrogate::None => String::new(),
        Surrogate::FastSigmoid(slope) => format!(" fast_sigmoid {},", number(slope)),
        Surrogate::Arctan(slope) => format!(" arctan {},", number(slope)),
        Surrogate::Sigmoid(slope) => format!(" sigmoid {},", number(slope)),
        Surrogate::Triangular(slope) => format!(" triangular {},", number(slope)),
        Surrogate::StraightThrough => " straight_through,".into(),
    }
}

/// The words for a kind of field.
pub(super) const KINDS: [(FieldKind, &str); 8] = [
    (FieldKind::Uniform, "uniform"),
    (FieldKind::Series, "series"),
    (FieldKind::Data, "data"),
    (FieldKind::Const, "const"),
    (FieldKind::State, "state"),
    (FieldKind::Temp, "temp"),
    (FieldKind::Output, "output"),
    (FieldKind::Event, "event"),
];

pub(super) fn kind_name(kind: FieldKind) -> &'static str {
    // KINDS is in the order of the declaration; a test checks it.
    KINDS[kind as usize].1
}

/// Can a name stand without quotes?
pub(super) fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_bare_char)
}

/// May a character stand in a name without quotes?
pub(super) fn is_bare_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '\'')
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{text}");
}

fn space_declaration(program: &Program, space: &Space) -> String {
    let other = |id| space_name(program, id);
    let kind = match space.kind {
        SpaceKind::Plain => String::new(),
        SpaceKind::Product { of, tree: false } => format!(" of {}", other(of)),
        SpaceKind::Product { of, tree: true } => format!(" of {} tree", other(of)),
        SpaceKind::Subset { of } => format!(" in {}", other(of)),
        SpaceKind::Relation { from, to } => format!(" from {} to {}", other(from), other(to)),
    };
    format!("space @{}{kind}", name(&space.name))
}

fn field_declaration(program: &Program, field: &Field) -> String {
    let mut out = format!("{} @{}", kind_name(field.kind), name(&field.name));
    if let Some(space) = field.over {
        let _ = write!(out, " over {}", space_name(program, space));
    }
    if field.history > 0 {
        let _ = write!(out, " history {}", field.history);
    }
    out.push_str(&source_suffix(field.source));
    out.push_str(&origin_suffix(field.origin));
    out
}

fn source_suffix(source: Source) -> String {
    match source {
        Source::None => String::new(),
        Source::Dt => " = dt".into(),
        Source::Param(i) => format!(" = param {i}"),
        Source::State(i) => format!(" = state {i}"),
        Source::Next(i) => format!(" = next {i}"),
        Source::Slope(i, stage) => format!(" = slope {i} {stage}"),
        Source::Point(i, stage) => format!(" = point {i} {stage}"),
        Source::Sum(i, stage) => format!(" = sum {i} {stage}"),
        Source::Slopes(i) => format!(" = slopes {i}"),
        Source::There(i, state) => format!(" = there {i} {state}"),
        Source::Told(i) => format!(" = told {i}"),
        Source::Arrived(i, which) => format!(" = arrived {i} {which}"),
        Source::Sent(i, stage) => format!(" = sent {i} {stage}"),
        Source::Weight(i) => format!(" = weight {i}"),
        Source::Delay(i) => format!(" = delay {i}"),
        Source::Back(i) => format!(" = back {i}"),
        Source::Amount(i) => format!(" = amount {i}"),
        Source::Modulated(i) => format!(" = modulated {i}"),
        Source::Seen(i) => format!(" = seen {i}"),
        Source::Refractory(i) => format!(" = refractory {i}"),
        Source::Spiked(i) => format!(" = spiked {i}"),
        Source::Spikes(i) => format!(" = spikes {i}"),
        Source::Data(i, j) => format!(" = data {i} {j}"),
        Source::Series(i) => format!(" = series {i}"),
        Source::Output(i) => format!(" = output {i}"),
        Source::Observed(i) => format!(" = observed {i}"),
        Source::Measure(i, j) => format!(" = measure {i} {j}"),
        Source::Axial(i) => format!(" = axial {i}"),
        Source::Membrane(i) => format!(" = membrane {i}"),
        Source::Conductance(i) => format!(" = conductance {i}"),
        Source::Own(i) => format!(" = own {i}"),
        Source::Rhs(i) => format!(" = rhs {i}"),
        Source::Middle(i) => format!(" = middle {i}"),
        Source::Transmembrane(i) => format!(" = transmembrane {i}"),
        Source::Escaping(i) => format!(" = escaping {i}"),
        Source::Injected(i) => format!(" = injected {i}"),
        Source::InjectedSlope(i) => format!(" = injected_slope {i}"),
        Source::Diffusion(i, which) => format!(" = diffusion {i} {which}"),
        Source::Adjoint(i) => format!(" = adjoint {i}"),
        Source::Seed(i) => format!(" = seed {i}"),
        Source::Gradient(i, space) => format!(" = gradient {i} {space}"),
        Source::Tangent(i, direction) => format!(" = tangent {i} {direction}"),
    }
}

/// Where a map leads along, if there is one.
fn along(map: Option<Map>) -> String {
    match map {
        Some(map) => format!(" along {}", map.name()),
        None => String::new(),
    }
}

pub(super) fn field_name(program: &Program, id: FieldId) -> String {
    match program.fields.get(id.0 as usize) {
        Some(field) => format!("@{}", name(&field.name)),
        None => format!("@?{}", id.0),
    }
}

pub(super) fn space_name(program: &Program, id: SpaceId) -> String {
    match program.spaces.get(id.0 as usize) {
        Some(space) => format!("@{}", name(&space.name)),
        None => format!("@?{}", id.0),
    }
}

fn origin_suffix(origin: Option<OriginId>) -> String {
    match origin {
        Some(id) => format!(" #{}", id.0),
        None => String::new(),
    }
}

fn name(text: &str) -> String {
    if is_bare(text) { text.into() } else { quoted(text) }
}

/// The shortest text that reads back as the same number.
fn number(x: f64) -> String {
    if x.is_nan() { "nan".into() } else { format!("{x:?}") }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || c.is_whitespace() && c != ' ' => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

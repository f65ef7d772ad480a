//! The text form, written.
//!
//! In comes any [`Program`]; out goes its text, the same bytes for the same program, which [`super::parse`] reads back
//! unchanged (every NaN reads back as the one NaN of the text form).
//! Never true here: a broken program makes it panic; an id that points nowhere prints as `@?7`.

use super::{Distribution, Field, FieldId, FieldKind, Op, OpKind, OriginId, Phase, Program, Role, SpaceId};
use std::fmt::Write;

/// Prints a program.
pub fn print(program: &Program) -> String {
    let mut out = format!("program {}\n", quoted(&program.name));
    for (i, origin) in program.origins.iter().enumerate() {
        line(&mut out, format_args!("origin #{i} {}:{}", quoted(&origin.file), origin.line));
    }
    for space in &program.spaces {
        line(&mut out, format_args!("space @{}", name(&space.name)));
    }
    for field in &program.fields {
        line(&mut out, format_args!("{}", field_declaration(program, field)));
    }
    for kernel in &program.kernels {
        line(
            &mut out,
            format_args!("{} steps {} {{", kernel_heading(program, kernel.role, kernel.space), kernel.steps),
        );
        for region in &kernel.regions {
            let edges = match region.phase {
                Phase::Edge(edges) => format!(" {}", field_name(program, edges)),
                Phase::Call | Phase::Time | Phase::Cell | Phase::Body => String::new(),
            };
            line(&mut out, format_args!("  {}{edges} {{", phase_name(region.phase)));
            for op in &region.ops {
                line(&mut out, format_args!("    {}", print_op(program, op)));
            }
            out.push_str("  }\n");
        }
        out.push_str("}\n");
    }
    out
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
        OpKind::Field(f) | OpKind::There(f) => out.push_str(&field(f)),
        OpKind::Sample(f, _) | OpKind::Store(f, _) | OpKind::Accumulate(f, _) | OpKind::Emit(f, _) => {
            let _ = write!(out, "{},", field(f));
        }
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
        | OpKind::Select(..) => {}
    }
    let operands: Vec<String> = op.kind.operands().iter().map(|v| format!("%{}", v.0)).collect();
    if !operands.is_empty() {
        let _ = write!(out, " {}", operands.join(", "));
    }
    out.push_str(&origin_suffix(op.origin));
    out
}

/// `kernel step over @squid`.
pub(super) fn kernel_heading(program: &Program, role: Role, space: SpaceId) -> String {
    format!("kernel {} over {}", role_name(role), space_name(program, space))
}

/// The word of an operation in the text form.
pub fn op_name(kind: &OpKind) -> String {
    match kind {
        OpKind::Const(_) => "const".into(),
        OpKind::Bool(_) => "bool".into(),
        OpKind::Field(_) => "field".into(),
        OpKind::There(_) => "there".into(),
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

pub(super) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Call => "call",
        Phase::Time => "time",
        Phase::Cell => "cell",
        Phase::Edge(_) => "edge",
        Phase::Body => "body",
    }
}

pub(super) fn distribution_name(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Uniform => "uniform",
        Distribution::Normal => "normal",
        Distribution::Exponential => "exponential",
    }
}

pub(super) fn kind_name(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Uniform => "uniform",
        FieldKind::Series => "series",
        FieldKind::Data(_) => "data",
        FieldKind::Cell(_) => "cell",
        FieldKind::State(_) => "state",
        FieldKind::Temp(_) => "temp",
        FieldKind::Output(_) => "output",
        FieldKind::Event(_) => "event",
        FieldKind::Edges(_) => "edges",
    }
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

fn field_declaration(program: &Program, field: &Field) -> String {
    let over = match field.kind.space() {
        Some(space) => format!(" over {}", space_name(program, space)),
        None => String::new(),
    };
    format!("{} @{}{over}{}", kind_name(field.kind), name(&field.name), origin_suffix(field.origin))
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

//! Typing of expressions: names to ids, dimensions checked.

use super::builtins::{self, Builtin, FunctionKind};
use super::lower::{ItemKind, Lowerer};
use super::scope::{Role, Scope, ScopeKind, Status};
use super::{Expr, ExprKind, SymbolId, Ty};
use crate::diag::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, UnaryOp};
use crate::units::{Dim, Unit};
use std::collections::HashMap;

/// Parameters of the function whose body is being lowered; `None` where nothing is known of the argument.
pub(super) type Env = HashMap<String, Option<Expr>>;

/// How deeply expressions may contain each other through names and functions (not the height of one expression).
const MAX_DEPTH: usize = 400;

impl Expr {
    pub(super) fn number(value: f64, dim: Dim, span: Span) -> Expr {
        Expr { kind: ExprKind::Number(value), ty: Ty::Real(dim), span }
    }

    pub(super) fn symbol(id: SymbolId, ty: Ty, span: Span) -> Expr {
        Expr { kind: ExprKind::Symbol(id), ty, span }
    }

    pub(super) fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let (x, y) = (a.ty.dim(), b.ty.dim());
        let ty = match op {
            BinaryOp::Add | BinaryOp::Sub => Ty::Real(x),
            BinaryOp::Mul => Ty::Real(x.times(y)),
            BinaryOp::Div => Ty::Real(x.over(y)),
            BinaryOp::Pow => Ty::Real(x),
            BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or => Ty::Bool,
        };
        let span = if a.span.file == b.span.file { a.span.to(b.span) } else { a.span };
        Expr { kind: ExprKind::Binary(op, Box::new(a), Box::new(b)), ty, span }
    }

    /// Calls `f` on every node, parents first.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        match &self.kind {
            ExprKind::Number(_)
            | ExprKind::Bool(_)
            | ExprKind::Symbol(_)
            | ExprKind::NetworkParam(_)
            | ExprKind::Time
            | ExprKind::Celsius
            | ExprKind::Index
            | ExprKind::Draw(..)
            | ExprKind::File(_)
            | ExprKind::Series(_) => {}
            ExprKind::Unary(_, a) | ExprKind::Noise(_, a) => a.visit(f),
            ExprKind::Binary(_, a, b) => {
                a.visit(f);
                b.visit(f);
            }
            ExprKind::If(c, a, b) => {
                c.visit(f);
                a.visit(f);
                b.visit(f);
            }
            ExprKind::Call(_, args) => args.iter().for_each(|a| a.visit(f)),
        }
    }

    /// Replaces symbols.
    pub(super) fn map_symbols(&self, f: &impl Fn(SymbolId) -> SymbolId) -> Expr {
        let sub = |e: &Expr| Box::new(e.map_symbols(f));
        let kind = match &self.kind {
            ExprKind::Symbol(id) => ExprKind::Symbol(f(*id)),
            ExprKind::Number(_)
            | ExprKind::Bool(_)
            | ExprKind::NetworkParam(_)
            | ExprKind::Time
            | ExprKind::Celsius
            | ExprKind::Index
            | ExprKind::Draw(..)
            | ExprKind::File(_)
            | ExprKind::Series(_) => self.kind.clone(),
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, sub(a)),
            ExprKind::Noise(s, a) => ExprKind::Noise(*s, sub(a)),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, sub(a), sub(b)),
            ExprKind::If(c, a, b) => ExprKind::If(sub(c), sub(a), sub(b)),
            ExprKind::Call(b, args) => ExprKind::Call(*b, args.iter().map(|a| a.map_symbols(f)).collect()),
        };
        Expr { kind, ty: self.ty, span: self.span }
    }

    /// How many nodes it has.
    pub(super) fn size(&self) -> usize {
        let mut nodes = 0;
        self.visit(&mut |_| nodes += 1);
        nodes
    }

    /// How many nodes stand on top of each other.
    pub(super) fn height(&self) -> usize {
        1 + match &self.kind {
            ExprKind::Number(_)
            | ExprKind::Bool(_)
            | ExprKind::Symbol(_)
            | ExprKind::NetworkParam(_)
            | ExprKind::Time
            | ExprKind::Celsius
            | ExprKind::Index
            | ExprKind::Draw(..)
            | ExprKind::File(_)
            | ExprKind::Series(_) => 0,
            ExprKind::Unary(_, a) | ExprKind::Noise(_, a) => a.height(),
            ExprKind::Binary(_, a, b) => a.height().max(b.height()),
            ExprKind::If(c, a, b) => c.height().max(a.height()).max(b.height()),
            ExprKind::Call(_, args) => args.iter().map(Expr::height).max().unwrap_or(0),
        }
    }
}

/// Joins a path's names with dots.
pub(super) fn join(path: &[ast::Name]) -> String {
    path.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(".")
}

fn path_span(path: &[ast::Name]) -> Span {
    path[0].span.to(path[path.len() - 1].span)
}

impl<'a> Lowerer<'a> {
    /// The unit of a unit expression; `None` (and said) if it is not one.
    pub(super) fn unit(&mut self, unit: &ast::UnitExpr) -> Option<Unit> {
        let mut factors = Vec::new();
        for (name, power) in &unit.factors {
            match Unit::named(&name.text) {
                Some(u) => factors.push((u, *power)),
                None => {
                    self.unknown_unit(name);
                    return None;
                }
            }
        }
        let product = Unit::product(factors);
        if product.is_none() {
            self.error(
                Diagnostic::new(
                    Code::UnknownUnit,
                    unit.span,
                    "this product of units cannot be used",
                    "degC cannot be part of a product, and powers go up to 9",
                )
                .help("use K for differences of temperature"),
            );
        }
        product
    }

    fn unknown_unit(&mut self, name: &ast::Name) {
        let all: Vec<String> = crate::units::BASE_UNITS
            .iter()
            .flat_map(|b| {
                let prefixes = if b.3 { crate::units::PREFIXES } else { &[] };
                std::iter::once(b.0.to_string()).chain(prefixes.iter().map(move |p| format!("{}{}", p.0, b.0)))
            })
            .collect();
        let mut d =
            Diagnostic::new(Code::UnknownUnit, name.span, format!("there is no unit `{}`", name.text), "not a unit");
        let spelled = match name.text.to_lowercase().trim_end_matches('s') {
            "msec" | "millisecond" => Some("ms"),
            "sec" | "second" => Some("s"),
            "usec" | "microsecond" => Some("us"),
            "min" | "minute" => Some("s"),
            "mho" | "siemen" => Some("S"),
            "mmho" | "millisiemen" => Some("mS"),
            "umho" | "microsiemen" => Some("uS"),
            "nanosiemen" => Some("nS"),
            "volt" => Some("V"),
            "millivolt" => Some("mV"),
            "amp" | "ampere" => Some("A"),
            "nanoamp" => Some("nA"),
            "picoamp" => Some("pA"),
            "microamp" => Some("uA"),
            "farad" => Some("F"),
            "megohm" => Some("Mohm"),
            "micron" | "micrometer" | "micrometre" => Some("um"),
            "molar" => Some("M"),
            "millimolar" => Some("mM"),
            "micromolar" => Some("uM"),
            "hertz" => Some("Hz"),
            "celsiu" | "deg" | "c" | "degree" => Some("degC"),
            "kelvin" => Some("K"),
            "coulomb" => Some("C"),
            _ => None,
        };
        // `mv` means mV, not MV: the prefix as it is written, the base unit in the right case.
        let same_letters = || all.iter().filter(|u| u.eq_ignore_ascii_case(&name.text));
        let first = |u: &&String| u.chars().next() == name.text.chars().next();
        let cased = same_letters().find(first).or_else(|| same_letters().next()).map(String::as_str);
        if let Some(near) = spelled.or(cased).or_else(|| nearest(&name.text, all.iter().map(String::as_str))) {
            d = d.help(format!("did you mean `{near}`?"));
        } else {
            d = d.note("units are written `mV`, `nA`, `mS/cm2`, `uF/cm2`, `ohm*cm`, `/ms`, `mM`, `degC`");
        }
        self.error(d);
    }

    /// Lowers an expression; `None` if it is wrong (and that has been said).
    pub(super) fn expr(&mut self, scope: &mut Scope<'a>, prefix: &str, e: &ast::Expr) -> Option<Expr> {
        self.expr_in(scope, prefix, e, None)
    }

    /// Lowers an expression that must be a number of a dimension; `why` names what it is for.
    pub(super) fn expr_of(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        e: &ast::Expr,
        dim: Dim,
        why: &str,
    ) -> Option<Expr> {
        let x = self.expr(scope, prefix, e)?;
        self.expect(scope, x, dim, why)
    }

    /// Checks that an expression is a number of a dimension.
    pub(super) fn expect(&mut self, scope: &Scope<'a>, x: Expr, dim: Dim, why: &str) -> Option<Expr> {
        match x.ty {
            Ty::Bool => {
                self.error(
                    Diagnostic::new(
                        Code::WrongType,
                        x.span,
                        format!("{why} must be a number, not a condition"),
                        "a condition",
                    )
                    .help("choose with `if ... then ... else ...`"),
                );
                None
            }
            Ty::Real(got) if got == dim => Some(x),
            Ty::Real(got) => {
                self.wrong_dimension(scope, &x, got, dim, why);
                // What is needed is known: look on as if it were given.
                Some(Expr { ty: Ty::Real(dim), ..x })
            }
        }
    }

    fn wrong_dimension(&mut self, scope: &Scope<'a>, x: &Expr, got: Dim, want: Dim, why: &str) {
        if let Some(bare) = self.bare(scope, x) {
            let d = self.missing_unit(&bare, want, Some(why));
            self.error(d);
            return;
        }
        if let Some((bare, dim)) = self.bare_factor(scope, x, want)
            && (bare.name.is_some() || self.blame(x).span == bare.value)
        {
            let d = self.missing_unit(&bare, dim, None);
            self.error(if bare.name.is_some() { d } else { d.note(format!("{why} must be {}", want.describe())) });
            return;
        }
        let x = self.blame(x);
        let d = Diagnostic::new(
            Code::DimensionMismatch,
            x.span,
            format!("{why} must be {}, not {}", want.describe(), got.describe()),
            shown(got),
        );
        let mut d = with_columns(d, "expected", want, "found", got);
        let literal = self.literal(x).map(|l| self.with_unit(l, want));
        if want.is_one() && literal.is_none() {
            // Nothing to divide by is better than any other.
        } else if let Some(help) = self.edit(scope, x, want) {
            d = d.help(help);
        } else if let Some(value) = literal {
            d = d.help(match want.is_one() {
                true => format!("leave the unit out: `{value}`"),
                false => format!("write {}, for example `{value}`", want.describe()),
            });
        }
        self.error(d);
    }

    fn expr_in(&mut self, scope: &mut Scope<'a>, prefix: &str, e: &ast::Expr, env: Option<&Env>) -> Option<Expr> {
        if !self.spend(1, e.span) {
            return None;
        }
        if self.depth >= MAX_DEPTH {
            let message = "definitions are nested too deeply";
            let d = Diagnostic::new(Code::TooDeep, e.span, message, "given up here");
            self.error(d.help("define what is used before what uses it"));
            return None;
        }
        self.depth += 1;
        let x = self.expr_inside(scope, prefix, e, env);
        self.depth -= 1;
        x
    }

    fn expr_inside(&mut self, scope: &mut Scope<'a>, prefix: &str, e: &ast::Expr, env: Option<&Env>) -> Option<Expr> {
        let span = e.span;
        match &e.kind {
            ast::ExprKind::Number { text, unit } => self.number(text, unit.as_ref(), false, span),
            ast::ExprKind::Bool(b) => Some(Expr { kind: ExprKind::Bool(*b), ty: Ty::Bool, span }),
            ast::ExprKind::Str(_) => {
                self.error(
                    Diagnostic::new(Code::WrongType, span, "a text is not a number", "a text")
                        .help("texts only name files, as in `file(\"v0.npy\")`"),
                );
                None
            }
            ast::ExprKind::Path(path) => self.path(scope, prefix, path, env),
            ast::ExprKind::Unary(op, a) => {
                if let (UnaryOp::Neg, ast::ExprKind::Number { text, unit }) = (op, &a.kind) {
                    return self.number(text, unit.as_ref(), true, span);
                }
                let a = self.expr_in(scope, prefix, a, env)?;
                match (op, a.ty) {
                    (UnaryOp::Neg, Ty::Real(_)) | (UnaryOp::Not, Ty::Bool) => {
                        Some(Expr { ty: a.ty, kind: ExprKind::Unary(*op, Box::new(a)), span })
                    }
                    (UnaryOp::Neg, Ty::Bool) => self.wrong_type(&a, "`-` needs a number"),
                    (UnaryOp::Not, Ty::Real(_)) => self.wrong_type(&a, "`not` needs a condition"),
                }
            }
            ast::ExprKind::Binary(op, a, b) => {
                let left = self.expr_in(scope, prefix, a, env);
                let right = self.expr_in(scope, prefix, b, env);
                self.binary(scope, *op, left?, right?, span)
            }
            ast::ExprKind::If(c, a, b) => {
                let c = self.expr_in(scope, prefix, c, env);
                let a = self.expr_in(scope, prefix, a, env);
                let b = self.expr_in(scope, prefix, b, env);
                let (c, a, b) = (c?, a?, b?);
                if c.ty != Ty::Bool {
                    return self.wrong_type(&c, "`if` needs a condition");
                }
                self.same_dimension(scope, &a, &b, "the two branches of an `if` must agree:")?;
                Some(Expr { ty: a.ty, kind: ExprKind::If(Box::new(c), Box::new(a), Box::new(b)), span })
            }
            ast::ExprKind::Call(name, args) => self.call(scope, prefix, name, args, env, span),
        }
    }

    fn wrong_type(&mut self, x: &Expr, message: &str) -> Option<Expr> {
        let what = match x.ty {
            Ty::Bool => "a condition".to_string(),
            Ty::Real(dim) => dim.describe(),
        };
        let d = Diagnostic::new(Code::WrongType, x.span, message, what);
        let text = self.text(x.span);
        self.error(match x.ty {
            Ty::Real(dim) if text.len() < 30 && !text.contains('\n') && self.literal(x).is_none() => {
                let zero = if dim.is_one() { "0".to_string() } else { format!("0 {}", super::advice::usual_unit(dim)) };
                d.help(format!("compare it: `{text} > {zero}`"))
            }
            Ty::Real(_) => d.help("compare it with something, as in `v > -40 mV`"),
            Ty::Bool => d.help("choose a number with `if ... then ... else ...`"),
        });
        None
    }

    fn number(&mut self, text: &str, unit: Option<&ast::UnitExpr>, negative: bool, span: Span) -> Option<Expr> {
        let unit = match unit {
            Some(u) => self.unit(u)?,
            None => Unit::ONE,
        };
        let signed = if negative { format!("-{text}") } else { text.to_string() };
        match unit.canonical(&signed) {
            Some(value) => Some(Expr::number(value, unit.dim, span)),
            None => {
                self.error(Diagnostic::new(Code::BadValue, span, "this number is too large", "cannot be represented"));
                None
            }
        }
    }

    fn path(&mut self, scope: &mut Scope<'a>, prefix: &str, path: &[ast::Name], env: Option<&Env>) -> Option<Expr> {
        let name = join(path);
        let span = path_span(path);
        if let Some(env) = env {
            if let Some(value) = env.get(&name) {
                let value = value.as_ref()?;
                return if self.spend(value.size(), span) { Some(Expr { span, ..value.clone() }) } else { None };
            }
        } else if let Some(id) = scope.lookup(prefix, &name) {
            scope.entry_mut(id).used = true;
            let ty = self.resolve(scope, id, Some(span))?;
            let kind = match scope.kind {
                ScopeKind::Network | ScopeKind::PerCell | ScopeKind::Input => ExprKind::NetworkParam(id),
                ScopeKind::Constant | ScopeKind::Channel | ScopeKind::Cell => ExprKind::Symbol(id),
            };
            return Some(Expr { kind, ty, span });
        }
        let special = |kind, dim| Some(Expr { kind, ty: Ty::Real(dim), span });
        match name.as_str() {
            "pi" => return special(ExprKind::Number(std::f64::consts::PI), Dim::ONE),
            "celsius" if scope.kind != ScopeKind::Constant && env.is_none() => {
                return special(ExprKind::Celsius, Dim::TEMPERATURE);
            }
            "t" if env.is_none() && matches!(scope.kind, ScopeKind::Channel | ScopeKind::Cell | ScopeKind::Input) => {
                return special(ExprKind::Time, Dim::TIME);
            }
            "index" if env.is_none() && matches!(scope.kind, ScopeKind::PerCell | ScopeKind::Input) => {
                return special(ExprKind::Index, Dim::ONE);
            }
            _ => {}
        }
        if let [single] = path
            && let Some(item) = self.item(scope.file, &single.text)
        {
            if let ItemKind::Const(_) = item.kind {
                let value = self.constant(item, single)?;
                return if self.spend(value.size(), span) { Some(Expr { span, ..value }) } else { None };
            }
            let what = item.kind.describe();
            self.error(Diagnostic::new(
                Code::NotAValue,
                span,
                format!("`{name}` is {what}, not a value"),
                format!("{what} cannot be calculated with"),
            ));
            return None;
        }
        self.unknown_name(scope, prefix, &name, span, env);
        None
    }

    fn unknown_name(&mut self, scope: &mut Scope<'a>, prefix: &str, name: &str, span: Span, env: Option<&Env>) {
        let mut p = prefix;
        loop {
            if let Some(what) = scope.not_values.get(&format!("{p}{name}")) {
                let d = Diagnostic::new(
                    Code::NotAValue,
                    span,
                    format!("`{name}` is {what}, not a value"),
                    "name one of its quantities",
                );
                let inside: Vec<_> = scope
                    .entries
                    .iter()
                    .filter_map(|e| e.name.strip_prefix(&format!("{p}{name}.")))
                    .filter(|rest| !rest.contains(".") && !rest.starts_with('<'))
                    .take(6)
                    .map(|rest| format!("`{name}.{rest}`"))
                    .collect();
                let d = if inside.is_empty() { d } else { d.help(format!("it has {}", inside.join(", "))) };
                self.error(d);
                return;
            }
            if p.is_empty() {
                break;
            }
            let trimmed = &p[..p.len() - 1];
            p = trimmed.rfind('.').map_or("", |at| &trimmed[..=at]);
        }
        // What is said to be wrong already is not wrong again here.
        if scope.is_poisoned(prefix, name) || self.is_unknown_item(scope.file, name) {
            return;
        }
        if scope.kind == ScopeKind::Constant && env.is_none() && matches!(name, "v" | "t" | "celsius" | "index") {
            let what = match name {
                "v" => "a voltage",
                "t" => "the time",
                "index" => "the number of a cell",
                _ => "the temperature of a run",
            };
            let message = format!("`{name}` is not known before the run");
            let d = Diagnostic::new(Code::NotConstant, span, message, format!("{what} is not a constant"));
            self.error(d.help("only numbers, functions and constants can stand here"));
            return;
        }
        let mut d = Diagnostic::new(Code::UnknownName, span, format!("`{name}` is not known here"), "not defined");
        d = match self.name_help(scope, prefix, name, env) {
            Some(help) => d.help(help),
            None => d,
        };
        self.error(d);
        // Once is enough.
        if env.is_none() {
            scope.poisoned.insert(name.to_string());
        }
    }

    /// What an unknown name may stand for.
    fn name_help(&self, scope: &Scope<'a>, prefix: &str, name: &str, env: Option<&Env>) -> Option<String> {
        let visible = |e: &&super::scope::Entry<'a>| env.is_none() && !e.name.contains('<');
        // A name inside a compartment or channel, used outside without its path.
        let suffix = format!(".{name}");
        let short = |full: &str| full.strip_prefix(prefix).unwrap_or(full).to_string();
        let deeper: Vec<String> = scope
            .entries
            .iter()
            .filter(visible)
            .filter(|e| e.name.ends_with(&suffix))
            .map(|e| short(&e.name))
            .collect();
        match &deeper[..] {
            [] => {}
            [one] => return Some(format!("write its path: `{one}`")),
            some => {
                let list: Vec<String> = some.iter().take(4).map(|n| format!("`{n}`")).collect();
                return Some(format!("write which one: {}", list.join(", ")));
            }
        }
        if scope.kind == ScopeKind::Channel
            && let Some((pool, unit)) = self.pools().into_iter().find(|p| p.0 == name)
        {
            let unit = unit.map(|u| format!(": {u}")).unwrap_or_default();
            return Some(format!("`{pool}` is a pool of a compartment; add `reads {pool}{unit}` to the channel"));
        }
        let has = |wanted: &str| env.is_none() && scope.get(wanted).is_some();
        match name {
            "i" if scope.kind == ScopeKind::Channel => {
                return Some("a channel's current cannot be read inside the channel; `let` names a part of it".into());
            }
            "V" | "Vm" | "vm" | "V_m" | "v_m" | "voltage" if has("v") => {
                return Some("the voltage is called `v`".into());
            }
            "time" | "T" if env.is_none() => return Some("the time is called `t`, the temperature `celsius`".into()),
            "temperature" | "temp" | "degC" if env.is_none() => {
                return Some("the temperature is called `celsius`".into());
            }
            "dt" => return Some("equations do not see the time step; `t` is the time".into()),
            "dv" => return Some("`dv` exists in a `junction` only".into()),
            "index" => {
                return Some(
                    "`index`, a cell's number, exists in inputs and in `param` and `init` lines of a network".into(),
                );
            }
            "cai" | "cao" | "ca" if scope.kind == ScopeKind::Channel => {
                return Some("a concentration is a pool of the compartment: add `reads Ca: mM` to the channel".into());
            }
            _ if has("erev")
                && ["ek", "ena", "eca", "eleak", "el"].contains(&name.replace('_', "").to_lowercase().as_str()) =>
            {
                return Some("the reversal potential of this channel is `erev`".into());
            }
            _ if has("gbar") && name.to_lowercase().starts_with('g') && name.to_lowercase().ends_with("bar") => {
                return Some("the conductance of this channel is `gbar`".into());
            }
            _ => {}
        }
        let mut candidates: Vec<String> = match env {
            Some(env) => env.keys().cloned().collect(),
            None => scope.entries.iter().filter(visible).flat_map(|e| [short(&e.name), e.name.clone()]).collect(),
        };
        candidates.extend(self.constant_names(scope.file));
        candidates.extend(["celsius", "pi"].map(str::to_string));
        candidates.sort();
        if let Some(near) = nearest(name, candidates.iter().map(String::as_str)) {
            return Some(format!("did you mean `{near}`?"));
        }
        if Unit::parse(name).is_some() {
            return Some(format!(
                "`{name}` is a unit; a unit stands directly behind a number: `1 {name}`, or `0.1 /{name}` with a space before the slash"
            ));
        }
        if env.is_some() {
            return Some("a function sees its own parameters and constants only; pass the value as a parameter".into());
        }
        if scope.kind == ScopeKind::Constant {
            return Some("only numbers, functions and constants can stand here".into());
        }
        let block = match scope.kind {
            ScopeKind::Channel => "channel",
            ScopeKind::Cell => "cell",
            ScopeKind::Network | ScopeKind::PerCell | ScopeKind::Input => "network",
            ScopeKind::Constant => return None,
        };
        (!name.contains('.')).then(|| format!("define it in the {block}: `param {name} = ...`"))
    }

    /// The type of an entry, lowering it first if that has not happened yet.
    pub(super) fn resolve(&mut self, scope: &mut Scope<'a>, id: SymbolId, user: Option<Span>) -> Option<Ty> {
        let entry = scope.entry_mut(id);
        match entry.status {
            Status::Done => return entry.ty,
            Status::Busy => {
                let (name, span) = (entry.name.clone(), entry.span);
                let at = self.resolving.iter().position(|r| r.0 == name && r.1 == span).unwrap_or(0);
                let chain = self.resolving[at..].to_vec();
                let help = match scope.kind {
                    ScopeKind::Channel | ScopeKind::Cell => {
                        "a quantity that feeds back on itself in time is a `state` with an equation"
                    }
                    _ => "give one of them a value of its own",
                };
                self.cycle("", &chain, user.unwrap_or(span), help);
                return None;
            }
            Status::New => {}
        }
        // A state's type is known from its unit, before its initial value is looked at.
        if let (Role::State { .. }, Some((dim, _))) = (entry.role, entry.want) {
            entry.status = Status::Done;
            entry.ty = Some(Ty::Real(dim));
            return entry.ty;
        }
        entry.status = Status::Busy;
        let (source, prefix) = entry.source.clone()?;
        let want = entry.want;
        let place = (entry.name.clone(), entry.span);
        self.resolving.push(place);
        let value = self.expr(scope, &prefix, source);
        self.resolving.pop();
        let value = match (value, want) {
            (Some(x), Some((dim, why))) => self.expect(scope, x, dim, why),
            (value, _) => value,
        };
        let entry = scope.entry_mut(id);
        entry.status = Status::Done;
        entry.ty = value.as_ref().map(|v| v.ty);
        entry.source = None;
        entry.value = value;
        entry.ty
    }

    /// Lowers everything in a scope that has not been lowered yet.
    pub(super) fn resolve_all(&mut self, scope: &mut Scope<'a>) {
        for id in scope.ids() {
            self.resolve(scope, id, None);
            // Initial values of states whose unit was declared.
            if let Some((source, prefix)) = scope.entry(id).source.clone() {
                let want = scope.entry(id).want;
                let value = self.expr(scope, &prefix, source);
                let value = match (value, want) {
                    (Some(x), Some((dim, why))) => self.expect(scope, x, dim, why),
                    (value, _) => value,
                };
                let entry = scope.entry_mut(id);
                entry.source = None;
                entry.value = value;
            }
        }
    }

    fn binary(&mut self, scope: &Scope<'a>, op: BinaryOp, a: Expr, b: Expr, span: Span) -> Option<Expr> {
        match op {
            BinaryOp::And | BinaryOp::Or => {
                for side in [&a, &b] {
                    if side.ty != Ty::Bool {
                        return self.wrong_type(side, "`and` and `or` need conditions");
                    }
                }
            }
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne => {
                let (x, y) = self.numbers(&a, &b)?;
                let message = match op {
                    BinaryOp::Add => format!("cannot add {} to {}", y.describe(), x.describe()),
                    BinaryOp::Sub => format!("cannot subtract {} from {}", y.describe(), x.describe()),
                    _ => format!("cannot compare {} with {}", x.describe(), y.describe()),
                };
                self.same_dimension(scope, &a, &b, &message)?;
                // A number that lacks its unit has been reported: go on with the dimension it should have.
                if x.is_one() {
                    return Some(Expr { span, ..Expr::binary(op, Expr { ty: b.ty, ..a }, b) });
                }
            }
            BinaryOp::Mul | BinaryOp::Div => {
                self.numbers(&a, &b)?;
            }
            BinaryOp::Pow => return self.power(scope, a, b, span),
        }
        Some(Expr { span, ..Expr::binary(op, a, b) })
    }

    fn numbers(&mut self, a: &Expr, b: &Expr) -> Option<(Dim, Dim)> {
        for side in [a, b] {
            if side.ty == Ty::Bool {
                self.wrong_type(side, "arithmetic needs numbers, not conditions");
                return None;
            }
        }
        Some((a.ty.dim(), b.ty.dim()))
    }

    fn same_dimension(&mut self, scope: &Scope<'a>, a: &Expr, b: &Expr, message: &str) -> Option<()> {
        let (x, y) = match (a.ty, b.ty) {
            (Ty::Real(x), Ty::Real(y)) => (x, y),
            (Ty::Bool, Ty::Bool) => return Some(()),
            (Ty::Bool, Ty::Real(_)) | (Ty::Real(_), Ty::Bool) => {
                self.wrong_type(b, &format!("{message} one is a condition, the other a number"));
                return None;
            }
        };
        if x == y {
            return Some(());
        }
        for (side, other) in [(a, y), (b, x)] {
            if let Some(bare) = self.bare(scope, side) {
                let d = self.missing_unit(&bare, other, None);
                let d = if bare.name.is_none() {
                    let at = if side.span == a.span { b.span } else { a.span };
                    d.see(at, shown(other))
                } else {
                    d
                };
                self.error(d);
                return Some(());
            }
        }
        for (side, other) in [(a, y), (b, x)] {
            if let Some((bare, dim)) = self.bare_factor(scope, side, other)
                && bare.name.is_some()
                && dim.quantity().is_some()
            {
                let d = self.missing_unit(&bare, dim, None);
                self.error(d);
                return None;
            }
        }
        let message = if message.ends_with(':') {
            format!("{message} {} and {}", x.describe(), y.describe())
        } else {
            message.to_string()
        };
        let d = Diagnostic::new(Code::DimensionMismatch, b.span, message, shown(y)).see(a.span, shown(x));
        let d = with_columns(d, "left", x, "right", y);
        let d = match self.edit_pair(scope, a, b) {
            Some(help) => d.help(help),
            None => d,
        };
        self.error(d);
        None
    }

    fn power(&mut self, scope: &Scope<'a>, a: Expr, b: Expr, span: Span) -> Option<Expr> {
        let (x, y) = self.numbers(&a, &b)?;
        if !y.is_one() {
            self.pure(scope, &b, "an exponent");
            return None;
        }
        let mut dim = Dim::ONE;
        if !x.is_one() {
            let exponent = constant_of(&b);
            dim = match exponent {
                Some(n) if n.fract() == 0.0 && n.abs() <= 9.0 => x.power(n as i32),
                Some(0.5) if x.root().is_some() => x.root()?,
                _ => {
                    self.error(
                        Diagnostic::new(
                            Code::BadPower,
                            b.span,
                            format!("{} can only be raised to a constant whole power", x.describe()),
                            "not a constant whole number from -9 to 9",
                        )
                        .see(a.span, shown(x))
                        .help(format!(
                            "make it a pure number first: `({} / 1 {})^{}`",
                            self.text(a.span),
                            x.display_unit().name,
                            super::advice::wrap(self.text(b.span))
                        )),
                    );
                    return None;
                }
            };
        }
        let kind = ExprKind::Binary(BinaryOp::Pow, Box::new(a), Box::new(b));
        Some(Expr { kind, ty: Ty::Real(dim), span })
    }

    fn call(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        name: &ast::Name,
        args: &[ast::Arg],
        env: Option<&Env>,
        span: Span,
    ) -> Option<Expr> {
        if let Some(item) = self.item(scope.file, &name.text)
            && let ItemKind::Function(function) = item.kind
        {
            let params: Vec<&str> = function.params.iter().map(|p| p.0.text.as_str()).collect();
            let args = self.arguments(&name.text, &params, args, span, |_| false, false)?;
            let values: Vec<Option<Expr>> = args.into_iter().map(|a| self.expr_in(scope, prefix, a?, env)).collect();
            let values: Vec<Expr> = values.into_iter().collect::<Option<_>>()?;
            return self.inline(scope, item, function, values, span);
        }
        let Some(info) = builtins::function(&name.text) else {
            let mut names: Vec<String> = builtins::FUNCTIONS.iter().map(|f| f.name.to_string()).collect();
            names.extend(self.function_names(scope.file));
            let mut d = Diagnostic::new(
                Code::UnknownFunction,
                name.span,
                format!("there is no function `{}`", name.text),
                "not a function",
            );
            if self.is_unknown_item(scope.file, &name.text) {
                return None;
            }
            if let Some(help) = function_help(&name.text, args.first().map(|a| self.text(a.value.span))) {
                d = d.help(help);
            } else if scope.not_values.contains_key(&name.text) {
                d = d.help(format!("`{}` is a compartment; its voltage is `{}.v`", name.text, name.text));
            } else if let Some(near) = nearest(&name.text, names.iter().map(String::as_str)) {
                d = d.help(format!("did you mean `{near}`?"));
            }
            self.error(d);
            return None;
        };
        let variadic = matches!(info.kind, FunctionKind::Variadic(_));
        let args =
            self.arguments(info.name, info.params, args, span, |param| builtins::optional(info.name, param), variadic)?;
        self.builtin(scope, prefix, info, &args, env, span)
    }

    /// Puts arguments in the order of the parameters; missing optional ones are `None`.
    fn arguments<'e>(
        &mut self,
        function: &str,
        params: &[&str],
        args: &'e [ast::Arg],
        span: Span,
        optional: impl Fn(&str) -> bool,
        variadic: bool,
    ) -> Option<Vec<Option<&'e ast::Expr>>> {
        let signature = format!("{function}({}{})", params.join(", "), if variadic { ", ..." } else { "" });
        let mut wrong = |at: Span, message: String, label: String| {
            self.error(
                Diagnostic::new(Code::WrongArguments, at, message, label)
                    .note(format!("the function is `{signature}`")),
            );
            None
        };
        let mut out: Vec<Option<&ast::Expr>> = vec![None; params.len()];
        let mut position = 0;
        for arg in args {
            let at = match &arg.name {
                Some(name) => match params.iter().position(|p| *p == name.text) {
                    Some(at) => at,
                    None => {
                        let message = format!("`{function}` has no argument `{}`", name.text);
                        return wrong(name.span, message, "unknown argument".into());
                    }
                },
                None => {
                    position += 1;
                    position - 1
                }
            };
            if at >= out.len() {
                if !variadic {
                    let message = format!(
                        "`{function}` takes {} argument{}, not {}",
                        params.len(),
                        if params.len() == 1 { "" } else { "s" },
                        args.len()
                    );
                    return wrong(arg.value.span, message, "one too many".into());
                }
                out.push(Some(&arg.value));
            } else if out[at].is_some() {
                let message = format!("argument `{}` of `{function}` is given twice", params[at]);
                return wrong(arg.value.span, message, "given again".into());
            } else {
                out[at] = Some(&arg.value);
            }
        }
        let missing: Vec<_> = params
            .iter()
            .zip(&out)
            .filter(|(p, a)| a.is_none() && !optional(p))
            .map(|(p, _)| format!("`{p}`"))
            .collect();
        if !missing.is_empty() {
            return wrong(span, format!("`{function}` needs {}", missing.join(" and ")), "argument missing".into());
        }
        Some(out)
    }

    fn builtin(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        info: &'static builtins::FunctionInfo,
        args: &[Option<&ast::Expr>],
        env: Option<&Env>,
        span: Span,
    ) -> Option<Expr> {
        self.allowed_here(scope, info, span)?;
        if let FunctionKind::File | FunctionKind::Series = info.kind {
            return self.data_call(info, args, span);
        }
        let values: Vec<Option<Expr>> = args
            .iter()
            .flatten()
            .map(|a| {
                let x = self.expr_in(scope, prefix, a, env)?;
                if x.ty == Ty::Bool {
                    return self.wrong_type(&x, &format!("`{}` needs numbers", info.name));
                }
                Some(x)
            })
            .collect();
        let values: Vec<Expr> = values.into_iter().collect::<Option<_>>()?;
        let dims: Vec<Dim> = values.iter().map(|v| v.ty.dim()).collect();
        let call = |builtin, values, dim| Some(Expr { kind: ExprKind::Call(builtin, values), ty: Ty::Real(dim), span });
        match info.kind {
            FunctionKind::Pure(b) => {
                self.pure(scope, &values[0], &format!("`{}`", info.name));
                call(b, values, Dim::ONE)
            }
            FunctionKind::Same(b) => call(b, values, dims[0]),
            FunctionKind::Root => match dims[0].root() {
                Some(dim) => call(Builtin::Sqrt, values, dim),
                None => {
                    let d = Diagnostic::new(
                        Code::BadPower,
                        values[0].span,
                        format!("{} has no square root", dims[0].describe()),
                        shown(dims[0]),
                    );
                    self.error(d.note(format!("the powers of [{}] are not all even", dims[0])));
                    None
                }
            },
            FunctionKind::Variadic(b) => {
                self.all_same(scope, info.name, &values)?;
                call(b, values, dims[0])
            }
            FunctionKind::Clamp => {
                self.all_same(scope, info.name, &values)?;
                call(Builtin::Clamp, values, dims[0])
            }
            FunctionKind::Step => call(Builtin::Heaviside, values, Dim::ONE),
            FunctionKind::Rate(b) => {
                let midpoint = self.same_dimension(scope, &values[0], &values[2], "`v` and `midpoint` must agree:");
                let scale = self.same_dimension(scope, &values[0], &values[3], "`v` and `scale` must agree:");
                midpoint.and(scale)?;
                let dim = dims[1];
                call(b, values, dim)
            }
            FunctionKind::Stimulus(b) => self.stimulus(scope, b, values, dims, span),
            FunctionKind::Noise => {
                self.same_dimension(scope, &values[0], &values[1], "`mean` and `sd` must agree:")?;
                self.expect(scope, values[2].clone(), Dim::TIME, "the interval `every`")?;
                let stream = self.stream();
                let [mean, sd, every] = <[Expr; 3]>::try_from(values).ok()?;
                let noise = Expr { kind: ExprKind::Noise(stream, Box::new(every)), ty: Ty::Real(Dim::ONE), span };
                Some(Expr::binary(BinaryOp::Add, mean, Expr::binary(BinaryOp::Mul, sd, noise)))
            }
            FunctionKind::Draw(distribution) => {
                self.all_same(scope, info.name, &values)?;
                let stream = self.stream();
                let draw = Expr { kind: ExprKind::Draw(distribution, stream), ty: Ty::Real(Dim::ONE), span };
                let [a, b] = <[Expr; 2]>::try_from(values).ok()?;
                let scale = match distribution {
                    crate::step::Distribution::Uniform => Expr::binary(BinaryOp::Sub, b, a.clone()),
                    crate::step::Distribution::Normal | crate::step::Distribution::Exponential => b,
                };
                Some(Expr::binary(BinaryOp::Add, a, Expr::binary(BinaryOp::Mul, scale, draw)))
            }
            FunctionKind::DrawExponential => {
                let stream = self.stream();
                let kind = ExprKind::Draw(crate::step::Distribution::Exponential, stream);
                let draw = Expr { kind, ty: Ty::Real(Dim::ONE), span };
                let [mean] = <[Expr; 1]>::try_from(values).ok()?;
                Some(Expr::binary(BinaryOp::Mul, mean, draw))
            }
            FunctionKind::File | FunctionKind::Series => None,
        }
    }

    fn allowed_here(&mut self, scope: &Scope<'a>, info: &builtins::FunctionInfo, span: Span) -> Option<()> {
        let (fine, where_) = match info.kind {
            FunctionKind::Draw(_) | FunctionKind::DrawExponential => (
                matches!(scope.kind, ScopeKind::PerCell | ScopeKind::Input),
                "random draws stand in `param` and `init` lines of a network and in the arguments of inputs",
            ),
            FunctionKind::File => (
                matches!(scope.kind, ScopeKind::PerCell | ScopeKind::Input),
                "values from files stand in `param` and `init` lines of a network and in the arguments of inputs",
            ),
            FunctionKind::Noise | FunctionKind::Series | FunctionKind::Stimulus(_) => {
                (scope.kind == ScopeKind::Input, "it stands in an `input` line of a network")
            }
            FunctionKind::Pure(_)
            | FunctionKind::Same(_)
            | FunctionKind::Root
            | FunctionKind::Variadic(_)
            | FunctionKind::Clamp
            | FunctionKind::Step
            | FunctionKind::Rate(_) => (true, ""),
        };
        if fine {
            return Some(());
        }
        let message = format!("`{}` cannot be used here", info.name);
        self.error(Diagnostic::new(Code::BadRandom, span, message, where_).help(match (info.kind, scope.kind) {
            (FunctionKind::Draw(_) | FunctionKind::DrawExponential, ScopeKind::Network) => {
                "a population's size and a parameter of the network are the same for all cells"
            }
            (FunctionKind::Draw(_) | FunctionKind::DrawExponential | FunctionKind::File, _) => {
                "give the cell a `param` with a fixed value and set it per cell in the network: `param cells.x ~ ...`"
            }
            _ => "give the cell an `input` port, and drive it from an `input` line of the network",
        }));
        None
    }

    /// Checks that `x` is a pure number; `what` is a function in backquotes, or an exponent.
    fn pure(&mut self, scope: &Scope<'a>, x: &Expr, what: &str) {
        let dim = x.ty.dim();
        if dim.is_one() {
            return;
        }
        let factor = self.bare_factor(scope, x, Dim::ONE);
        if let Some((bare, missing)) = &factor
            && bare.name.is_some()
        {
            let d = self.missing_unit(bare, *missing, None);
            self.error(d);
            return;
        }
        let d = Diagnostic::new(
            Code::NotDimensionless,
            x.span,
            match what.starts_with('`') {
                true => format!("{what} takes a pure number, not {}", dim.describe()),
                false => format!("{what} must be a pure number, not {}", dim.describe()),
            },
            shown(dim),
        );
        let text = self.text(x.span);
        let help = match factor {
            Some((bare, missing)) => self.factor_help(&bare, missing),
            None if dim == Dim::VOLTAGE && text.len() < 40 && !text.contains('\n') => {
                let edit = format!("{} / 10 mV", super::advice::wrap_sum(text));
                let edit = match what.strip_prefix('`').and_then(|w| w.strip_suffix('`')) {
                    Some(function) => format!("{function}({edit})"),
                    None => format!("({edit})"),
                };
                format!("divide by a voltage first, for example `{edit}`")
            }
            None => "divide it by a quantity of the same dimension first".to_string(),
        };
        self.error(d.help(help));
    }

    fn all_same(&mut self, scope: &Scope<'a>, function: &str, values: &[Expr]) -> Option<()> {
        for v in &values[1..] {
            self.same_dimension(scope, &values[0], v, &format!("the arguments of `{function}` must agree:"))?;
        }
        Some(())
    }

    fn stimulus(
        &mut self,
        scope: &Scope<'a>,
        b: Builtin,
        mut values: Vec<Expr>,
        dims: Vec<Dim>,
        span: Span,
    ) -> Option<Expr> {
        let mut fine = true;
        for (x, what) in values.iter().zip(["`delay`", "`duration`"]) {
            fine &= self.expect(scope, x.clone(), Dim::TIME, what).is_some();
        }
        if !fine {
            return None;
        }
        match b {
            Builtin::Sine => {
                self.expect(scope, values[3].clone(), Dim::TIME, "`period`")?;
                match values.get(4) {
                    Some(phase) => {
                        self.expect(scope, phase.clone(), Dim::ONE, "`phase` (in radians)")?;
                    }
                    None => values.push(Expr::number(0.0, Dim::ONE, span)),
                }
            }
            Builtin::Ramp => self.same_dimension(scope, &values[2], &values[3], "`start` and `finish` must agree:")?,
            _ => {}
        }
        Some(Expr { kind: ExprKind::Call(b, values), ty: Ty::Real(dims[2]), span })
    }

    fn data_call(&mut self, info: &builtins::FunctionInfo, args: &[Option<&ast::Expr>], span: Span) -> Option<Expr> {
        let mut texts = Vec::new();
        for arg in args {
            match arg.map(|a| (&a.kind, a.span)) {
                None => texts.push(None),
                Some((ast::ExprKind::Str(s), _)) => texts.push(Some(s.clone())),
                Some((_, at)) => {
                    let message = format!("`{}` needs a file name in quotes", info.name);
                    self.error(
                        Diagnostic::new(Code::WrongArguments, at, message, "not a text")
                            .help(format!("write `{}(\"values.npy\")`", info.name)),
                    );
                    return None;
                }
            }
        }
        let column = texts.get(1).cloned().flatten();
        let data = self.data_file(texts[0].clone()?, column, span);
        let kind = match info.kind {
            FunctionKind::Series => ExprKind::Series(data),
            _ => ExprKind::File(data),
        };
        Some(Expr { kind, ty: Ty::Real(Dim::ONE), span })
    }

    /// Checks a function's body for given parameters.
    pub(super) fn check_body(&mut self, function: &'a ast::Function, env: Env) {
        let mut scope = Scope::new(ScopeKind::Constant, 0);
        self.function_stack.push(function);
        let body = self.expr_in(&mut scope, "", &function.body, Some(&env));
        self.function_stack.pop();
        if let (Some(body), Some(unit)) = (body, &function.unit)
            && let Some(unit) = self.unit(unit)
        {
            self.expect(&scope, body, unit.dim, &format!("the result of `{}`", function.name.text));
        }
    }

    /// A call of a user function: its body with the arguments in place of the parameters.
    fn inline(
        &mut self,
        scope: &Scope<'a>,
        item: super::lower::ItemRef<'a>,
        function: &'a ast::Function,
        values: Vec<Expr>,
        span: Span,
    ) -> Option<Expr> {
        if self.cyclic_functions.iter().any(|f| std::ptr::eq(*f, function)) {
            return None;
        }
        if let Some(at) = self.function_stack.iter().position(|f| std::ptr::eq(*f, function)) {
            let circle: Vec<&'a ast::Function> = self.function_stack[at..].to_vec();
            let names: Vec<(String, Span)> = circle.iter().map(|f| (f.name.text.clone(), f.name.span)).collect();
            self.cycle("function", &names, span, "functions cannot call themselves: there are no loops to end them");
            self.cyclic_functions.extend(circle);
            return None;
        }
        let mut env = Env::new();
        let mut fine = true;
        for ((name, unit), value) in function.params.iter().zip(values) {
            let value = match unit {
                Some(unit) => {
                    let why = format!("argument `{}` of `{}`", name.text, function.name.text);
                    self.unit(unit).and_then(|unit| self.expect(scope, value, unit.dim, &why))
                }
                None => Some(value),
            };
            fine &= value.is_some();
            env.insert(name.text.clone(), value);
        }
        if !fine {
            return None;
        }
        let before = self.diagnostics.count();
        self.function_stack.push(function);
        let mut inner = Scope::new(ScopeKind::Constant, item.file);
        let body = self.expr_in(&mut inner, "", &function.body, Some(&env));
        self.function_stack.pop();
        let body = match (&function.unit, body) {
            (Some(unit), Some(body)) => self.unit(unit).and_then(|unit| {
                self.expect(&inner, body, unit.dim, &format!("the result of `{}`", function.name.text))
            }),
            (_, body) => body,
        };
        // A mistake that depends on the arguments is a mistake of this call.
        if function.params.iter().any(|p| p.1.is_none()) {
            for d in self.diagnostics.since(before) {
                let inside = |s: Span| {
                    s.file == function.body.span.file
                        && s.start >= function.body.span.start
                        && s.end <= function.body.span.end
                };
                if d.labels.first().is_some_and(|l| inside(l.span)) && d.labels.iter().all(|l| l.span != span) {
                    d.labels.push(crate::diag::Label { span, message: "in this call".into(), primary: false });
                }
            }
        }
        let body = body?;
        self.not_too_high(Expr { span, ..body }, span)
    }
}

/// What is written here instead of a function of another language.
fn function_help(name: &str, arg: Option<&str>) -> Option<String> {
    let arg = arg.filter(|a| a.len() < 30 && !a.contains('\n')).unwrap_or("x");
    Some(match name {
        "log" => format!("write `ln({arg})` for the natural and `log10({arg})` for the decimal logarithm"),
        "pow" | "power" => format!("write `{arg} ^ y`"),
        "fabs" => format!("write `abs({arg})`"),
        "sqr" | "square" => format!("write `{}^2`", super::advice::wrap(arg)),
        "exprel" | "vtrap" | "efun" | "linoid" => {
            "write the quotient as it is, `x / (exp(x) - 1)`: the compiler makes it safe at zero; or use `exp_linear_rate`"
                .into()
        }
        "IClamp" | "iclamp" | "step" | "current_clamp" => {
            "write `pulse(delay = 10 ms, duration = 50 ms, amplitude = 10 uA/cm2)`".into()
        }
        "rand" | "random" | "randn" | "gauss" | "gaussian" => {
            "draws are written `uniform(low, high)`, `normal(mean, sd)` and `exponential(mean)`".into()
        }
        "int" | "round" => format!("write `floor({arg} + 0.5)`"),
        "where" | "ifelse" => "write `if condition then a else b`".into(),
        "sigmoid" | "boltzmann" | "logistic" => "write `1 / (1 + exp(-(v - mid) / slope))`, or use `sigmoid_rate`".into(),
        _ => return None,
    })
}

/// How a label calls a quantity.
fn shown(dim: Dim) -> String {
    if dim.is_one() {
        return dim.describe();
    }
    let unit = dim.display_unit().name;
    if dim.quantity().is_some() { format!("{} ({unit})", dim.describe()) } else { dim.describe() }
}

/// The value of an expression of numbers only.
pub(super) fn constant_of(e: &Expr) -> Option<f64> {
    match &e.kind {
        ExprKind::Number(x) => Some(*x),
        ExprKind::Unary(UnaryOp::Neg, a) => constant_of(a).map(|x| -x),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (constant_of(a)?, constant_of(b)?);
            match op {
                BinaryOp::Add => Some(a + b),
                BinaryOp::Sub => Some(a - b),
                BinaryOp::Mul => Some(a * b),
                BinaryOp::Div => Some(a / b),
                BinaryOp::Pow => Some(a.powf(b)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn with_columns(d: Diagnostic, left: &str, x: Dim, right: &str, y: Dim) -> Diagnostic {
    let width = left.chars().count().max(right.chars().count()) + 1;
    let (a, b) = (x.columns(y), y.columns(x));
    let (a, b) = (if a.is_empty() { "1".into() } else { a }, if b.is_empty() { "1".into() } else { b });
    let columns = a.chars().count().max(b.chars().count());
    let name =
        |dim: Dim| dim.quantity().map(|q| format!("   [{}]", q.split_once(' ').map_or(q, |s| s.1))).unwrap_or_default();
    let line = |side: &str, text: &str, dim: Dim| {
        format!("{:<width$} {text:<columns$}{}", format!("{side}:"), name(dim)).trim_end().to_string()
    };
    d.note(format!("{}\n{}", line(left, &a, x), line(right, &b, y)))
}

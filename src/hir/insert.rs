//! Channels inserted in compartments.
//!
//! In come `insert` lines; out go copies of the channel's symbols in the cell's scope, under the name of the instance.
//! Never true here: an instance has a voltage or a pool of its own.

use super::compartment::CompartmentDraft;
use super::error::InsertError;
use super::lower::{Definition, Lowerer};
use super::scope::{Entry, Role, Scope};
use super::{Channel, Symbol, SymbolId, SymbolKind, Ty};
use crate::source::Span;
use crate::syntax::ast::{self, Name};

/// A channel where it is inserted.
struct Instance<'i> {
    channel: &'i Name,
    definition: &'i Definition<Channel>,
    compartment: &'i str,
    /// The name of the instance with its compartment, such as `soma.Na`.
    path: &'i str,
    span: Span,
}

impl<'a> Lowerer<'a> {
    pub(super) fn insert(
        &mut self,
        scope: &mut Scope<'a>,
        draft: &mut CompartmentDraft,
        channel: &'a Name,
        alias: Option<&'a Name>,
        args: &'a [(Name, ast::Expr)],
        span: Span,
    ) -> Option<()> {
        let own = alias.unwrap_or(channel);
        let path = format!("{}.{}", draft.name, own.text);
        let Some(definition) = self.inserted_channel(scope.file, channel) else {
            if alias.is_none() {
                self.poison_meant(scope, &draft.name, channel);
            }
            scope.poisoned.insert(path);
            return None;
        };
        if scope.not_values.contains_key(&path) || scope.get(&path).is_some() {
            let first = scope.get(&path).map(|id| scope.entry(id).span);
            self.error(InsertError::Twice { path: &path, channel, own, first });
            return None;
        }
        scope.not_values.insert(path.clone(), "a channel");
        scope.places.insert(path.clone(), own.span);
        let instance = Instance { channel, definition: &definition, compartment: &draft.name, path: &path, span };
        let Some(places) = self.places(scope, draft.v, &instance) else {
            scope.poisoned.insert(path);
            return None;
        };
        let symbols = &definition.item.symbols;
        self.note_arguments(args.iter().map(|a| &a.0), symbols.iter().map(|s| (s.name.as_str(), s.span)));
        let mut entries = instantiate(&instance, &places, scope.entries.len());
        scope.poisoned.extend(definition.unknown.iter().map(|u| format!("{path}.{u}")));
        for (i, (arg, value)) in args.iter().enumerate() {
            match args[..i].iter().find(|a| a.0.text == arg.text) {
                Some((first, _)) => self.duplicate_key(arg, first.span),
                None => self.override_param(&mut entries, &instance, arg, value),
            }
        }
        for entry in entries {
            // Names are unique: the instance's is.
            scope.add(entry).ok();
        }
        draft.currents.push(scope.get(&format!("{path}.i"))?);
        Some(())
    }

    /// Elsewhere a channel that does not exist may be called as it should be called here.
    fn poison_meant(&self, scope: &mut Scope<'a>, compartment: &str, channel: &Name) {
        if let Some(meant) = self.channel_near(scope.file, &channel.text) {
            let path = format!("{compartment}.{meant}");
            if !scope.not_values.contains_key(&path) {
                scope.poisoned.insert(path);
            }
        }
    }

    /// What of the compartment stands in for the channel's placeholders; `None` for symbols that are no placeholders.
    fn places(
        &mut self,
        scope: &mut Scope<'a>,
        v: Option<SymbolId>,
        instance: &Instance<'_>,
    ) -> Option<Vec<Option<SymbolId>>> {
        let place = |s: &Symbol| match s.kind {
            SymbolKind::Voltage => Some(v),
            SymbolKind::Pool => Some(Some(self.pool(scope, instance, s)?)),
            SymbolKind::Param(_) | SymbolKind::Let(_) | SymbolKind::State { .. } | SymbolKind::Port(_) => Some(None),
        };
        instance.definition.item.symbols.iter().map(place).collect()
    }

    /// The compartment's pool that a channel reads.
    fn pool(&mut self, scope: &mut Scope<'a>, instance: &Instance<'_>, read: &Symbol) -> Option<SymbolId> {
        let &Instance { channel, compartment, span, .. } = instance;
        let full = format!("{compartment}.{}", read.name);
        let Some(pool) = scope.get(&full).filter(|id| matches!(scope.entry(*id).role, Role::State { .. })) else {
            if !scope.is_poisoned("", &full) {
                let inside = format!("{compartment}.");
                let of_kind = |e: &&Entry<'a>| {
                    let ty = e.ty.or(e.want.map(|(dim, _)| Ty::Real(dim)));
                    matches!(e.role, Role::State { .. }) && ty == Some(read.ty)
                };
                let own = scope.entries.iter().filter(of_kind).filter_map(|e| e.name.strip_prefix(&inside));
                let other = own.filter(|name| !name.contains('.')).map(str::to_string).next();
                let own =
                    scope.get(&full).map(|id| scope.entry(id)).filter(|e| matches!(e.role, Role::Param | Role::Let));
                let own = own.map(|e| (e.span, if e.role == Role::Let { "let" } else { "param" }));
                self.error(InsertError::NoPool { channel, read, compartment, own, other: other.as_deref(), span });
            }
            return None;
        };
        if instance.definition.is_unknown(&read.name) {
            return Some(pool);
        }
        let ty = self.resolve(scope, pool, None)?;
        scope.entry_mut(pool).used = true;
        if ty != read.ty {
            self.error(InsertError::OtherPool { channel, read, pool: (ty, scope.entry(pool).span), span });
            return None;
        }
        Some(pool)
    }

    /// Gives a parameter of an instance its own value.
    fn override_param(
        &mut self,
        entries: &mut [Entry<'a>],
        instance: &Instance<'_>,
        argument: &Name,
        value: &'a ast::Expr,
    ) {
        let full = format!("{}.{}", instance.path, argument.text);
        let Some(entry) = entries.iter_mut().find(|e| e.name == full && e.role == Role::Param) else {
            if !instance.definition.is_unknown(&argument.text) {
                let params = instance.definition.item.symbols.iter().filter(|s| matches!(s.kind, SymbolKind::Param(_)));
                let known: Vec<&str> = params.map(|s| s.name.as_str()).collect();
                self.error(InsertError::UnknownParameter { channel: instance.channel, argument, known: &known });
            }
            return;
        };
        // Of a parameter that is wrong in the channel nothing is known.
        let Some(ty) = entry.ty else { return };
        let why = match argument.text.as_str() {
            "gbar" => "`gbar`",
            "erev" => "`erev`",
            _ => "this parameter",
        };
        let prefix = format!("{}.", instance.compartment);
        *entry = Entry {
            docs: std::mem::take(&mut entry.docs),
            unit: entry.unit.take(),
            written: false,
            ..Entry::pending(full, argument.span, Role::Param, value, &prefix).want(ty.dim(), why)
        };
    }
}

/// The symbols of an instance; those that have a place are not copied, the others follow each other from `base` on.
fn instantiate<'a>(instance: &Instance<'_>, places: &[Option<SymbolId>], base: usize) -> Vec<Entry<'a>> {
    let mut next = base;
    let mut fresh = || {
        next += 1;
        SymbolId(next as u32 - 1)
    };
    let map: Vec<SymbolId> = places.iter().map(|place| place.unwrap_or_else(&mut fresh)).collect();
    let f = |id: SymbolId| map[id.0 as usize];
    let symbols = instance.definition.item.symbols.iter().zip(places);
    let copied = symbols.filter(|(_, place)| place.is_none()).map(|(s, _)| {
        let mut scheme = None;
        let (role, value, rate) = match &s.kind {
            SymbolKind::Param(e) => (Role::Param, Some(e.map_symbols(&f)), None),
            SymbolKind::Let(e) => (Role::Let, Some(e.map_symbols(&f)), None),
            SymbolKind::State { init, rate, kind, scheme: of } => {
                scheme = of.map(f);
                (Role::State(*kind), Some(init.map_symbols(&f)), Some(rate.map_symbols(&f)))
            }
            SymbolKind::Port(kind) => (Role::Port(*kind), None, None),
            SymbolKind::Voltage => (Role::Voltage, None, None),
            SymbolKind::Pool => (Role::Pool, None, None),
        };
        let ty = (!instance.definition.is_unknown(&s.name)).then_some(s.ty);
        let entry = Entry::ready(format!("{}.{}", instance.path, s.name), s.span, role, ty, value);
        Entry { rate, scheme, unit: s.unit.clone(), docs: s.docs.clone(), ..entry }
    });
    copied.collect()
}

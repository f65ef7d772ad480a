//! `model.rs` and the documents of a generated crate.
//!
//! In come a [`Plan`] and an [`Interface`]; out go the tables of names, units and defaults, and what people read.
//! Never true here: behaviour; it is in the embedded runtime.

use super::SourceFile;
use super::interface::{Default, Interface, InterfaceError, InterfaceField, InterfaceSpace, Wires, Wiring};
use super::kernels::names;
use super::layout::{Text, filled, plain};
use super::{groups, interface, shape, shared};
use crate::codegen::plan::{Delivery, Effect, Home, Plan, identifier};
use crate::runtime::branched::Branched;
use crate::runtime::edge_text;
use crate::runtime::events::PerEdge;
use crate::runtime::machine::{Bank, Group};
use crate::runtime::named::Count;
use crate::step::{FieldId, SpaceId};
use crate::units;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// An interface that fits its plan.
pub struct Model<'a> {
    plan: &'a Plan,
    interface: &'a Interface,
    wiring: &'a Wiring,
}

/// What connects cells. The networks of a crate are the relations, then the deliveries.
struct Network<'a> {
    name: &'a str,
    /// The numbers of the spaces of sources and targets.
    ends: [u32; 2],
    wires: &'a Wires,
    events: Option<&'a Delivery>,
    /// The fields that delays and numbers of edges are computed from.
    reads: BTreeSet<FieldId>,
}

impl<'a> Model<'a> {
    /// Checks that interface and wiring fit.
    pub fn new(plan: &'a Plan, interface: &'a Interface, wiring: &'a Wiring) -> Result<Model<'a>, InterfaceError> {
        let fail = |message: String| Err(InterfaceError::Misfit(message));
        let model = Model { plan, interface, wiring };
        if interface.spaces.len() != plan.spaces.len() {
            return fail(format!("{} populations for {} spaces", interface.spaces.len(), plan.spaces.len()));
        }
        if identifier(&interface.crate_name) != interface.crate_name {
            return fail(format!("`{}` is no name for a crate", interface.crate_name));
        }
        let wired = [wiring.relations.len(), wiring.deliveries.len(), wiring.branched.len()];
        if wired != [plan.relations.len(), plan.deliveries.len(), plan.trees.len()] {
            return fail(format!("the plan has other relations, deliveries or branched cells than {wired:?}"));
        }
        for field in &interface.fields {
            let Some(home) = plan.homes.get(field.field.0 as usize) else {
                return fail(format!("field {} does not exist", field.field.0));
            };
            let fits = match (home, &field.default) {
                (Home::Uniform(_), Default::Number(_)) => true,
                (Home::Series(_), Default::Series(samples)) => !samples.is_empty(),
                (Home::Slot(..), Default::None | Default::Data(_)) => true,
                (Home::Event(..) | Home::Flat(..) | Home::Edges | Home::Register, Default::None) => true,
                (Home::Uniform(_), Default::None | Default::Series(_) | Default::Data(_))
                | (Home::Series(_), Default::None | Default::Number(_) | Default::Data(_))
                | (Home::Slot(..), Default::Number(_) | Default::Series(_))
                | (
                    Home::Event(..) | Home::Flat(..) | Home::Edges | Home::Register,
                    Default::Number(_) | Default::Series(_) | Default::Data(_),
                ) => false,
            };
            if !fits {
                return fail(format!("`{}` has a default of the wrong kind", model.name(field)));
            }
        }
        for &field in plan.uniforms.iter().chain(&plan.series) {
            if model.field(field).is_none() {
                return fail(format!("`{}` has no default", plan.fields[field.0 as usize]));
            }
        }
        Ok(model)
    }

    /// All that connects cells.
    fn networks(&self) -> impl Iterator<Item = Network<'a>> {
        let relations = self.plan.relations.iter().zip(&self.wiring.relations);
        let relations = relations.map(|(relation, wires)| Network {
            name: &relation.name,
            ends: [relation.from.0, relation.to.0],
            wires,
            events: None,
            reads: relation.numbers.reads(),
        });
        let deliveries = self.plan.deliveries.iter().zip(&self.wiring.deliveries);
        relations.chain(deliveries.map(|(delivery, wires)| Network {
            name: &delivery.name,
            ends: [delivery.from.0, delivery.to.0],
            wires,
            events: Some(delivery),
            reads: delivery.reads(),
        }))
    }

    fn field(&self, field: FieldId) -> Option<&'a InterfaceField> {
        self.interface.fields.iter().find(|f| f.field == field)
    }

    fn name<'f>(&self, field: &'f InterfaceField) -> &'f str {
        &field.name
    }

    fn home(&self, field: &InterfaceField) -> Home {
        self.plan.homes[field.field.0 as usize]
    }

    /// What a field with a number per element is.
    fn bank(&self, field: FieldId) -> Option<Bank> {
        self.plan.slot(field).map(|(_, bank, _)| bank)
    }

    /// A Markdown table of all fields.
    fn table(&self) -> String {
        let mut out = "| name | what | unit | default | meaning |\n|---|---|---|---|---|\n".to_string();
        for field in &self.interface.fields {
            let default = match &field.default {
                Default::Number(x) => units::written(*x, field.exponent).to_string(),
                Default::Series(samples) => format!("{} samples", samples.len()),
                Default::Data(values) => format!("{} values", values.len()),
                Default::None => String::new(),
            };
            let kind = match self.home(field) {
                Home::Uniform(_) => "parameter",
                Home::Series(_) => "function of time",
                Home::Event(..) => "event",
                Home::Slot(..) | Home::Flat(..) | Home::Edges | Home::Register => match self.bank(field.field) {
                    Some(Bank::State) => "state",
                    Some(Bank::Cell) => "cell parameter",
                    Some(Bank::Output) => "output",
                    Some(Bank::Data) => "data",
                    Some(Bank::Temp) => "value within a step",
                    None => continue,
                },
            };
            let one_line = |text: &str| plain(&text.replace('|', "\\|").replace('\n', " ")).into_owned();
            let doc = one_line(&field.doc);
            let _ =
                writeln!(out, "| `{}` | {kind} | {} | {default} | {doc} |", self.name(field), one_line(&field.unit));
        }
        for network in self.networks() {
            let (edges, doc) =
                (network.wires.edges.sources.len(), network.events.map_or("", |_| "Events go along them."));
            let _ = writeln!(out, "| `{}` | network |  | {edges} edges | {doc} |", network.name);
        }
        out
    }

    /// `src/network_0.txt` and so on: the default edges; `src/delays_0.txt`, `src/back_0_0.txt` and `src/values_0_0.txt` where each edge has its own.
    pub fn network_files(&self) -> Vec<SourceFile> {
        let mut files = Vec::new();
        for (index, network) in self.networks().enumerate() {
            let mut file = |name: String, text: String| files.push(SourceFile::new(&format!("src/{name}.txt"), text));
            let Wires { edges, delays, back, values } = network.wires;
            file(format!("network_{index}"), edge_text::write(edges));
            if let PerEdge::Each(delays) = delays {
                file(format!("delays_{index}"), edge_text::write_numbers(delays));
            }
            for (kind, delays) in back.iter().enumerate() {
                if let PerEdge::Each(delays) = delays {
                    file(format!("back_{index}_{kind}"), edge_text::write_numbers(delays));
                }
            }
            for (at, values) in values.iter().enumerate() {
                if let PerEdge::Each(values) = values {
                    file(format!("values_{index}_{at}"), edge_text::write_numbers(values));
                }
            }
        }
        files
    }

    /// `src/model.rs`.
    pub fn source(&self) -> String {
        let plan = self.plan;
        let mut out = Text::default();
        out.line(format!("//! The model `{}`: names, units, defaults, and [`Model`] to run it.", plan.name));
        out.line("//!");
        for line in self.table().lines() {
            out.line(format!("//! {line}"));
        }
        out.line("");
        out.line("use crate::kernels::{KERNELS, Real};");
        let trees = !plan.trees.is_empty();
        let (place, series) = (plan.homes.iter().any(|home| matches!(home, Home::Slot(..))), !plan.series.is_empty());
        let reached = plan.homes.iter().any(|home| matches!(home, Home::Flat(..)));
        let (networks, events) = (self.networks().next().is_some(), !plan.deliveries.is_empty());
        let read = plan.spaces.iter().any(|space| !space.shared.is_empty());
        out.import("branched", &[("Field", reached), ("Task", trees)]);
        out.import("call", &[("Call", true)]);
        out.import("edges", &[("Shared", read)]);
        let of_machine =
            [("Bank", place || reached), ("Fault", true), ("Kernels", true), ("Place", place), ("Shape", true)];
        out.import("machine", &of_machine);
        let remembers = plan.deliveries.iter().any(|delivery| delivery.remembers().is_some());
        let back = plan.deliveries.iter().any(|d| d.remembers().is_some_and(|remembers| !remembers.back.is_empty()));
        let own = self.networks().any(|network| !network.wires.values.is_empty());
        let of_named = [
            ("BackInfo", back),
            ("BranchedInfo", trees),
            ("CopyInfo", self.interface.fields.iter().any(|field| !field.copies.is_empty())),
            ("Count", true),
            ("EdgeInfo", events || own),
            ("EffectInfo", events),
            ("Error", true),
            ("EventsInfo", events),
            ("FieldHome", true),
            ("FieldInfo", true),
            ("GroupInfo", true),
            ("Named", true),
            ("NetworkInfo", networks),
            ("RememberInfo", remembers),
            ("SpaceInfo", true),
            ("Spec", true),
        ];
        out.import("named", &of_named);
        out.import("remember", &[("When", back)]);
        out.import("series", &[("Sample", series)]);
        out.line("use std::ops::{Deref, DerefMut};");
        out.line("");
        self.spec(&mut out);
        self.sizes(&mut out);
        out.append_text(include_str!("fixed/model.rs"));
        out.finish()
    }

    fn spec(&self, out: &mut Text) {
        let Model { plan, interface, .. } = self;
        out.line("/// Names, units and defaults.");
        out.line("#[rustfmt::skip]");
        out.open("pub static SPEC: Spec = Spec {");
        out.line(format!("name: {:?},", plan.name));
        out.open("spaces: &[");
        for (space, shown) in plan.spaces.iter().zip(&interface.spaces) {
            // The derived form of a shape is its literal.
            out.line(format!(
                "SpaceInfo {{ name: {:?}, size: {}, count: Count::{:?}, shape: {:?}, shared: &[{}] }},",
                space.name,
                shown.size,
                shown.count,
                shape(space),
                shared(plan, space).iter().map(literal_of_shared).collect::<Vec<_>>().join(", ")
            ));
        }
        out.close("],");
        out.open("fields: &[");
        for field in &interface.fields {
            let home = match self.home(field) {
                Home::Uniform(index) => format!("FieldHome::Param({index})"),
                Home::Series(index) => format!("FieldHome::Series({index})"),
                Home::Slot(space, bank, slot) => match self.network_of(space) {
                    Some(network) => {
                        format!("FieldHome::OfEdges {{ network: {network}, bank: Bank::{bank:?}, slot: {slot} }}")
                    }
                    None => format!("FieldHome::Cells({})", place(space.0, bank, slot)),
                },
                Home::Event(space, event) => format!("FieldHome::Event {{ space: {}, event: {event} }}", space.0),
                Home::Flat(space, number) => match self.bank(field.field) {
                    Some(bank) => {
                        format!("FieldHome::Reached {{ space: {}, field: {number}, bank: Bank::{bank:?} }}", space.0)
                    }
                    None => continue,
                },
                Home::Edges | Home::Register => continue,
            };
            let copies = field.copies.iter().filter_map(|interface::Copy { field, each, elements }| {
                let name = self.name(self.field(*field)?);
                Some(format!("CopyInfo {{ field: {name:?}, each: {each}, elements: &{elements:?} }}"))
            });
            let copies: Vec<String> = copies.collect();
            let computes: Vec<_> =
                field.computes.iter().filter_map(|field| Some(self.name(self.field(*field)?))).collect();
            out.line(format!(
                "FieldInfo {{ name: {:?}, unit: {:?}, exponent: {}, doc: {:?}, home: {home}, computes: &{:?}, copies: &[{}] }},",
                self.name(field),
                field.unit,
                field.exponent,
                field.doc,
                computes,
                copies.join(", ")
            ));
        }
        for (index, network) in self.networks().enumerate() {
            let (name, home) = (network.name, format!("FieldHome::Network({index})"));
            out.line(format!(
                "FieldInfo {{ name: {name:?}, unit: \"\", exponent: 0, doc: \"\", home: {home}, computes: &[], copies: &[] }},"
            ));
        }
        out.close("],");
        let uniform = |field: &FieldId| match self.field(*field).map(|f| &f.default) {
            Some(Default::Number(x)) => literal(*x),
            Some(Default::None | Default::Series(_) | Default::Data(_)) | None => {
                unreachable!("checked by `new`")
            }
        };
        out.line(format!("uniforms: &[{}],", plan.uniforms.iter().map(uniform).collect::<Vec<_>>().join(", ")));
        out.open("series: &[");
        for field in &plan.series {
            if let Some(Default::Series(samples)) = self.field(*field).map(|f| &f.default) {
                let sample = |&(t, x): &(f64, f64)| format!("Sample {{ t: {}, value: {} }}", literal(t), literal(x));
                out.line(format!("&[{}],", samples.iter().map(sample).collect::<Vec<_>>().join(", ")));
            }
        }
        out.close("],");
        out.open("data: &[");
        for field in &interface.fields {
            if let (Home::Slot(space, bank, slot), Default::Data(values)) = (self.home(field), &field.default) {
                let values: Vec<String> = self.of_one_cell(space.0, values).iter().map(|&x| literal(x)).collect();
                out.line(format!("({}, &[{}]),", place(space.0, bank, slot), values.join(", ")));
            }
        }
        out.close("],");
        out.open("networks: &[");
        for (index, network) in self.networks().enumerate() {
            let [from, to] = network.ends;
            let events = match network.events {
                Some(delivery) => self.events(index, delivery, network.wires),
                None => "None".to_string(),
            };
            let numbers = network.wires.values.iter().enumerate().map(|(at, values)| match values {
                PerEdge::Same(value) => format!("EdgeInfo::Same({})", literal(*value)),
                PerEdge::Each(_) => format!("EdgeInfo::Each(include_str!(\"values_{index}_{at}.txt\"))"),
            });
            let numbers = numbers.collect::<Vec<_>>().join(", ");
            let fixed = self.fixed(&network);
            out.line(format!(
                "NetworkInfo {{ from: {from}, to: {to}, default: include_str!(\"network_{index}.txt\"), numbers: &[{numbers}], \
                 events: {events}, fixed: &{fixed:?} }},"
            ));
        }
        out.close("],");
        out.open("groups: &[");
        for Group { spaces, passes, observed, events, branched } in groups(plan) {
            out.line(format!(
                "GroupInfo {{ spaces: &{spaces:?}, passes: {passes}, observed: {observed}, events: {events}, branched: &{branched:?} }},"
            ));
        }
        out.close("],");
        out.open("branched: &[");
        for branched in &self.wiring.branched {
            literal_of_branched(branched, out);
        }
        out.close("],");
        let dt = plan.uniforms.iter().position(|field| plan.fields[field.0 as usize] == "dt");
        out.line(format!("dt: {dt:?},"));
        out.line(format!("seed: {},", interface.seed));
        out.line(format!("min_cells: {},", plan.min_cells));
        out.close("};");
        out.line("");
    }

    /// The values of one cell, if elements of cells have the same ones in each of several.
    fn of_one_cell<'v>(&self, space: u32, values: &'v [f64]) -> &'v [f64] {
        match self.interface.spaces[space as usize].count {
            Count::PerCell { each, .. } if each > 0 => {
                let alike = |cell: &[f64]| cell.iter().zip(values).all(|(a, b)| a.to_bits() == b.to_bits());
                if values.chunks(each).all(alike) { &values[..each.min(values.len())] } else { values }
            }
            Count::PerCell { .. } | Count::Free | Count::Fixed => values,
        }
    }

    /// The number of the network whose edges are a space.
    fn network_of(&self, space: SpaceId) -> Option<usize> {
        let delivery = self.plan.deliveries.iter().position(|delivery| delivery.space == space)?;
        Some(self.plan.relations.len() + delivery)
    }

    /// What events do along the edges of a network.
    fn events(&self, index: usize, delivery: &Delivery, wires: &Wires) -> String {
        let event = |field: FieldId| match self.plan.homes[field.0 as usize] {
            Home::Event(_, event) => event,
            _ => unreachable!("the plan gives events a number"),
        };
        let slot = |field: FieldId| match self.plan.homes[field.0 as usize] {
            Home::Slot(_, bank, slot) => (bank, slot),
            _ => unreachable!("the plan has a place for what edges read and add to"),
        };
        let steps = |delays: &PerEdge<u32>, name: String| match delays {
            PerEdge::Same(steps) => format!("EdgeInfo::Same({steps})"),
            PerEdge::Each(_) => format!("EdgeInfo::Each(include_str!(\"{name}.txt\"))"),
        };
        let effect = match &delivery.effect {
            Effect::Adds { sum, .. } => format!("EffectInfo::Adds {{ slot: {} }}", slot(*sum).1),
            Effect::Remembers(remembers) => {
                let read = remembers.read.iter().map(|&field| slot(field));
                let read: Vec<String> = read.map(|(bank, slot)| format!("(Bank::{bank:?}, {slot})")).collect();
                let sums: Vec<(u32, u32)> = remembers.sums.iter().map(|&(own, sum)| (own, slot(sum).1)).collect();
                let back = remembers.back.iter().zip(&wires.back).enumerate().map(|(kind, (heard, delays))| {
                    let delays = steps(delays, format!("back_{index}_{kind}"));
                    let (event, when) = (event(heard.event), heard.when);
                    format!("BackInfo {{ event: {event}, delays: {delays}, when: When::{when:?} }}")
                });
                format!(
                    "EffectInfo::Remembers(RememberInfo {{ shape: {:?}, read: &[{}], sums: &{sums:?}, back: &[{}] }})",
                    shape(&remembers.space),
                    read.join(", "),
                    back.collect::<Vec<_>>().join(", ")
                )
            }
        };
        let (event, delays) = (event(delivery.event), steps(&wires.delays, format!("delays_{index}")));
        format!("Some(EventsInfo {{ event: {event}, delays: {delays}, effect: {effect} }})")
    }

    /// The entries of the uniform table that what edges of a network have is computed from.
    fn fixed(&self, network: &Network<'_>) -> Vec<u32> {
        let index = |field: &FieldId| match self.plan.homes[field.0 as usize] {
            Home::Uniform(index) => Some(index),
            _ => None,
        };
        network.reads.iter().filter_map(index).collect()
    }

    /// Is a field a parameter that what edges have was computed from?
    fn is_fixed(&self, field: FieldId) -> bool {
        let uniform = matches!(self.plan.homes[field.0 as usize], Home::Uniform(_));
        uniform && self.networks().any(|network| network.reads.contains(&field))
    }

    /// The populations whose sizes are for people to choose, with their names in the plan and in Rust.
    fn populations(&self) -> impl Iterator<Item = (&'a InterfaceSpace, &'a str, String)> {
        let plan = self.plan;
        let names = names(&plan.spaces).into_iter();
        let all = self.interface.spaces.iter().zip(&plan.spaces).zip(names);
        all.filter(|((shown, _), _)| shown.count == Count::Free)
            .map(|((shown, space), name)| (shown, space.name.as_str(), name))
    }

    fn sizes(&self, out: &mut Text) {
        out.line("/// How many cells each population has.");
        out.line("#[derive(Clone, Copy, Debug, PartialEq, Eq)]");
        out.open("pub struct Sizes {");
        for (shown, space, name) in self.populations() {
            let doc = if shown.doc.is_empty() { "Its number of cells." } else { &shown.doc };
            out.line(format!("/// `{space}`: {}", doc.replace('\n', " ")));
            out.line(format!("pub {name}: usize,"));
        }
        out.close("}");
        out.line("");
        out.open("impl Default for Sizes {");
        out.open("fn default() -> Sizes {");
        let size = |(shown, _, name): (&InterfaceSpace, &str, String)| format!("{name}: {}", shown.size);
        out.record("Sizes ", &self.populations().map(size).collect::<Vec<_>>(), "");
        out.close("}");
        out.close("}");
        out.line("");
        out.open("impl Sizes {");
        out.line("/// The sizes in the order of the populations.");
        out.open("fn list(&self) -> Vec<usize> {");
        let fields: Vec<String> = self.populations().map(|(.., name)| format!("self.{name}")).collect();
        out.line("#[rustfmt::skip]");
        out.line(format!("let list = vec![{}];", fields.join(", ")));
        out.line("list");
        out.close("}");
        out.close("}");
        out.line("");
    }

    /// `Cargo.toml`.
    pub fn manifest(&self) -> String {
        filled(include_str!("fixed/Cargo.toml.in"), &[("NAME", &self.interface.crate_name)])
    }

    /// `README.md`.
    pub fn readme(&self) -> String {
        let words = [
            ("NAME", self.interface.crate_name.as_str()),
            ("DOC", &self.doc().join("\n")),
            ("NETWORKS\n\n", &self.networks_in_words()),
            ("TABLE", &self.table()),
            ("PRECISION", self.plan.precision.name()),
        ];
        filled(include_str!("fixed/README.md.in"), &words)
    }

    /// The lines at the head of the model.
    fn doc(&self) -> Vec<Cow<'_, str>> {
        self.interface.doc.trim().lines().map(|line| plain(line.trim_end_matches('\r'))).collect()
    }

    /// How networks are replaced, if there are some.
    fn networks_in_words(&self) -> String {
        if self.networks().next().is_none() {
            return String::new();
        }
        let mut text = "## Networks\n\nThe crate carries the edges that its model had when it was made (`src/network_*.txt`, a line of \
                        sources for every target), for populations of default size."
            .to_string();
        if let Some(network) = self.networks().find(|network| !network.wires.has_own()) {
            let _ = write!(
                text,
                " Other edges, or those of other sizes, are given before `init`:\n\n\
                 ```rust,ignore\n// The sources of target i are sources[offsets[i]..offsets[i + 1]].\n\
                 model.set_edges(\"{}\", &offsets, &sources)?;\nmodel.init()?;\n```",
                network.name
            );
        }
        let listed = |names: Vec<String>| names.join(", ");
        let own = self.networks().filter(|network| network.wires.has_own());
        let own: Vec<String> = own.map(|network| format!("`{}`", network.name)).collect();
        if !own.is_empty() {
            let _ = write!(
                text,
                "\n\nEach edge of these has a delay, a weight or something that it remembers of its own (`src/delays_*.txt` and \
                 `src/back_*.txt` in steps, `src/values_*.txt` in canonical units), so that their edges cannot be replaced: {}.",
                listed(own)
            );
        }
        let fixed = self.interface.fields.iter().filter(|field| self.is_fixed(field.field));
        let fixed: Vec<String> = fixed.map(|field| format!("`{}`", field.name)).collect();
        if !fixed.is_empty() {
            let _ = write!(
                text,
                "\n\nDelays and what edges bring were computed from these parameters, which `set_param` therefore refuses: {}. `set_seed` \
                 does not draw edges, delays or weights anew.",
                listed(fixed)
            );
        }
        text + "\n\n"
    }

    /// `src/lib.rs`.
    pub fn lib(&self) -> String {
        let doc: String = self.doc().iter().map(|line| format!("//! {line}").trim_end().to_string() + "\n").collect();
        let doc = if doc.is_empty() { format!("//! The model `{}`.\n", plain(&self.plan.name)) } else { doc };
        filled(include_str!("fixed/lib.rs"), &[("//! DOC\n", &doc)])
    }

    /// `examples/run.rs`.
    pub fn example(&self) -> String {
        let Model { plan, interface, .. } = self;
        let mut out = Text::default();
        out.line("//! Runs the model with its defaults: `cargo run --release --example run`.");
        out.line("");
        out.line(format!("use {}::model::{{Model, Sizes}};", interface.crate_name));
        out.line("");
        out.open("fn main() -> Result<(), Box<dyn std::error::Error>> {");
        out.line("let mut model = Model::new(Sizes::default(), 1)?;");
        let parameter = interface.fields.iter().find(|field| {
            matches!((self.home(field), &field.default), (Home::Uniform(_), Default::Number(_)))
                && self.name(field) != "dt"
                && !self.is_fixed(field.field)
        });
        if let Some(field) = parameter
            && let Default::Number(value) = field.default
        {
            out.line("// Parameters have units; this one is at its default.");
            out.line(format!(
                "model.set_param({:?}, {})?; // {}",
                self.name(field),
                literal(units::scale(value, -field.exponent)),
                unit(field)
            ));
        }
        out.line("model.init()?;");
        out.line(format!("model.step({})?;", interface.example_steps));
        if plan.uniforms.iter().any(|field| plan.fields[field.0 as usize] == "dt") {
            out.line("println!(\"t = {} ms\", model.time()?);");
        }
        for field in &interface.fields {
            match (self.home(field), self.bank(field.field)) {
                (_, Some(Bank::State | Bank::Output)) => {
                    let unit = if field.unit.is_empty() { String::new() } else { format!(" {}", field.unit) };
                    let edges = matches!(self.home(field), Home::Slot(space, ..) if self.network_of(space).is_some());
                    let of = if edges { "edges" } else { "cells" };
                    let format = format!("{} of the first {of}: {{:.4?}}{unit}", self.name(field));
                    let cells = format!("let values = model.read({:?})?;", self.name(field));
                    out.line(cells);
                    out.call("println!", &[format!("{format:?}"), "&values[..values.len().min(4)]".into()], ";");
                }
                (Home::Event(..), _) => {
                    let format = format!("{}: {{}} events", self.name(field));
                    let count = format!("model.spikes({:?})?.len()", self.name(field));
                    out.call("println!", &[format!("{format:?}"), count], ";");
                }
                (
                    Home::Slot(..) | Home::Uniform(_) | Home::Series(_) | Home::Flat(..) | Home::Edges | Home::Register,
                    _,
                ) => {}
            }
        }
        out.line("Ok(())");
        out.close("}");
        out.finish()
    }

    /// `src/ffi.rs`.
    pub fn ffi(&self) -> String {
        filled(include_str!("fixed/ffi.rs"), &[("NAME", &self.interface.crate_name)])
    }

    /// `include/NAME.h`.
    pub fn header(&self) -> String {
        let upper = self.interface.crate_name.to_uppercase();
        let fields: String =
            self.table().lines().map(|line| format!(" * {line}").replace("*/", "* /") + "\n").collect();
        let words = [("UPPER", upper.as_str()), ("NAME", &self.interface.crate_name), (" * TABLE\n", &fields)];
        filled(include_str!("fixed/model.h.in"), &words)
    }
}

fn unit(field: &InterfaceField) -> &str {
    if field.unit.is_empty() { "a pure number" } else { &field.unit }
}

fn literal_of_shared(shared: &crate::runtime::edges::Shared) -> String {
    format!("Shared {{ bank: Bank::{:?}, slot: {}, pass: {} }}", shared.bank, shared.slot, shared.pass)
}

/// The derived forms of fields and tasks are their literals.
fn literal_of_branched(branched: &Branched, out: &mut Text) {
    let Branched { side, each, fields, links, tasks } = branched;
    out.open("BranchedInfo {");
    out.line(format!("width: {},", side.width));
    out.line(format!("each: &{each:?},"));
    out.line(format!("fields: &{fields:?},"));
    out.open("links: &[");
    for link in links {
        out.line(format!("({}, {}, &{:?}),", link.from, link.to, link.elements));
    }
    out.close("],");
    let tasks = tasks.each_ref().map(|tasks| {
        let tasks: Vec<String> = tasks.iter().map(|task| format!("Task::{task:?}")).collect();
        format!("&[{}]", tasks.join(", "))
    });
    out.line(format!("tasks: [{}],", tasks.join(", ")));
    out.close("},");
}

fn place(space: u32, bank: Bank, slot: u32) -> String {
    format!("Place {{ space: {space}, bank: Bank::{bank:?}, slot: {slot} }}")
}

fn literal(x: f64) -> String {
    if x.is_nan() {
        "f64::NAN".into()
    } else if x.is_infinite() {
        if x > 0.0 { "f64::INFINITY".into() } else { "f64::NEG_INFINITY".into() }
    } else {
        format!("{x:?}")
    }
}

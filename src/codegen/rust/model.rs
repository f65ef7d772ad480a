//! `model.rs` and the documents of a generated crate.
//!
//! In come a [`Plan`] and an [`Interface`]; out go the tables of names, units and defaults, and what people read.
//! Never true here: behaviour; it is in the embedded runtime.

use super::SourceFile;
use super::interface::{Default, Interface, InterfaceError, InterfaceField, InterfaceSpace, Wires, Wiring};
use super::kernels::names;
use super::layout::{Text, filled, plain};
use super::{groups, shape, shared};
use crate::codegen::plan::{Delivery, Effect, Home, Plan, identifier};
use crate::runtime::branched::Branched;
use crate::runtime::edge_text;
use crate::runtime::edges::Edges;
use crate::runtime::events::PerEdge;
use crate::runtime::machine::{Bank, Group};
use crate::runtime::named::Count;
use crate::step::FieldId;
use std::borrow::Cow;
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
    edges: &'a Edges,
    events: Option<(&'a Delivery, &'a Wires)>,
}

impl<'a> Model<'a> {
    /// Checks that interface and wiring fit.
    pub fn new(plan: &'a Plan, interface: &'a Interface, wiring: &'a Wiring) -> Result<Model<'a>, InterfaceError> {
        let fail = |message: String| Err(InterfaceError::Misfit(message));
        let not_yet = |message: String| Err(InterfaceError::NotYet(message));
        let model = Model { plan, interface, wiring };
        if interface.spaces.len() != plan.spaces.len() {
            return fail(format!("{} populations for {} spaces", interface.spaces.len(), plan.spaces.len()));
        }
        if identifier(&interface.crate_name) != interface.crate_name {
            return fail(format!("`{}` is no name for a crate", interface.crate_name));
        }
        if let Some(delivery) = plan.deliveries.iter().find(|delivery| delivery.remembers().is_some()) {
            return not_yet(format!(
                "the edges `{}` remember what events do, which so far runs in neuroc alone, not in a crate",
                delivery.name
            ));
        }
        if let Some(relation) = plan.relations.iter().find(|relation| !relation.numbers.fields.is_empty()) {
            return not_yet(format!(
                "the edges `{}` have weights of their own, which so far runs in neuroc alone, not in a crate",
                relation.name
            ));
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
        let relations = relations.map(|(relation, edges)| Network {
            name: &relation.name,
            ends: [relation.from.0, relation.to.0],
            edges,
            events: None,
        });
        let deliveries = self.plan.deliveries.iter().zip(&self.wiring.deliveries);
        relations.chain(deliveries.map(|(delivery, wires)| Network {
            name: &delivery.name,
            ends: [delivery.from.0, delivery.to.0],
            edges: &wires.edges,
            events: Some((delivery, wires)),
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
                Default::Number(x) => (x / field.scale).to_string(),
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
            let (edges, doc) = (network.edges.sources.len(), network.events.map_or("", |_| "Events go along them."));
            let _ = writeln!(out, "| `{}` | network |  | {edges} edges | {doc} |", network.name);
        }
        out
    }

    /// `src/network_0.txt` and so on: the default edges; `src/delays_0.txt` and `src/values_0.txt` where each edge has its own.
    pub fn network_files(&self) -> Vec<SourceFile> {
        let mut files = Vec::new();
        for (index, network) in self.networks().enumerate() {
            let mut file = |what: &str, text: String| {
                files.push(SourceFile::new(&format!("src/{what}_{index}.txt"), text));
            };
            file("network", edge_text::write(network.edges));
            if let Some((_, Wires { delays: PerEdge::Each(delays), .. })) = network.events {
                file("delays", edge_text::write_numbers(delays));
            }
            if let Some(PerEdge::Each(values)) = network.events.and_then(|(_, wires)| wires.values.first()) {
                file("values", edge_text::write_numbers(values));
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
        let of_named = [
            ("BranchedInfo", trees),
            ("Count", true),
            ("EdgeInfo", events),
            ("Error", true),
            ("EventsInfo", events),
            ("FieldHome", true),
            ("FieldInfo", true),
            ("GroupInfo", true),
            ("Named", true),
            ("NetworkInfo", networks),
            ("SpaceInfo", true),
            ("Spec", true),
        ];
        out.import("named", &of_named);
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
                Home::Slot(space, bank, slot) => format!("FieldHome::Cells({})", place(space.0, bank, slot)),
                Home::Event(space, event) => format!("FieldHome::Event {{ space: {}, event: {event} }}", space.0),
                Home::Flat(space, number) => match self.bank(field.field) {
                    Some(bank) => {
                        format!("FieldHome::Reached {{ space: {}, field: {number}, bank: Bank::{bank:?} }}", space.0)
                    }
                    None => continue,
                },
                Home::Edges | Home::Register => continue,
            };
            out.line(format!(
                "FieldInfo {{ name: {:?}, unit: {:?}, scale: {}, doc: {:?}, home: {home} }},",
                self.name(field),
                field.unit,
                literal(field.scale),
                field.doc
            ));
        }
        for (index, network) in self.networks().enumerate() {
            let (name, home) = (network.name, format!("FieldHome::Network({index})"));
            out.line(format!("FieldInfo {{ name: {name:?}, unit: \"\", scale: 1.0, doc: \"\", home: {home} }},"));
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
                Some(events) => self.events(index, events),
                None => "None".to_string(),
            };
            out.line(format!(
                "NetworkInfo {{ from: {from}, to: {to}, default: include_str!(\"network_{index}.txt\"), events: {events} }},"
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

    /// What events do along the edges of a network.
    fn events(&self, index: usize, (delivery, wires): (&Delivery, &Wires)) -> String {
        let home = |field: FieldId| self.plan.homes[field.0 as usize];
        let Effect::Adds { sum, .. } = &delivery.effect else { unreachable!("checked by `new`") };
        let (Home::Event(_, event), Home::Slot(.., slot), [value]) =
            (home(delivery.event), home(*sum), &wires.values[..])
        else {
            unreachable!("the plan has a place for what deliveries emit and add to")
        };
        let fixed = self.fixed(delivery);
        let each = |what: &str| format!("EdgeInfo::Each(include_str!(\"{what}_{index}.txt\"))");
        let delays = match &wires.delays {
            PerEdge::Same(steps) => format!("EdgeInfo::Same({steps})"),
            PerEdge::Each(_) => each("delays"),
        };
        let carried = match value {
            PerEdge::Same(value) => format!("EdgeInfo::Same({})", literal(*value)),
            PerEdge::Each(_) => each("values"),
        };
        format!(
            "Some(EventsInfo {{ event: {event}, slot: {slot}, delays: {delays}, carried: {carried}, fixed: &{fixed:?} }})"
        )
    }

    /// The entries of the uniform table that what edges of a delivery have is computed from.
    fn fixed(&self, delivery: &Delivery) -> Vec<u32> {
        let index = |field: FieldId| match self.plan.homes[field.0 as usize] {
            Home::Uniform(index) => Some(index),
            _ => None,
        };
        delivery.reads().into_iter().filter_map(index).collect()
    }

    /// Is a field a parameter that what edges have was computed from?
    fn is_fixed(&self, field: FieldId) -> bool {
        let uniform = matches!(self.plan.homes[field.0 as usize], Home::Uniform(_));
        uniform && self.plan.deliveries.iter().any(|delivery| delivery.reads().contains(&field))
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
        let has_own = |(_, wires): (&Delivery, &Wires)| {
            matches!(wires.delays, PerEdge::Each(_)) || matches!(wires.values[..], [PerEdge::Each(_)])
        };
        if let Some(network) = self.networks().find(|network| !network.events.is_some_and(has_own)) {
            let _ = write!(
                text,
                " Other edges, or those of other sizes, are given before `init`:\n\n\
                 ```rust,ignore\n// The sources of target i are sources[offsets[i]..offsets[i + 1]].\n\
                 model.set_edges(\"{}\", &offsets, &sources)?;\nmodel.init()?;\n```",
                network.name
            );
        }
        let listed = |names: Vec<String>| names.join(", ");
        let own = self.networks().filter(|network| network.events.is_some_and(has_own));
        let own: Vec<String> = own.map(|network| format!("`{}`", network.name)).collect();
        if !own.is_empty() {
            let _ = write!(
                text,
                "\n\nEach edge of these has a delay or a weight of its own (`src/delays_*.txt` in steps, `src/values_*.txt` in \
                 canonical units), so that their edges cannot be replaced: {}.",
                listed(own)
            );
        }
        let fixed = self.interface.fields.iter().filter(|field| self.is_fixed(field.field));
        let fixed: Vec<String> = fixed.map(|field| format!("`{}`", field.name)).collect();
        if !fixed.is_empty() {
            let _ = write!(
                text,
                "\n\nDelays and what events bring were computed from these parameters, which `set_param` therefore refuses: {}. `set_seed` \
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
                literal(value / field.scale),
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
                    let format = format!("{} of the first cells: {{:.4?}}{unit}", self.name(field));
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

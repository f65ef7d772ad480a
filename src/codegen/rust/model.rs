//! `model.rs` and the documents of a generated crate.
//!
//! In come a [`Plan`] and an [`Interface`]; out go the tables of names, units and defaults, and what people read.
//! Never true here: behaviour; it is in the embedded runtime.

use super::SourceFile;
use super::interface::{Default, Interface, InterfaceError, InterfaceField, InterfaceNetwork};
use super::kernels::names;
use super::layout::{Text, filled, plain};
use super::{groups, shape, shared};
use crate::codegen::plan::{Home, Plan, identifier};
use crate::runtime::edge_text;
use crate::step::FieldId;
use std::borrow::Cow;
use std::fmt::Write as _;

/// An interface that fits its plan.
pub struct Model<'a> {
    plan: &'a Plan,
    interface: &'a Interface,
}

impl<'a> Model<'a> {
    /// Checks that the interface fits.
    pub fn new(plan: &'a Plan, interface: &'a Interface) -> Result<Model<'a>, InterfaceError> {
        let fail = |message: String| Err(InterfaceError::Misfit(message));
        let not_yet = |message: String| Err(InterfaceError::NotYet(message));
        let model = Model { plan, interface };
        if interface.spaces.len() != plan.spaces.len() {
            return fail(format!("{} populations for {} spaces", interface.spaces.len(), plan.spaces.len()));
        }
        if identifier(&interface.crate_name) != interface.crate_name {
            return fail(format!("`{}` is no name for a crate", interface.crate_name));
        }
        if let Some(delivery) = plan.deliveries.first() {
            return not_yet(format!(
                "events go along `{}`, which so far runs in neuroc alone, not in a crate",
                delivery.name
            ));
        }
        if let Some(trees) = plan.trees.first() {
            let cells = &plan.spaces[trees.cells.0 as usize].name;
            return not_yet(format!(
                "the cells `{cells}` have branches, which so far run in neuroc alone, not in a crate"
            ));
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
        if interface.networks.len() != plan.relations.len() {
            return fail(format!("{} networks for {} relations", interface.networks.len(), plan.relations.len()));
        }
        for &field in plan.uniforms.iter().chain(&plan.series) {
            if model.field(field).is_none() {
                return fail(format!("`{}` has no default", plan.fields[field.0 as usize]));
            }
        }
        Ok(model)
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
                Home::Slot(_, bank, _) => match bank {
                    crate::runtime::machine::Bank::State => "state",
                    crate::runtime::machine::Bank::Cell => "cell parameter",
                    crate::runtime::machine::Bank::Output => "output",
                    crate::runtime::machine::Bank::Data => "data",
                    crate::runtime::machine::Bank::Temp => "value within a step",
                },
                Home::Event(..) => "event",
                Home::Flat(..) | Home::Edges | Home::Register => continue,
            };
            let one_line = |text: &str| plain(&text.replace('|', "\\|").replace('\n', " ")).into_owned();
            let doc = one_line(&field.doc);
            let _ =
                writeln!(out, "| `{}` | {kind} | {} | {default} | {doc} |", self.name(field), one_line(&field.unit));
        }
        for network in &self.interface.networks {
            let edges = network.default.sources.len();
            let _ = writeln!(out, "| `{}` | network |  | {edges} edges |  |", network.name);
        }
        out
    }

    /// `src/network_0.txt` and so on: the default edges.
    pub fn network_files(&self) -> Vec<SourceFile> {
        let file = |(index, network): (usize, &InterfaceNetwork)| {
            SourceFile::new(&format!("src/network_{index}.txt"), edge_text::write(&network.default))
        };
        self.interface.networks.iter().enumerate().map(file).collect()
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
        out.line("use crate::runtime::call::Call;");
        let place = plan.homes.iter().any(|home| matches!(home, Home::Slot(..)));
        let bank = if place { "Bank, " } else { "" };
        if plan.spaces.iter().any(|space| !space.shared.is_empty()) {
            out.line("use crate::runtime::edges::Shared;");
        }
        let sample = if plan.series.is_empty() { "" } else { "use crate::runtime::series::Sample;" };
        let at = if place { "Place, " } else { "" };
        out.line(format!("use crate::runtime::machine::{{{bank}Fault, Kernels, {at}Shape}};"));
        let network = if plan.relations.is_empty() { "" } else { "NetworkInfo, " };
        out.line(format!(
            "use crate::runtime::named::{{Error, FieldHome, FieldInfo, Named, {network}SpaceInfo, Spec}};"
        ));
        if !sample.is_empty() {
            out.line(sample);
        }
        out.line("use std::ops::{Deref, DerefMut};");
        out.line("");
        self.spec(&mut out);
        self.sizes(&mut out);
        out.append_text(include_str!("fixed/model.rs"));
        out.finish()
    }

    fn spec(&self, out: &mut Text) {
        let Model { plan, interface } = self;
        out.line("/// Names, units and defaults.");
        out.line("#[rustfmt::skip]");
        out.open("pub static SPEC: Spec = Spec {");
        out.line(format!("name: {:?},", plan.name));
        out.open("spaces: &[");
        for (space, shown) in plan.spaces.iter().zip(&interface.spaces) {
            // The derived form of a shape is its literal.
            out.line(format!(
                "SpaceInfo {{ name: {:?}, size: {}, shape: {:?}, shared: &[{}] }},",
                space.name,
                shown.size,
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
                Home::Flat(..) | Home::Edges | Home::Register => continue,
            };
            out.line(format!(
                "FieldInfo {{ name: {:?}, unit: {:?}, scale: {}, doc: {:?}, home: {home} }},",
                self.name(field),
                field.unit,
                literal(field.scale),
                field.doc
            ));
        }
        for (index, network) in interface.networks.iter().enumerate() {
            let (name, home) = (&network.name, format!("FieldHome::Network({index})"));
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
                let values: Vec<String> = values.iter().map(|&x| literal(x)).collect();
                out.line(format!("({}, &[{}]),", place(space.0, bank, slot), values.join(", ")));
            }
        }
        out.close("],");
        out.open("networks: &[");
        for (index, relation) in plan.relations.iter().enumerate() {
            let (from, to) = (relation.from.0, relation.to.0);
            out.line(format!(
                "NetworkInfo {{ from: {from}, to: {to}, default: include_str!(\"network_{index}.txt\") }},"
            ));
        }
        out.close("],");
        let group = |group: &crate::runtime::machine::Group| format!("(&{:?}, {})", group.spaces, group.passes);
        out.line(format!("groups: &[{}],", groups(plan).iter().map(group).collect::<Vec<_>>().join(", ")));
        let dt = plan.uniforms.iter().position(|field| plan.fields[field.0 as usize] == "dt");
        out.line(format!("dt: {dt:?},"));
        out.line(format!("seed: {},", interface.seed));
        out.line(format!("min_cells: {},", plan.min_cells));
        out.close("};");
        out.line("");
    }

    fn sizes(&self, out: &mut Text) {
        let Model { plan, interface } = self;
        out.line("/// How many cells each population has.");
        out.line("#[derive(Clone, Copy, Debug, PartialEq, Eq)]");
        out.open("pub struct Sizes {");
        let names = names(&plan.spaces);
        for ((space, shown), name) in plan.spaces.iter().zip(&interface.spaces).zip(&names) {
            let doc = if shown.doc.is_empty() { "Its number of cells." } else { &shown.doc };
            out.line(format!("/// `{}`: {}", space.name, doc.replace('\n', " ")));
            out.line(format!("pub {name}: usize,"));
        }
        out.close("}");
        out.line("");
        out.open("impl Default for Sizes {");
        out.open("fn default() -> Sizes {");
        let size = |(name, shown): (&String, &super::interface::InterfaceSpace)| format!("{name}: {}", shown.size);
        out.record("Sizes ", &names.iter().zip(&interface.spaces).map(size).collect::<Vec<_>>(), "");
        out.close("}");
        out.close("}");
        out.line("");
        out.open("impl Sizes {");
        out.line("/// The sizes in the order of the populations.");
        out.open("fn list(&self) -> Vec<usize> {");
        let fields: Vec<String> = names.iter().map(|name| format!("self.{name}")).collect();
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

    /// How a network is replaced, if there is one.
    fn networks_in_words(&self) -> String {
        let Some(network) = self.interface.networks.first() else { return String::new() };
        let name = &network.name;
        format!(
            "## Networks\n\nThe crate carries the edges that its model had when it was made (`src/network_*.txt`, a line of sources for \
             every target), for populations of default size. Other edges, or those of other sizes, are given before `init`:\n\n\
             ```rust,ignore\n// The sources of target i are sources[offsets[i]..offsets[i + 1]].\n\
             model.set_edges(\"{name}\", &offsets, &sources)?;\nmodel.init()?;\n```\n\n"
        )
    }

    /// `src/lib.rs`.
    pub fn lib(&self) -> String {
        let doc: String = self.doc().iter().map(|line| format!("//! {line}").trim_end().to_string() + "\n").collect();
        let doc = if doc.is_empty() { format!("//! The model `{}`.\n", plain(&self.plan.name)) } else { doc };
        filled(include_str!("fixed/lib.rs"), &[("//! DOC\n", &doc)])
    }

    /// `examples/run.rs`.
    pub fn example(&self) -> String {
        let Model { plan, interface } = self;
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
            match self.home(field) {
                Home::Slot(_, crate::runtime::machine::Bank::State | crate::runtime::machine::Bank::Output, _) => {
                    let unit = if field.unit.is_empty() { String::new() } else { format!(" {}", field.unit) };
                    let format = format!("{} of the first cells: {{:.4?}}{unit}", self.name(field));
                    let cells = format!("let values = model.read({:?})?;", self.name(field));
                    out.line(cells);
                    out.call("println!", &[format!("{format:?}"), "&values[..values.len().min(4)]".into()], ";");
                }
                Home::Event(..) => {
                    let format = format!("{}: {{}} events", self.name(field));
                    let count = format!("model.spikes({:?})?.len()", self.name(field));
                    out.call("println!", &[format!("{format:?}"), count], ";");
                }
                Home::Slot(..) | Home::Uniform(_) | Home::Series(_) | Home::Flat(..) | Home::Edges | Home::Register => {
                }
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

fn place(space: u32, bank: crate::runtime::machine::Bank, slot: u32) -> String {
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

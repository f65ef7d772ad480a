//! Cells with sections: their shape, what their membrane has where, and places in them.
//!
//! In come `morphology`, `section`, `compartments` and `region` members; out go a tree of compartments and the symbols of the cell, each with the compartments in which
//! it has values. A channel is there once for each region that inserts it, however many compartments that has.
//! Never true here: the shape depends on a run.

use super::compartment::{CompartmentDraft, PoolEquations, PoolKeys};
use super::error::{MorphologyError, ProbeError, SpikeError};
use super::expr::constant_of;
use super::imports::shape_file;
use super::items::ItemRef;
use super::keys::Block;
use super::kinetics::REACTION;
use super::lower::{Definition, Lowerer, finish};
use super::place::{FlatPath, Place, Wanted};
use super::scope::{Entry, Role, Scope, ScopeKind};
use super::warnings::{DIAMETER, LENGTH};
use super::{
    Builtin, Cell, DiffusingPool, Diffusion, Expr, ExprKind, Home, Morphology, Part, PortKind, RecordedAt, ShapeFile,
    Spike, SpikeCondition, StateKind, SymbolId, SymbolKind, Ty,
};
use crate::morphology::{Frustum, Measure, Section, Tree, TreeError, Within, space, swc};
use crate::source::{FileId, Span};
use crate::syntax::ast::{self, BinaryOp, CellMember, CompartmentMember, Located, Name, SectionMember};
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::f64::consts::PI;
use std::sync::Arc;

/// The most compartments of a section, and of a cell.
const MOST: usize = 1_000_000;

/// Where nothing is said, no compartment is longer than this part of a length constant.
const D_LAMBDA: f64 = 0.1;

/// At which frequency (per ms).
const FREQUENCY: f64 = 0.1;

/// How sections are cut that do not say so themselves.
#[derive(Clone, Copy)]
enum Cut {
    /// No compartment is longer (in cm).
    MaxLength(f64),
    /// So many.
    Count(usize),
    /// No compartment is longer than this part of the length constant at 100 Hz, and their number is odd (Hines and Carnevale, Neuroscientist
    /// 7:123, 2001).
    Lambda(f64),
}

/// The sections of a cell before they are cut.
struct Shape {
    /// One compartment each, but for those that say how many they have.
    sections: Vec<Section>,
    /// Do they say so?
    cut: Vec<bool>,
    names: SectionNames,
    /// How the others are cut.
    rule: Option<Cut>,
    file: Option<ShapeFile>,
}

/// The names of sections, where they stand in the model.
#[derive(Default)]
struct SectionNames {
    all: Vec<Name>,
    at: HashMap<String, usize>,
}

impl SectionNames {
    /// Puts another name behind the others, or tells which one is the same.
    fn push(&mut self, name: Name) -> Result<(), &Name> {
        match self.at.entry(name.text.clone()) {
            Occupied(first) => Err(&self.all[*first.get()]),
            Vacant(free) => {
                free.insert(self.all.len());
                self.all.push(name);
                Ok(())
            }
        }
    }
}

/// A section in the making.
struct Draft<'a> {
    name: &'a Name,
    from: Option<&'a Located>,
    toward: Option<(&'a ast::Point, [f64; 3])>,
    length: Option<f64>,
    diam: Option<[f64; 2]>,
    count: Option<usize>,
}

/// What some sections have.
struct RegionDraft<'a> {
    ast: &'a ast::Region,
    /// Its name: those of its sections, joined.
    name: String,
    /// Is each section in it?
    sections: Vec<bool>,
    /// How they are cut.
    cut: Option<Cut>,
}

/// Ions that diffuse.
struct Ions<'a> {
    /// Their name, where it stands first.
    name: &'a Name,
    pools: Vec<DiffusingPool>,
    /// The region of each pool.
    regions: Vec<usize>,
    /// Where they are in each section.
    within: Vec<Within>,
}

/// The scope of a cell with sections in the making.
struct Body<'a> {
    scope: Scope<'a>,
    homes: Vec<Home>,
    tree: Tree,
    names: SectionNames,
    v: SymbolId,
    parts: Vec<Part>,
    /// Which ions diffuse, where in each section they are, and in which regions.
    ions: Vec<Ions<'a>>,
}

/// Is a cell one with sections?
pub(super) fn has_sections(c: &ast::Cell) -> bool {
    let of_sections = |m: &CellMember| {
        matches!(
            m,
            CellMember::Morphology { .. }
                | CellMember::Section(_)
                | CellMember::Compartments { .. }
                | CellMember::Region(_)
        )
    };
    c.members.iter().any(of_sections)
}

impl<'a> Lowerer<'a> {
    /// Lowers a cell with sections.
    pub(super) fn morphology(&mut self, item: ItemRef<'a>, c: &'a ast::Cell) -> Definition<Cell> {
        let before = self.diagnostics.count();
        let mut whole = self.only_sections(c);
        let shape = self.shape(c);
        let mut cell = Cell {
            name: c.name.text.clone(),
            span: c.name.span,
            docs: c.docs.clone(),
            symbols: Vec::new(),
            compartments: Vec::new(),
            spike: None,
            morphology: None,
        };
        let unknown = [c.name.text.clone()];
        let Some((mut shape, mut tree)) =
            shape.and_then(|shape| Some((self.tree(c, &shape)?, shape))).map(|(t, s)| (s, t))
        else {
            return Definition { item: cell, sound: false, unknown: unknown.into() };
        };
        let Some(regions) = self.regions(c, &shape.names.all) else {
            return Definition { item: cell, sound: false, unknown: unknown.into() };
        };
        tree.groups = regions.iter().map(|r| r.sections.clone()).collect();
        let mut scope = Scope::new(ScopeKind::Cell, item.file);
        scope.has_regions = true;
        for member in &c.members {
            match member {
                CellMember::Param(p) => self.add_param(&mut scope, p, ""),
                CellMember::Let(l) => self.add_let(&mut scope, l, ""),
                CellMember::State(_)
                | CellMember::Equation(_)
                | CellMember::Port { .. }
                | CellMember::Compartment(_)
                | CellMember::Couple { .. }
                | CellMember::Morphology { .. }
                | CellMember::Section(_)
                | CellMember::Compartments { .. }
                | CellMember::Region(_)
                | CellMember::Spike(_) => {}
            }
        }
        let homes = vec![Home::Cell; scope.entries.len()];
        let v = SymbolId(0);
        let names = std::mem::take(&mut shape.names);
        let mut body = Body { scope, homes, tree, names, v, parts: Vec::new(), ions: Vec::new() };
        let Some([v, cm, ra, area, port]) = self.of_the_tree(&mut body, c, &regions) else {
            return Definition { item: cell, sound: false, unknown: unknown.into() };
        };
        body.v = v;
        let mut equations: Vec<PoolEquations<'a>> = Vec::new();
        for (at, region) in regions.iter().enumerate() {
            whole &= self.insertions(&mut body, region, at, &mut equations).is_some();
        }
        let diffusions = self.diffusions(&mut body, &regions);
        whole &= diffusions.is_some();
        let of_pool = |(own, prefix): PoolEquations<'a>| (self.find_states(&mut body.scope, own, &prefix), prefix);
        let equations: Vec<_> = equations.into_iter().map(of_pool).collect();
        self.resolve_all(&mut body.scope);
        for (own, prefix) in equations {
            self.add_equations(&mut body.scope, own, &prefix);
        }
        self.check_equations(&body.scope);
        if whole {
            whole &= self.cut_all(&mut body, c, &mut shape, &regions, [cm, ra]).is_some();
        }
        whole &= self.one_of_each(&body);
        whole &= self.made_of_what_is_there(&body);
        cell.spike = self.spike_at(&mut body, c);
        whole &= cell.spike.is_some() || !c.members.iter().any(|m| matches!(m, CellMember::Spike(_)));
        if self.is_main(item.file) {
            self.warn_unused(&body.scope, "cell", before);
        }
        let Body { scope, homes, mut tree, parts, names, ions, .. } = body;
        let mut places = scope.places.clone();
        places.extend(names.all.iter().map(|n| (n.text.clone(), n.span)));
        self.note_places(c.name.span, places);
        let (symbols, sound, unknown) = finish(scope);
        self.note_block(c.name.span, &symbols, &unknown);
        self.warn_magnitudes(&symbols);
        self.check_params(&symbols);
        self.check_domains(&symbols, &unknown);
        cell.symbols = symbols;
        // That the sections are a tree is known.
        tree.lumens = ions.iter().filter_map(|ions| Tree::lumen(&shape.sections, &ions.within).ok()).collect();
        let diffusions = diffusions.unwrap_or_default();
        let (file, sections) = (shape.file, shape.sections.into());
        let tree = Arc::new(tree);
        cell.morphology = Some(Morphology { file, sections, tree, v, cm, ra, area, port, parts, diffusions, homes });
        Definition { item: cell, sound: sound && whole, unknown }
    }

    /// Says which members only cells without sections have.
    fn only_sections(&mut self, c: &'a ast::Cell) -> bool {
        let first = c.members.iter().find_map(|m| match m {
            CellMember::Section(s) => Some(s.name.span),
            CellMember::Morphology { span, .. } | CellMember::Compartments { span, .. } => Some(*span),
            CellMember::Region(r) => Some(r.sections[0].span),
            _ => None,
        });
        let mut fine = true;
        for member in &c.members {
            let (what, span) = match member {
                CellMember::State(s) => ("state of its own", s.name.span),
                CellMember::Equation(e) => ("equation of its own", e.name.span),
                CellMember::Port { name, .. } => ("`input` of its own", name.span),
                CellMember::Compartment(k) => ("`compartment` with a name", k.name.span),
                CellMember::Couple { span, .. } => ("`couple` line", *span),
                CellMember::Param(_)
                | CellMember::Let(_)
                | CellMember::Morphology { .. }
                | CellMember::Section(_)
                | CellMember::Compartments { .. }
                | CellMember::Region(_)
                | CellMember::Spike(_) => continue,
            };
            fine = false;
            self.error(MorphologyError::OtherForm { what, span, section: first.unwrap_or(c.name.span) });
        }
        fine
    }

    /// A number above zero that is known when the model is read.
    fn measure(&mut self, e: &'a ast::Expr, dim: Dim, what: &str) -> Option<f64> {
        let mut scope = Scope::new(ScopeKind::Constant, e.span.file.0 as usize);
        scope.file = self.files.iter().position(|f| f.id == e.span.file).unwrap_or(0);
        let x = self.expr_of(&mut scope, "", e, dim, what)?;
        match constant_of(&x) {
            Some(x) if x.is_finite() && x > 0.0 => return Some(x),
            Some(_) => self.error(MorphologyError::NotPositive { what, span: e.span }),
            None => self.error(MorphologyError::NotConstant { what, span: e.span }),
        }
        None
    }

    /// A length or a diameter.
    fn extent_of_section(&mut self, key: &str, e: &'a ast::Expr, what: &str) -> Option<f64> {
        let x = self.measure(e, Dim::LENGTH, what)?;
        self.warn_magnitude(key, &Expr::number(x, Dim::LENGTH, e.span), Dim::LENGTH);
        Some(x)
    }

    fn count(&mut self, e: &'a ast::Expr) -> Option<usize> {
        let x = self.measure(e, Dim::ONE, "a number of compartments")?;
        if x.fract() != 0.0 || x > MOST as f64 {
            self.error(MorphologyError::Count { span: e.span, most: MOST });
            return None;
        }
        Some(x as usize)
    }

    /// Where along its section a place is.
    fn along(&mut self, located: &'a Located) -> Option<f64> {
        let e = &*located.at;
        let mut scope = Scope::new(ScopeKind::Constant, 0);
        scope.file = self.files.iter().position(|f| f.id == e.span.file).unwrap_or(0);
        let x = self.expr(&mut scope, "", e)?;
        if x.ty == Ty::Real(Dim::LENGTH) {
            self.error(MorphologyError::PlaceAsLength { span: e.span });
            return None;
        }
        let x = self.expect(&scope, x, Dim::ONE, "a place along a section")?;
        match constant_of(&x) {
            Some(x) if (0.0..=1.0).contains(&x) => return Some(x),
            Some(_) => self.error(MorphologyError::Outside { span: e.span }),
            None => self.error(MorphologyError::NotConstant { what: "a place along a section", span: e.span }),
        }
        None
    }

    /// The sections of a cell.
    fn shape(&mut self, c: &'a ast::Cell) -> Option<Shape> {
        let mut rule: Option<(Cut, Span)> = None;
        let mut drafts: Vec<Draft<'a>> = Vec::new();
        let mut seen: HashMap<&str, Span> = HashMap::default();
        let mut read: Option<(swc::Reconstruction, ShapeFile, Span)> = None;
        let mut fine = true;
        for member in &c.members {
            match member {
                CellMember::Compartments { keys, .. } => {
                    for key in keys {
                        fine &= self.cut(key, Block::Compartments, &mut rule).is_some();
                    }
                }
                CellMember::Morphology { span, .. } if let Some((_, _, first)) = read => {
                    self.error(MorphologyError::Twice { what: "`morphology`", again: *span, first });
                    fine = false;
                }
                CellMember::Morphology { value, span } => {
                    read = self.read_shape(value).map(|(cell, file)| (cell, file, *span));
                    fine &= read.is_some();
                }
                CellMember::Section(s) => match seen.entry(&s.name.text) {
                    Occupied(first) => {
                        self.duplicate(&s.name, *first.get());
                        fine = false;
                    }
                    Vacant(free) => {
                        free.insert(s.name.span);
                        fine &= self.check_reserved(&s.name) && self.check_not(&["all"], &s.name);
                        let draft = self.section(s);
                        fine &= draft.is_some();
                        drafts.extend(draft);
                    }
                },
                CellMember::Param(_)
                | CellMember::Let(_)
                | CellMember::State(_)
                | CellMember::Equation(_)
                | CellMember::Port { .. }
                | CellMember::Compartment(_)
                | CellMember::Couple { .. }
                | CellMember::Region(_)
                | CellMember::Spike(_) => {}
            }
        }
        if drafts.is_empty() && read.is_none() && fine {
            let (what, span) = c
                .members
                .iter()
                .find_map(|m| match m {
                    CellMember::Region(r) => Some(("a region", r.sections[0].span)),
                    CellMember::Compartments { span, .. } => Some(("a `compartments` block", *span)),
                    _ => None,
                })
                .unwrap_or(("nothing", c.name.span));
            self.error(MorphologyError::NothingToCut { what, span });
            return None;
        }
        if !fine {
            return None;
        }
        let rule = rule.map(|(cut, _)| cut);
        let mut shape =
            Shape { sections: Vec::new(), cut: Vec::new(), names: SectionNames::default(), rule, file: None };
        if let Some((cell, file, span)) = read {
            shape.file = Some(file);
            for branch in cell.branches {
                let swc::Branch { name, from, frusta, points, .. } = branch;
                // A reconstruction has each name once.
                let _ = shape.names.push(Name { text: name.clone(), span });
                shape.sections.push(Section { name, from, frusta, points, compartments: 1 });
                shape.cut.push(false);
            }
        }
        for draft in &drafts {
            if let Err(first) = shape.names.push(draft.name.clone()) {
                self.duplicate(draft.name, first.span);
                return None;
            }
        }
        let finished: Vec<Option<Section>> = drafts.iter().map(|d| self.finished(d, &shape.names)).collect();
        shape.sections.extend(finished.into_iter().collect::<Option<Vec<_>>>()?);
        shape.cut.extend(drafts.iter().map(|d| d.count.is_some()));
        let of_file = shape.sections.len() - drafts.len();
        let toward = drafts.iter().map(|draft| draft.toward.map(|(_, toward)| toward));
        let toward: Vec<_> = std::iter::repeat_n(None, of_file).chain(toward).collect();
        space::place(&mut shape.sections, &toward);
        Some(shape)
    }

    /// The sections in the file that `morphology = ` names.
    fn read_shape(&mut self, value: &ast::Expr) -> Option<(swc::Reconstruction, ShapeFile)> {
        let Some((name, span)) = shape_file(value) else {
            self.error(MorphologyError::NoShape { span: value.span });
            return None;
        };
        let files = self.files.iter().find(|f| f.id == span.file);
        let id: FileId = files.and_then(|f| f.shapes.get(name).copied())??;
        let file = self.sources.file(id);
        let errors = match swc::read(&file.text) {
            Ok(cell) => {
                let (soma, doubled) = (cell.soma, cell.doubled.clone());
                return Some((cell, ShapeFile { name: name.to_string(), soma, doubled }));
            }
            Err(errors) => errors,
        };
        for error in &errors {
            let place = |line: Option<usize>| {
                let range = file.line_range(line? - 1);
                let text = file.text.get(range.clone())?;
                let start = range.start + text.len() - text.trim_start().len();
                Some(Span::new(id, start, range.start + text.trim_end().len()))
            };
            let (line, other) = (place(error.line), place(error.other));
            self.error(MorphologyError::Swc { error, line, other, file: name, span });
        }
        None
    }

    /// The tree of a cell's sections.
    fn tree(&mut self, c: &'a ast::Cell, shape: &Shape) -> Option<Tree> {
        let names = &shape.names.all;
        match Tree::new(&shape.sections) {
            Ok(tree) => return Some(tree),
            Err(TreeError::Nothing) => self.error(MorphologyError::NothingToCut { what: "nothing", span: c.name.span }),
            Err(TreeError::TwoRoots(first, second)) => {
                self.error(MorphologyError::TwoRoots { second: &names[second], first: &names[first] });
            }
            Err(TreeError::Loop(s)) => self.error(MorphologyError::Loop { section: &names[s] }),
        }
        None
    }

    /// Cuts the sections, now that all values are known.
    fn cut_all(
        &mut self,
        body: &mut Body<'a>,
        c: &'a ast::Cell,
        shape: &mut Shape,
        regions: &[RegionDraft<'a>],
        [cm, ra]: [SymbolId; 2],
    ) -> Option<()> {
        for s in 0..shape.sections.len() {
            if shape.cut[s] {
                continue;
            }
            let of_region = regions.iter().rev().filter(|r| r.sections[s]).find_map(|r| r.cut);
            let length = shape.sections[s].length();
            let count = match of_region.or(shape.rule).unwrap_or(Cut::Lambda(D_LAMBDA)) {
                Cut::Count(count) => count as f64,
                // What is as long but for a rounding is as long.
                Cut::MaxLength(most) => (length / most - 1e-9).ceil().max(1.0),
                Cut::Lambda(part) => {
                    let [cm, ra] = [(cm, "cm"), (ra, "ra")].map(|(id, key)| {
                        let value = value_at(&body.scope, &body.tree, body.tree.sections[s].first, id, 0);
                        value.filter(|x| x.is_finite() && *x > 0.0).ok_or((id, key))
                    });
                    let (cm, ra) = match (cm, ra) {
                        (Ok(cm), Ok(ra)) => (cm, ra),
                        (Err((id, key)), _) | (_, Err((id, key))) => {
                            let span = body.scope.entry(id).value.as_ref().map_or(c.name.span, |value| value.span);
                            self.error(MorphologyError::NotCut { section: &body.names.all[s].text, key, span });
                            return None;
                        }
                    };
                    let lambdas =
                        shape.sections[s].lengths_over_root_of_diam() * (4.0 * PI * FREQUENCY * ra * cm).sqrt();
                    // What NEURON's users write; at least so many, and odd.
                    ((lambdas / part + 0.9) / 2.0).floor() * 2.0 + 1.0
                }
            };
            if count > MOST as f64 {
                self.error(MorphologyError::TooMany { cell: &c.name, most: MOST });
                return None;
            }
            shape.sections[s].compartments = count as usize;
        }
        if shape.sections.iter().map(|s| s.compartments).sum::<usize>() > MOST {
            self.error(MorphologyError::TooMany { cell: &c.name, most: MOST });
            return None;
        }
        let groups = std::mem::take(&mut body.tree.groups);
        body.tree = Tree { groups, ..self.tree(c, shape)? };
        for part in &mut body.parts {
            let region = regions.iter().find(|r| r.name == part.region)?;
            part.elements = elements(&body.tree, region);
        }
        Some(())
    }

    /// A key that says how sections are cut.
    fn cut(&mut self, key: &'a ast::Let, block: Block, cut: &mut Option<(Cut, Span)>) -> Option<()> {
        let new = match key.name.text.as_str() {
            "max_length" => Cut::MaxLength(self.measure(&key.value, Dim::LENGTH, "the length of a compartment")?),
            "count" => Cut::Count(self.count(&key.value)?),
            "d_lambda" => Cut::Lambda(self.measure(&key.value, Dim::ONE, "a part of a length constant")?),
            _ => {
                self.unknown_key(&key.name, block);
                return None;
            }
        };
        if let Some((_, first)) = cut {
            self.error(MorphologyError::Twice {
                what: "the number of compartments",
                again: key.name.span,
                first: *first,
            });
            return None;
        }
        *cut = Some((new, key.name.span));
        Some(())
    }

    fn section(&mut self, s: &'a ast::Section) -> Option<Draft<'a>> {
        let mut draft = Draft { name: &s.name, from: None, toward: None, length: None, diam: None, count: None };
        let mut fine = true;
        let mut seen: Vec<&'a Name> = Vec::new();
        for member in &s.members {
            match member {
                SectionMember::From(located) => match draft.from {
                    Some(first) => {
                        self.error(MorphologyError::Twice { what: "`from`", again: located.span, first: first.span });
                        fine = false;
                    }
                    None => draft.from = Some(located),
                },
                SectionMember::Toward(point) => match draft.toward {
                    Some((first, _)) => {
                        self.error(MorphologyError::Twice { what: "`toward`", again: point.span, first: first.span });
                        fine = false;
                    }
                    None => {
                        draft.toward = self.direction(point).map(|toward| (point, toward));
                        fine &= draft.toward.is_some();
                    }
                },
                SectionMember::Key { name, value, end } => {
                    if let Some(first) = seen.iter().find(|n| n.text == name.text) {
                        self.duplicate_key(name, first.span);
                        fine = false;
                        continue;
                    }
                    seen.push(name);
                    fine &= self.section_key(&mut draft, name, value, end.as_ref()).is_some();
                }
            }
        }
        fine.then_some(draft)
    }

    fn direction(&mut self, point: &'a ast::Point) -> Option<[f64; 3]> {
        let direction = space::unit(self.point(point, Dim::ONE)?);
        if direction.is_none() {
            self.error(ProbeError::NoDirection { span: point.span });
        }
        direction
    }

    fn section_key(
        &mut self,
        draft: &mut Draft<'a>,
        name: &'a Name,
        value: &'a ast::Expr,
        end: Option<&'a ast::Expr>,
    ) -> Option<()> {
        if let (Some(end), "length" | "compartments") = (end, name.text.as_str()) {
            self.error(MorphologyError::NoTaper { key: name, span: end.span });
            return None;
        }
        match name.text.as_str() {
            "length" => draft.length = Some(self.extent_of_section(LENGTH, value, "the length of a section")?),
            "diam" => {
                let first = self.extent_of_section(DIAMETER, value, "the diameter of a section");
                let last = end.map(|end| self.extent_of_section(DIAMETER, end, "the diameter of a section"));
                let first = first?;
                draft.diam = Some([first, last.unwrap_or(Some(first))?]);
            }
            "compartments" => draft.count = Some(self.count(value)?),
            _ => {
                self.unknown_key(name, Block::Section);
                return None;
            }
        }
        Some(())
    }

    fn finished(&mut self, draft: &Draft<'a>, names: &SectionNames) -> Option<Section> {
        let from = match draft.from {
            None => None,
            Some(located) => {
                let parent = self.named_section(&located.section, names);
                let x = self.along(located);
                Some((parent?, x?))
            }
        };
        let Some(length) = draft.length else {
            self.error(MorphologyError::SectionLacks { section: draft.name, key: "length", example: "length = 20 um" });
            return None;
        };
        let Some(diam) = draft.diam else {
            self.error(MorphologyError::SectionLacks { section: draft.name, key: "diam", example: "diam = 2 um" });
            return None;
        };
        let frusta = vec![Frustum { length, diam }];
        let (name, points, compartments) = (draft.name.text.clone(), Vec::new(), draft.count.unwrap_or(1));
        Some(Section { name, from, frusta, points, compartments })
    }

    fn named_section(&mut self, name: &Name, names: &SectionNames) -> Option<usize> {
        let at = names.at.get(&name.text).copied();
        match at {
            Some(at) => self.note(name.span, names.all[at].span),
            None => self.unknown_section(
                &name.text,
                name.span,
                &names.all.iter().map(|n| n.text.as_str()).collect::<Vec<_>>(),
            ),
        }
        at
    }

    fn unknown_section(&mut self, written: &str, span: Span, names: &[&str]) {
        let word = written.split('[').next().unwrap_or(written);
        let counted = names.iter().filter(|n| n.strip_prefix(word).is_some_and(|rest| rest.starts_with('['))).count();
        let mut known: Vec<&str> = Vec::new();
        for name in names.iter().map(|n| n.split('[').next().unwrap_or(n)) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        let alone = word != written && known.contains(&word) && counted == 0;
        self.error(MorphologyError::UnknownSection { written, known: &known, counted, alone, span });
    }

    /// The regions of a cell.
    fn regions(&mut self, c: &'a ast::Cell, names: &[Name]) -> Option<Vec<RegionDraft<'a>>> {
        let mut regions: Vec<RegionDraft<'a>> = Vec::new();
        let mut fine = true;
        for member in &c.members {
            let CellMember::Region(ast) = member else { continue };
            let mut sections = vec![false; names.len()];
            for name in &ast.sections {
                let mut found = false;
                for (inside, section) in sections.iter_mut().zip(names) {
                    if is_meant(&name.text, &section.text) {
                        *inside = true;
                        if name.text != "all" {
                            self.note(name.span, section.span);
                        }
                        found = true;
                    }
                }
                if !found {
                    self.unknown_section(
                        &name.text,
                        name.span,
                        &names.iter().map(|n| n.text.as_str()).collect::<Vec<_>>(),
                    );
                    fine = false;
                }
            }
            let name = ast.sections.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join("_");
            if let Some(first) = regions.iter().find(|r| r.name == name) {
                let what = match ast.sections.len() {
                    1 => format!("region `{name}`"),
                    _ => format!("region `{name}`, which is called as its sections with `_` between,"),
                };
                let other = first.sections != sections;
                let (again, first) = (ast.sections[0].span, first.ast.sections[0].span);
                self.error(match other {
                    true => MorphologyError::RegionsAlike { name: &name, again, first },
                    false => MorphologyError::Twice { what: &what, again, first },
                });
                fine = false;
                continue;
            }
            let mut cut = None;
            for member in &ast.members {
                if let CompartmentMember::Key(key) = member
                    && is_cut(&key.name.text)
                {
                    fine &= self.cut(key, Block::Region, &mut cut).is_some();
                }
            }
            regions.push(RegionDraft { ast, name, sections, cut: cut.map(|(cut, _)| cut) });
        }
        fine.then_some(regions)
    }

    /// Adds what has a value in every compartment: `v`, `cm`, `ra`, `area` and what inputs drive.
    fn of_the_tree(
        &mut self,
        body: &mut Body<'a>,
        c: &'a ast::Cell,
        regions: &[RegionDraft<'a>],
    ) -> Option<[SymbolId; 5]> {
        let span = c.name.span;
        for (name, measure, dim) in [("area", Measure::Area, Dim::AREA), ("distance", Measure::Distance, Dim::LENGTH)] {
            let ty = Ty::Real(dim);
            let value = Expr { kind: ExprKind::Measure(measure), ty, span };
            let entry = Entry { used: true, ..Entry::ready(name.into(), span, Role::Param, Some(ty), Some(value)) };
            self.of_every_compartment(body, entry)?;
        }
        let mut fine = true;
        for region in regions {
            for member in &region.ast.members {
                if let CompartmentMember::Key(l) = member {
                    fine &= self.region_key(body, region, l).is_some();
                }
            }
        }
        if !fine {
            return None;
        }
        let voltage = self.piecewise(body, regions, "v_init", Dim::VOLTAGE, "v_init = -65 mV");
        let cm = self.piecewise(body, regions, "cm", Dim::SPECIFIC_CAPACITANCE, "cm = 1 uF/cm2");
        let ra = self.piecewise(body, regions, "ra", Dim::RESISTIVITY, "ra = 100 ohm*cm");
        let (voltage, cm, ra) = (voltage?, cm?, ra?);
        let ready = |name: &str, role, dim, value| {
            let entry = Entry::ready(name.into(), span, role, Some(Ty::Real(dim)), Some(value));
            Entry { used: true, ..entry }
        };
        let cm = self.of_every_compartment(body, ready("cm", Role::Param, Dim::SPECIFIC_CAPACITANCE, cm))?;
        let ra = self.of_every_compartment(body, ready("ra", Role::Param, Dim::RESISTIVITY, ra))?;
        let v = ready("v", Role::State(StateKind::Plain), Dim::VOLTAGE, voltage);
        // What flows along the cable is not part of it: the method has that.
        let outward = Expr { kind: ExprKind::Outward, ty: Ty::Real(Dim::CURRENT_DENSITY), span };
        let cm_now = Expr::symbol(cm, Ty::Real(Dim::SPECIFIC_CAPACITANCE), span);
        let out = Expr::binary(BinaryOp::Div, outward, cm_now);
        let rate = Expr { ty: out.ty, kind: ExprKind::Unary(ast::UnaryOp::Neg, Arc::new(out)), span };
        let v = self.of_every_compartment(body, Entry { rate: Some(rate), ..v })?;
        let ty = Some(Ty::Real(Dim::CURRENT_DENSITY));
        let port = Entry::ready("<input>".into(), span, Role::Port(PortKind::Injected), ty, None);
        let port = self.of_every_compartment(body, port)?;
        let ty = Some(Ty::Real(Dim::CURRENT));
        let electrode = Entry::ready("<i_clamp>".into(), span, Role::Port(PortKind::Electrode), ty, None);
        self.of_every_compartment(body, electrode)?;
        let area = body.scope.get("area")?;
        Some([v, cm, ra, area, port])
    }

    fn of_every_compartment(&mut self, body: &mut Body<'a>, entry: Entry<'a>) -> Option<SymbolId> {
        let name = Name { text: entry.name.clone(), span: entry.span };
        match body.scope.add(entry) {
            Ok(id) => {
                body.homes.push(Home::Tree);
                Some(id)
            }
            Err(first) => {
                self.duplicate(&Name { span: first, ..name.clone() }, name.span);
                None
            }
        }
    }

    /// `cm = ...` in a region is its parameter `REGION.cm`.
    fn region_key(&mut self, body: &mut Body<'a>, region: &RegionDraft<'a>, l: &'a ast::Let) -> Option<()> {
        let (dim, why) = match l.name.text.as_str() {
            "v_init" => (Dim::VOLTAGE, "`v_init`"),
            "cm" => (Dim::SPECIFIC_CAPACITANCE, "`cm`"),
            "ra" => (Dim::RESISTIVITY, "`ra`"),
            key if is_cut(key) => return Some(()),
            _ => {
                self.unknown_key(&l.name, Block::Region);
                return None;
            }
        };
        let name = format!("{}.{}", region.name, l.name.text);
        let entry = Entry::pending(name, l.name.span, Role::Param, &l.value, &format!("{}.", region.name));
        match body.scope.add(Entry { used: true, written: false, ..entry.want(dim, why) }) {
            Ok(_) => {
                body.homes.push(Home::Tree);
                Some(())
            }
            Err(first) => {
                self.duplicate_key(&l.name, first);
                None
            }
        }
    }

    /// The value of a key in each compartment: that of the last region with it.
    fn piecewise(
        &mut self,
        body: &mut Body<'a>,
        regions: &[RegionDraft<'a>],
        key: &'static str,
        dim: Dim,
        example: &'static str,
    ) -> Option<Expr> {
        let given: Vec<(usize, SymbolId)> = (regions.iter().enumerate())
            .filter_map(|(at, r)| Some((at, body.scope.get(&format!("{}.{key}", r.name))?)))
            .collect();
        let lacks = |s: &usize| !given.iter().any(|(region, _)| regions[*region].sections[*s]);
        if let Some(section) = (0..body.names.all.len()).find(lacks) {
            // Sections of a file share their place.
            let section = &body.names.all[section];
            let regions = section.text.split('[').next().unwrap_or(&section.text);
            self.error(MorphologyError::NotCovered { section, regions, key, example });
            return None;
        }
        // It is not read where no region has a value.
        by_region(&body.scope, regions, given, dim, None)
    }

    /// Adds the pools of a region, and the channels that it inserts, which may read them.
    fn insertions(
        &mut self,
        body: &mut Body<'a>,
        region: &RegionDraft<'a>,
        together: usize,
        equations: &mut Vec<PoolEquations<'a>>,
    ) -> Option<()> {
        let elements = elements(&body.tree, region);
        let name = Name { text: region.name.clone(), span: region.ast.sections[0].span };
        let mut fine = true;
        let part = |name: &Name, current, span| {
            let (region, elements) = (region.name.clone(), elements.clone());
            Part { region, name: name.text.clone(), elements, current, together, span }
        };
        for member in &region.ast.members {
            let CompartmentMember::Pool { name, unit, keys, equations: own, .. } = member else { continue };
            let prefix = format!("{}.", region.name);
            let home = Home::Part(body.parts.len());
            fine &= self.check_not(&["cm", "ra", "area", "distance"], name);
            let keys = self.pool_keys(keys);
            fine &= self.check_reserved(name) && self.add_pool(&mut body.scope, &prefix, name, unit.as_ref(), &keys);
            equations.push((own.iter().collect(), prefix));
            body.homes.resize(body.scope.entries.len(), home);
            fine &= self.diffusion(body, (region, together), name, &keys).is_some();
            body.parts.push(part(name, None, name.span));
        }
        for member in &region.ast.members {
            let CompartmentMember::Insert { channel, alias, args, span } = member else { continue };
            let mut draft = CompartmentDraft::new(&name);
            draft.v = Some(body.v);
            let home = Home::Part(body.parts.len());
            let inserted = self.insert(&mut body.scope, &mut draft, channel, alias.as_ref(), args, *span);
            body.homes.resize(body.scope.entries.len(), home);
            let (Some(()), Some(&current)) = (inserted, draft.currents.first()) else {
                fine = false;
                continue;
            };
            body.parts.push(part(alias.as_ref().unwrap_or(channel), Some(current), *span));
        }
        fine.then_some(())
    }

    /// `diffusion = ...` in a pool of a region is its parameter `REGION.POOL.diffusion`; the depth of a shell is part of the shape.
    fn diffusion(
        &mut self,
        body: &mut Body<'a>,
        (region, number): (&RegionDraft<'a>, usize),
        name: &'a Name,
        keys: &PoolKeys<'a>,
    ) -> Option<()> {
        let shell = match keys.shell {
            Some(key) => Some(self.measure(&key.value, Dim::LENGTH, "the depth of a shell")?),
            None => None,
        };
        let Some(key) = keys.diffusion else {
            let Some(shell) = keys.shell else { return Some(()) };
            self.error(MorphologyError::ShellWithoutDiffusion { pool: name, span: shell.name.span });
            return None;
        };
        let prefix = format!("{}.", region.name);
        let full = format!("{prefix}{}.diffusion", name.text);
        let entry = Entry::pending(full, key.name.span, Role::Param, &key.value, &prefix);
        let entry = entry.want(Dim::DIFFUSION, "`diffusion`");
        let coefficient = body.scope.add(Entry { used: true, written: false, ..entry }).ok()?;
        body.homes.push(Home::Tree);
        let pool = body.scope.get(&format!("{prefix}{}", name.text))?;
        let at = body.ions.iter().position(|ions| ions.name.text == name.text).unwrap_or_else(|| {
            let within = vec![Within::Nothing; region.sections.len()];
            body.ions.push(Ions { name, pools: Vec::new(), regions: Vec::new(), within });
            body.ions.len() - 1
        });
        let Ions { pools, regions, within, .. } = &mut body.ions[at];
        pools.push(DiffusingPool { pool, coefficient, shell });
        regions.push(number);
        for (within, _) in within.iter_mut().zip(&region.sections).filter(|(_, inside)| **inside) {
            *within = shell.map_or(Within::All, Within::Shell);
        }
        Some(())
    }

    /// What diffuses: `diffusion_Ca` is the coefficient of each compartment, 0 where no region says one.
    fn diffusions(&mut self, body: &mut Body<'a>, regions: &[RegionDraft<'a>]) -> Option<Vec<Diffusion>> {
        let mut found = Vec::new();
        for at in 0..body.ions.len() {
            let Ions { name, pools, regions: of, .. } = &body.ions[at];
            let (name, pools, none) = (*name, pools.clone(), Expr::number(0.0, Dim::DIFFUSION, name.span));
            let given = of.iter().copied().zip(pools.iter().map(|pool| pool.coefficient)).collect();
            let value = by_region(&body.scope, regions, given, Dim::DIFFUSION, Some(none))?;
            let full = format!("diffusion_{}", name.text);
            let entry = Entry::ready(full, name.span, Role::Param, Some(value.ty), Some(value));
            let coefficient = self.of_every_compartment(body, Entry { used: true, ..entry })?;
            found.push(Diffusion { name: name.text.clone(), coefficient, pools });
        }
        Some(found)
    }

    /// Says which channels are in a compartment twice.
    fn one_of_each(&mut self, body: &Body<'a>) -> bool {
        let mut fine = true;
        for (i, part) in body.parts.iter().enumerate() {
            for first in body.parts[..i].iter().filter(|p| p.name == part.name) {
                let twice = |e: &&u32| first.elements.binary_search(e).is_ok();
                let Some(both) = part.elements.iter().find(twice) else { continue };
                let section = &body.names.all[body.tree.section[*both as usize] as usize].text;
                let (name, again, first) = (&part.name, part.span, first.span);
                self.error(match part.current {
                    Some(_) => MorphologyError::InsertedTwice { channel: name, section, again, first },
                    None => MorphologyError::PoolTwice { pool: name, section, again, first },
                });
                fine = false;
            }
        }
        fine
    }

    /// Says which values are made of what is not where they are: those of the whole cell of what differs from compartment to compartment, and those of a
    /// region of what another has.
    fn made_of_what_is_there(&mut self, body: &Body<'a>) -> bool {
        let mut fine = true;
        for (entry, &home) in body.scope.entries.iter().zip(&body.homes) {
            let of = |id: SymbolId| body.homes[id.0 as usize];
            let is_there = |id: SymbolId| match (home, of(id)) {
                (_, Home::Cell) | (Home::Tree | Home::Part(_), Home::Tree) => true,
                (Home::Part(own), Home::Part(other)) => body.parts[own].together == body.parts[other].together,
                (Home::Cell, Home::Tree | Home::Part(_)) | (Home::Tree, Home::Part(_)) => false,
            };
            let mut read = None;
            for x in entry.value.iter().chain(&entry.rate) {
                x.visit(&mut |e| {
                    if let ExprKind::Symbol(id) = e.kind
                        && !is_there(id)
                    {
                        read = read.or(Some((id, e.span)));
                    }
                });
            }
            let Some((id, span)) = read else { continue };
            let (symbol, other) = (&entry.name, body.scope.entry(id));
            let read = &other.name;
            self.error(match of(id) {
                Home::Part(part) if home != Home::Cell => {
                    let region = &body.parts[part].region;
                    let is_param = home == Home::Tree || other.role == Role::Param;
                    MorphologyError::OfARegion { symbol, span, read, region, is_param }
                }
                _ => MorphologyError::NotOfTheCell { symbol, span, read },
            });
            fine = false;
        }
        fine
    }

    /// `spike when soma(0.5).v crosses -10 mV`.
    fn spike_at(&mut self, body: &mut Body<'a>, c: &'a ast::Cell) -> Option<Spike> {
        let rules: Vec<&'a ast::Spike> =
            c.members.iter().filter_map(|m| if let CellMember::Spike(s) = m { Some(s) } else { None }).collect();
        if let [first, second, ..] = rules[..] {
            self.error(SpikeError::TwoRules { second: second.span, first: first.span });
            return None;
        }
        let s = *rules.first()?;
        let (section, usual) = (&body.names.all[0].text, "-10 mV");
        let (a, level) = match &s.condition {
            ast::SpikeCondition::Crosses(a, level) => (a, level),
            ast::SpikeCondition::When(e) => {
                let level = match &e.kind {
                    ast::ExprKind::Binary(BinaryOp::Gt | BinaryOp::Ge, _, level) => self.text(level.span),
                    _ => usual,
                };
                self.error(MorphologyError::SpikePlace { span: s.span, section, level });
                return None;
            }
        };
        // The section that is named without a place in it.
        let named = match &a.kind {
            ast::ExprKind::Path(path) => body.names.all.iter().find(|section| section.text == path[0].text),
            _ => None,
        };
        let (section, written) = (named.map_or(section, |named| &named.text), self.text(level.span));
        let ast::ExprKind::At(before, located, quantity) = &a.kind else {
            self.error(MorphologyError::SpikePlace { span: a.span, section, level: written });
            return None;
        };
        if !before.is_empty() || quantity.len() != 1 || quantity[0].text != "v" {
            // The level is that of another quantity.
            let (section, level) = (&located.section.text, if quantity.is_empty() { written } else { usual });
            self.error(MorphologyError::SpikePlace { span: a.span, section, level });
            return None;
        }
        if !s.actions.is_empty() {
            self.error(MorphologyError::NotYet { what: "what a spike does to the states", span: s.span });
            return None;
        }
        let at = self.element(&body.tree, located, &body.names);
        let level = self.expr_of(&mut body.scope, "", level, Dim::VOLTAGE, "the level that is crossed");
        let (at, level) = (at?, level?);
        let mut differs = None;
        level.visit(&mut |e| {
            if let ExprKind::Symbol(id) = e.kind
                && body.homes[id.0 as usize] != Home::Cell
            {
                differs = Some((id, e.span));
            }
        });
        if let Some((id, span)) = differs {
            let read = &body.scope.entry(id).name;
            self.error(MorphologyError::NotOfTheCell { symbol: "the level", span, read });
            return None;
        }
        let v = Expr::symbol(body.v, Ty::Real(Dim::VOLTAGE), a.span);
        let condition = SpikeCondition::Crosses(v, level);
        Some(Spike { condition, at: Some(at), resets: Vec::new(), refractory: None, holds: None, span: s.span })
    }

    /// The element of a place.
    fn element(&mut self, tree: &Tree, located: &'a Located, names: &SectionNames) -> Option<usize> {
        let section = self.named_section(&located.section, names);
        let x = self.along(located);
        Some(tree.sections[section?].at(x?))
    }

    /// The element of a place in a cell of a population.
    pub(super) fn element_of(&mut self, morphology: &Morphology, located: &'a Located) -> Option<usize> {
        let tree = &morphology.tree;
        let at = tree.sections.iter().position(|s| s.name == located.section.text);
        if at.is_none() {
            self.unknown_section(
                &located.section.text,
                located.section.span,
                &tree.sections.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
            );
        }
        let x = self.along(located);
        Some(tree.sections[at?].at(x?))
    }

    /// The element of the tree that an input or a synapse acts on.
    pub(super) fn driven_place(
        &mut self,
        definition: &Definition<Cell>,
        morphology: &Morphology,
        place: &Place<'a>,
        what: &'static str,
        flat: &FlatPath<'a>,
    ) -> Option<usize> {
        if !definition.sound && flat.at.is_none() {
            return None;
        }
        let Some(located) = flat.at else {
            let section = section_meant(morphology, flat);
            self.error(MorphologyError::PlaceMissing { what, section, span: flat.span });
            return None;
        };
        let element = self.element_of(morphology, located)?;
        if !place.rest.is_empty() {
            let whole = self.text(located.span);
            let (quantity, span) = (&place.rest, place.rest_span);
            self.error(MorphologyError::BehindPlace { what, place: whole, rest: quantity, span });
            return None;
        }
        Some(element)
    }

    /// Says that a cell has no sections, but for one whose sections could not be understood.
    pub(super) fn no_sections(&mut self, definition: &Definition<Cell>, span: Span) {
        let cell = &definition.item;
        if !definition.is_unknown(&cell.name) {
            self.error(MorphologyError::NoSections { cell, span });
        }
    }

    /// The quantity that is recorded at a place or in each compartment of some sections, and where that is.
    pub(super) fn quantity_at(
        &mut self,
        definition: &Definition<Cell>,
        place: &Place<'a>,
        flat: &FlatPath<'a>,
    ) -> Option<(SymbolId, Option<RecordedAt>)> {
        let cell = &definition.item;
        let Some(morphology) = &cell.morphology else {
            let span = flat.at.map_or(flat.span, |at| at.span);
            self.no_sections(definition, span);
            return None;
        };
        let Some(located) = flat.at else {
            // What is one value of the cell needs no place.
            let of_the_cell = cell.find(&place.rest).filter(|id| morphology.homes[id.0 as usize] == Home::Cell);
            if let Some(symbol) = of_the_cell.filter(|id| Wanted::Quantity.fits(cell.symbol(*id))) {
                return Some((symbol, None));
            }
            if let Some((word, quantity)) = place.rest.split_once('.') {
                let (symbol, elements) = self.quantity_in(definition, morphology, (word, quantity), place, flat)?;
                return Some((symbol, Some(RecordedAt { elements, text: word.into(), each: true })));
            }
            let section = section_meant(morphology, flat);
            self.error(MorphologyError::PlaceMissing { what: "a quantity", section, span: flat.span });
            return None;
        };
        let element = self.element_of(morphology, located)?;
        let mut found = found_in(cell, morphology, &place.rest, &[element as u32]);
        // What sits at the place itself is meant, not what all of a region has.
        let here = morphology.tree.name(element);
        if let Some(own) = found.iter().position(|(symbol, _)| region_of(morphology, *symbol) == here) {
            found.drain(own + 1..);
            found.drain(..own);
        }
        if found.len() > 1 {
            self.several_regions(morphology, (self.text(located.span), &place.rest), &found, place.rest_span);
            return None;
        }
        let symbol = found.first().map(|(symbol, _)| *symbol);
        let from_outside = || match &place.rest[..] {
            "i_clamp" => cell.find("<i_clamp>"),
            "i_gap" => cell.find("<input>"),
            _ => None,
        };
        let Some(symbol) = symbol.or_else(from_outside) else {
            if !definition.is_unknown(&place.rest) {
                let whole = self.text(located.span);
                let known = known_at(cell, morphology, element);
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let quantity = &place.rest;
                let span = if quantity.is_empty() { located.span } else { place.rest_span };
                self.error(MorphologyError::NotThere { quantity, place: whole, span, known: &known });
            }
            return None;
        };
        let text: String = self.text(located.span).split_whitespace().collect();
        Some((symbol, Some(RecordedAt { elements: [element as u32].into(), text, each: false })))
    }

    /// The quantity that is recorded in each compartment of the sections that a word means, and those compartments that have it.
    fn quantity_in(
        &mut self,
        definition: &Definition<Cell>,
        morphology: &Morphology,
        (word, quantity): (&str, &str),
        place: &Place<'a>,
        flat: &FlatPath<'a>,
    ) -> Option<(SymbolId, Arc<[u32]>)> {
        let cell = &definition.item;
        let meant = self.compartments_of(morphology, word, flat)?;
        let found = found_in(cell, morphology, quantity, &meant);
        match &found[..] {
            [(symbol, elements)] => return Some((*symbol, elements.clone())),
            [] if definition.is_unknown(quantity) => {}
            [] => {
                let mut known: Vec<String> = Vec::new();
                let tree = &morphology.tree;
                let firsts = tree.sections.iter().map(|s| s.first).filter(|&e| meant.contains(&(e as u32)));
                for name in firsts.flat_map(|element| known_at(cell, morphology, element)) {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let span = place.rest_span;
                self.error(MorphologyError::NotThere { quantity, place: word, span, known: &known });
            }
            several => self.several_regions(morphology, (word, quantity), several, place.rest_span),
        }
        None
    }

    /// Says that a quantity is several ones where it is recorded.
    fn several_regions(
        &mut self,
        morphology: &Morphology,
        (word, quantity): (&str, &str),
        several: &[(SymbolId, Arc<[u32]>)],
        span: Span,
    ) {
        let regions: Vec<&str> = several.iter().map(|(symbol, _)| region_of(morphology, *symbol)).collect();
        let section = |elements: &[u32]| {
            let name = &morphology.tree.sections[morphology.tree.section[elements[0] as usize] as usize].name;
            name.split('[').next().unwrap_or(name)
        };
        let words: Vec<&str> = several.iter().map(|(_, elements)| section(elements)).collect();
        // Only synapses are in one compartment twice.
        let both = several[0].1.iter().any(|e| several[1].1.binary_search(e).is_ok());
        self.error(MorphologyError::SeveralRegions { quantity, word, regions: &regions, words: &words, both, span });
    }
}

/// The section that a path without a place names, or else the first one.
fn section_meant<'m>(morphology: &'m Morphology, flat: &FlatPath<'_>) -> &'m str {
    let names: Vec<&str> = morphology.tree.sections.iter().map(|section| section.name.as_str()).collect();
    let word = flat.names.get(1).filter(|word| word.text != "all");
    let named = word.and_then(|word| names.iter().find(|name| is_meant(&word.text, name)));
    named.unwrap_or(&names[0])
}

/// Each symbol that a quantity is somewhere in some compartments, with those in which it is that.
fn found_in(cell: &Cell, morphology: &Morphology, quantity: &str, meant: &[u32]) -> Vec<(SymbolId, Arc<[u32]>)> {
    let mut found = Vec::new();
    match morphology.find_everywhere(cell, quantity) {
        Some(symbol) => found.push((symbol, meant.into())),
        None => {
            for part in &morphology.parts {
                let there = |e: &u32| part.elements.binary_search(e).is_ok();
                let elements: Arc<[u32]> = meant.iter().copied().filter(there).collect();
                let symbol = part.find(cell, quantity).filter(|_| !elements.is_empty());
                found.extend(symbol.map(|symbol| (symbol, elements)));
            }
        }
    }
    found.retain(|(symbol, _)| Wanted::Quantity.fits(cell.symbol(*symbol)));
    found
}

/// The region that a symbol is of; `all` where all compartments have it.
fn region_of(morphology: &Morphology, symbol: SymbolId) -> &str {
    match morphology.homes[symbol.0 as usize] {
        Home::Part(part) => &morphology.parts[part].region,
        Home::Cell | Home::Tree => "all",
    }
}

impl<'a> Lowerer<'a> {
    /// The compartments of the sections that a word means, as that of a region does.
    pub(super) fn compartments_of(
        &mut self,
        morphology: &Morphology,
        word: &str,
        flat: &FlatPath<'a>,
    ) -> Option<Arc<[u32]>> {
        let tree = &morphology.tree;
        let meant: Vec<bool> = tree.sections.iter().map(|section| is_meant(word, &section.name)).collect();
        if let (false, Some(name)) = (meant.contains(&true), flat.names.get(1)) {
            self.unknown_section(word, name.span, &tree.sections.iter().map(|s| s.name.as_str()).collect::<Vec<_>>());
            return None;
        }
        let inside = |e: &u32| tree.is_compartment(*e as usize) && meant[tree.section[*e as usize] as usize];
        Some((0..tree.len() as u32).filter(inside).collect())
    }
}

/// Does a word of a region mean a section: all of them, its name, or its name without index?
fn is_meant(word: &str, section: &str) -> bool {
    word == "all" || section.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
}

/// Does a key say how sections are cut?
fn is_cut(key: &str) -> bool {
    matches!(key, "max_length" | "count" | "d_lambda")
}

/// The value in each compartment of what regions give: that of the last one, or `none` where there is none.
fn by_region(
    scope: &Scope,
    regions: &[RegionDraft],
    given: Vec<(usize, SymbolId)>,
    dim: Dim,
    none: Option<Expr>,
) -> Option<Expr> {
    let ty = Ty::Real(dim);
    let mut value = none;
    for (region, id) in given {
        // That of the value: what is wrong with it is said once.
        let entry = scope.entry(id);
        let span = entry.source.as_ref().map_or(entry.span, |(value, _)| value.span);
        let own = Expr::symbol(id, ty, span);
        value = Some(match value {
            _ if regions[region].sections.iter().all(|inside| *inside) => own,
            None => own,
            Some(before) => {
                let kind = ExprKind::Measure(Measure::Group(region as u32));
                let inside = Expr { kind, ty: Ty::Real(Dim::ONE), span };
                let half = Expr::number(0.5, Dim::ONE, span);
                let inside = Expr::binary(BinaryOp::Gt, inside, half);
                Expr { kind: ExprKind::If(Arc::new(inside), Arc::new(own), Arc::new(before)), ty, span }
            }
        });
    }
    value
}

/// The compartments of a region.
fn elements(tree: &Tree, region: &RegionDraft) -> Arc<[u32]> {
    let inside = |e: &u32| {
        let e = *e as usize;
        tree.is_compartment(e) && region.sections[tree.section[e] as usize]
    };
    (0..tree.len() as u32).filter(inside).collect()
}

/// How many symbols may stand for each other.
const DEPTH: usize = 100;

/// The value of a symbol at an element, as far as it is known before the run.
fn value_at(scope: &Scope, tree: &Tree, element: usize, id: SymbolId, depth: usize) -> Option<f64> {
    let value = scope.entry(id).value.as_ref().filter(|_| depth < DEPTH)?;
    number_at(scope, tree, element, value, depth + 1)
}

fn number_at(scope: &Scope, tree: &Tree, element: usize, e: &Expr, depth: usize) -> Option<f64> {
    let of = |e: &Expr| number_at(scope, tree, element, e, depth);
    match &e.kind {
        ExprKind::Symbol(id) => value_at(scope, tree, element, *id, depth),
        ExprKind::Measure(measure) => Some(tree.measure(*measure, element)),
        ExprKind::Binary(
            op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Pow),
            a,
            b,
        ) => {
            let [a, b] = [of(a)?, of(b)?].map(|x| Arc::new(Expr::number(x, Dim::ONE, e.span)));
            constant_of(&Expr { kind: ExprKind::Binary(*op, a, b), ..e.clone() })
        }
        ExprKind::Unary(ast::UnaryOp::Neg, a) => Some(-of(a)?),
        ExprKind::Call(function, args) => match (function, &args[..]) {
            (Builtin::Exp, [x]) => Some(of(x)?.exp()),
            (Builtin::Ln, [x]) => Some(of(x)?.ln()),
            (Builtin::Sqrt, [x]) => Some(of(x)?.sqrt()),
            (Builtin::Abs, [x]) => Some(of(x)?.abs()),
            (Builtin::Tanh, [x]) => Some(of(x)?.tanh()),
            (Builtin::Min, [a, b]) => Some(of(a)?.min(of(b)?)),
            (Builtin::Max, [a, b]) => Some(of(a)?.max(of(b)?)),
            _ => None,
        },
        ExprKind::If(condition, yes, no) => match &condition.kind {
            ExprKind::Binary(BinaryOp::Lt, a, b) => of(if of(a)? < of(b)? { yes } else { no }),
            ExprKind::Binary(BinaryOp::Gt, a, b) => of(if of(a)? > of(b)? { yes } else { no }),
            _ => None,
        },
        _ => constant_of(e),
    }
}

/// What can be recorded at an element.
fn known_at(cell: &Cell, morphology: &Morphology, element: usize) -> Vec<String> {
    let here = |(symbol, home): (&super::Symbol, &Home)| match home {
        _ if !Wanted::Quantity.fits(symbol) || matches!(symbol.kind, SymbolKind::Param(_)) => None,
        // A rate has no path.
        _ if symbol.name.contains(REACTION) => None,
        Home::Cell => None,
        Home::Tree => Some(symbol.name.clone()),
        Home::Part(part) => {
            let part = &morphology.parts[*part];
            let there = part.elements.contains(&(element as u32));
            there.then(|| symbol.name[part.region.len() + 1..].to_string())
        }
    };
    cell.symbols.iter().zip(&morphology.homes).filter_map(here).collect()
}

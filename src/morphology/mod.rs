//! The shape of a cell: sections, cut into the compartments of a tree.
//!
//! In come [`Section`]s, each a row of frusta with the place where it begins; out goes a [`Tree`]: the compartments with their areas, what
//! resists the current between them, how far they are from the root, and what ions diffuse in. Lengths are in cm, as everywhere below the language.
//! Never true here: a property of the membrane, or a resistivity.
//!
//! # Conventions
//!
//! - A section of `n` compartments is cut into `n` pieces of equal length; the area of each is that of its frusta, mantles without ends. Its voltage is that in
//!   its middle. Where the diameter jumps within a section, the ring belongs to the compartment behind it.
//! - Between two middles the current passes half of the one compartment and half of the other: a frustum of length `h` and radii `a` and
//!   `b` resists with `ra h / (pi a b)`.
//! - A section `from soma(1)` begins at the end of its parent, `from soma(0)` at its start, and `from soma(x)` with an x between in the middle of the
//!   compartment of `x`. Where two or more begin at one end there is a *node*, an element of the tree without area and membrane, so that the current that enters
//!   it leaves it. (NEURON has such a node at the end of every section. Where one section or none begins there, it changes nothing.)
//! - What starts at the start of a section that is not the root starts where that section does.
//! - The place `x` lies in compartment `floor(x n)`, `x = 1` in the last one: the middle of an even number of compartments is that behind it. (In
//!   NEURON, places 0 and 1 are nodes at the ends.)
//! - Distance is counted along the sections from the middle of the root section.

pub mod drawing;
pub mod space;
pub mod swc;

use std::f64::consts::PI;
use std::sync::Arc;

/// A piece of a cone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frustum {
    /// Its length, in cm; 0 is a ring.
    pub length: f64,
    /// The diameters at its start and its end, in cm.
    pub diam: [f64; 2],
}

/// An unbranched piece of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// The section that it begins at, by index, and where along that; none for the root.
    pub from: Option<(usize, f64)>,
    /// Its shape, from its start on.
    pub frusta: Vec<Frustum>,
    /// Where it is in space, in cm: the ends of its frusta, one more than those; nothing of a section that was not measured.
    pub points: Vec<[f64; 3]>,
    /// How many compartments it is cut into.
    pub compartments: usize,
}

/// A section of a [`Tree`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its name.
    pub name: String,
    /// Its first element.
    pub first: usize,
    /// How many compartments it has, behind each other from the first on.
    pub count: usize,
}

/// The compartments of a cell, parents before children, and the nodes between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The sections, as they were given.
    pub sections: Vec<Piece>,
    /// The parent of each element; the root is its own.
    pub parents: Arc<[u32]>,
    /// The section of each element.
    pub section: Vec<u32>,
    /// The length of each element, in cm; that of a node is 0.
    pub length: Vec<f64>,
    /// The area of each element, in cm2; that of a node is 0.
    pub area: Vec<f64>,
    /// What resists from the element to the border of its parent, over its resistivity, in 1/cm.
    pub near: Vec<f64>,
    /// What resists from there to the middle of the parent, over the resistivity of the parent, in 1/cm.
    pub far: Vec<f64>,
    /// How far its middle is from that of the root section, in cm.
    pub distance: Vec<f64>,
    /// Groups of sections, such as those of a region: is each section in it?
    pub groups: Vec<Vec<bool>>,
    /// What ions diffuse in, for each kind of them.
    pub lumens: Vec<Lumen>,
}

/// What ions diffuse in along a cell: the whole cross-section, or a shell beneath the membrane.
#[derive(Debug, Clone, PartialEq)]
pub struct Lumen {
    /// The volume of each element, in cm3; 0 of nodes, and of compartments without such ions.
    pub volume: Vec<f64>,
    /// The integral of length over cross-section from the element to the border of its parent, in 1/cm.
    pub near: Vec<f64>,
    /// The same from there to the middle of the parent, in 1/cm.
    pub far: Vec<f64>,
}

/// Where in a section ions are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Within {
    /// Nowhere.
    Nothing,
    /// In the whole cross-section.
    All,
    /// Less deep beneath the membrane, in cm; in the whole cross-section where that is no wider.
    Shell(f64),
}

/// A number for every element of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// [`Tree::area`].
    Area,
    /// [`Tree::near`].
    Near,
    /// [`Tree::far`].
    Far,
    /// 1 if it has a parent, 0 if it is the root.
    Joined,
    /// [`Tree::distance`].
    Distance,
    /// 1 if its section is one of this group, else 0.
    Group(u32),
    /// [`Lumen::volume`] of such ions.
    Volume(u32),
    /// [`Lumen::near`] of such ions.
    IonsNear(u32),
    /// [`Lumen::far`] of such ions.
    IonsFar(u32),
}

impl Measure {
    /// It as a number, for the text form of the step IR.
    pub fn number(self) -> u32 {
        match self {
            Measure::Area => 0,
            Measure::Near => 1,
            Measure::Far => 2,
            Measure::Joined => 3,
            Measure::Distance => 4,
            Measure::Group(group) => 5 + 4 * group,
            Measure::Volume(ions) => 6 + 4 * ions,
            Measure::IonsNear(ions) => 7 + 4 * ions,
            Measure::IonsFar(ions) => 8 + 4 * ions,
        }
    }

    /// What has this number.
    pub fn of_number(number: u32) -> Measure {
        match number {
            0 => Measure::Area,
            1 => Measure::Near,
            2 => Measure::Far,
            3 => Measure::Joined,
            4 => Measure::Distance,
            many => match ((many - 5) / 4, many % 4) {
                (group, 1) => Measure::Group(group),
                (ions, 2) => Measure::Volume(ions),
                (ions, 3) => Measure::IonsNear(ions),
                (ions, _) => Measure::IonsFar(ions),
            },
        }
    }

    /// What it is called.
    pub fn name(self) -> String {
        match self {
            Measure::Area => "area".into(),
            Measure::Near => "near".into(),
            Measure::Far => "far".into(),
            Measure::Joined => "joined".into(),
            Measure::Distance => "distance".into(),
            Measure::Group(group) => format!("group{group}"),
            Measure::Volume(ions) => format!("volume{ions}"),
            Measure::IonsNear(ions) => format!("ions_near{ions}"),
            Measure::IonsFar(ions) => format!("ions_far{ions}"),
        }
    }
}

/// Why sections are no tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeError {
    /// There is none.
    Nothing,
    /// Two sections begin nowhere: by index.
    TwoRoots(usize, usize),
    /// Sections begin at each other: one of them, by index.
    Loop(usize),
}

/// Where a section begins.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// At the start of the root.
    Start,
    /// At the end of a section.
    End(usize),
    /// In the middle of an element.
    Middle(usize),
}

impl Section {
    /// Its length, in cm.
    pub fn length(&self) -> f64 {
        self.frusta.iter().map(|f| f.length).sum()
    }

    /// Its length over the root of its diameter, in roots of cm: times the root of `4 pi f ra cm`, how many length constants it is long at
    /// a frequency `f`.
    pub fn lengths_over_root_of_diam(&self) -> f64 {
        self.frusta.iter().map(|f| f.length / (0.5 * (f.diam[0] + f.diam[1])).sqrt()).sum()
    }

    /// Volume and resistance (as of a resistivity of 1) of what ions are in between two places along it, in cm from its start.
    fn inside(&self, from: f64, to: f64, within: Within) -> (f64, f64) {
        let depth = match within {
            Within::Nothing => return (0.0, 0.0),
            Within::All => f64::INFINITY,
            Within::Shell(depth) => depth,
        };
        let (mut volume, mut resistance, mut start) = (0.0, 0.0, 0.0);
        for f in self.frusta.iter().filter(|f| f.length > 0.0) {
            let end = start + f.length;
            let (a, b) = (from.max(start), to.min(end));
            if b > a {
                let [first, last] = f.diam.map(|diam| 0.5 * diam);
                let radius = |x: f64| first + (last - first) * ((x - start) / f.length);
                // Where it gets as narrow as the shell is deep.
                let narrow = start + f.length * (depth - first) / (last - first);
                let cut = if a < narrow && narrow < b { narrow } else { b };
                for (a, b) in [(a, cut), (cut, b)].into_iter().filter(|(a, b)| a < b) {
                    let (h, r, s) = (b - a, radius(a), radius(b));
                    let of_piece = match r + s <= 2.0 * depth {
                        true => (PI / 3.0 * h * (r * r + r * s + s * s), h / (PI * r * s)),
                        false => shell(h, [r, s].map(|r| PI * depth * (2.0 * r - depth))),
                    };
                    (volume, resistance) = (volume + of_piece.0, resistance + of_piece.1);
                }
            }
            start = end;
        }
        (volume, resistance)
    }

    /// Area and resistance (over the resistivity) between two places along it, in cm from its start.
    fn between(&self, from: f64, to: f64) -> (f64, f64) {
        let (mut area, mut resistance, mut start) = (0.0, 0.0, 0.0);
        let whole = self.length();
        for f in &self.frusta {
            let end = start + f.length;
            let (a, b) = (from.max(start), to.min(end));
            if f.length == 0.0 {
                // A ring belongs to what it begins, at the end of the section to what it ends.
                if from <= start && (start < to || to >= whole) {
                    area += PI * 0.25 * (f.diam[1].powi(2) - f.diam[0].powi(2)).abs();
                }
            } else if b > a {
                let radius = |x: f64| 0.5 * (f.diam[0] + (f.diam[1] - f.diam[0]) * ((x - start) / f.length));
                let (h, r, s) = (b - a, radius(a), radius(b));
                area += PI * (r + s) * h.hypot(s - r);
                resistance += h / (PI * r * s);
            }
            start = end;
        }
        (area, resistance)
    }
}

/// Volume and resistance of a piece of a length whose cross-section goes straight from one area to another.
fn shell(length: f64, [first, last]: [f64; 2]) -> (f64, f64) {
    let growth = (last - first) / first;
    // ln(1 + x) / x
    let mean = if growth == 0.0 { 1.0 } else { growth.ln_1p() / growth };
    (0.5 * length * (first + last), length / first * mean)
}

impl Tree {
    /// Cuts sections into compartments. Lengths, diameters and numbers of compartments are above zero.
    pub fn new(sections: &[Section]) -> Result<Tree, TreeError> {
        Tree::cut(sections, |s, from, to| sections[s].between(from, to))
    }

    /// What ions diffuse in that are in these sections, each cut into its compartments.
    pub fn lumen(sections: &[Section], within: &[Within]) -> Result<Lumen, TreeError> {
        let tree = Tree::cut(sections, |s, from, to| sections[s].inside(from, to, within[s]))?;
        Ok(Lumen { volume: tree.area, near: tree.near, far: tree.far })
    }

    /// Cuts sections into compartments, where it is given what a section has between two places along it: an area (or in its stead a volume), and a
    /// resistance.
    fn cut(sections: &[Section], between: impl Fn(usize, f64, f64) -> (f64, f64)) -> Result<Tree, TreeError> {
        let order = order(sections)?;
        let mut tree = Tree {
            sections: sections
                .iter()
                .map(|s| Piece { name: s.name.clone(), first: 0, count: s.compartments })
                .collect(),
            parents: Arc::from([]),
            section: Vec::new(),
            length: Vec::new(),
            area: Vec::new(),
            near: Vec::new(),
            far: Vec::new(),
            distance: Vec::new(),
            groups: Vec::new(),
            lumens: Vec::new(),
        };
        let mut parents: Vec<u32> = Vec::new();
        let places: Vec<Option<(usize, f64)>> = sections.iter().map(|s| begins(sections, s.from)).collect();
        // How many sections begin at the start of the root, and at the end of each.
        let at_start = places.iter().flatten().filter(|(_, x)| *x == 0.0).count();
        let mut at_end = vec![0; sections.len()];
        places.iter().flatten().filter(|p| p.1 == 1.0).for_each(|p| at_end[p.0] += 1);
        // The element, the resistance to it and the distance of what begins there.
        let mut start = (0, 0.0);
        let mut ends = vec![(0, 0.0); sections.len()];
        // The distance of the start of each section, and which way it counts.
        let mut starts = vec![0.0; sections.len()];
        for s in order {
            let section = &sections[s];
            let n = section.compartments;
            let (length, first) = (section.length(), tree.area.len());
            tree.sections[s].first = first;
            let place = places[s].map(|(parent, x)| match x {
                0.0 => Place::Start,
                1.0 => Place::End(parent),
                x => Place::Middle(tree.sections[parent].at(x)),
            });
            starts[s] = match section.from {
                None => -0.5 * length,
                Some((parent, x)) => (starts[parent] + x * sections[parent].length()).abs(),
            };
            for i in 0..n {
                // The last one is the end itself, where a ring may be.
                let cut = |k: f64| if k == n as f64 { length } else { length * k / n as f64 };
                let (from, middle, to) = (cut(i as f64), cut(i as f64 + 0.5), cut(i as f64 + 1.0));
                let before = between(s, from, middle);
                let after = between(s, middle, to);
                let (parent, far) = match (i, place) {
                    (0, None) => (0, 0.0),
                    (0, Some(Place::Start)) => start,
                    (0, Some(Place::End(parent))) => ends[parent],
                    (0, Some(Place::Middle(element))) => (element as u32, 0.0),
                    (_, _) => ((first + i - 1) as u32, between(s, cut(i as f64 - 0.5), from).1),
                };
                parents.push(parent);
                tree.length.push(length / n as f64);
                tree.push(s, before.0 + after.0, before.1, far, (starts[s] + middle).abs());
            }
            let last = tree.area.len() - 1;
            ends[s] = (last as u32, between(s, length * (n as f64 - 0.5) / n as f64, length).1);
            if places[s].is_none() {
                start = (first as u32, between(s, 0.0, 0.5 * length / n as f64).1);
                if at_start > 1 {
                    parents.push(start.0);
                    tree.length.push(0.0);
                    tree.push(s, 0.0, 0.0, start.1, 0.5 * length);
                    start = (tree.area.len() as u32 - 1, 0.0);
                }
            }
            if at_end[s] > 1 {
                parents.push(ends[s].0);
                tree.length.push(0.0);
                tree.push(s, 0.0, 0.0, ends[s].1, (starts[s] + length).abs());
                ends[s] = (tree.area.len() as u32 - 1, 0.0);
            }
        }
        tree.parents = parents.into();
        Ok(tree)
    }

    fn push(&mut self, section: usize, area: f64, near: f64, far: f64, distance: f64) {
        self.section.push(section as u32);
        self.area.push(area);
        self.near.push(near);
        self.far.push(far);
        self.distance.push(distance);
    }

    /// How many elements there are, nodes among them.
    pub fn len(&self) -> usize {
        self.area.len()
    }

    /// Is there none? Never.
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// A number of an element.
    pub fn measure(&self, measure: Measure, element: usize) -> f64 {
        match measure {
            Measure::Area => self.area[element],
            Measure::Near => self.near[element],
            Measure::Far => self.far[element],
            Measure::Joined => f64::from(u8::from(self.parents[element] as usize != element)),
            Measure::Distance => self.distance[element],
            Measure::Group(group) => f64::from(u8::from(self.groups[group as usize][self.section[element] as usize])),
            Measure::Volume(ions) => self.lumens[ions as usize].volume[element],
            Measure::IonsNear(ions) => self.lumens[ions as usize].near[element],
            Measure::IonsFar(ions) => self.lumens[ions as usize].far[element],
        }
    }

    /// Is an element a compartment (and no node)?
    pub fn is_compartment(&self, element: usize) -> bool {
        let piece = &self.sections[self.section[element] as usize];
        (piece.first..piece.first + piece.count).contains(&element)
    }

    /// What an element is called, such as `dend(0.25)`: a compartment by its middle, to as many digits as tell it from others.
    pub fn name(&self, element: usize) -> String {
        let piece = &self.sections[self.section[element] as usize];
        match self.is_compartment(element) {
            true => {
                let digits = (piece.count.ilog10() + 2).max(4);
                let unit = 10f64.powi(digits as i32);
                let middle = ((element - piece.first) as f64 + 0.5) / piece.count as f64;
                format!("{}({})", piece.name, (middle * unit).round() / unit)
            }
            false => format!("a node of {}", piece.name),
        }
    }
}

impl Piece {
    /// The element of a place along it, from 0 to 1.
    pub fn at(&self, x: f64) -> usize {
        self.first + ((x * self.count as f64).floor() as usize).min(self.count - 1)
    }
}

/// Sections behind those that they begin at.
fn order(sections: &[Section]) -> Result<Vec<usize>, TreeError> {
    let mut roots = (0..sections.len()).filter(|&s| sections[s].from.is_none());
    if sections.is_empty() {
        return Err(TreeError::Nothing);
    }
    let Some(root) = roots.next() else { return Err(TreeError::Loop(looped(sections, &[]))) };
    if let Some(second) = roots.next() {
        return Err(TreeError::TwoRoots(root, second));
    }
    let mut children = vec![Vec::new(); sections.len()];
    for (s, section) in sections.iter().enumerate() {
        if let Some((parent, _)) = section.from {
            children[parent].push(s);
        }
    }
    // Each branch is followed to its end before the next: what is solved together lies together.
    let (mut order, mut waiting) = (Vec::new(), vec![root]);
    while let Some(s) = waiting.pop() {
        order.push(s);
        waiting.extend(children[s].iter().rev());
    }
    match order.len() == sections.len() {
        true => Ok(order),
        false => Err(TreeError::Loop(looped(sections, &order))),
    }
}

/// A section on a loop, among those that are not `reached`.
fn looped(sections: &[Section], reached: &[usize]) -> usize {
    let mut at = (0..sections.len()).find(|s| !reached.contains(s)).unwrap_or(0);
    for _ in 0..sections.len() {
        at = sections[at].from.map_or(at, |from| from.0);
    }
    at
}

/// Where a section begins that begins at a place of another: what starts with a section that is not the root starts where that does.
fn begins(sections: &[Section], from: Option<(usize, f64)>) -> Option<(usize, f64)> {
    let (mut parent, mut x) = from?;
    while let (0.0, Some(above)) = (x, sections[parent].from) {
        (parent, x) = above;
    }
    Some((parent, x))
}

#[cfg(test)]
mod tests;

//! Reconstructed shapes: SWC files.
//!
//! In comes the text of a file; out go its sections with their frusta, and how the soma was understood, or all that is wrong with the file, with line numbers.
//! Never true here: the order of the lines, or the numbers that points have, decides about the shape. (Sections are counted in the order of the numbers.)
//!
//! # Conventions
//!
//! - A line is `id type x y z radius parent`, in um; the parent of the root is -1. `#` begins a comment.
//! - **The root is the soma.** If the file begins elsewhere, the tree is turned round. There is one tree, and one soma.
//! - **The soma** is what [`Soma`] says.
//! - **Sections** end where the cell branches, and where the type changes. They are called `soma`, `axon[0]`, `dend[0]`, `apic[0]`, and `type5[0]` for other
//!   types, counted from 0 in the order of the ids of their first points.
//! - **A section begins at the point that it branches from**, with the diameter there: every point and its parent are the ends of a frustum.
//! - **The stub between soma and neurite**: a neurite that begins at the end of a soma of frusta begins there, with the diameter of its first point. Any
//!   other begins at its own first point, and the way there lies in the soma: it has neither area nor resistance. (If the neurite is one point,
//!   that way is all there is, and is taken.) If it branches at its first point, all branches begin at that place of the soma.
//! - A point at the place of its parent makes a frustum without length: where the diameter jumps, the mantle is a ring.
//!
//! This is what NEURON's reader does, too, but for its faults: there, ids must rise, a chain whose points are not in consecutive lines is cut into sections,
//! a second tree is joined to the soma, a neurite in the middle of a soma of frusta begins at 0.5, and outlines are frusta.

use super::Frustum;
use std::collections::BTreeMap;

/// The farthest place, and the largest radius, in um: a kilometre.
const FARTHEST: f64 = 1e9;

/// From um to cm.
const CM: f64 = 1e-4;

/// A section of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Its name, such as `dend[3]`.
    pub name: String,
    /// The section that it begins at, by index, and where along that; none for the root.
    pub from: Option<(usize, f64)>,
    /// Its shape, from its start on.
    pub frusta: Vec<Frustum>,
    /// The ends of its frusta, in cm; of a soma that is understood as a sphere, two about its centre.
    pub points: Vec<[f64; 3]>,
    /// The line (from 1) of its first point.
    pub line: usize,
}

/// How the points of the soma were understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Soma {
    /// One point: a cylinder as long as it is thick, whose mantle is that of the sphere.
    Sphere,
    /// Three points, two of them at a radius from the first: the same (NeuroMorpho.org's form since 2012).
    ThreePoints,
    /// So many points around an outline: the same, with their mean distance from their centre as the radius (NeuroMorpho.org's rule).
    Outline(usize),
    /// So many points in a row: frusta.
    Frusta(usize),
    /// So many points that branch: frusta, in sections of their own.
    Branched(usize),
}

impl Soma {
    /// What it is, in words.
    pub fn describe(self) -> String {
        match self {
            Soma::Sphere => "one point: a cylinder with the area of the sphere".into(),
            Soma::ThreePoints => "three points of NeuroMorpho.org: a cylinder with the area of the sphere".into(),
            Soma::Outline(n) => {
                format!("an outline of {n} points: a cylinder with the area of the sphere of their mean radius")
            }
            Soma::Frusta(n) => format!("{n} points in a row: frusta"),
            Soma::Branched(n) => format!("{n} points that branch: frusta, in sections of their own"),
        }
    }
}

/// A cell of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Reconstruction {
    /// Its sections, the root first.
    pub branches: Vec<Branch>,
    /// How its soma was understood.
    pub soma: Soma,
    /// The lines of points that are at the place of their parent.
    pub doubled: Vec<usize>,
}

/// A mistake in a file. Lines count from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct SwcError {
    /// What is wrong.
    pub fault: Fault,
    /// In which line, if it is in one.
    pub line: Option<usize>,
    /// The line with which that does not agree.
    pub other: Option<usize>,
}

/// What can be wrong with a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// There is no point.
    Empty,
    /// A line has so many columns, not seven.
    Columns(usize),
    /// A column (by its name) is no number, or none that it can be.
    Number(&'static str, String),
    /// A radius is not above zero.
    Radius,
    /// Two points have this number.
    Twice(i64),
    /// There is no point of this number, which is named as a parent.
    NoParent(i64),
    /// The point of this number descends from itself.
    Loop(i64),
    /// A second point has no parent.
    TwoRoots,
    /// No point is of the soma.
    NoSoma,
    /// Points of the soma are apart from its others.
    TwoSomas,
    /// A section has no length: its last point is where it begins.
    NoLength,
}

impl Fault {
    fn at(self, line: usize) -> SwcError {
        SwcError { fault: self, line: Some(line), other: None }
    }

    fn at_both(self, line: usize, other: usize) -> SwcError {
        SwcError { fault: self, line: Some(line), other: Some(other) }
    }

    fn of_the_file(self) -> SwcError {
        SwcError { fault: self, line: None, other: None }
    }
}

/// A line of a file. Lengths are in um.
#[derive(Debug, Clone)]
struct Point {
    line: usize,
    id: i64,
    kind: i64,
    at: [f64; 3],
    radius: f64,
    /// By index; none for the root.
    parent: Option<usize>,
    /// By index, in the order of their ids.
    children: Vec<usize>,
}

const SOMA: i64 = 1;

/// Reads a file. All that is wrong with its lines is given; what is wrong with the tree if nothing is wrong with the lines.
pub fn read(text: &str) -> Result<Reconstruction, Vec<SwcError>> {
    let points = points(text)?;
    let cell = Cell::new(points).map_err(|error| vec![error])?;
    cell.reconstruction()
}

// ---------------------------------------------------------------------------------------------- lines

fn points(text: &str) -> Result<Vec<Point>, Vec<SwcError>> {
    let (mut points, mut parents, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    // The mark that some editors put before a text is no part of it.
    let text = text.trim_start_matches('\u{feff}');
    for (line, text) in text.lines().enumerate().map(|(i, text)| (i + 1, text)) {
        let columns: Vec<&str> = text.split('#').next().unwrap_or("").split_whitespace().collect();
        match columns[..] {
            [] => {}
            [id, kind, x, y, z, radius, parent] => match point(line, [id, kind, x, y, z, radius, parent]) {
                Ok((point, parent)) => {
                    points.push(point);
                    parents.push(parent);
                }
                Err(error) => errors.push(error),
            },
            _ => errors.push(Fault::Columns(columns.len()).at(line)),
        }
    }
    if points.is_empty() && errors.is_empty() {
        errors.push(Fault::Empty.of_the_file());
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut of_id = BTreeMap::new();
    for (i, point) in points.iter().enumerate() {
        if let Some(first) = of_id.get(&point.id).map(|&first: &usize| points[first].line) {
            errors.push(Fault::Twice(point.id).at_both(point.line, first));
        } else {
            of_id.insert(point.id, i);
        }
    }
    for (point, parent) in points.iter_mut().zip(parents).filter(|(_, parent)| *parent >= 0) {
        point.parent = of_id.get(&parent).copied();
        if point.parent.is_none() {
            errors.push(Fault::NoParent(parent).at(point.line));
        }
    }
    if errors.is_empty() { Ok(points) } else { Err(errors) }
}

/// A point without its parent, whose id stands beside it.
fn point(line: usize, columns: [&str; 7]) -> Result<(Point, i64), SwcError> {
    const NAMES: [&str; 7] = ["id", "type", "x", "y", "z", "radius", "parent"];
    let wrong = |i: usize| Fault::Number(NAMES[i], columns[i].to_string()).at(line);
    let number = |i: usize| columns[i].parse::<f64>().map_err(|_| wrong(i));
    let whole = |i: usize, least: f64| match number(i)? {
        x if x.fract() == 0.0 && x >= least && x <= 1e15 => Ok(x as i64),
        _ => Err(wrong(i)),
    };
    let place = |i: usize| match number(i)? {
        x if x.abs() <= FARTHEST => Ok(x),
        _ => Err(wrong(i)),
    };
    let (id, kind) = (whole(0, 0.0)?, whole(1, 0.0)?);
    let at = [place(2)?, place(3)?, place(4)?];
    let radius = number(5)?;
    if radius.is_nan() || radius <= 0.0 {
        return Err(Fault::Radius.at(line));
    }
    let radius = place(5)?;
    Ok((Point { line, id, kind, at, radius, parent: None, children: Vec::new() }, whole(6, -1e15)?))
}

// ---------------------------------------------------------------------------------------------- the tree

/// Points that are a tree whose root is the soma.
struct Cell {
    points: Vec<Point>,
    root: usize,
    /// Points by id.
    order: Vec<usize>,
}

impl Cell {
    fn new(mut points: Vec<Point>) -> Result<Cell, SwcError> {
        let mut roots = (0..points.len()).filter(|&i| points[i].parent.is_none());
        let Some(root) = roots.next() else { return Err(looped(&points, 0)) };
        if let Some(second) = roots.next() {
            return Err(Fault::TwoRoots.at_both(points[second].line, points[root].line));
        }
        find_loops(&points)?;
        let mut tops = (0..points.len())
            .filter(|&i| points[i].kind == SOMA && points[i].parent.is_none_or(|parent| points[parent].kind != SOMA));
        let Some(top) = tops.next() else { return Err(Fault::NoSoma.of_the_file()) };
        if let Some(second) = tops.next() {
            return Err(Fault::TwoSomas.at_both(points[second].line, points[top].line));
        }
        // From the soma to the root, each point becomes the parent of the one that was its own.
        let (mut at, mut parent) = (Some(top), None);
        while let Some(point) = at {
            at = std::mem::replace(&mut points[point].parent, parent);
            parent = Some(point);
        }
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by_key(|&i| points[i].id);
        for &i in &order {
            if let Some(parent) = points[i].parent {
                points[parent].children.push(i);
            }
        }
        Ok(Cell { points, root: top, order })
    }

    fn is_soma(&self, point: usize) -> bool {
        self.points[point].kind == SOMA
    }

    /// The children of a point that are of the soma.
    fn soma_children(&self, point: usize) -> Vec<usize> {
        self.points[point].children.iter().copied().filter(|&i| self.is_soma(i)).collect()
    }

    fn distance(&self, a: usize, b: usize) -> f64 {
        between(self.points[a].at, self.points[b].at)
    }
}

fn between(a: [f64; 3], b: [f64; 3]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1]).hypot(a[2] - b[2])
}

/// Every point leads to the root.
fn find_loops(points: &[Point]) -> Result<(), SwcError> {
    // In which round a point was passed first.
    let mut passed = vec![0; points.len()];
    for first in 0..points.len() {
        let mut at = Some(first);
        while let Some(point) = at.filter(|&point| passed[point] == 0) {
            passed[point] = first + 1;
            at = points[point].parent;
        }
        if let Some(point) = at.filter(|&point| passed[point] == first + 1) {
            return Err(looped(points, point));
        }
    }
    Ok(())
}

/// The first line of the loop that a point leads to.
fn looped(points: &[Point], from: usize) -> SwcError {
    let mut at = from;
    for _ in 0..points.len() {
        at = points[at].parent.unwrap_or(at);
    }
    let (mut first, start) = (at, at);
    while let Some(parent) = points[at].parent.filter(|&parent| parent != start) {
        at = parent;
        if points[at].line < points[first].line {
            first = at;
        }
    }
    Fault::Loop(points[first].id).at(points[first].line)
}

// ---------------------------------------------------------------------------------------------- sections

/// Where what begins at a point of the soma does.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The section.
    branch: usize,
    /// How far along it.
    x: f64,
    /// Is the point an end of the soma, so that the way from there is outside?
    end: bool,
}

/// What the sections of a cell are made of.
struct Drawing<'a> {
    cell: &'a Cell,
    branches: Vec<Branch>,
    /// Of points of the soma, and of those at which a neurite branches that has not begun yet.
    places: BTreeMap<usize, Place>,
    errors: Vec<SwcError>,
    doubled: Vec<usize>,
}

/// An end of a frustum: place and radius (um), and the line.
type Node = ([f64; 3], f64, usize);

impl Cell {
    fn reconstruction(&self) -> Result<Reconstruction, Vec<SwcError>> {
        let (branches, places) = (Vec::new(), BTreeMap::new());
        let mut drawing = Drawing { cell: self, branches, places, errors: Vec::new(), doubled: Vec::new() };
        let soma = drawing.soma();
        drawing.neurites();
        drawing.doubled.sort_unstable();
        match drawing.errors.is_empty() {
            true => Ok(Reconstruction { branches: drawing.branches, soma, doubled: drawing.doubled }),
            false => Err(drawing.errors),
        }
    }

    fn node(&self, point: usize) -> Node {
        let p = &self.points[point];
        (p.at, p.radius, p.line)
    }

    /// The points of the soma from one end to the other, if it does not branch: from the root, or from the end that has the lower id on its way.
    fn row(&self) -> Option<Vec<usize>> {
        let row = match self.soma_children(self.root)[..] {
            [] => vec![self.root],
            [only] => self.chain(self.root, only),
            [first, second] => {
                let mut row = self.chain(self.root, first);
                row.reverse();
                row.extend(&self.chain(self.root, second)[1..]);
                row
            }
            _ => return None,
        };
        let points = self.order.iter().filter(|&&i| self.is_soma(i)).count();
        (row.len() == points).then_some(row)
    }

    /// The points of the soma from one on, through another, as far as they do not branch.
    fn chain(&self, from: usize, through: usize) -> Vec<usize> {
        let mut chain = vec![from, through];
        while let [next] = self.soma_children(chain[chain.len() - 1])[..] {
            chain.push(next);
        }
        chain
    }

    /// Is the soma that of NeuroMorpho.org: a centre and two points at one radius from it, with nothing at them?
    fn is_three_points(&self) -> bool {
        let [a, b] = self.soma_children(self.root)[..] else { return false };
        let radius = self.points[self.root].radius;
        let plain = |i: usize| self.points[i].children.is_empty() && self.points[i].radius == radius;
        let length = self.distance(self.root, a) + self.distance(self.root, b);
        plain(a) && plain(b) && (length / (2.0 * radius) - 1.0).abs() < 0.01
    }

    /// The centre of the soma's outline, its mean radius and how many points it has, if the points are around one: the row ends where it
    /// began, far from the centre for the thickness of its line.
    fn outline(&self, row: &[usize]) -> Option<([f64; 3], f64, usize)> {
        let (first, last) = (*row.first()?, *row.last()?);
        // One that is closed by its first point is the same outline.
        let closed = row.len() > 1 && self.points[first].at == self.points[last].at;
        let around = &row[..row.len() - usize::from(closed)];
        let longest = row.windows(2).map(|w| self.distance(w[0], w[1])).fold(0.0, f64::max);
        let n = around.len() as f64;
        let centre = [0, 1, 2].map(|axis| around.iter().map(|&i| self.points[i].at[axis]).sum::<f64>() / n);
        let radius = around.iter().map(|&i| between(self.points[i].at, centre)).sum::<f64>() / n;
        let thickest = row.iter().map(|&i| self.points[i].radius).fold(0.0, f64::max);
        (around.len() > 3 && self.distance(first, last) <= 1.01 * longest && thickest < 0.5 * radius).then_some((
            centre,
            radius,
            around.len(),
        ))
    }
}

impl Drawing<'_> {
    /// Draws the soma.
    fn soma(&mut self) -> Soma {
        let (cell, root) = (self.cell, self.cell.root);
        let points: Vec<usize> = cell.order.iter().copied().filter(|&i| cell.is_soma(i)).collect();
        let (radius, line) = (cell.points[root].radius, cell.points[root].line);
        let row = cell.row();
        let sphere = match &row {
            Some(row) if row.len() == 1 => Some((cell.points[root].at, radius, Soma::Sphere)),
            Some(row) if row.len() == 3 && cell.is_three_points() => {
                Some((cell.points[root].at, radius, Soma::ThreePoints))
            }
            Some(row) => cell.outline(row).map(|(centre, radius, n)| (centre, radius, Soma::Outline(n))),
            None => None,
        };
        match (sphere, row) {
            (Some((centre, radius, soma)), _) => {
                let nodes = [([0.0, -radius, 0.0], radius, line), ([0.0, radius, 0.0], radius, line)];
                self.branch("soma".into(), None, &nodes, line);
                // Lengths are measured before the sphere is moved to its place, which rounds.
                for point in self.branches.iter_mut().flat_map(|branch| &mut branch.points) {
                    *point = [0, 1, 2].map(|axis| point[axis] + centre[axis] * CM);
                }
                self.places.extend(points.iter().map(|&i| (i, Place { branch: 0, x: 0.5, end: false })));
                soma
            }
            (None, Some(row)) => {
                self.soma_section("soma".into(), None, &row);
                Soma::Frusta(row.len())
            }
            (None, None) => {
                self.branched_soma();
                Soma::Branched(points.len())
            }
        }
    }

    /// Draws a soma that branches, from the root on.
    fn branched_soma(&mut self) {
        let cell = self.cell;
        let onwards = |point: usize| cell.soma_children(point).into_iter().rev().map(move |child| (point, child));
        let mut waiting: Vec<(usize, usize)> = onwards(cell.root).collect();
        while let Some((parent, first)) = waiting.pop() {
            let row = cell.chain(parent, first);
            waiting.extend(row.last().copied().into_iter().flat_map(onwards));
            // What begins at the root begins at the start of the first section.
            let from = self.places.get(&parent).map(|place| (place.branch, place.x));
            self.soma_section(format!("soma[{}]", self.branches.len()), from, &row);
        }
    }

    /// Draws a section of a soma of frusta. What begins at its points begins there.
    fn soma_section(&mut self, name: String, from: Option<(usize, f64)>, row: &[usize]) {
        let (cell, branch) = (self.cell, self.branches.len());
        let nodes: Vec<Node> = row.iter().map(|&i| cell.node(i)).collect();
        let length: f64 = nodes.windows(2).map(|w| between(w[0].0, w[1].0)).sum();
        let mut way = 0.0;
        for (k, &point) in row.iter().enumerate() {
            if k > 0 {
                way += cell.distance(row[k - 1], point);
            }
            let x = if k + 1 == row.len() { 1.0 } else { way / length };
            let end = usize::from(point != cell.root) + cell.soma_children(point).len() == 1;
            self.places.entry(point).or_insert(Place { branch, x, end });
        }
        self.branch(name, from, &nodes, cell.points[row[usize::from(from.is_some())]].line);
    }

    /// Draws all that is not the soma.
    fn neurites(&mut self) {
        let cell = self.cell;
        // The section in which a point is, for what begins at its end.
        let mut section = BTreeMap::new();
        let mut counts = BTreeMap::new();
        self.find_hubs();
        let firsts: Vec<usize> = cell.order.iter().copied().filter(|&i| self.begins_section(i)).collect();
        let chains: Vec<Vec<usize>> = firsts.iter().map(|&first| self.chain(first)).collect();
        let somas = self.branches.len();
        for (number, chain) in chains.iter().enumerate() {
            section.extend(chain.last().map(|&last| (last, somas + number)));
        }
        for (first, chain) in firsts.into_iter().zip(chains) {
            let own: Vec<Node> = chain.iter().map(|&i| cell.node(i)).collect();
            let Some(parent) = cell.points[first].parent else { continue };
            let (at, radius, line) = cell.node(parent);
            let (from, before) = match (self.places.get(&parent), section.get(&parent)) {
                (Some(place), _) if !cell.is_soma(parent) => (Some((place.branch, place.x)), Some((at, radius, line))),
                (Some(place), _) => {
                    let drawn = place.end || own.len() == 1;
                    (Some((place.branch, place.x)), drawn.then_some((at, own[0].1, line)))
                }
                (None, Some(&parent)) => (Some((parent, 1.0)), Some((at, radius, line))),
                (None, None) => continue,
            };
            let nodes: Vec<Node> = before.into_iter().chain(own).collect();
            let kind = cell.points[first].kind;
            let count = counts.entry(kind).or_insert(0);
            let name = match kind {
                2 => format!("axon[{count}]"),
                3 => format!("dend[{count}]"),
                4 => format!("apic[{count}]"),
                kind => format!("type{kind}[{count}]"),
            };
            *count += 1;
            self.branch(name, from, &nodes, cell.points[first].line);
        }
    }

    /// Finds the first points of neurites in the soma at which they branch at once: what begins there begins at the soma.
    fn find_hubs(&mut self) {
        let cell = self.cell;
        for &point in &cell.order {
            let p = &cell.points[point];
            let soma = p.parent.filter(|&parent| cell.is_soma(parent) && !cell.is_soma(point));
            let place = soma.and_then(|soma| self.places.get(&soma).copied()).filter(|place| !place.end);
            let goes_on = matches!(p.children[..], [only] if cell.points[only].kind == p.kind);
            if let (Some(place), false, false) = (place, goes_on, p.children.is_empty()) {
                self.places.insert(point, place);
            }
        }
    }

    /// Does a section begin with a point?
    fn begins_section(&self, point: usize) -> bool {
        let p = &self.cell.points[point];
        let Some(parent) = p.parent.filter(|_| !self.places.contains_key(&point)) else { return false };
        let before = &self.cell.points[parent];
        self.places.contains_key(&parent) || before.children.len() > 1 || before.kind != p.kind
    }

    /// The points of the section that begins with one.
    fn chain(&self, first: usize) -> Vec<usize> {
        let points = &self.cell.points;
        let mut chain = vec![first];
        let mut at = first;
        while let [next] = points[at].children[..]
            && points[next].kind == points[at].kind
        {
            chain.push(next);
            at = next;
        }
        chain
    }

    /// Adds a section through some nodes.
    fn branch(&mut self, name: String, from: Option<(usize, f64)>, nodes: &[Node], line: usize) {
        let (mut frusta, mut points) = (Vec::new(), Vec::new());
        for pair in nodes.windows(2) {
            let ((from, a, _), (to, b, line)) = (pair[0], pair[1]);
            let length = between(from, to) * CM;
            if length == 0.0 {
                self.doubled.push(line);
            }
            if length > 0.0 || a != b {
                if points.is_empty() {
                    points.push(from.map(|x| x * CM));
                }
                points.push(to.map(|x| x * CM));
                frusta.push(Frustum { length, diam: [2.0 * a * CM, 2.0 * b * CM] });
            }
        }
        let length: f64 = frusta.iter().map(|f| f.length).sum();
        if let (true, Some(first), Some(last)) = (length == 0.0, nodes.first(), nodes.last()) {
            self.errors.push(Fault::NoLength.at_both(last.2, first.2));
        }
        self.branches.push(Branch { name, from, frusta, points, line });
    }
}

#[cfg(test)]
mod tests;

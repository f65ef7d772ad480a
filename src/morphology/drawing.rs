//! Cells on paper: where their compartments lie in a picture.
//!
//! In come sections and the tree that they were cut into; out go pieces of compartments and the lines that join sections, in um, x to the right and y
//! up.
//! Never true here: a colour or a pixel.
//!
//! # Conventions
//!
//! - A section that was measured is where it is, seen along z; lengths in the picture are those of its shadow.
//! - A soma that is understood as a sphere is drawn as one, though its compartments are those of a cylinder.
//! - A cell of which nothing was measured is a dendrogram: the way along the sections goes to the right, from the start of the root to the left, and sections that
//!   begin at one place lie below each other, those at the end of another around it. Lengths and diameters are to scale, the room between sections is not.
//! - What was not measured in a cell that was goes straight on in the direction in which there is most room.

use super::{Section, Tree, order};
use std::f64::consts::PI;

/// A piece of a compartment: a frustum, seen from the side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// The compartment, an element of the tree.
    pub element: usize,
    /// Where it begins and ends.
    pub ends: [[f64; 2]; 2],
    /// The diameters there.
    pub diam: [f64; 2],
}

/// A cell on paper, in um.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// The pieces of all compartments, section by section.
    pub pieces: Vec<Piece>,
    /// Lines from where a section begins to where it is drawn.
    pub joins: Vec<[[f64; 2]; 2]>,
}

/// Part of a section between two places along it, in cm.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    along: [f64; 2],
    ends: [[f64; 2]; 2],
    diam: [f64; 2],
}

/// From cm to um.
const UM: f64 = 1e4;
/// Slices of a sphere.
const SLICES: usize = 32;

/// Draws a cell; `round`: its root is understood as a sphere.
pub fn draw(sections: &[Section], tree: &Tree, round: bool) -> Drawing {
    let order = order(sections).unwrap_or_default();
    let measured = sections.iter().any(|s| !s.points.is_empty());
    let (drawn, joins) = if measured { in_space(sections, &order, round) } else { dendrogram(sections, &order) };
    let mut pieces = Vec::new();
    for ((section, piece), stretches) in sections.iter().zip(&tree.sections).zip(&drawn) {
        // The border behind each compartment, the last one without a rounding.
        let border = |i: usize| match i + 1 == piece.count {
            true => f64::INFINITY,
            false => section.length() * (i + 1) as f64 / piece.count as f64,
        };
        let mut i = 0;
        for stretch in stretches {
            let mut from = stretch.along[0];
            while from < stretch.along[1] {
                let to = stretch.along[1].min(border(i));
                if to > from {
                    pieces.push(stretch.between(piece.first + i, from, to));
                }
                if to >= border(i) {
                    i += 1;
                }
                from = to;
            }
        }
    }
    let joins = joins.into_iter().map(|ends| ends.map(|end| end.map(|x| x * UM))).collect();
    Drawing { pieces, joins }
}

impl Stretch {
    fn part(&self, way: f64) -> f64 {
        ((way - self.along[0]) / (self.along[1] - self.along[0])).clamp(0.0, 1.0)
    }

    fn at(&self, way: f64) -> [f64; 2] {
        let part = self.part(way);
        [0, 1].map(|axis| self.ends[0][axis] + part * (self.ends[1][axis] - self.ends[0][axis]))
    }

    fn diam_at(&self, way: f64) -> f64 {
        self.diam[0] + self.part(way) * (self.diam[1] - self.diam[0])
    }

    /// The part of it between two places along its section, of a compartment.
    fn between(&self, element: usize, from: f64, to: f64) -> Piece {
        let ends = [from, to].map(|way| self.at(way).map(|x| x * UM));
        Piece { element, ends, diam: [from, to].map(|way| self.diam_at(way) * UM) }
    }
}

/// The stretches of a section on a line from a place on.
fn straight(section: &Section, start: [f64; 2], toward: [f64; 2]) -> Vec<Stretch> {
    let mut way = 0.0;
    let mut stretches = Vec::new();
    for f in section.frusta.iter().filter(|f| f.length > 0.0) {
        let along = [way, way + f.length];
        let ends = along.map(|way| [0, 1].map(|axis| start[axis] + way * toward[axis]));
        stretches.push(Stretch { along, ends, diam: f.diam });
        way = along[1];
    }
    stretches
}

/// Those of a section that was measured.
fn measured(section: &Section) -> Vec<Stretch> {
    let mut way = 0.0;
    let mut stretches = Vec::new();
    for (f, points) in section.frusta.iter().zip(section.points.windows(2)).filter(|(f, _)| f.length > 0.0) {
        let along = [way, way + f.length];
        stretches.push(Stretch { along, ends: [points[0], points[1]].map(|[x, y, _]| [x, y]), diam: f.diam });
        way = along[1];
    }
    stretches
}

/// A cylinder that stands for a sphere, as the sphere.
fn sphere(section: &Section) -> Vec<Stretch> {
    let [Some(first), Some(last)] = [section.points.first(), section.points.last()] else { return Vec::new() };
    let length = section.length();
    let place = |k: usize| {
        let angle = PI * k as f64 / SLICES as f64;
        let way = 0.5 * (1.0 - angle.cos());
        (way * length, [0, 1].map(|axis| first[axis] + way * (last[axis] - first[axis])), length * angle.sin())
    };
    let slice = |k: usize| {
        let (a, b) = (place(k), place(k + 1));
        Stretch { along: [a.0, b.0], ends: [a.1, b.1], diam: [a.2, b.2] }
    };
    (0..SLICES).map(slice).collect()
}

/// Where a place along drawn stretches is.
fn place(stretches: &[Stretch], way: f64) -> [f64; 2] {
    let there = stretches.iter().find(|s| way <= s.along[1]).or(stretches.last());
    there.map_or([0.0; 2], |s| s.at(way))
}

type Drawn = (Vec<Vec<Stretch>>, Vec<[[f64; 2]; 2]>);

/// Sections where they were measured, and those that were not beside them.
fn in_space(sections: &[Section], order: &[usize], round: bool) -> Drawn {
    let root = order.first().copied();
    let mut drawn: Vec<Vec<Stretch>> = sections.iter().map(measured).collect();
    if let Some(root) = root.filter(|&root| round && !sections[root].points.is_empty()) {
        drawn[root] = sphere(&sections[root]);
    }
    let mut joins = Vec::new();
    for &s in order {
        let Some((parent, x)) = sections[s].from else { continue };
        let start = place(&drawn[parent], x * sections[parent].length());
        if let Some(first) = drawn[s].first() {
            let (own, length) = (first.ends[0], sections[s].length());
            if (own[0] - start[0]).hypot(own[1] - start[1]) > 1e-6 * length {
                joins.push([start, own]);
            }
            continue;
        }
        let mut taken = Vec::new();
        let mut take = |to: [f64; 2]| {
            let angle = (to[1] - start[1]).atan2(to[0] - start[0]);
            if to != start {
                taken.push(angle);
            }
        };
        let whole = sections[parent].length();
        if x > 0.0 {
            take(place(&drawn[parent], 0.9 * x * whole));
        }
        if x < 1.0 {
            take(place(&drawn[parent], (x + 0.1 * (1.0 - x)) * whole));
        }
        let beside = |other: &usize| *other != s && sections[*other].from.is_some_and(|from| from.0 == parent);
        for other in order.iter().filter(|other| beside(other)) {
            if let (Some(first), Some((_, other_x))) = (drawn[*other].first(), sections[*other].from)
                && (other_x - x).abs() < 1e-9
            {
                take(first.ends[1]);
            }
        }
        let angle = free(&mut taken);
        let toward = [angle.cos(), angle.sin()];
        // What begins in the middle of a section is drawn from its surface on.
        let there = drawn[parent].iter().find(|s| x * whole <= s.along[1]);
        let inside = if x > 0.0 && x < 1.0 { there.map_or(0.0, |s| 0.5 * s.diam_at(x * whole)) } else { 0.0 };
        drawn[s] = straight(&sections[s], [0, 1].map(|axis| start[axis] + inside * toward[axis]), toward);
    }
    (drawn, joins)
}

/// The direction in the middle of the largest angle between others.
fn free(taken: &mut [f64]) -> f64 {
    taken.sort_by(f64::total_cmp);
    let Some(&last) = taken.last() else { return -0.5 * PI };
    let (mut before, mut widest) = (last - 2.0 * PI, (0.0, 0.0));
    for &angle in taken.iter() {
        if angle - before > widest.0 {
            widest = (angle - before, 0.5 * (angle + before));
        }
        before = angle;
    }
    widest.1
}

/// What is done on the way through a dendrogram.
enum Turn {
    /// A section and all that begins at it get their rows.
    Whole(usize),
    /// The section itself does.
    Own(usize),
}

/// Sections in rows.
fn dendrogram(sections: &[Section], order: &[usize]) -> Drawn {
    let Some(&root) = order.first() else { return Default::default() };
    let mut begin: Vec<Vec<usize>> = vec![Vec::new(); sections.len()];
    for (s, section) in sections.iter().enumerate() {
        if let Some((parent, _)) = section.from {
            begin[parent].push(s);
        }
    }
    let x = |s: usize| sections[s].from.map_or(0.0, |from| from.1);
    let left: Vec<usize> = begin[root].iter().copied().filter(|&s| x(s) == 0.0).collect();
    let mut rows = vec![0.0; sections.len()];
    let count = in_rows(&begin, &[root], &x, &mut rows, root);
    let of_left = in_rows(&begin, &left, &x, &mut rows, root);
    // Those on the left lie around the root.
    let mut is_left = vec![false; sections.len()];
    left.iter().for_each(|&s| is_left[s] = true);
    for &s in order.iter().filter(|&&s| s != root) {
        is_left[s] |= sections[s].from.is_some_and(|(parent, _)| is_left[parent]);
    }
    if let (Some(&first), Some(&last)) = (left.first(), left.last()) {
        let shift = rows[root] - 0.5 * (rows[first] + rows[last]);
        (0..sections.len()).filter(|&s| is_left[s]).for_each(|s| rows[s] += shift);
    }
    // The way along the sections at which each begins.
    let mut starts = vec![0.0; sections.len()];
    starts[root] = -0.5 * sections[root].length();
    for &s in order {
        let Some((parent, x)) = sections[s].from else { continue };
        let direction = if is_left[parent] { -1.0 } else { 1.0 };
        starts[s] = starts[parent] + direction * x * sections[parent].length();
    }
    let end = |s: usize| starts[s] + if is_left[s] { -1.0 } else { 1.0 } * sections[s].length();
    let ends = || (0..sections.len()).flat_map(|s| [starts[s], end(s)]);
    let width = ends().fold(0.0, f64::max) - ends().fold(0.0, f64::min);
    let others = order.iter().filter(|&&s| s != root).flat_map(|&s| &sections[s].frusta);
    let thickest = others.flat_map(|f| f.diam).fold(0.0, f64::max);
    // Rows are as far apart as the thickest needs, but for many, of which most are thin.
    let row = width / count.max(of_left).max(1) as f64;
    let space = (0.45 * row).min(0.1 * width).max(row.min(1.6 * thickest));
    let mut drawn = Vec::new();
    for (s, section) in sections.iter().enumerate() {
        let toward = if is_left[s] { [-1.0, 0.0] } else { [1.0, 0.0] };
        drawn.push(straight(section, [starts[s], -space * rows[s]], toward));
    }
    let join = |&s: &usize| {
        let (parent, _) = sections[s].from?;
        let rows = [rows[parent], rows[s]];
        (rows[0] != rows[1]).then(|| rows.map(|row| [starts[s], -space * row]))
    };
    (drawn, order.iter().filter_map(join).collect())
}

/// Gives sections and what begins at them their rows: those in the middle of another on both sides of it, what begins at its end between them. Answers
/// how many rows there are. What begins at the start of the root is left out.
fn in_rows(begin: &[Vec<usize>], of: &[usize], x: &dyn Fn(usize) -> f64, rows: &mut [f64], root: usize) -> usize {
    let mut next = 0;
    let mut turns: Vec<Turn> = of.iter().rev().map(|&s| Turn::Whole(s)).collect();
    while let Some(turn) = turns.pop() {
        match turn {
            Turn::Whole(s) => {
                let own = begin[s].iter().copied().filter(|&child| s != root || x(child) > 0.0);
                let (at_end, along): (Vec<usize>, Vec<usize>) = own.partition(|&child| x(child) == 1.0);
                let (above, below) = along.split_at(along.len() / 2);
                let whole = |s: &usize| Turn::Whole(*s);
                turns.extend(below.iter().rev().map(whole));
                turns.push(Turn::Own(s));
                turns.extend(at_end.iter().rev().map(whole));
                turns.extend(above.iter().rev().map(whole));
            }
            Turn::Own(s) => {
                let mut at_end = begin[s].iter().copied().filter(|&child| x(child) == 1.0);
                rows[s] = match (at_end.next(), at_end.next_back()) {
                    (None, _) => {
                        next += 1;
                        (next - 1) as f64
                    }
                    (Some(only), None) => rows[only],
                    (Some(first), Some(last)) => 0.5 * (rows[first] + rows[last]),
                };
            }
        }
    }
    next
}

#[cfg(test)]
mod tests;

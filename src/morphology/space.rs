//! Cells in space: where their compartments are, and the potential that their currents make around them.
//!
//! In come sections with their directions; out go places of sections, compartments as pieces of lines, and what a current of each makes at a contact.
//! Never true here: a current.
//!
//! # Conventions
//!
//! - The middle of a root section that was not measured is the origin; what begins at a section begins on its axis.
//! - A compartment is the line through its frusta. Its current leaves it evenly along that line (the line source of Holt and Koch, J Comput
//!   Neurosci 6:169, 1999), or all of it in its middle (the point source). A contact that is nearer to a line or a point than the radius
//!   there is as far away as that.
//! - The potential is that of a homogeneous medium without borders; far away it is 0.

use super::{Section, Tree, order};
use crate::runtime::math::ln;
use std::f64::consts::PI;

/// A piece of a compartment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// The compartment, an element of the tree.
    pub element: usize,
    /// Where it begins and ends, in cm.
    pub ends: [[f64; 3]; 2],
    /// Its radius, in cm.
    pub radius: f64,
    /// Which part of the compartment's length it is.
    pub share: f64,
}

/// What compartments are to a contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// All are lines.
    Lines,
    /// All are points.
    Points,
    /// Those of the root section are points, all others lines.
    RootAsPoint,
}

impl Sources {
    /// All of them, with their names in the language.
    pub const ALL: [(&'static str, Sources); 3] =
        [("line", Sources::Lines), ("point", Sources::Points), ("root_as_point", Sources::RootAsPoint)];
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|axis| a[axis] - b[axis])
}

fn product(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn between(ends: [[f64; 3]; 2], part: f64) -> [f64; 3] {
    [0, 1, 2].map(|axis| ends[0][axis] + part * (ends[1][axis] - ends[0][axis]))
}

/// A vector of length 1 in a direction; none in no direction.
pub fn unit(direction: [f64; 3]) -> Option<[f64; 3]> {
    let largest = direction.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let scaled = direction.map(|x| x / largest);
    let length = product(scaled, scaled).sqrt();
    (largest > 0.0 && length.is_finite()).then(|| scaled.map(|x| x / length))
}

/// Gives those sections that have a direction, of length 1, their places: where the section has one that they begin at.
pub fn place(sections: &mut [Section], toward: &[Option<[f64; 3]>]) {
    for s in order(sections).unwrap_or_default() {
        let Some(toward) = toward[s] else { continue };
        let section = &sections[s];
        let start = match section.from {
            None => Some(toward.map(|x| -0.5 * section.length() * x)),
            Some((parent, x)) => sections[parent].at(x),
        };
        let Some(start) = start else { continue };
        let mut points = vec![start];
        let mut way = 0.0;
        for frustum in &section.frusta {
            way += frustum.length;
            points.push([0, 1, 2].map(|axis| start[axis] + way * toward[axis]));
        }
        sections[s].points = points;
    }
}

impl Section {
    /// The place along it, from 0 to 1, in cm; none if it has none.
    fn at(&self, x: f64) -> Option<[f64; 3]> {
        let (mut left, last) = (x * self.length(), self.points.last()?);
        for (frustum, ends) in self.frusta.iter().zip(self.points.windows(2)) {
            if left <= frustum.length && frustum.length > 0.0 {
                return Some(between([ends[0], ends[1]], left / frustum.length));
            }
            left -= frustum.length;
        }
        Some(*last)
    }
}

/// The compartments of a cell whose sections all have places, as lines: those of one follow each other.
pub fn lines(sections: &[Section], tree: &Tree) -> Vec<Line> {
    let mut lines = Vec::new();
    for (section, piece) in sections.iter().zip(&tree.sections) {
        let length = section.length();
        // The border behind each compartment, the last one without a rounding.
        let border = |i: usize| match i + 1 == piece.count {
            true => f64::INFINITY,
            false => length * (i + 1) as f64 / piece.count as f64,
        };
        let (mut i, mut start) = (0, 0.0);
        for (frustum, ends) in section.frusta.iter().zip(section.points.windows(2)) {
            let end = start + frustum.length;
            let mut from = start;
            while from < end {
                let to = end.min(border(i));
                if to > from {
                    let parts = [from, to].map(|way| ((way - start) / frustum.length).clamp(0.0, 1.0));
                    let diam = parts.map(|part| frustum.diam[0] + part * (frustum.diam[1] - frustum.diam[0]));
                    lines.push(Line {
                        element: piece.first + i,
                        ends: parts.map(|part| between([ends[0], ends[1]], part)),
                        radius: 0.25 * (diam[0] + diam[1]),
                        share: (to - from) * piece.count as f64 / length,
                    });
                }
                if to >= border(i) {
                    i += 1;
                }
                from = to;
            }
            start = end;
        }
    }
    lines
}

/// For each element of a tree the potential at a contact (in cm, from where the cell stands) that a current of 1 makes in it, times `4 pi` and the conductivity of
/// the medium, in 1/cm. Nodes make none.
pub fn potentials(lines: &[Line], tree: &Tree, sources: Sources, contact: [f64; 3]) -> Vec<f64> {
    let root = tree.section.first().copied();
    let mut of = vec![0.0; tree.len()];
    let is_point = |element: usize| match sources {
        Sources::Lines => false,
        Sources::Points => true,
        Sources::RootAsPoint => Some(tree.section[element]) == root,
    };
    for compartment in lines.chunk_by(|a, b| a.element == b.element) {
        let element = compartment[0].element;
        of[element] = match is_point(element) {
            true => of_point(compartment, contact),
            false => compartment.iter().map(|line| line.share * of_line(line, contact)).sum(),
        };
    }
    of
}

/// One over the distance to the middle of a compartment.
fn of_point(compartment: &[Line], contact: [f64; 3]) -> f64 {
    let mut before = 0.0;
    let middle = compartment.iter().find(|line| {
        before += line.share;
        before >= 0.5 * (1.0 - 1e-12)
    });
    let Some(line) = middle.or(compartment.last()) else { return 0.0 };
    let place = between(line.ends, ((0.5 - (before - line.share)) / line.share).clamp(0.0, 1.0));
    let away = difference(contact, place);
    1.0 / product(away, away).sqrt().max(line.radius)
}

/// The mean of one over the distance to the places of a line.
fn of_line(line: &Line, contact: [f64; 3]) -> f64 {
    let along = difference(line.ends[1], line.ends[0]);
    let length = product(along, along).sqrt();
    if length == 0.0 {
        let away = difference(contact, line.ends[0]);
        return 1.0 / product(away, away).sqrt().max(line.radius);
    }
    let away = difference(contact, line.ends[0]);
    // How far the foot of the contact lies behind the start, and it beside the line.
    let foot = product(away, along) / length;
    let beside = (0..3).map(|axis| (away[axis] - foot * along[axis] / length).powi(2)).sum::<f64>();
    let beside = beside.max(line.radius * line.radius);
    // The integral of 1 / sqrt(x^2 + beside) from `a` to `b`, without a difference of near numbers.
    let (a, b) = (-foot, length - foot);
    let [far_a, far_b] = [a, b].map(|x| (x * x + beside).sqrt());
    let quotient = match (a < 0.0, b < 0.0) {
        (true, true) => (far_a - a) / (far_b - b),
        (true, false) => (far_a - a) * (far_b + b) / beside,
        (false, _) => (far_b + b) / (far_a + a),
    };
    ln(quotient) / length
}

/// What [`potentials`] are over, for a conductivity in mS/cm: then a current in uA makes a potential in mV.
pub fn over(sigma: f64) -> f64 {
    4.0 * PI * sigma
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::morphology::Frustum;

    const UM: f64 = 1e-4;

    /// A section of one frustum, lengths in um.
    fn section(name: &str, from: Option<(usize, f64)>, length: f64, diam: [f64; 2], compartments: usize) -> Section {
        let frusta = vec![Frustum { length: length * UM, diam: diam.map(|d| d * UM) }];
        Section { name: name.into(), from, frusta, points: Vec::new(), compartments }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs().max(1.0)
    }

    /// A soma with a dendrite to the top and a branch of it to the right.
    fn cell() -> (Vec<Section>, Tree) {
        let mut sections = vec![
            section("branch", Some((2, 0.5)), 50.0, [1.0, 1.0], 2),
            section("soma", None, 20.0, [20.0, 20.0], 1),
            section("dend", Some((1, 1.0)), 100.0, [4.0, 2.0], 4),
        ];
        place(&mut sections, &[Some([1.0, 0.0, 0.0]), Some([0.0, 1.0, 0.0]), Some([0.0, 1.0, 0.0])]);
        let tree = Tree::new(&sections).expect("a tree");
        (sections, tree)
    }

    #[test]
    fn sections_stand_where_they_begin() {
        let (sections, tree) = cell();
        let ends = |s: usize| sections[s].points.iter().map(|p| p.map(|x| (x / UM).round())).collect::<Vec<_>>();
        assert_eq!(ends(1), [[0.0, -10.0, 0.0], [0.0, 10.0, 0.0]]);
        assert_eq!(ends(2), [[0.0, 10.0, 0.0], [0.0, 110.0, 0.0]]);
        assert_eq!(ends(0), [[0.0, 60.0, 0.0], [50.0, 60.0, 0.0]]);
        let lines = lines(&sections, &tree);
        let shares = |element: usize| lines.iter().filter(|l| l.element == element).map(|l| l.share).sum::<f64>();
        for element in (0..tree.len()).filter(|&e| tree.is_compartment(e)) {
            assert!(close(shares(element), 1.0), "{}", tree.name(element));
        }
        assert_eq!(lines.len(), 7);
    }

    #[test]
    fn a_section_stands_nowhere_that_begins_at_one_that_does() {
        let mut sections =
            vec![section("soma", None, 20.0, [20.0, 20.0], 1), section("dend", Some((0, 1.0)), 100.0, [4.0, 2.0], 4)];
        place(&mut sections, &[None, Some([0.0, 1.0, 0.0])]);
        assert!(sections.iter().all(|s| s.points.is_empty()));
    }

    #[test]
    fn a_line_makes_what_many_points_make() {
        let line = Line { element: 0, ends: [[0.0, 0.0, 0.0], [0.0, 0.01, 0.0]], radius: 1e-5, share: 1.0 };
        for contact in [[0.003, 0.002, 0.001], [0.001, -0.004, 0.0], [0.0, 0.013, 0.0005], [0.2, 0.3, 0.1]] {
            let n = 200_000;
            let points = (0..n).map(|k| {
                let away = difference(contact, between(line.ends, (k as f64 + 0.5) / f64::from(n)));
                1.0 / product(away, away).sqrt()
            });
            let mean = points.sum::<f64>() / f64::from(n);
            assert!((of_line(&line, contact) / mean - 1.0).abs() < 1e-8, "{contact:?}");
        }
    }

    #[test]
    fn nothing_is_nearer_than_the_radius() {
        let line = Line { element: 0, ends: [[0.0, 0.0, 0.0], [0.0, 0.002, 0.0]], radius: 0.001, share: 1.0 };
        let [inside, mantle] = [[0.0, 0.001, 0.0], [0.001, 0.001, 0.0]].map(|contact| of_line(&line, contact));
        assert!(close(inside, mantle));
        let [inside, mantle] = [[0.0, 0.001, 0.0], [0.001, 0.001, 0.0]].map(|contact| of_point(&[line], contact));
        assert!(close(inside, mantle) && close(inside, 1000.0));
    }

    #[test]
    fn a_point_is_in_the_middle_of_a_bent_compartment() {
        let part = |from, to, share| Line { element: 0, ends: [from, to], radius: 1e-5, share };
        let bent = [part([0.0; 3], [0.01, 0.0, 0.0], 0.25), part([0.01, 0.0, 0.0], [0.01, 0.03, 0.0], 0.75)];
        // A third of the second part is before the middle.
        assert!(close(of_point(&bent, [0.01, 0.01, 0.02]), 50.0));
    }
}

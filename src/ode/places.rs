//! Places in cells with sections, in names of parameters and of what a `train` block reads and learns.
//!
//! In come names as they are written (`out.soma(0.5).v`, `a.b.dend(0.9).Synapse.weight`); out go elements of trees, and the names that the model has.
//! Never true here: a place is looked for in cells of another population than the name says.

use super::{Kind, Model};
use crate::morphology::Tree;

/// `soma(0.5)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written<'a> {
    /// The section.
    pub section: &'a str,
    /// How far along it.
    pub along: &'a str,
}

impl<'a> Written<'a> {
    /// If this part of a name is a place.
    fn of(part: &'a str) -> Option<Written<'a>> {
        let (section, along) = part.strip_suffix(')')?.split_once('(')?;
        Some(Written { section, along })
    }

    /// Which element of a tree that is; `Err(true)` if the section is there.
    pub fn element(self, tree: &Tree) -> Result<usize, bool> {
        let section = tree.sections.iter().find(|s| s.name == self.section).ok_or(false)?;
        let x = self.along.parse().ok().filter(|x| (0.0..=1.0).contains(x));
        x.map_or(Err(true), |x| Ok(section.at(x)))
    }
}

/// The parts of a name, between dots that are in no brackets.
fn parts(name: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut all) = (0_usize, 0, Vec::new());
    for (at, c) in name.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => {
                all.push(&name[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    all.push(&name[begin..]);
    all
}

/// What is before the place in a name, the place, and what is behind it; nothing if there is no place.
pub fn split(name: &str) -> Option<(String, Written<'_>, String)> {
    let parts = parts(name);
    let (at, written) = parts.iter().enumerate().find_map(|(at, part)| Some((at, Written::of(part)?)))?;
    Some((parts[..at].join("."), written, parts[at + 1..].join(".")))
}

/// A name whose place is called what the model calls it in a population, or in what that is a part of.
pub fn called(model: &Model, population: usize, name: &str) -> String {
    let tree = model.elements(population).map(|(tree, _)| tree);
    let called = |part: &str| {
        let element =
            Written::of(part).zip(tree).and_then(|(written, tree)| Some(tree.name(written.element(tree).ok()?)));
        element.unwrap_or_else(|| part.to_string())
    };
    parts(name).into_iter().map(called).collect::<Vec<_>>().join(".")
}

/// A name of something in cells whose place is called what the model calls it.
pub fn called_in_cells(model: &Model, name: &str) -> Option<String> {
    let (cells, written, behind) = split(name)?;
    let population = model.populations.iter().position(|p| p.name == cells && p.kind == Kind::Cells)?;
    let tree = tree(model, population)?;
    Some(format!("{cells}.{}.{behind}", tree.name(written.element(tree).ok()?)))
}

/// A name without its place.
pub fn left_out(name: &str) -> String {
    let all = parts(name).into_iter().filter(|part| Written::of(part).is_none());
    all.collect::<Vec<_>>().join(".")
}

/// The tree of the cells of a population.
pub fn tree(model: &Model, cells: usize) -> Option<&Tree> {
    model.populations.iter().find_map(|p| match &p.kind {
        Kind::Tree { of, tree } if *of == cells => Some(&**tree),
        Kind::Tree { .. } | Kind::Cells | Kind::Part { .. } | Kind::Clock => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_places() {
        let (before, written, behind) = split("a.b.dend[3](0.875).Kick.weight").unwrap();
        assert_eq!((before.as_str(), behind.as_str()), ("a.b", "Kick.weight"));
        assert_eq!(written, Written { section: "dend[3]", along: "0.875" });
        assert_eq!(left_out("a.b.dend(0.5).Kick"), "a.b.Kick");
        assert_eq!(left_out("a.b.Kick"), "a.b.Kick");
        assert_eq!(split("a.b.Kick"), None);
    }
}

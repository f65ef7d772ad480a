//! What probes hear: the potentials that the currents through membranes make at their contacts.
//!
//! In come a probe, its cells and what flows out of each of their compartments; out go potentials, in mV.
//! Never true here: a current is computed. Sums are taken in one order, so that they are the same on all engines that have the same currents.

use super::extent::Extent;
use crate::data;
use crate::diag::{Code, Diagnostic};
use crate::morphology::space;
use crate::ode::{self, Model, NodeId, Probe};
use crate::step::{FieldId, Program, Source, Value};
use std::cell::RefCell;
use std::ops::Range;

/// Compartments that a probe hears.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Heard {
    /// Where engines have what flows out of them.
    pub field: FieldId,
    /// All compartments of all cells.
    pub elements: Range<usize>,
    /// For each of them what a current of 1 uA makes at each contact, in mV.
    weights: Vec<f64>,
}

impl Heard {
    /// Adds what so much current (in uA) makes at the contacts.
    pub fn add(&self, currents: &[f64], potentials: &mut [f64]) {
        for (current, weights) in currents.iter().zip(self.weights.chunks_exact(potentials.len().max(1))) {
            for (potential, weight) in potentials.iter_mut().zip(weights) {
                *potential += weight * current;
            }
        }
    }
}

/// The compartments that a probe hears, or what is not known of them.
pub(super) fn heard(
    model: &Model,
    program: &Program,
    extent: &Extent,
    probe: &Probe,
) -> Result<Vec<Heard>, Diagnostic> {
    let lost = || Diagnostic::without_place(Code::Internal, format!("the program lost what `{}` hears", probe.name));
    let number = |node: NodeId| match ode::evaluate(model, node) {
        Ok(Value::Real(x)) => Ok(x),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => {
            let message = format!("what `{}` hears depends on what is not known before the run", probe.name);
            Err(Diagnostic::new(Code::NotConstant, probe.span, message, "its `sigma`, or a `spacing` of its cells"))
        }
    };
    let over = space::over(number(probe.sigma)?);
    let mut all = Vec::new();
    for heard in &probe.of {
        let (tree, _) = model.elements(heard.compartments).ok_or_else(lost)?;
        let cable = model.cables.iter().position(|c| c.population == heard.compartments).ok_or_else(lost)?;
        let field = program.bound(Source::Transmembrane(cable as u32)).ok_or_else(lost)?;
        let population = model.cells_of(heard.compartments);
        let cells = extent.cells[population];
        if cells > 1 && heard.spacing.is_none() && heard.offset.iter().all(Option::is_none) {
            let name = &model.populations[population].name;
            let message = format!("it is not known where the {cells} cells of `{name}` are");
            let d = Diagnostic::new(Code::BadValue, probe.span, message, "this probe hears them")
                .see(model.populations[population].span, "all at one place");
            return Err(d.help(
                "say how far they are from each other, `{ spacing = 50 um }` behind the sizes, or where they are: `{ x ~ uniform(-100 um, 100 um); z = 20 um * index }`",
            ));
        }
        let spacing = heard.spacing.map(number).transpose()?.unwrap_or(0.0);
        let mut places: Vec<[f64; 3]> =
            (0..cells).map(|cell| on_grid(&extent.grids[population], spacing, cell)).collect();
        let unread = RefCell::new(None);
        let read = |of: Option<usize>, file: u32| {
            let cells = extent.cells[of.unwrap_or(population)];
            let values = data::per_cell(&model.data[file as usize], cells, model.seed);
            values.map_err(|d| unread.borrow_mut().get_or_insert(d).clone()).ok()
        };
        for (axis, offset) in heard.offset.iter().enumerate() {
            let Some(offset) = *offset else { continue };
            let values = ode::cells::values(model, offset, Some(population), cells, &read);
            let values = values.ok_or_else(|| unread.take().unwrap_or_else(lost))?;
            places.iter_mut().zip(values).for_each(|(place, value)| place[axis] += value);
        }
        let mut weights = Vec::with_capacity(cells * tree.len() * probe.contacts.len());
        for place in &places {
            let of_contact = |contact: &[f64; 3]| {
                let contact = [0, 1, 2].map(|axis| contact[axis] - place[axis]);
                space::potentials(&heard.lines, tree, probe.sources, contact)
            };
            let columns: Vec<Vec<f64>> = probe.contacts.iter().map(of_contact).collect();
            weights
                .extend((0..tree.len()).flat_map(|element| columns.iter().map(move |column| column[element] / over)));
        }
        all.push(Heard { field, elements: 0..cells * tree.len(), weights });
    }
    Ok(all)
}

/// Where a cell is on a grid that begins at the origin; the first side is the fastest.
fn on_grid(sides: &[usize], spacing: f64, cell: usize) -> [f64; 3] {
    let (mut place, mut left) = ([0.0; 3], cell);
    for (axis, &side) in place.iter_mut().zip(sides) {
        *axis = spacing * (left % side) as f64;
        left /= side;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_grid_are_counted_along_its_first_side() {
        let at = |cell| on_grid(&[3, 2, 4], 2.0, cell);
        assert_eq!(
            [at(0), at(2), at(3), at(6), at(23)].map(|p| p.map(|x| x as u32)),
            [[0, 0, 0], [4, 0, 0], [0, 2, 0], [0, 0, 2], [4, 2, 6]]
        );
    }

    #[test]
    fn potentials_are_sums_over_currents() {
        let heard = Heard { field: FieldId(0), elements: 0..2, weights: vec![1.0, 2.0, 10.0, 20.0] };
        let mut potentials = [0.5, 0.0];
        heard.add(&[3.0, -1.0], &mut potentials);
        assert_eq!(potentials, [-6.5, -14.0]);
    }
}

//! Networks as numbers, for the formats of others.
//!
//! In comes a model with settings; out go dicts of names, numbers and arrays.
//! Never true here: it is known what another format makes of them.

use crate::error::guarded;
use crate::model::Model;
use neuroc::hir;
use neuroc::simulate::{self, network};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The populations and the projections of a model.
pub fn described<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyDict>> {
    guarded(|| {
        let flat = model.flat(&model.settings())?;
        let found = simulate::extent(&flat).and_then(|extent| network::network(&flat, &extent).map_err(|d| vec![d]));
        let found = found.map_err(|d| model.wrong(&d))?;
        let cells = model.checked.model.as_ref().map_or(Vec::new(), cell_names);
        let all = PyDict::new(py);
        all.set_item("dt", found.dt)?;
        all.set_item("method", flat.method.name())?;
        all.set_item("junctions", !flat.connections.is_empty())?;
        let populations = PyList::empty(py);
        for (p, cell) in found.populations.into_iter().zip(cells.into_iter().map(Some).chain(std::iter::repeat(None))) {
            let one = PyDict::new(py);
            one.set_item("name", p.name)?;
            one.set_item("cell", cell)?;
            one.set_item("shape", p.grid.into_iter().rev().collect::<Vec<_>>())?;
            one.set_item("spikes", p.spikes)?;
            match p.cells {
                Err(why) => one.set_item("why", why)?,
                Ok(cells) => of_cells(py, &one, cells)?,
            }
            populations.append(one)?;
        }
        all.set_item("populations", populations)?;
        let projections = PyList::empty(py);
        for p in found.projections {
            let one = PyDict::new(py);
            one.set_item("name", p.name)?;
            one.set_item("from", p.ends[0])?;
            one.set_item("to", p.ends[1])?;
            one.set_item("arrives", p.arrives)?;
            one.set_item("remembers", p.remembers)?;
            one.set_item("offsets", p.edges.offsets.clone().into_pyarray(py))?;
            one.set_item("sources", p.edges.sources.clone().into_pyarray(py))?;
            one.set_item("weights", p.weights.into_pyarray(py))?;
            one.set_item("delays", p.delays.into_pyarray(py))?;
            one.set_item("rule", p.rule)?;
            if let Some((sizes, of)) = p.kernel {
                one.set_item("kernel", sizes)?;
                one.set_item("entries", of.into_pyarray(py))?;
            }
            projections.append(one)?;
        }
        all.set_item("projections", projections)?;
        Ok(all)
    })
}

/// Connections: name, populations before and behind, numbers of cells before and behind, weights, their unit, delays in ms.
pub fn connections<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyList>> {
    guarded(|| {
        let flat = model.flat(&model.settings())?;
        let found =
            simulate::extent(&flat).and_then(|extent| network::connections(&flat, &extent).map_err(|d| vec![d]));
        let all = PyList::empty(py);
        for c in found.map_err(|d| model.wrong(&d))? {
            let [from, to] = c.ends.map(|at| flat.populations[at].name.as_str());
            let cells = (c.sources.into_pyarray(py), c.targets.into_pyarray(py));
            all.append((
                c.name,
                from,
                to,
                cells.0,
                cells.1,
                c.weights.into_pyarray(py),
                c.unit.name,
                c.delays.into_pyarray(py),
            ))?;
        }
        Ok(all)
    })
}

/// The names of the cells of each population.
fn cell_names(model: &hir::Model) -> Vec<String> {
    let name = |p: &hir::Population| model.cells[p.cell].name.clone();
    model.network.iter().flat_map(|network| &network.populations).map(name).collect()
}

fn of_cells<'py>(py: Python<'py>, one: &Bound<'py, PyDict>, cells: network::Cells) -> PyResult<()> {
    let arrays = |values: Vec<Vec<f64>>| values.into_iter().map(|x| x.into_pyarray(py)).collect::<Vec<_>>();
    one.set_item("states", cells.states)?;
    one.set_item("init", arrays(cells.init))?;
    let rates =
        cells.rates.into_iter().map(|row| row.into_iter().map(|(s, x)| (s, x.into_pyarray(py))).collect::<Vec<_>>());
    one.set_item("rates", rates.collect::<Vec<_>>())?;
    one.set_item("constants", arrays(cells.constants))?;
    let jumps = cells.jumps.into_iter().map(|(from, to, x)| (from, to, x.into_pyarray(py)));
    one.set_item("jumps", jumps.collect::<Vec<_>>())?;
    if let Some(rule) = cells.spike {
        let spike = PyDict::new(py);
        spike.set_item("state", rule.state)?;
        spike.set_item("level", rule.level.into_pyarray(py))?;
        spike.set_item("strict", rule.strict)?;
        let resets = rule.resets.into_iter().map(|(s, a, b)| (s, a.into_pyarray(py), b.into_pyarray(py)));
        spike.set_item("resets", resets.collect::<Vec<_>>())?;
        spike.set_item("refractory", rule.refractory.into_pyarray(py))?;
        one.set_item("spike", spike)?;
    }
    Ok(())
}

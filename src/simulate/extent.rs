//! How large a run is: the cells of every population and the steps.
//!
//! In comes a continuous model with all settings applied; out goes its [`Extent`], or every reason why it has none.
//! Never true here: a size is rounded, or one that the run cannot have is passed on.

use super::records::{recorded, wrong_intervals};
use super::time::{Grid, MOST_STEPS, nearest_multiple, shown, whole_steps};
use crate::diag::{Code, Diagnostic};
use crate::discretize::projection_space;
use crate::engine::Edges;
use crate::ode::{self, Kind, Model, NodeId, Population, State};
use crate::step::{SpaceId, Value};
use std::sync::Arc;

/// The cells of every population, and the grid, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Extent {
    /// The sides of the grid of each population, the fastest first.
    pub grids: Vec<Vec<usize>>,
    /// Cells of each population.
    pub cells: Vec<usize>,
    /// The time grid.
    pub grid: Grid,
    /// The edges of every relation; none before they are drawn.
    pub edges: Vec<(SpaceId, Arc<Edges>)>,
}

impl Extent {
    /// How many cells, compartments or edges have a state.
    pub fn elements(&self, model: &Model, state: &State) -> usize {
        match state.edges {
            Some(projection) => self.size(projection_space(model, projection)),
            None => self.cells[state.population],
        }
    }

    /// How many elements a space has, as far as that is known.
    pub fn size(&self, space: SpaceId) -> usize {
        let edges = || self.edges.iter().find(|(other, _)| *other == space).map_or(0, |(_, edges)| edges.sources.len());
        self.cells.get(space.0 as usize).copied().unwrap_or_else(edges)
    }
}

/// Checks sizes, time step, duration and recording intervals of a model (after overrides).
pub fn extent(model: &Model) -> Result<Extent, Vec<Diagnostic>> {
    let mut errors = times(model);
    if !errors.is_empty() {
        return Err(errors);
    }
    let steps = match steps(model) {
        Ok(steps) => {
            errors.extend(wrong_intervals(model));
            steps
        }
        Err(error) => {
            errors.push(error);
            0
        }
    };
    let (mut cells, mut grids): (Vec<usize>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    for (i, population) in model.populations.iter().enumerate() {
        match population.kind {
            Kind::Cells => {}
            Kind::Clock => {
                let stretches = steps.div_ceil(u64::from(ode::STRETCH)).max(1) as usize;
                cells.push(stretches);
                grids.push(vec![stretches]);
                continue;
            }
            Kind::Tree { .. } | Kind::Part { .. } => {
                let count = cells[model.cells_of(i)] as f64 * model.elements_per_cell(i) as f64;
                if count > 4e9 {
                    let message = format!("`{}` has {} elements", population.name, shown(count));
                    let d = Diagnostic::new(Code::BadValue, population.span, message, "at most 4e9 are possible");
                    errors.push(d);
                }
                cells.push(count as usize);
                // A place stands for its cell.
                let is_place = model.elements_per_cell(i) == 1;
                grids.push(if is_place { grids[model.cells_of(i)].clone() } else { vec![count as usize] });
                continue;
            }
        }
        let (count, sides) = sides(model, population, &mut errors);
        cells.push(count);
        grids.push(if sides.is_empty() { vec![1] } else { sides });
    }
    if errors.is_empty() {
        errors.extend(recorded(model, &cells, &|_| 0).err().unwrap_or_default());
    }
    if errors.is_empty() {
        Ok(Extent { cells, grids, grid: Grid { dt: model.dt, steps }, edges: Vec::new() })
    } else {
        Err(errors)
    }
}

fn without_place(message: String) -> Diagnostic {
    Diagnostic::without_place(Code::BadValue, message)
}

/// What is wrong with the time step and the duration, each by itself.
fn times(model: &Model) -> Vec<Diagnostic> {
    let above_zero = |x: f64| x.is_finite() && x > 0.0;
    let mut errors = Vec::new();
    if !above_zero(model.dt) {
        errors.push(without_place(format!("dt is {} ms; it must be above zero", shown(model.dt))));
    }
    if !above_zero(model.duration) {
        errors.push(without_place(format!("the duration is {} ms; it must be above zero", shown(model.duration))));
    }
    errors
}

fn steps(model: &Model) -> Result<u64, Diagnostic> {
    if let Some(steps) = whole_steps(model.duration, model.dt).filter(|&n| n > 0) {
        return Ok(steps);
    }
    let (duration, dt) = (shown(model.duration), shown(model.dt));
    Err(if model.duration / model.dt >= MOST_STEPS {
        without_place(format!("a duration of {duration} ms is too many steps of {dt} ms"))
    } else {
        without_place(format!("the duration, {duration} ms, is not a multiple of dt, {dt} ms"))
            .help(format!("a duration of {} ms would be", shown(nearest_multiple(model.duration, model.dt))))
    })
}

/// The cells of a population and the sides of its grid. What is wrong with them goes to `errors`.
fn sides(model: &Model, population: &Population, errors: &mut Vec<Diagnostic>) -> (usize, Vec<usize>) {
    let mut sides = Vec::new();
    let mut count = 1.0;
    for &size in &population.sizes {
        match side(model, population, size) {
            Ok(cells) => {
                count *= cells;
                sides.push(cells as usize);
            }
            Err(error) => {
                // Several sides may have one size.
                if !errors.contains(&error) {
                    errors.push(error);
                }
                count = f64::NAN;
            }
        }
    }
    let p = population;
    if count == 0.0 {
        let message = format!("population `{}` has no cells", p.name);
        errors.push(Diagnostic::new(Code::BadValue, p.span, message, "one of its sizes is 0"));
    } else if count > 4e9 {
        let message = format!("population `{}` has {} cells", p.name, shown(count));
        errors.push(Diagnostic::new(Code::BadValue, p.span, message, "at most 4e9 are possible"));
    }
    (count as usize, sides)
}

fn side(model: &Model, p: &Population, size: NodeId) -> Result<f64, Diagnostic> {
    match ode::evaluate(model, size) {
        Ok(Value::Real(n)) if n >= 0.0 && n.fract() == 0.0 => Ok(n),
        Ok(Value::Real(n)) => {
            let message = format!("population `{}` cannot have {} cells along one side", p.name, shown(n));
            Err(Diagnostic::new(Code::BadValue, p.span, message, "a whole number from 1 on is needed"))
        }
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => {
            let message = format!("the size of population `{}` is not known before the run", p.name);
            Err(Diagnostic::new(Code::NotConstant, p.span, message, "it may depend on network parameters only"))
        }
    }
}

//! What a search asks of a run.
//!
//! In come values of free parameters; out goes what the run shows, and the gradient of a loss of that where there is one.
//! Never true here: a loss is chosen.

use crate::driver::{Differentiable, Outline, Repeated};
use crate::engine::EngineError;
use crate::simulate::Loss;
use crate::units;

/// What a run shows.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The samples of each record, `[sample][cell]`, in canonical units.
    pub samples: &'a [Vec<f64>],
    /// When (ms) each cell of each train has spiked, `[train][cell]`; empty if nobody has looked.
    pub spikes: &'a [Vec<Vec<f64>>],
}

/// Who wants to see a run, and answers with a loss.
pub type Look<'a> = dyn FnMut(Observed<'_>) -> Loss + 'a;

/// A run that can be repeated with other values of parameters.
pub trait Runs {
    /// What is known of it.
    fn outline(&self) -> &Outline;
    /// Runs with these values of the free parameters, in canonical units.
    fn look(&mut self, values: &[f64], look: &mut Look<'_>) -> Result<f64, EngineError>;
    /// The same with the derivatives of the loss in the free parameters; `None` if this run has none.
    fn slopes(&mut self, values: &[f64], look: &mut Look<'_>) -> Option<Result<(f64, Vec<f64>), EngineError>>;
}

impl Runs for Differentiable {
    fn outline(&self) -> &Outline {
        self.outline()
    }

    fn look(&mut self, values: &[f64], look: &mut Look<'_>) -> Result<f64, EngineError> {
        Ok(look(Observed { samples: &self.samples(values)?, spikes: &[] }).value)
    }

    fn slopes(&mut self, values: &[f64], look: &mut Look<'_>) -> Option<Result<(f64, Vec<f64>), EngineError>> {
        let found = self.gradient(values, &mut |samples| look(Observed { samples, spikes: &[] }));
        Some(found.map(|(found, gradient)| (found.loss, gradient)))
    }
}

impl Runs for Repeated<'_> {
    fn outline(&self) -> &Outline {
        self.outline()
    }

    fn look(&mut self, values: &[f64], look: &mut Look<'_>) -> Result<f64, EngineError> {
        let result = self.run(values)?;
        let samples: Vec<Vec<f64>> = (result.series.iter().zip(&self.outline().records.series))
            .map(|(series, record)| {
                let (samples, cells) = series.values.shape();
                let at = (0..samples).flat_map(|sample| (0..cells).map(move |cell| (sample, cell)));
                at.map(|(sample, cell)| units::scale(series.values.get(sample, cell), record.unit.exponent)).collect()
            })
            .collect();
        let of_train = |train: &crate::results::SpikeTrain| {
            let mut of_cells = vec![Vec::new(); train.cells];
            for (&t, &cell) in train.t.iter().zip(&train.i) {
                of_cells[cell as usize].push(t);
            }
            of_cells
        };
        let spikes: Vec<Vec<Vec<f64>>> = result.spikes.iter().map(of_train).collect();
        Ok(look(Observed { samples: &samples, spikes: &spikes }).value)
    }

    fn slopes(&mut self, _values: &[f64], _look: &mut Look<'_>) -> Option<Result<(f64, Vec<f64>), EngineError>> {
        None
    }
}

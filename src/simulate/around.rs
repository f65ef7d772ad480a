//! Samples around spikes: which of them are kept is known only when it is too late to take them.
//!
//! In come the rows and spikes of a run; out go, to another [`Sink`] and still in the order of their time, all spikes and the rows that are
//! in a window of one of them. Rows and spikes wait here for as long as a window reaches back from its spike.
//! Never true here: a row is changed, or one kept that its record would not have taken.

use super::records::{Around, Records};
use super::sink::{Sink, SinkError};
use crate::engine::Spike;
use std::collections::VecDeque;

/// Keeps back what has to wait for spikes.
pub(super) struct AroundSpikes<'a> {
    sink: &'a mut dyn Sink,
    records: Vec<Option<Windows<'a>>>,
    /// Samples that wait, in the order of their time: their record, the steps before, and what it was.
    waiting: VecDeque<(usize, u64, Vec<f64>)>,
    /// Spikes that wait with them, so that what has been handed over ends at one time: train, step and cell.
    spikes: VecDeque<(usize, Spike)>,
    /// For how many steps.
    wait: u64,
}

/// The windows of a record, as far as spikes are known.
struct Windows<'a> {
    around: &'a Around,
    /// First and last steps, in the order of the spikes. Those that touch are one.
    open: VecDeque<(i64, i64)>,
}

impl<'a> AroundSpikes<'a> {
    /// In front of a sink; none if all of its rows are kept.
    pub fn before(records: &'a Records, sink: &'a mut dyn Sink) -> Result<AroundSpikes<'a>, &'a mut dyn Sink> {
        let back = records.series.iter().filter_map(|r| r.around.as_ref()).map(|around| -around.window.0.min(0));
        let Some(wait) = back.max() else { return Err(sink) };
        let windows = |around| Windows { around, open: VecDeque::new() };
        let records = records.series.iter().map(|r| r.around.as_ref().map(windows)).collect();
        let (waiting, spikes) = (VecDeque::new(), VecDeque::new());
        Ok(AroundSpikes { sink, records, waiting, spikes, wait: wait.unsigned_abs() })
    }

    /// There are no more spikes.
    pub fn finish(mut self) -> Result<(), SinkError> {
        self.release(u64::MAX)
    }

    /// Hands over the rows and spikes until a step.
    fn release(&mut self, until: u64) -> Result<(), SinkError> {
        while self.waiting.front().is_some_and(|row| row.1 <= until)
            && let Some((record, step, values)) = self.waiting.pop_front()
        {
            let kept = self.records[record].as_mut().is_none_or(|windows| windows.have(step));
            if kept {
                self.sink.row(record, step, &values)?;
            }
        }
        while self.spikes.front().is_some_and(|(_, spike)| spike.step < until)
            && let Some((train, spike)) = self.spikes.pop_front()
        {
            self.sink.spike(train, spike)?;
        }
        Ok(())
    }
}

impl Windows<'_> {
    fn spike(&mut self, after: u64) {
        let at = i64::try_from(after).unwrap_or(i64::MAX);
        let (first, last) = (at.saturating_add(self.around.window.0), at.saturating_add(self.around.window.1));
        match self.open.back_mut() {
            Some(before) if before.0 <= first && first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            Some(_) | None => self.open.push_back((first, last)),
        }
    }

    /// Is the sample after so many steps in one of them? What lies before it is forgotten.
    fn have(&mut self, step: u64) -> bool {
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        while self.open.front().is_some_and(|window| window.1 < step) {
            self.open.pop_front();
        }
        self.open.iter().any(|window| (window.0..=window.1).contains(&step))
    }
}

impl Sink for AroundSpikes<'_> {
    fn row(&mut self, record: usize, step: u64, values: &[f64]) -> Result<(), SinkError> {
        self.waiting.push_back((record, step, values.to_vec()));
        Ok(())
    }

    fn spike(&mut self, train: usize, spike: Spike) -> Result<(), SinkError> {
        for windows in self.records.iter_mut().flatten() {
            if windows.around.train == train && windows.around.cells.contains(&(spike.cell as usize)) {
                windows.spike(spike.step + 1);
            }
        }
        self.spikes.push_back((train, spike));
        Ok(())
    }

    fn reached(&mut self, step: u64) -> Result<(), SinkError> {
        let Some(known) = step.checked_sub(self.wait) else { return Ok(()) };
        self.release(known)?;
        self.sink.reached(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::records::Record;
    use crate::step::FieldId;
    use crate::units::Dim;

    /// Notes what comes in.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Sink for Notes {
        fn row(&mut self, record: usize, step: u64, _: &[f64]) -> Result<(), SinkError> {
            self.0.push(format!("{record}@{step}"));
            Ok(())
        }

        fn spike(&mut self, _: usize, Spike { step, cell, .. }: Spike) -> Result<(), SinkError> {
            self.0.push(format!("spike of {cell} in {step}"));
            Ok(())
        }

        fn reached(&mut self, step: u64) -> Result<(), SinkError> {
            self.0.push(format!("until {step}"));
            Ok(())
        }
    }

    fn record(window: Option<(i64, i64)>) -> Record {
        Record {
            heard: None,
            compartments: None,
            name: String::new(),
            population: String::new(),
            unit: Dim::ONE.display_unit(),
            field: FieldId(0),
            cells: 0..1,
            every: 1,
            window: (0, 100),
            around: window.map(|window| Around { train: 0, cells: 1..3, window }),
            output: false,
        }
    }

    /// Ten steps with a spike of a cell in the fifth (so that it is there after six), four steps a call.
    fn ten_steps(window: (i64, i64), cell: u64) -> Vec<String> {
        let records =
            Records { series: vec![record(None), record(Some(window))], trains: Vec::new(), told: Vec::new() };
        let mut notes = Notes::default();
        let mut sink = AroundSpikes::before(&records, &mut notes).ok().expect("a record around spikes");
        let (mut row, mut done) = (0, 0);
        while done < 10 {
            let until = 10.min(done + 4);
            for step in row..=until {
                (0..2).for_each(|record| sink.row(record, step, &[0.0]).expect("a row"));
            }
            if (done..until).contains(&5) {
                sink.spike(0, Spike { step: 5, field: FieldId(0), cell, early: 0 }).expect("a spike");
            }
            sink.reached(until).expect("steps");
            (row, done) = (until + 1, until);
        }
        sink.finish().expect("all of it");
        notes.0
    }

    fn kept(window: (i64, i64), cell: u64) -> Vec<String> {
        ten_steps(window, cell).into_iter().filter(|note| note.starts_with("1@")).collect()
    }

    #[test]
    fn rows_around_a_spike_are_kept_and_no_others() {
        assert_eq!(kept((-2, 1), 1), ["1@4", "1@5", "1@6", "1@7"]);
        assert_eq!(kept((2, 3), 2), ["1@8", "1@9"]);
        assert_eq!(kept((-100, -5), 1), ["1@0", "1@1"]);
        assert_eq!(kept((3, 100), 1), ["1@9", "1@10"]);
        assert!(kept((-2, 1), 0).is_empty(), "another cell");
    }

    #[test]
    fn order_is_kept_and_nothing_is_said_to_be_there_that_waits() {
        let notes = ten_steps((-3, 0), 1);
        let expected =
            "0@0 0@1 until 1 0@2 0@3 1@3 0@4 1@4 0@5 1@5 until 5 0@6 1@6 0@7 spike of 1 in 5 until 7 0@8 0@9 0@10";
        assert_eq!(notes.join(" "), expected);
    }

    #[test]
    fn windows_that_touch_are_one() {
        let around = Around { train: 0, cells: 0..1, window: (-1, 1) };
        let mut windows = Windows { around: &around, open: VecDeque::new() };
        [5, 6, 8, 12].into_iter().for_each(|after| windows.spike(after));
        assert_eq!(windows.open, [(4, 9), (11, 13)]);
        assert_eq!((0..16).filter(|&step| windows.have(step)).collect::<Vec<_>>(), [4, 5, 6, 7, 8, 9, 11, 12, 13]);
    }
}

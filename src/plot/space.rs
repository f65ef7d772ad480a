//! Panels with what was recorded in the compartments of a cell, over their distance from the middle of the root section.
//!
//! A series of compartments comes in, and which times or which way; out go values over the distance at some times, or colours over time and distance along one
//! way, with axes and the drawing. Distances on the side of the root section on which it begins are negative where it has several compartments, so that a cable
//! does not lie folded.
//! Never true here: compartments that do not follow each other are joined.

use plotters_backend::DrawingBackend;

use crate::results::Series;

use super::axis::{Axis, borders};
use super::canvas::Canvas;
use super::figure::{Frame, Mark};
use super::scale::Scale;
use super::{PlotError, PlotOptions, style};

/// The compartments of one cell of which something was recorded.
pub struct Cell<'a> {
    series: &'a Series,
    /// Its number, if the record is of several.
    number: Option<u64>,
    /// By compartment: its column.
    columns: Vec<usize>,
    /// Signed, in um.
    distance: Vec<f64>,
    before: Vec<Option<usize>>,
}

impl<'a> Cell<'a> {
    /// The first of the chosen cells, or the first that there is; none of a series that is not one of compartments.
    pub fn of(series: &'a Series, chosen: &[u64]) -> Option<Cell<'a>> {
        let all = series.compartments.as_ref()?;
        let cell = match chosen {
            [] => *series.cells.first()?,
            chosen => *chosen.iter().find(|cell| series.cells.contains(cell))?,
        };
        let columns: Vec<usize> = (0..series.cells.len()).filter(|&column| series.cells[column] == cell).collect();
        if columns.len() != all.len() {
            return None;
        }
        let before: Vec<Option<usize>> = all.iter().map(|c| c.before.map(|before| before as usize)).collect();
        // Only within the root section a way from the root can go towards its middle.
        let mut behind = vec![false; all.len()];
        for (c, before) in all.iter().zip(&before) {
            if let Some(before) = *before
                && section(&c.name) == section(&all[before].name)
                && c.distance <= all[before].distance * (1.0 + 1e-9)
            {
                behind[before] = true;
            }
        }
        for at in 0..all.len() {
            if let Some(before) = before[at] {
                behind[at] |= behind[before] && all[at].distance > all[before].distance * (1.0 + 1e-9);
            }
        }
        let distance =
            all.iter().zip(behind).map(|(c, behind)| if behind { -c.distance } else { c.distance }).collect();
        let number = (series.whole > all.len()).then_some(cell);
        Some(Cell { series, number, columns, distance, before })
    }

    fn name(&self, compartment: usize) -> &str {
        self.series.compartments.as_ref().map_or("", |all| &all[compartment].name)
    }

    fn value(&self, row: usize, compartment: usize) -> f64 {
        self.series.values.get(row, self.columns[compartment])
    }

    fn heading(&self, more: &str) -> String {
        let number = self.number.map_or(String::new(), |cell| format!(" of cell {cell}"));
        format!("{}{number}{more}", self.series.name)
    }

    /// The sample that is nearest to a time.
    fn row(&self, t: f64) -> Option<usize> {
        let times = &self.series.t;
        let after = times.partition_point(|x| *x < t);
        [after.checked_sub(1), Some(after)]
            .into_iter()
            .flatten()
            .filter(|&row| row < times.len())
            .min_by(|&a, &b| (times[a] - t).abs().total_cmp(&(times[b] - t).abs()))
    }

    /// The least and the largest distance.
    pub fn reach(&self) -> (f64, f64) {
        let fold = |(a, b): (f64, f64), x: &f64| (a.min(*x), b.max(*x));
        self.distance.iter().fold((f64::INFINITY, f64::NEG_INFINITY), fold)
    }

    /// The compartments from the root to one of that name, to the last of the section of that name, or to the farthest one.
    fn way(&self, to: Option<&str>) -> Result<Vec<usize>, PlotError> {
        let all = || 0..self.columns.len();
        let far = |a: &usize, b: &usize| self.distance[*a].abs().total_cmp(&self.distance[*b].abs());
        let of = |c: usize| section(self.name(c));
        let end = match to {
            None => all().max_by(far),
            Some(to) => all().find(|&c| self.name(c) == to).or_else(|| {
                let word = |&c: &usize| of(c).split('[').next() == Some(to);
                all().filter(|&c| of(c) == to).max_by(far).or_else(|| all().filter(word).max_by(far))
            }),
        };
        let Some(end) = end else {
            let mut names: Vec<&str> = all().map(of).collect();
            names.dedup();
            let more = names.len().saturating_sub(20);
            names.truncate(20);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let (to, of, names) = (to.unwrap_or(""), &self.series.name, names.join(", "));
            return Err(PlotError::Options(format!(
                "no compartment or section of {of} is called `{to}`: there are {names}{more}"
            )));
        };
        let mut way = vec![end];
        while let Some(before) = way.last().and_then(|&at| self.before[at]) {
            way.push(before);
        }
        way.reverse();
        Ok(way)
    }
}

/// The section of a compartment, by its name.
fn section(compartment: &str) -> &str {
    compartment.split('(').next().unwrap_or(compartment)
}

/// Values over the distance at some times.
pub struct Profile<'a> {
    cell: Cell<'a>,
    /// Samples.
    rows: Vec<usize>,
}

impl<'a> Profile<'a> {
    pub fn new(cell: Cell<'a>, options: &PlotOptions) -> Result<Profile<'a>, PlotError> {
        if options.at.len() > style::MOST_LINES {
            let (n, most) = (options.at.len(), style::MOST_LINES);
            return Err(PlotError::Options(format!("{n} times are more than the {most} that have a colour each")));
        }
        let (first, last) = match &cell.series.t[..] {
            [] => return Err(PlotError::Nothing(format!("{} has no sample", cell.series.name))),
            [first, .., last] => (*first, *last),
            [only] => (*only, *only),
        };
        if first.is_nan() {
            return Err(PlotError::Nothing(format!("{} has no sample", cell.series.name)));
        }
        let mut rows = Vec::new();
        for &t in &options.at {
            let Some(row) = cell.row(t).filter(|_| (first - 1e-9..=last + 1e-9).contains(&t)) else {
                let name = &cell.series.name;
                let why = format!("{name} was not recorded at {t} ms, but from {first} ms to {last} ms");
                return Err(PlotError::Nothing(why));
            };
            rows.push(row);
        }
        Ok(Profile { cell, rows })
    }

    pub fn heading(&self) -> String {
        self.cell.heading("")
    }

    pub fn reach(&self) -> (f64, f64) {
        self.cell.reach()
    }

    pub fn label(&self, y: &Axis) -> String {
        labelled(self.cell.series, &y.factor())
    }

    pub fn legend(&self) -> Vec<(Mark, String)> {
        let time = |row: usize| format!("{} ms", style::few(self.cell.series.t[row]));
        self.rows.iter().enumerate().map(|(at, &row)| (Mark::Line(style::LINES[at]), time(row))).collect()
    }

    pub fn axis(&self, height: f64) -> Axis {
        let values =
            self.rows.iter().flat_map(|&row| (0..self.cell.columns.len()).map(move |c| self.cell.value(row, c)));
        let finite = values.filter(|x| x.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        Axis::around(low, high, (height / 40.0).clamp(3.0, 8.0) as usize)
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        let Cell { distance, before, .. } = &self.cell;
        for (at, &row) in self.rows.iter().enumerate() {
            let point = |c: usize| {
                let value = self.cell.value(row, c);
                value.is_finite().then(|| frame.point(distance[c], value))
            };
            for (c, before) in before.iter().enumerate() {
                let ends = [before.and_then(point), point(c)];
                let ends: Vec<(f64, f64)> = ends.into_iter().flatten().collect();
                canvas.line(&ends, style::LINES[at], style::LINE_WIDTH)?;
            }
        }
        Ok(())
    }
}

/// Values in colours over time and over the distance along a way.
pub struct Heat<'a> {
    cell: Cell<'a>,
    way: Vec<usize>,
    /// The samples within the window.
    rows: Vec<usize>,
    pub scale: Scale,
}

/// Colours that are told apart; those beside each other become one box.
const SHADES: f64 = 96.0;
/// Bands of distance, and boxes of the whole panel, at most.
const BANDS: usize = 160;
const BOXES: usize = 60_000;

impl<'a> Heat<'a> {
    pub fn new(cell: Cell<'a>, options: &PlotOptions, window: (f64, f64)) -> Result<Heat<'a>, PlotError> {
        let way = cell.way(options.along.as_deref())?;
        let inside = |&row: &usize| (window.0..=window.1).contains(&cell.series.t[row]);
        let rows: Vec<usize> = (0..cell.series.t.len()).filter(inside).collect();
        let values = rows.iter().flat_map(|&row| way.iter().map(move |&c| (row, c)));
        let scale = Scale::of(values.map(|(row, c)| cell.value(row, c)), 6);
        Ok(Heat { way, rows, scale, cell })
    }

    pub fn heading(&self) -> String {
        let name = |end: Option<&usize>| end.map_or("", |&c| self.cell.name(c));
        let quantity = labelled(self.cell.series, &self.scale.factor());
        self.cell.heading(&format!(
            " · {quantity} along the way from {} to {}",
            name(self.way.first()),
            name(self.way.last())
        ))
    }

    /// The borders between the compartments of the way, in um, one more than there are compartments.
    fn borders(&self) -> Vec<f64> {
        let at: Vec<f64> = self.way.iter().map(|&c| self.cell.distance[c]).collect();
        borders(&at)
    }

    pub fn axis(&self, height: f64) -> Axis {
        let borders = self.borders();
        let (low, high) = borders.first().zip(borders.last()).map_or((0.0, 1.0), |(a, b)| (*a, *b));
        Axis::exact(low.min(high), low.max(high), (height / 40.0).clamp(3.0, 8.0) as usize)
    }

    pub fn draw<DB: DrawingBackend>(&self, canvas: &mut Canvas<DB>, frame: &Frame<'_>) -> Result<(), String> {
        let borders = self.borders();
        if self.rows.is_empty() || self.way.is_empty() {
            return frame.say(canvas, "no samples");
        }
        // Of many compartments, the one in the middle of a band stands for it.
        let (low, high) = (borders[0], borders[borders.len() - 1]);
        let count = self.way.len().min(BANDS);
        let mut bands: Vec<(usize, f64, f64)> = Vec::new();
        if self.way.len() <= BANDS {
            bands.extend(borders.windows(2).zip(&self.way).map(|(b, &c)| (c, b[0], b[1])));
        } else {
            for k in 0..count {
                let at = |part: f64| low + (high - low) * part / count as f64;
                let middle = at(k as f64 + 0.5);
                let c = borders[1..].partition_point(|border| *border < middle).min(self.way.len() - 1);
                bands.push((self.way[c], at(k as f64), at(k as f64 + 1.0)));
            }
        }
        let (first, last) = (self.rows[0], self.rows[self.rows.len() - 1]);
        let columns = self.rows.len().min(BOXES / count).min((frame.right - frame.left) as usize).max(1);
        let times = &self.cell.series.t;
        let edge = |k: usize| times[first] + (times[last] - times[first]) * k as f64 / columns as f64;
        let nearest: Vec<usize> =
            (0..columns).map(|k| self.cell.row(0.5 * (edge(k) + edge(k + 1))).unwrap_or(first)).collect();
        for (c, from, to) in bands {
            let shade = |k: usize| {
                let place = self.scale.place(self.cell.value(nearest[k], c));
                if place.is_finite() { (place * SHADES).round() as i64 } else { -1 }
            };
            let mut k = 0;
            while k < columns {
                let own = shade(k);
                let begin = k;
                while k < columns && shade(k) == own {
                    k += 1;
                }
                let color = if own < 0 { style::NOTHING } else { style::ramp(own as f64 / SHADES) };
                let (left, right) = (frame.point(edge(begin), from), frame.point(edge(k), to));
                // Half a pixel larger, or the background shines through between boxes.
                let right = ((right.0 + 0.5).min(frame.right), right.1);
                canvas.fill((left.0, (right.1 - 0.5).max(frame.top)), (right.0, left.1), color)?;
            }
        }
        Ok(())
    }
}

/// The quantity of a series with its unit and the power of ten that an axis leaves out.
fn labelled(series: &Series, factor: &str) -> String {
    style::label(series.name.rsplit('.').next().unwrap_or(&series.name), &series.unit, factor)
}

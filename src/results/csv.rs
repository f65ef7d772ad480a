//! Results as comma-separated text, written while a run goes on.
//!
//! In come rows in the order of their times, and spikes; out go lines in the layout of the [module above](super), and a text that says
//! what they hold. Lines are written whole.
//! Never true here: a number is rounded, or a missing sample becomes a number.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::io;
use std::path::{Path, PathBuf};

use super::atomic::{Pending, WriteError, explain};
use super::{Contents, SeriesHead};

/// So many bytes are kept in memory before they are written.
const KEPT: usize = 1 << 20;

/// And so many of what is shown already before all of it is.
const MOST: usize = 1 << 25;

/// The heading of spikes.
const SPIKES: &str = "population,cell,t_ms\n";

/// All files of a result: samples, spikes, and the text about them.
pub(super) fn files(path: &Path) -> [PathBuf; 3] {
    [path.to_owned(), path.with_extension("spikes.csv"), path.with_extension("meta.json")]
}

/// Tables in the making.
pub(super) struct Csv {
    table: Table,
    spikes: Option<Table>,
    /// The spikes of an earlier result, if this one has none: they are not to be taken for those of this one.
    earlier: Option<PathBuf>,
    /// The text about them.
    meta: PathBuf,
    /// Cells of every series, and whether numbers are in single precision.
    widths: Vec<usize>,
    single: bool,
    populations: Vec<String>,
    /// The row that is not complete yet.
    t: Option<f64>,
    row: Vec<Option<Vec<f64>>>,
}

struct Table {
    pending: Pending,
    path: PathBuf,
    text: String,
}

impl Csv {
    /// Tables with their headings; they appear with the first commit.
    pub fn new(path: &Path, contents: &Contents) -> Result<Csv, WriteError> {
        let mut table = Table::new(path.to_owned(), "t_ms")?;
        let mut names = HashSet::new();
        for head in &contents.series {
            for column in 0..head.cells.len() {
                let mut name = head.column(column);
                // Cells may be in several records.
                if !names.insert(name.clone()) {
                    name = format!("{name} of {}", head.name);
                }
                let _ = write!(table.text, ",{}", field(&format!("{name} ({})", head.unit)));
            }
        }
        table.text.push('\n');
        let [_, of_spikes, meta] = files(path);
        let spikes = match contents.trains.is_empty() {
            true => None,
            false => Some(Table::new(of_spikes.clone(), SPIKES)?),
        };
        let earlier = (spikes.is_none() && begins_with(&of_spikes, SPIKES)).then_some(of_spikes);
        Ok(Csv {
            table,
            spikes,
            earlier,
            meta,
            widths: contents.series.iter().map(|head| head.cells.len()).collect(),
            single: contents.single,
            populations: contents.trains.iter().map(|train| field(&train.population)).collect(),
            t: None,
            row: vec![None; contents.series.len()],
        })
    }

    /// The samples of a series at a time, which is not before that of the row before.
    pub fn row(&mut self, series: usize, t: f64, values: &[f64]) -> Result<(), WriteError> {
        if self.t != Some(t) || self.row[series].is_some() {
            self.line()?;
            self.t = Some(t);
        }
        self.row[series] = Some(values.to_vec());
        Ok(())
    }

    /// A spike.
    pub fn spike(&mut self, train: usize, t: f64, cell: u64) -> Result<(), WriteError> {
        let Some(table) = &mut self.spikes else { return Ok(()) };
        let _ = writeln!(table.text, "{},{cell},{}", self.populations[train], time(t));
        table.full()
    }

    /// Writes the row that is complete.
    fn line(&mut self) -> Result<(), WriteError> {
        let Some(t) = self.t.take() else { return Ok(()) };
        let text = &mut self.table.text;
        let _ = write!(text, "{}", time(t));
        for (row, &width) in self.row.iter_mut().zip(&self.widths) {
            let row = row.take();
            for column in 0..width {
                text.push(',');
                let _ = match &row {
                    None => Ok(()),
                    // Not widened: 0.1 in single precision is `0.1`, not `0.10000000149011612`.
                    Some(row) if self.single => write!(text, "{}", Number(row[column] as f32)),
                    Some(row) => write!(text, "{}", Number(row[column])),
                };
            }
        }
        text.push('\n');
        self.table.full()
    }

    /// Is so much text kept that it is time for a commit?
    pub fn full(&self) -> bool {
        self.spikes.iter().chain([&self.table]).any(|table| table.text.len() >= MOST)
    }

    /// The tables hold what has come in, but for the last row, which may go on.
    pub fn commit(&mut self, meta: &str) -> Result<(), WriteError> {
        for table in self.spikes.iter_mut().chain([&mut self.table]) {
            table.flush()?;
            table.pending.show()?;
        }
        self.forget_earlier()?;
        Pending::new(&self.meta, |file| io::Write::write_all(file, meta.as_bytes()))?.commit()
    }

    /// The tables hold everything. Answers their names.
    pub fn finish(mut self, meta: &str) -> Result<Vec<PathBuf>, WriteError> {
        self.line()?;
        for table in self.spikes.iter_mut().chain([&mut self.table]) {
            table.flush()?;
        }
        self.forget_earlier()?;
        let mut written = vec![self.table.path.clone()];
        self.table.pending.commit_or_keep()?;
        if let Some(table) = self.spikes {
            table.pending.commit()?;
            written.push(table.path);
        }
        Pending::new(&self.meta, |file| io::Write::write_all(file, meta.as_bytes()))?.commit()?;
        written.push(self.meta);
        Ok(written)
    }
}

impl Csv {
    fn forget_earlier(&mut self) -> Result<(), WriteError> {
        let Some(path) = self.earlier.take() else { return Ok(()) };
        std::fs::remove_file(&path).map_err(|e| explain(&path, e))
    }
}

/// Does a file begin with a text?
fn begins_with(path: &Path, text: &str) -> bool {
    let mut begin = vec![0; text.len()];
    let read = std::fs::File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut begin));
    read.is_ok() && begin == text.as_bytes()
}

impl Table {
    fn new(path: PathBuf, heading: &str) -> Result<Table, WriteError> {
        Ok(Table { pending: Pending::open(&path)?, path, text: heading.to_owned() })
    }

    /// What nobody sees yet goes to its file as it comes. What is shown grows with the other files alone: together they tell how far the run has come.
    fn full(&mut self) -> Result<(), WriteError> {
        if self.text.len() >= KEPT && !self.pending.is_shown() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.pending.append(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }
}

impl SeriesHead {
    /// The name of a column: that of a record of this one cell.
    pub(super) fn column(&self, column: usize) -> String {
        let cell = self.cells[column];
        let rest = self.name.strip_prefix(&self.population).filter(|_| !self.population.is_empty());
        let rest = rest.map(|rest| match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((_, rest)) => rest,
            None => rest,
        });
        // In place of what sections are called stands the compartment; of a probe, the number of the contact.
        let each = self.compartments.as_ref().map(|compartments| &compartments[column % compartments.len()]);
        let is_contact = each.is_some_and(|each| each.at.is_some());
        match (rest, each.map(|each| &each.name)) {
            _ if is_contact => self.column_of_cell(rest, column as u64),
            (Some(rest), Some(name)) if let Some((_, quantity)) = rest[1..].split_once('.') => {
                format!("{}[{cell}].{name}.{quantity}", self.population)
            }
            _ => self.column_of_cell(rest, cell),
        }
    }

    fn column_of_cell(&self, rest: Option<&str>, cell: u64) -> String {
        match rest {
            Some(rest) => format!("{}[{cell}]{rest}", self.population),
            None => format!("{}[{cell}]", self.name),
        }
    }
}

/// A time to 12 digits, which hide the rounding of the product of steps and time step.
fn time(t: f64) -> Number<f64> {
    Number(format!("{t:.11e}").parse().unwrap_or(t))
}

/// A floating-point number as the shortest text that reads back to it, with an exponent where that is shorter to read.
struct Number<T>(T);

impl<T: Copy + Into<f64> + fmt::Display + fmt::LowerExp> fmt::Display for Number<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide: f64 = self.0.into();
        match wide.abs() {
            _ if wide.is_nan() => f.write_str("nan"),
            m if m != 0.0 && m.is_finite() && !(1e-5..1e16).contains(&m) => {
                write!(f, "{:e}", self.0)
            }
            _ => write!(f, "{}", self.0),
        }
    }
}

/// A text field, quoted where it has to be.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

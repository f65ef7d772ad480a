//! Results as comma-separated text.
//!
//! Series and spike trains come in, checked; out goes text in the layout of the [module above](super). A number is
//! never rounded, and a missing sample never becomes a number.

use std::io::{self, BufWriter, Write};

use super::{Samples, Series, SpikeTrain};

/// Writes the wide table of all series.
pub(super) fn encode_series(series: &[Series], out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    write!(out, "t_ms")?;
    for s in series {
        let (_, width) = s.values.shape();
        for index in 0..width {
            write!(out, ",{}", field(&format!("{}[{index}] ({})", s.name, s.unit)))?;
        }
    }
    writeln!(out)?;
    // The next unwritten row of each series.
    let mut next = vec![0; series.len()];
    loop {
        let pending = series.iter().zip(&next).filter_map(|(s, &row)| s.t.get(row));
        let Some(t) = pending.copied().min_by(f64::total_cmp) else {
            break;
        };
        write!(out, "{}", Number(t))?;
        for (s, row) in series.iter().zip(&mut next) {
            let here = s.t.get(*row) == Some(&t);
            let (_, width) = s.values.shape();
            for index in 0..width {
                out.write_all(b",")?;
                if here {
                    write_sample(&mut out, &s.values, *row, index)?;
                }
            }
            *row += usize::from(here);
        }
        writeln!(out)?;
    }
    out.flush()
}

/// Writes the long table of all spikes.
pub(super) fn encode_spikes(trains: &[SpikeTrain], out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    writeln!(out, "population,cell,t_ms")?;
    for train in trains {
        let population = field(&train.population);
        for (t, i) in train.t.iter().zip(&train.i) {
            writeln!(out, "{population},{i},{}", Number(*t))?;
        }
    }
    out.flush()
}

fn write_sample(out: &mut impl Write, values: &Samples, row: usize, index: usize) -> io::Result<()> {
    match values {
        // Not widened first: 0.1 in single precision is `0.1`, not `0.10000000149011612`.
        Samples::F32(a) => write!(out, "{}", Number(a[[row, index]])),
        Samples::F64(a) => write!(out, "{}", Number(a[[row, index]])),
    }
}

/// A floating-point number as the shortest text that reads back to it, with an exponent where that is shorter to read.
struct Number<T>(T);

impl<T: Copy + Into<f64> + std::fmt::Display + std::fmt::LowerExp> std::fmt::Display for Number<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

//! What is publicly known of the chips.
//!
//! In comes `chips.json`; out come the figures of a [`Chip`] by its name.
//! Never true here: a figure without its source, or one that was measured or guessed.

use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The public figures of a chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chip {
    /// What it is called: `v5e`.
    pub name: String,
    /// TensorCores on a chip; each has matrix units, a vector unit and a scalar unit.
    pub tensor_cores: u32,
    /// The peak of the matrix units in bf16. Nothing public says what the vector units reach.
    pub peak_bf16_flops_per_s: f64,
    /// Memory, in bytes.
    pub hbm_bytes: f64,
    /// How fast memory is.
    pub hbm_bytes_per_s: f64,
    /// How fast chips talk to each other; `None` where the source does not say.
    pub ici_bits_per_s: Option<f64>,
    /// How chips are joined, in the source's words.
    pub interconnect: String,
    /// How many numbers a topology has.
    pub dimensions: usize,
    /// The most chips of one slice.
    pub most_chips: u64,
    /// The topology where none is named: one host.
    pub default_topology: String,
    /// The page that says so.
    pub source: String,
    /// What a reader of the page should know.
    pub note: String,
}

/// The table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chips {
    /// When the sources were read.
    pub read: String,
    /// The chips.
    pub chips: Vec<Chip>,
}

static CHIPS: LazyLock<Chips> = LazyLock::new(|| {
    // A test parses it, so this cannot fail in a compiler that passed its tests.
    serde_json::from_str(include_str!("chips.json")).expect("the table of chips is well-formed")
});

/// The table of chips.
pub fn chips() -> &'static Chips {
    &CHIPS
}

impl Chip {
    /// The chip with a name.
    pub fn find(name: &str) -> Option<&'static Chip> {
        chips().chips.iter().find(|chip| chip.name == name)
    }

    /// Operations per byte of memory traffic above which the matrix units, and not memory, would limit.
    pub fn ridge(&self) -> f64 {
        self.peak_bf16_flops_per_s / self.hbm_bytes_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the sources, written a second time so that a slip of the pen in the table shows.
    #[test]
    fn every_chip_has_the_figures_of_its_source() {
        let gib = 1024.0 * 1024.0 * 1024.0;
        let known = [
            ("v4", 2, 275.0, 32.0 * gib, 1200.0, None, 3, 229.0),
            ("v5e", 1, 197.0, 16e9, 819.0, Some(1600.0), 2, 241.0),
            ("v5p", 2, 459.0, 95e9, 2765.0, Some(4800.0), 3, 166.0),
            ("v6e", 1, 918.0, 32e9, 1600.0, Some(3200.0), 2, 574.0),
        ];
        assert_eq!(chips().chips.len(), known.len());
        for (name, cores, teraflops, bytes, gigabytes, gigabits, dimensions, ridge) in known {
            let chip = Chip::find(name).expect(name);
            assert_eq!(chip.tensor_cores, cores, "{name}");
            assert_eq!(chip.peak_bf16_flops_per_s, teraflops * 1e12, "{name}");
            assert_eq!(chip.hbm_bytes, bytes, "{name}");
            assert_eq!(chip.hbm_bytes_per_s, gigabytes * 1e9, "{name}");
            assert_eq!(chip.ici_bits_per_s, gigabits.map(|g: f64| g * 1e9), "{name}");
            assert_eq!(chip.dimensions, dimensions, "{name}");
            assert_eq!(chip.default_topology.split('x').count(), dimensions, "{name}");
            assert!(chip.interconnect.starts_with(&format!("{dimensions}D")), "{name}");
            assert_eq!(chip.ridge().round(), ridge, "{name}");
            assert_eq!(chip.source, format!("https://cloud.google.com/tpu/docs/{name}"));
        }
    }
}

//! The target of a compilation: `tpu:CHIP:TOPOLOGY`.
//!
//! In comes text from the command line; out goes a [`Target`] that fits its chip, or what is wrong with the text.
//! Never true here: that libtpu knows the topology; compiling asks it.

use super::chip::{Chip, chips};
use std::fmt;

/// Chips to compile for.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Of which kind.
    pub chip: &'static Chip,
    /// How many along every dimension.
    pub topology: Vec<u32>,
}

impl Target {
    /// Reads `tpu:v5e:2x2`. Without a topology it is that of one host.
    pub fn parse(text: &str) -> Result<Target, String> {
        let mut parts = text.split(':');
        if parts.next() != Some("tpu") {
            return Err(format!("unknown target `{text}`: a target is `tpu:CHIP:TOPOLOGY`, such as `tpu:v5e:2x2`"));
        }
        let names = || chips().chips.iter().map(|chip| chip.name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(name) = parts.next().filter(|name| !name.is_empty()) else {
            return Err(format!("`{text}` names no chip; known are {}", names()));
        };
        let Some(chip) = Chip::find(name) else {
            return Err(format!("there is no TPU `{name}` in the table of chips; known are {}", names()));
        };
        let topology = parts.next().unwrap_or(&chip.default_topology);
        if let Some(more) = parts.next() {
            return Err(format!("`:{more}` is too much: a target is `tpu:CHIP:TOPOLOGY`, such as `tpu:v5e:2x2`"));
        }
        let such = &chip.default_topology;
        let sizes: Result<Vec<u32>, String> = topology
            .split('x')
            .map(|size| match size.parse() {
                Ok(size) if size > 0 && !topology.contains('+') => Ok(size),
                Ok(_) | Err(_) => {
                    Err(format!("`{topology}` is no topology: write whole numbers from 1 on, such as `{such}`"))
                }
            })
            .collect();
        let sizes = sizes?;
        if sizes.len() != chip.dimensions {
            return Err(format!(
                "a {name} topology has {} numbers (its interconnect is a {}), such as `{such}`; `{topology}` has {}",
                chip.dimensions,
                chip.interconnect,
                sizes.len()
            ));
        }
        let count = sizes.iter().map(|&size| u64::from(size)).try_fold(1u64, u64::checked_mul);
        if count.is_none_or(|count| count > chip.most_chips) {
            return Err(format!("`{topology}` is more chips than the {} of the largest {name} slice", chip.most_chips));
        }
        Ok(Target { chip, topology: sizes })
    }

    /// How many chips.
    pub fn chips(&self) -> u64 {
        self.topology.iter().map(|&size| u64::from(size)).product()
    }

    /// As libtpu calls it: `v5e:2x2`.
    pub fn topology_name(&self) -> String {
        let sizes: Vec<String> = self.topology.iter().map(u32::to_string).collect();
        format!("{}:{}", self.chip.name, sizes.join("x"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tpu:{}", self.topology_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_printed() {
        for (text, printed, count) in [
            ("tpu:v5e:2x2", "tpu:v5e:2x2", 4),
            ("tpu:v5e", "tpu:v5e:2x2", 4),
            ("tpu:v6e", "tpu:v6e:2x2", 4),
            ("tpu:v4", "tpu:v4:2x2x1", 4),
            ("tpu:v5p:4x4x8", "tpu:v5p:4x4x8", 128),
            ("tpu:v5e:1x1", "tpu:v5e:1x1", 1),
        ] {
            let target = Target::parse(text).expect(text);
            assert_eq!((target.to_string().as_str(), target.chips()), (printed, count));
        }
    }

    #[test]
    fn what_is_wrong_with_a_target_is_said() {
        for (text, said) in [
            ("gpu", "unknown target `gpu`"),
            ("tpu", "names no chip; known are v4, v5e, v5p, v6e"),
            ("tpu:", "names no chip"),
            ("tpu:v9", "there is no TPU `v9` in the table of chips; known are v4, v5e, v5p, v6e"),
            (
                "tpu:v5e:2x2x1",
                "a v5e topology has 2 numbers (its interconnect is a 2D torus), such as `2x2`; `2x2x1` has 3",
            ),
            ("tpu:v4:2x2", "a v4 topology has 3 numbers"),
            ("tpu:v5e:2x0", "is no topology"),
            ("tpu:v5e:2x-2", "is no topology"),
            ("tpu:v5e:+2x2", "is no topology"),
            ("tpu:v5e:", "is no topology"),
            ("tpu:v5e:2x2:1", "`:1` is too much"),
            ("tpu:v5e:32x32", "more chips than the 256"),
            ("tpu:v5p:4000000000x4000000000x4000000000", "more chips than the 8960"),
        ] {
            let error = Target::parse(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}

//! What is to be expected of a program on a chip.
//!
//! In come compiled entry points and the cost of a step; out goes a [`Report`], as text for people and as JSON.
//! Never true here: a number that XLA or the table of chips did not give, or that does not follow from theirs by the arithmetic
//! written here; what nobody knows is `unknown`.

use super::chip::Chip;
use super::cost::{Gathers, StepCost};
use super::target::Target;
use crate::codegen::plan::{Delivery, DeliveryForm, Plan, Precision};
use crate::pjrt::CompiledMemory;
use serde::Serialize;
use std::fmt;

/// The memory of an entry point on its device, in bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EntryMemory {
    /// The entry point.
    pub entry: String,
    /// The size of the serialized executable.
    pub serialized: usize,
    /// Machine code; none where XLA does not tell.
    pub code: Option<i64>,
    /// Arguments.
    pub arguments: i64,
    /// Results.
    pub outputs: i64,
    /// Results in the place of arguments.
    pub aliased: i64,
    /// In between.
    pub temporaries: i64,
    /// All of it at once.
    pub total: i64,
}

impl EntryMemory {
    /// Of a compiled entry point.
    pub fn new(entry: &str, serialized: usize, memory: CompiledMemory) -> EntryMemory {
        let CompiledMemory { code, arguments, outputs, aliased, temporaries } = memory;
        let code = (code >= 0).then_some(code);
        let total = code.unwrap_or_default() + arguments + outputs - aliased + temporaries;
        EntryMemory { entry: entry.into(), serialized, code, arguments, outputs, aliased, temporaries, total }
    }
}

/// What the states of a population lose to tiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Padding {
    /// The population.
    pub population: String,
    /// Its cells.
    pub cells: usize,
    /// Elements in a tile of a state array.
    pub tile: usize,
    /// Cells for which memory is taken.
    pub padded: usize,
    /// The part of that memory that holds nothing.
    pub waste: f64,
}

impl Padding {
    /// A tile is 8 rows of 128 elements of 32 bits. A state is one row of all cells, which fills tiles one after the other; where one
    /// tile is too much, it takes a half, a quarter or an eighth. Numbers of 64 bits are pairs of 32 bits.
    fn new(population: &str, cells: usize, precision: Precision) -> Padding {
        let tile = match precision {
            Precision::F64 | Precision::F32 | Precision::Bf16 => (8 * 128).min(cells.next_power_of_two().max(128)),
        };
        let padded = cells.div_ceil(tile) * tile;
        let waste = if padded == 0 { 0.0 } else { (padded - cells) as f64 / padded as f64 };
        Padding { population: population.into(), cells, tile, padded, waste }
    }
}

/// How events travel along some edges.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Travel {
    /// The edges.
    pub edges: String,
    /// The form's name.
    pub form: &'static str,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The model.
    pub model: String,
    /// For what it is compiled.
    pub target: String,
    /// What compiled it.
    pub compiler: String,
    /// The chip's public figures.
    pub chip: Chip,
    /// When their sources were read.
    pub read: String,
    /// How many chips the topology has. The program runs on one device of it.
    pub chips: u64,
    /// How many devices: more than chips where each TensorCore is one.
    pub devices: u64,
    /// What the vendor calls them.
    pub device_kind: String,
    /// The numbers of the program.
    pub precision: String,
    /// The time step, in ms.
    pub dt_ms: f64,
    /// Steps in the body of a loop.
    pub steps_in_line: u32,
    /// Memory of every entry point.
    pub memory: Vec<EntryMemory>,
    /// The memory of one device: its share of the chip's.
    pub hbm_bytes_of_device: f64,
    /// What one step costs.
    pub step: StepCost,
    /// The time in which one device's share of the memory bandwidth moves those bytes.
    pub seconds_of_memory: f64,
    /// Operations (each transcendental function counted as one) per byte.
    pub intensity: f64,
    /// What the states lose to tiles.
    pub padding: Vec<Padding>,
    /// Forms of gathers.
    pub gathers: Vec<Gathers>,
    /// How events travel.
    pub deliveries: Vec<Travel>,
    /// In plain words.
    pub advice: Vec<String>,
}

/// What a report is made of.
pub struct Findings<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The number of cells of every space.
    pub sizes: &'a [usize],
    /// The time step, in ms.
    pub dt_ms: f64,
    /// For what it was compiled.
    pub target: &'a Target,
    /// What compiled it.
    pub compiler: String,
    /// The names of the topology's devices.
    pub device_kinds: &'a [String],
    /// Steps in the body of a loop.
    pub steps_in_line: u32,
    /// Memory of every entry point.
    pub memory: Vec<EntryMemory>,
    /// What one step costs.
    pub step: StepCost,
    /// The same with single steps in the body of the loop.
    pub single: StepCost,
    /// Forms of gathers.
    pub gathers: Vec<Gathers>,
    /// The form of every delivery of the plan.
    pub deliveries: &'a [DeliveryForm],
}

impl Report {
    /// Works out what follows from the findings.
    pub fn new(findings: Findings<'_>) -> Report {
        let Findings { plan, target, step, .. } = findings;
        let (chip, chips) = (target.chip, target.chips());
        let devices = (findings.device_kinds.len() as u64).max(1);
        let share = (chips as f64 / devices as f64).min(1.0);
        let cells = |space: &crate::codegen::plan::SpacePlan| findings.sizes[space.space.0 as usize];
        let padding: Vec<Padding> =
            plan.spaces.iter().map(|space| Padding::new(&space.name, cells(space), plan.precision)).collect();
        let travel =
            |(delivery, form): (&Delivery, &DeliveryForm)| Travel { edges: delivery.name.clone(), form: form.name() };
        let mut report = Report {
            model: plan.name.clone(),
            target: target.to_string(),
            compiler: findings.compiler,
            chip: chip.clone(),
            read: super::chips().read.clone(),
            chips,
            devices,
            device_kind: findings.device_kinds.first().cloned().unwrap_or_default(),
            precision: plan.precision.name().into(),
            dt_ms: findings.dt_ms,
            steps_in_line: findings.steps_in_line,
            memory: findings.memory,
            hbm_bytes_of_device: chip.hbm_bytes * share,
            step,
            seconds_of_memory: step.bytes / (chip.hbm_bytes_per_s * share),
            intensity: if step.bytes > 0.0 { (step.flops + step.transcendentals) / step.bytes } else { 0.0 },
            padding,
            gathers: findings.gathers,
            deliveries: plan.deliveries.iter().zip(findings.deliveries).map(travel).collect(),
            advice: Vec::new(),
        };
        report.advice = super::advice::advice(&report, &findings.single, plan.precision);
        report
    }

    /// The entry point that takes the most memory.
    pub fn largest(&self) -> Option<&EntryMemory> {
        self.memory.iter().max_by_key(|memory| memory.total)
    }

    /// How many times real time, by the longer of both estimates of time.
    pub fn realtime_factor(&self) -> f64 {
        let seconds = self.step.seconds.map_or(self.seconds_of_memory, |s| s.max(self.seconds_of_memory));
        self.dt_ms * 1e-3 / seconds
    }

    /// For machines.
    pub fn json(&self) -> String {
        // Everything in it is plain data with text as keys.
        let text = serde_json::to_string_pretty(self).expect("a report can be written as JSON");
        format!("{text}\n")
    }
}

/// Bytes for people.
pub(super) fn bytes(n: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.iter().find(|(size, _)| n >= *size) {
        Some((size, unit)) => format!("{:.3} {unit}", n / size),
        None => format!("{n:.0} B"),
    }
}

/// Seconds for people.
pub(super) fn time(seconds: Option<f64>) -> String {
    match seconds {
        Some(seconds) => format!("{:.2} us", seconds * 1e6),
        None => "unknown".into(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chip = &self.chip;
        writeln!(f, "{} for {}, {}", self.model, self.target, self.precision)?;
        writeln!(f, "Nothing ran: these are the estimates of XLA's compiler and public figures of the chip.\n")?;
        writeln!(
            f,
            "chip {} ({} device{} `{}` on {} chip{}; the program runs on one device)",
            chip.name,
            self.devices,
            if self.devices == 1 { "" } else { "s" },
            self.device_kind,
            self.chips,
            if self.chips == 1 { "" } else { "s" }
        )?;
        writeln!(
            f,
            "  matrix units {:.0} Tflop/s in bf16, memory {} at {:.0} GB/s, {}{}",
            chip.peak_bf16_flops_per_s / 1e12,
            bytes(chip.hbm_bytes),
            chip.hbm_bytes_per_s / 1e9,
            chip.interconnect,
            chip.ici_bits_per_s.map_or(String::new(), |bits| format!(" at {:.0} Gbit/s", bits / 1e9))
        )?;
        writeln!(f, "  from {} ({})", chip.source, self.read)?;
        writeln!(f, "\nmemory of the device: {}, of which are taken", bytes(self.hbm_bytes_of_device))?;
        writeln!(
            f,
            "  {:<9}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
            "", "arguments", "results", "in place", "temporary", "code", "all"
        )?;
        for m in &self.memory {
            let code = m.code.map_or("unknown".into(), |code| bytes(code as f64));
            let [a, o, i, t, all] =
                [m.arguments, m.outputs, m.aliased, m.temporaries, m.total].map(|n| bytes(n as f64));
            writeln!(f, "  {:<9}{a:>12}{o:>12}{i:>12}{t:>12}{code:>12}{all:>12}", m.entry)?;
        }
        writeln!(
            f,
            "\none time step, as XLA counts it (without the loop; {} step{} compiled together, shared out)",
            self.steps_in_line,
            if self.steps_in_line == 1 { "" } else { "s" }
        )?;
        writeln!(f, "  operations       {:.4e}", self.step.flops)?;
        writeln!(f, "  transcendentals  {:.4e}", self.step.transcendentals)?;
        writeln!(f, "  bytes            {:.4e} ({})", self.step.bytes, bytes(self.step.bytes))?;
        writeln!(
            f,
            "  time             {} by XLA's model, {} to move the bytes at the memory's peak",
            time(self.step.seconds),
            time(Some(self.seconds_of_memory))
        )?;
        writeln!(
            f,
            "                   (both from bytes alone: what stays on the chip between operations is moved faster than"
        )?;
        writeln!(f, "                   that, and how long the vector units compute is not in them)")?;
        writeln!(f, "  real time        {:.2} times by the longer of both", self.realtime_factor())?;
        writeln!(
            f,
            "  intensity        {:.2} operations per byte; the ridge of the matrix units is {:.0}",
            self.intensity,
            chip.ridge()
        )?;
        writeln!(
            f,
            "                   (element by element, the vector units compute; their peak is not public and far lower)"
        )?;
        writeln!(f, "\ntiles of 8 x 128 numbers")?;
        for p in &self.padding {
            writeln!(
                f,
                "  {}: {} cells in the place of {} ({} a tile), {:.1} % of a state array is empty",
                p.population,
                p.cells,
                p.padded,
                p.tile,
                p.waste * 100.0
            )?;
        }
        for g in &self.gathers {
            writeln!(f, "\nforms of the gather along {} (chosen by {}), one step", g.edges, g.chosen_by)?;
            for form in &g.forms {
                let mark = if form.chosen { "*" } else { " " };
                match &form.cost {
                    Ok(cost) => {
                        writeln!(f, "{mark} {:<31}{:>12}{:>14}", form.form, bytes(cost.bytes), time(cost.seconds))?
                    }
                    Err(why) => writeln!(f, "{mark} {:<31}{}", form.form, why.lines().next().unwrap_or_default())?,
                }
            }
            writeln!(f, "  They add up a cell's edges in different orders, so results differ by rounding.")?;
        }
        if !self.deliveries.is_empty() {
            writeln!(f, "\nevents (of a loop, what is above counts one round: one cell that emits)")?;
        }
        for travel in &self.deliveries {
            writeln!(f, "  along {}: {}", travel.edges, travel.form)?;
        }
        writeln!(f, "\nadvice")?;
        for line in &self.advice {
            writeln!(f, "- {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_counted() {
        let waste = |cells| Padding::new("io", cells, Precision::F32);
        assert_eq!(
            (waste(1).padded, waste(300).padded, waste(1024).padded, waste(1025).padded),
            (128, 512, 1024, 2048)
        );
        assert_eq!(waste(1024).waste, 0.0);
        assert_eq!(waste(125_000).padded, 123 * 1024);
        assert!((waste(10_000).waste - 240.0 / 10_240.0).abs() < 1e-15);
        assert_eq!(waste(0).waste, 0.0);
    }

    #[test]
    fn memory_that_is_shared_counts_once() {
        let memory = CompiledMemory { code: -1, arguments: 100, outputs: 80, aliased: 70, temporaries: 5 };
        let of_entry = EntryMemory::new("step", 10, memory);
        assert_eq!((of_entry.code, of_entry.total), (None, 115));
    }
}

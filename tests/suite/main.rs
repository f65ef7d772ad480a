//! The one test harness; `tests/README.md` says how to add a case of each kind.

mod accuracy;
mod adaptive;
mod cables;
mod checkpoints;
mod cli;
mod crates;
mod dendrites_learn;
mod diffusion;
mod docs;
mod domains;
mod drives;
mod engines;
mod errors;
mod events;
mod exact;
mod experiments;
mod floors;
mod found;
mod fuzz;
mod generators;
mod graded;
mod gradients;
mod junctions;
mod kinetics;
mod lfp;
mod lsp;
mod models;
mod names;
mod networks;
mod olive;
mod passes;
#[cfg(feature = "xla")]
mod pjrt;
mod plasticity;
mod pools;
mod protocols;
mod random_models;
mod report;
mod set_of_connections;
mod singular;
mod space;
#[cfg(feature = "xla")]
mod stablehlo;
mod stepping;
mod sweeps;
mod torture;
#[cfg(feature = "xla")]
mod tpu;
mod training;
mod verify;
mod white_noise;

/// Says what a test lacks, so that it checks less; where all tools are demanded (as `.ci/run` does) the test fails.
fn lacks(message: &str) {
    assert!(std::env::var_os("NEUROC_TESTS_DEMAND_TOOLS").is_none(), "{message}");
    println!("{message}");
}

/// Whether cargo has a component.
fn has_component(name: &str) -> bool {
    let found = std::process::Command::new(env!("CARGO")).args([name, "--version"]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        lacks(&format!("cargo {name} is missing: what it would check is not checked"));
    }
    found
}

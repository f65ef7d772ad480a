//! Compiling for TPUs through libtpu, without one.

use neuroc::codegen::plan::{PlanOptions, Precision, plan};
use neuroc::driver::{CompileOptions, check_file, compile};
use neuroc::engine::tpu::{self, Target};
use neuroc::passes::Backend;
use neuroc::pjrt::{Plugin, Topology};
use neuroc::plugins::{Kind, Search};
use neuroc::simulate;
use std::path::Path;

#[test]
fn forms() {
    let plugin = Plugin::load(&Search::everywhere().plugin(Kind::Tpu).unwrap().path).unwrap();
    for target in std::env::var("T").unwrap().split(' ') {
        let target = Target::parse(target).unwrap();
        let topology = Topology::new(&plugin, &target.topology_name()).unwrap();
        let checked = check_file(Path::new("examples/inferior_olive.neuro"));
        let side = std::env::var("SIDE").unwrap();
        let options =
            CompileOptions { set: vec![format!("side={side}")], backend: Backend::Xla, ..CompileOptions::default() };
        let compiled = compile(&checked, &options, &mut |_, _, _| {}).unwrap();
        let program = compiled.program.program();
        let extent = simulate::extent(&compiled.ode).unwrap();
        let setup = simulate::setup(&compiled.ode, program, &extent).unwrap();
        let plan = plan(&compiled.program, &PlanOptions { precision: Precision::F32, ..PlanOptions::default() });
        let mut device = setup.device_plan(&plan);
        let grids: Vec<Vec<usize>> =
            (0..plan.spaces.len()).map(|p| simulate::grid(&compiled.ode, p).unwrap().sizes).collect();
        let now = std::time::Instant::now();
        let gathers = tpu::choose_gathers(&plan, &mut device, &setup.edges, &grids, &topology).unwrap();
        println!("{target} {side} {:?}", now.elapsed());
        for form in &gathers[0].forms {
            println!("{form:?}");
        }
    }
}

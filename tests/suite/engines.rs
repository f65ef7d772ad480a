//! Tests of: engines. Every program of `tests/ir` runs under every engine and must give the same numbers.

use neuroc::codegen::plan::{PlanOptions, Precision, plan};
use neuroc::engine::native::{NativeEngine, NativeOptions};
use neuroc::engine::rustc::CompileOptions;
use neuroc::engine::{Edges, Engine, Setup, Spike};
use neuroc::interp::Interp;
use neuroc::passes;
use neuroc::runtime::order::Arrangement;
use neuroc::step::{
    BinaryOp, Distribution, Elementary, Field, FieldId, FieldKind, OpKind, SpaceId, SpaceKind, Tolerance, UnaryOp,
    Verified, parse, print, verify,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A program of `tests/ir` and what it needs.
struct Case {
    name: &'static str,
    /// Values of uniforms other than `dt`, several of them one after the other.
    uniforms: &'static [&'static [(&'static str, f64)]],
    /// How far f32 may be off in the first cells, relative to the size of a value and 1; none where f32 goes another way (spikes shift).
    f32_within: Option<f64>,
    /// How far XLA's f64 may be off, relative to the size of a value and 1: its elementary functions and its products with sums are
    /// rounded otherwise.
    #[cfg_attr(not(feature = "xla"), expect(dead_code, reason = "XLA's tests read it"))]
    xla_within: f64,
}

const CASES: &[Case] = &[
    Case {
        name: "hh",
        uniforms: &[&[("squid.soma.Na.gbar", 120.0), ("squid.soma.K.gbar", 36.0), ("squid.soma.leak.g", 0.3)]],
        f32_within: Some(1e-3),
        xla_within: 1e-11,
    },
    Case { name: "hh_folded", uniforms: &[&[]], f32_within: Some(1e-3), xla_within: 1e-11 },
    Case {
        name: "lif",
        uniforms: &[&[("lif.tau", 2.0), ("lif.refractory", 0.5)]],
        f32_within: None,
        xla_within: 1e-11,
    },
    Case {
        name: "driven",
        uniforms: &[&[("amplitude", 1.5)], &[("amplitude", 0.5)]],
        f32_within: Some(1e-4),
        xla_within: 1e-11,
    },
    Case { name: "spread", uniforms: &[&[("sigma", 2.0)]], f32_within: Some(1e-5), xla_within: 1e-11 },
    Case { name: "two_populations", uniforms: &[&[("exc.tau", 0.75)]], f32_within: None, xla_within: 1e-11 },
    Case { name: "all_ops_lanes", uniforms: &[&[("a", 0.0), ("b", 0.0)]], f32_within: Some(1e-3), xla_within: 1e-11 },
    Case { name: "relaxed", uniforms: &[&[("a", 0.75)], &[("a", 0.0)]], f32_within: Some(1e-2), xla_within: 1e-6 },
    Case { name: "two_edges", uniforms: &[&[("g", 0.25)]], f32_within: Some(1e-3), xla_within: 1e-11 },
    Case { name: "two_passes", uniforms: &[&[("g", 0.25)]], f32_within: None, xla_within: 1e-11 },
    Case { name: "recorded_edges", uniforms: &[&[("g", 0.25)]], f32_within: Some(1e-3), xla_within: 1e-11 },
    Case { name: "recorded_junctions", uniforms: &[&[("g", 0.25)]], f32_within: Some(1e-3), xla_within: 1e-11 },
    Case { name: "deliveries", uniforms: &[&[("kick", 0.125)]], f32_within: None, xla_within: 1e-11 },
    Case { name: "remembered", uniforms: &[&[("kick", 0.5)]], f32_within: None, xla_within: 1e-11 },
    Case { name: "junctions", uniforms: &[&[("g", 0.05)]], f32_within: Some(1e-3), xla_within: 1e-11 },
    Case {
        name: "all_ops_numbers",
        uniforms: &[&[("a", -2.5), ("b", 1.5)], &[("a", 0.0), ("b", 0.0)], &[("a", 3.25), ("b", 3.25)]],
        f32_within: Some(1e-5),
        xla_within: 1e-11,
    },
];

/// Those whose cells stand in memory in an order of their own.
const CONNECTED: &[&str] = &["two_edges", "two_passes", "junctions", "recorded_edges", "recorded_junctions"];

/// Sizes of the last block, and enough cells for two threads.
const SIZES: &[usize] = &[1, 7, 8, 9, 17, 600];

/// Calls of `step`, uneven so that windows are cut in every way.
const CHUNKS: &[u32] = &[1, 3, 20, 7, 21];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ir")
}

fn program(name: &str) -> Verified {
    let text = std::fs::read_to_string(folder().join(format!("{name}.ir"))).unwrap();
    verify(parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"))).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn setup(program: &Verified, uniforms: &[(&str, f64)], cells: usize) -> Setup {
    let program = program.program();
    let of = |kind: FieldKind| program.fields_where(|field| field.kind == kind);
    let uniform = |id: FieldId| {
        let name = program.field(id).name.as_str();
        let value = uniforms.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
        (id, value.unwrap_or_else(|| if name == "dt" { 0.05 } else { panic!("no value for {name}") }))
    };
    let samples = vec![(0.1, 0.0), (0.6, 1.0), (1.0, 0.25), (1.0, -0.5), (2.0, 0.75)];
    let plain = program.spaces.iter().filter(|space| space.kind == SpaceKind::Plain).count();
    let mut sizes: Vec<usize> = (0..plain).map(|space| if space == 2 { 0 } else { cells + 3 * space }).collect();
    let relation = |space: usize| match program.spaces[space].kind {
        SpaceKind::Relation { from, to } => edges([to, from].map(|end| sizes[end.0 as usize]), space as u32),
        SpaceKind::Plain | SpaceKind::Product { .. } | SpaceKind::Subset { .. } => panic!("relations come last"),
    };
    let relations: Vec<_> = (plain..program.spaces.len()).map(relation).collect();
    sizes.extend(relations.iter().map(|edges| edges.sources.len()));
    let data = |id: FieldId| (id, (0..cells).map(|cell| 0.1 + 0.01 * cell as f64).collect());
    Setup {
        sizes,
        uniforms: of(FieldKind::Uniform).into_iter().map(uniform).collect(),
        series: of(FieldKind::Series).into_iter().map(|id| (id, samples.clone())).collect(),
        data: of(FieldKind::Data).into_iter().map(data).collect(),
        edges: (plain..).map(|space| SpaceId(space as u32)).zip(relations).collect(),
        seed: 0x1234_5678_9abc_def0,
        ..Setup::default()
    }
}

/// Every third relation is a ring; the others are random, with 0 to 7 edges to a cell, some of them from itself or twice from
/// the same one.
fn edges([targets, sources]: [usize; 2], space: u32) -> Arc<Edges> {
    let mut edges = Edges { offsets: vec![0], sources: Vec::new() };
    let mut random = 12345 + u64::from(space);
    let mut next = |below: usize| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as usize % below
    };
    for cell in 0..targets {
        if sources == 0 {
            // There is nothing to come from.
        } else if space.is_multiple_of(3) {
            edges.sources.extend([(cell + sources - 1) % sources, (cell + 1) % sources].map(|cell| cell as u32));
        } else {
            let degree = next(8);
            edges.sources.extend((0..degree).map(|_| next(sources) as u32));
        }
        edges.offsets.push(edges.sources.len() as u32);
    }
    Arc::new(edges)
}

/// Everything that can be seen of a run.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    /// What, and its values.
    values: Vec<(String, Vec<f64>)>,
    spikes: Vec<Spike>,
}

fn look(engine: &mut dyn Engine, program: &Verified, setup: &Setup, step: u64, when: &str, seen: &mut Seen) {
    engine.observe(step).unwrap();
    let program = program.program();
    let are_edges = |space: SpaceId| matches!(program.space(space).kind, SpaceKind::Relation { .. });
    // What edges have and do not change is nowhere to be read.
    let of_cells = |f: &Field| f.over.is_some_and(|space| !are_edges(space));
    let readable = |f: &Field| match f.kind {
        FieldKind::State => f.over.is_some(),
        FieldKind::Const | FieldKind::Output => of_cells(f),
        _ => false,
    };
    for field in program.fields_where(readable) {
        let size = setup.sizes[program.field(field).over.unwrap().0 as usize];
        let mut values = Vec::new();
        engine.read(field, 0..size / 2, &mut values).unwrap();
        engine.read(field, size / 2..size, &mut values).unwrap();
        seen.values.push((format!("{} {when}", program.field(field).name), values));
    }
}

fn run(engine: &mut dyn Engine, program: &Verified, setup: &Setup) -> Seen {
    let mut seen = Seen { values: Vec::new(), spikes: Vec::new() };
    engine.init().unwrap();
    look(engine, program, setup, 0, "after init", &mut seen);
    let mut at = 0;
    for &steps in CHUNKS {
        engine.step(at, steps, &mut seen.spikes).unwrap();
        at += u64::from(steps);
    }
    look(engine, program, setup, at, "at the end", &mut seen);
    assert!(engine.all_finite());
    // Once more from the beginning: nothing of the run may be left.
    engine.init().unwrap();
    look(engine, program, setup, 0, "begun again", &mut seen);
    engine.step(0, 4, &mut seen.spikes).unwrap();
    look(engine, program, setup, 4, "again", &mut seen);
    for field in program.program().fields_where(|f| f.kind == FieldKind::State) {
        let size = setup.sizes[program.program().field(field).over.unwrap().0 as usize];
        let values: Vec<f64> = (0..size).map(|cell| cell as f64 * 0.5 - 1.0).collect();
        engine.write(field, &values).unwrap();
    }
    engine.step(4, 3, &mut seen.spikes).unwrap();
    look(engine, program, setup, 7, "after writing", &mut seen);
    seen
}

fn native(program: &Verified, setup: &Setup, options: &PlanOptions, threads: usize) -> NativeEngine {
    arranged(program, setup, options, threads, Arrangement::default())
}

fn arranged(
    program: &Verified,
    setup: &Setup,
    options: &PlanOptions,
    threads: usize,
    arrangement: Arrangement,
) -> NativeEngine {
    let compile = CompileOptions { cache: Some(cache()), rustc: None };
    let options_of_run = NativeOptions { threads, arrangement, compile };
    NativeEngine::new(&plan(program, options).unwrap(), setup, &options_of_run).unwrap_or_else(|e| panic!("{e}"))
}

/// Kernels are kept between test runs, like between runs of the compiler.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels")
}

fn assert_same_bits(expected: &Seen, found: &Seen, what: &str) {
    for ((name, expected), (_, found)) in expected.values.iter().zip(&found.values) {
        for (cell, (e, f)) in expected.iter().zip(found).enumerate() {
            let same = e.to_bits() == f.to_bits() || e.is_nan() && f.is_nan();
            assert!(same, "{what}: {name}, cell {cell}: {e:?} expected, {f:?} found");
        }
        assert_eq!(expected.len(), found.len(), "{what}: {name}");
    }
    assert_eq!(expected.spikes, found.spikes, "{what}");
}

fn for_each(mut check: impl FnMut(&Case, &Verified, &Setup, &Seen, &str)) {
    for case in CASES {
        let program = program(case.name);
        for uniforms in case.uniforms {
            for &cells in SIZES {
                let setup = setup(&program, uniforms, cells);
                let expected = run(&mut Interp::new(program.clone(), &setup).unwrap(), &program, &setup);
                let what = format!("{} with {cells} cells and {uniforms:?}", case.name);
                check(case, &program, &setup, &expected, &what);
            }
        }
    }
}

/// Cells whose 5 compartments are joined to a tree with a fork, 3 of them parts of another space.
fn branched(program: &Verified, cells: usize) -> Setup {
    let sizes = vec![cells, 5 * cells, 3 * cells, cells];
    let given = |id: FieldId| {
        let over = program.program().field(id).over.unwrap();
        (id, (0..sizes[over.0 as usize]).map(|at| 0.1 + 0.01 * (at % 23) as f64).collect())
    };
    Setup {
        uniforms: vec![(program.program().find_field("dt").unwrap(), 0.05)],
        data: program.program().fields_where(|f| f.kind == FieldKind::Data).into_iter().map(given).collect(),
        trees: vec![(SpaceId(1), [0, 0, 1, 1, 3].into())],
        subsets: vec![(SpaceId(2), [1, 2, 4].into()), (SpaceId(3), [1].into())],
        seed: 0x1234_5678_9abc_def0,
        sizes,
        ..Setup::default()
    }
}

#[test]
fn native_branches_give_the_bits_of_the_interpreter() {
    let text = include_str!("../../src/interp/branches.ir");
    let program = verify(parse(text).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"));
    for &cells in SIZES {
        let setup = branched(&program, cells);
        let expected = run(&mut Interp::new(program.clone(), &setup).unwrap(), &program, &setup);
        assert!(!expected.spikes.is_empty());
        for threads in [1, 2, 3] {
            for sizes in [None, Some(setup.sizes.clone())] {
                let options = PlanOptions { sizes, ..PlanOptions::default() };
                let found = run(&mut native(&program, &setup, &options, threads), &program, &setup);
                assert_same_bits(&expected, &found, &format!("{cells} cells, {threads} threads"));
            }
        }
    }
}

#[test]
fn native_f64_gives_the_bits_of_the_interpreter() {
    for_each(|case, program, setup, expected, what| {
        // How many vectors stand side by side is another thing than what is computed: programs with all operations try all numbers.
        let numbers: &[u32] = if case.name.starts_with("all_ops") { &[1, 2, 4] } else { &[1, 4] };
        for &vectors in numbers {
            for threads in [1, 2] {
                let options = PlanOptions { precision: Precision::F64, vectors: Some(vectors), sizes: None };
                let found = run(&mut native(program, setup, &options, threads), program, setup);
                assert_same_bits(expected, &found, &format!("{what}, {vectors} vectors, {threads} threads"));
            }
        }
    });
}

/// Grids of several shapes, one without any, and windows that hold a part of a block to all cells: nothing can be seen of them.
#[test]
fn the_order_of_cells_in_memory_cannot_be_seen() {
    let grids: [&[usize]; 5] = [&[], &[3, 5], &[9, 8, 3], &[1, 7, 11], &[25, 24]];
    for case in CASES.iter().filter(|case| CONNECTED.contains(&case.name)) {
        let program = program(case.name);
        for grid in grids {
            let cells = if grid.is_empty() { 803 } else { grid.iter().product() };
            let setup = Setup { grids: vec![grid.to_vec()], ..setup(&program, case.uniforms[0], cells) };
            let expected = run(&mut Interp::new(program.clone(), &setup).unwrap(), &program, &setup);
            for precision in [Precision::F64, Precision::F32] {
                let options = PlanOptions { precision, vectors: None, sizes: None };
                let listed = &mut arranged(&program, &setup, &options, 1, Arrangement::Listed);
                let listed = run(listed, &program, &setup);
                if precision == Precision::F64 {
                    assert_same_bits(&expected, &listed, case.name);
                }
                for (window, threads) in [(1, 1), (40, 2), (100, 3), (512, 1), (10_000, 2)] {
                    // The engine takes fewer threads if there are too few cells.
                    let local = Arrangement::Local { window };
                    let found = run(&mut arranged(&program, &setup, &options, threads, local), &program, &setup);
                    let what = format!("{}, {precision:?}, {grid:?}, window {window}", case.name);
                    assert_same_bits(&listed, &found, &what);
                }
            }
        }
    }
}

#[test]
fn programs_read_back_give_the_same_bits() {
    for_each(|_, program, setup, expected, what| {
        let again = verify(parse(&print(program.program())).unwrap()).unwrap();
        let found = run(&mut Interp::new(again, setup).unwrap(), program, setup);
        assert_same_bits(expected, &found, what);
    });
}

#[test]
fn optimized_programs_give_the_same_bits_on_both_engines() {
    let options = passes::Options { fuse: 16, ..passes::Options::default() };
    let names = passes::pipeline(passes::OptLevel::O2, passes::Backend::Native);
    for case in CASES {
        let optimized = passes::run(program(case.name), names, &options, &mut |_, _, _| {}).unwrap();
        // Fields have new numbers, and there may be fewer.
        let setup = setup(&optimized, case.uniforms[0], 17);
        let expected = run(&mut Interp::new(optimized.clone(), &setup).unwrap(), &optimized, &setup);
        let found = run(&mut native(&optimized, &setup, &PlanOptions::default(), 1), &optimized, &setup);
        assert_same_bits(&expected, &found, case.name);
    }
}

#[test]
fn native_f32_is_close_and_the_same_with_two_threads() {
    for_each(|case, program, setup, expected, what| {
        let options = PlanOptions { precision: Precision::F32, ..PlanOptions::default() };
        let found = run(&mut native(program, setup, &options, 1), program, setup);
        let threads = run(&mut native(program, setup, &options, 2), program, setup);
        assert_same_bits(&found, &threads, what);
        let Some(within) = case.f32_within else { return };
        assert_close(expected, &found, within, true, what);
    });
}

/// Fails where values differ by more than `within`, relative to their size and 1. With `to_single` the found ones were rounded to f32.
fn assert_close(expected: &Seen, found: &Seen, within: f64, to_single: bool, what: &str) {
    for ((name, expected), (_, found)) in expected.values.iter().zip(&found.values) {
        assert_eq!(expected.len(), found.len(), "{what}: {name}");
        for (cell, (e, f)) in expected.iter().zip(found).enumerate().take(17) {
            let overflow = to_single && f.is_infinite() && e.abs() >= f64::from(f32::MAX) && e.signum() == f.signum();
            let close = (e - f).abs() <= within * e.abs().max(1.0) || e == f || e.is_nan() && f.is_nan() || overflow;
            assert!(close, "{what}: {name}, cell {cell}: {e:?} expected, {f:?} found");
        }
    }
}

/// How many random networks stand in one program: a compiler's own start is paid once for all of them.
const TOGETHER: usize = 24;

/// Random networks of two spaces each, as one program: in a step of one to three passes edges lead from each of the spaces to each, and bring
/// states or what an earlier pass has stored.
fn random_networks(seed: usize) -> Verified {
    let (mut spaces, mut relations, mut fields) = (String::new(), String::new(), String::new());
    for k in 0..TOGETHER {
        spaces += &format!("space @a{k}\nspace @b{k}\n");
        relations += &format!(
            "space @r{k} from @a{k} to @b{k}\nspace @p{k} from @b{k} to @a{k}\nspace @q{k} from @a{k} to @a{k}\n"
        );
        fields += &format!("output @a{k}.o over @a{k}\n");
        for x in ["a", "b"] {
            fields += &format!(
                "const @{x}{k}.c over @{x}{k}\nstate @{x}{k}.s0 over @{x}{k}\nstate @{x}{k}.s1 over @{x}{k}\ntemp @{x}{k}.t0 over @{x}{k}\n\
                 temp @{x}{k}.in over @{x}{k}\ntemp @{x}{k}.own over @{x}{k}\nevent @{x}{k}.e over @{x}{k}\n"
            );
        }
    }
    let head =
        format!("program \"networks\"\n{spaces}{relations}uniform @dt = dt\nuniform @g = param 0\nseries @i\n{fields}");
    let mut w = crate::passes::Writer::new(seed, &head);
    w.unnumbered = &["over @r", "over @p", "over @q"];
    let with =
        |texts: &[&str], k: usize| texts.iter().map(|text| text.replace('#', &k.to_string())).collect::<Vec<_>>();
    let region = |w: &mut crate::passes::Writer, k: usize, heading: &str, reads: &[&str], effects: &[&str]| {
        let (heading, reads, effects) = (heading.replace('#', &k.to_string()), with(reads, k), with(effects, k));
        let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
        let effects: Vec<&str> = effects.iter().map(String::as_str).collect();
        w.region(&heading, &reads, &effects);
    };
    w.function("init");
    w.region("once", &["field @g"], &[]);
    for k in 0..TOGETHER {
        region(&mut w, k, "over @a#", &["field @g", "index"], &["store @a#.c", "store @a#.s0", "store @a#.s1"]);
        region(&mut w, k, "over @b#", &["field @g", "index"], &["store @b#.c", "store @b#.s0", "store @b#.s1"]);
    }
    w.function("step");
    w.region("once", &["field @g", "field @dt"], &[]);
    for k in 0..TOGETHER {
        region(&mut w, k, "once over @a#", &["field @a#.c", "field @g"], &[]);
    }
    w.region("every", &["field @g"], &[]);
    for k in 0..TOGETHER {
        let own_a = ["field @a#.s0", "field @a#.s1", "field @a#.c", "field @g"];
        let own_b = ["field @b#.s0", "field @b#.s1", "field @b#.c", "field @g"];
        let forth = |bring: &'static str| [bring, "gather @b#.s0 along target", "gather @b#.c along target"];
        let back = |bring: &'static str| [bring, "gather @a#.s1 along target"];
        let around = |bring: &'static str| [bring, "gather @a#.s0 along target"];
        let to_b = ["accumulate @b#.in along target"];
        let (to_a, own) = (["accumulate @a#.in along target"], ["accumulate @a#.own along target"]);
        match w.below(4) {
            // Everybody reads old values.
            0 => {
                region(&mut w, k, "over @r#", &forth("gather @a#.s0 along source"), &to_b);
                region(&mut w, k, "over @q#", &around("gather @a#.s1 along source"), &own);
                region(&mut w, k, "over @p#", &back("gather @b#.s1 along source"), &to_a);
                region(
                    &mut w,
                    k,
                    "over @a#",
                    &["field @a#.in", "field @a#.own", own_a[0], own_a[1]],
                    &["store @a#.s0", "store @a#.s1"],
                );
                region(&mut w, k, "over @b#", &["field @b#.in", own_b[0], own_b[2]], &["store @b#.s0", "emit @b#.e"]);
            }
            // What goes round comes back in the same step.
            1 => {
                region(&mut w, k, "over @r#", &forth("gather @a#.s0 along source"), &to_b);
                region(&mut w, k, "over @b#", &["field @b#.in", own_b[0], own_b[1]], &["store @b#.t0", "emit @b#.e"]);
                region(&mut w, k, "over @p#", &back("gather @b#.t0 along source"), &to_a);
                region(&mut w, k, "over @a#", &["field @a#.in", own_a[0], own_a[2]], &["store @a#.s0", "store @a#.s1"]);
                region(&mut w, k, "over @b#", &["field @b#.t0", own_b[1], own_b[2]], &["store @b#.s1", "store @b#.s0"]);
            }
            // Three passes, the last of them within a space.
            2 => {
                region(&mut w, k, "over @r#", &forth("gather @a#.s0 along source"), &to_b);
                region(&mut w, k, "over @b#", &["field @b#.in", own_b[0], own_b[1]], &["store @b#.t0", "store @b#.s0"]);
                region(&mut w, k, "over @p#", &back("gather @b#.t0 along source"), &to_a);
                region(&mut w, k, "over @a#", &["field @a#.in", own_a[0], own_a[3]], &["store @a#.t0", "emit @a#.e"]);
                region(&mut w, k, "over @q#", &around("gather @a#.t0 along source"), &own);
                region(
                    &mut w,
                    k,
                    "over @a#",
                    &["field @a#.own", "field @a#.t0", own_a[1]],
                    &["store @a#.s1", "store @a#.s0"],
                );
            }
            // New values arrive.
            _ => {
                region(&mut w, k, "over @a#", &own_a, &["store @a#.s0", "emit @a#.e"]);
                region(&mut w, k, "over @r#", &forth("gather @a#.s0 along source"), &to_b);
                region(&mut w, k, "over @b#", &["field @b#.in", own_b[0], own_b[1]], &["store @b#.s1", "store @b#.s0"]);
            }
        }
    }
    w.function("observe");
    for k in 0..TOGETHER {
        let own = ["field @a#.s0", "field @a#.s1"];
        match w.below(4) {
            0 => region(&mut w, k, "over @a#", &own, &["store @a#.o"]),
            // What others have.
            1 => {
                region(&mut w, k, "over @q#", &["gather @a#.s1 along source"], &["accumulate @a#.own along target"]);
                region(&mut w, k, "over @a#", &["field @a#.own", own[0]], &["store @a#.o"]);
            }
            // What others make of it.
            2 => {
                region(&mut w, k, "over @r#", &["gather @a#.s0 along source"], &["accumulate @b#.in along target"]);
                region(&mut w, k, "over @b#", &["field @b#.in", "field @b#.s1"], &["store @b#.t0"]);
                region(&mut w, k, "over @p#", &["gather @b#.t0 along source"], &["accumulate @a#.in along target"]);
                region(&mut w, k, "over @a#", &["field @a#.in", own[1]], &["store @a#.o"]);
            }
            // And of that, in three passes.
            _ => {
                region(&mut w, k, "over @r#", &["gather @a#.s0 along source"], &["accumulate @b#.in along target"]);
                region(&mut w, k, "over @b#", &["field @b#.in"], &["store @b#.t0"]);
                region(&mut w, k, "over @p#", &["gather @b#.t0 along source"], &["accumulate @a#.in along target"]);
                region(&mut w, k, "over @a#", &["field @a#.in", own[0]], &["store @a#.t0"]);
                region(&mut w, k, "over @q#", &["gather @a#.t0 along source"], &["accumulate @a#.own along target"]);
                region(&mut w, k, "over @a#", &["field @a#.own", own[1]], &["store @a#.o"]);
            }
        }
    }
    let text = w.finish();
    verify(parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// What a network has after each of some steps, and its spikes. `first` writes the states before each step, if it has them.
fn step_by_step(engine: &mut dyn Engine, program: &Verified, setup: &Setup, first: Option<&[Seen]>) -> Vec<Seen> {
    engine.init().unwrap();
    let mut all = Vec::new();
    for step in 0..6 {
        if let Some(before) = first.and_then(|first| first.get(all.len().wrapping_sub(1))) {
            let states = program.program().fields_where(|f| f.kind == FieldKind::State);
            for field in states {
                let name = format!("{} after", program.program().field(field).name);
                let (_, values) = before.values.iter().find(|(known, _)| *known == name).unwrap();
                engine.write(field, values).unwrap();
            }
        }
        let mut seen = Seen { values: Vec::new(), spikes: Vec::new() };
        engine.step(step, 1, &mut seen.spikes).unwrap();
        look(engine, program, setup, step + 1, "after", &mut seen);
        all.push(seen);
    }
    all
}

#[test]
fn random_networks_mean_the_same_on_every_engine() {
    let batches = std::env::var("NEUROC_RANDOM").map_or(1, |count| count.parse::<usize>().unwrap().div_ceil(TOGETHER));
    let (mut passes_of_groups, mut passes_of_records) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..batches {
        let unoptimized = random_networks(seed);
        for level in [passes::OptLevel::O0, passes::OptLevel::O2] {
            let names = passes::pipeline(level, passes::Backend::Native);
            let program =
                passes::run(unoptimized.clone(), names, &passes::Options::default(), &mut |_, _, _| {}).unwrap();
            let setup = setup(&program, &[("g", 0.75)], 21);
            let expected = step_by_step(&mut Interp::new(program.clone(), &setup).unwrap(), &program, &setup, None);
            let planned = plan(&program, &PlanOptions::default()).unwrap();
            passes_of_groups.extend(planned.groups.iter().map(|group| (group.spaces.len(), group.passes)));
            passes_of_records.extend(planned.groups.iter().map(|group| group.observed));
            for threads in [1, 2] {
                let compile = CompileOptions { cache: Some(cache()), rustc: None };
                let options = NativeOptions { threads, arrangement: Arrangement::default(), compile };
                let planned = neuroc::codegen::plan::Plan { min_cells: 1, ..planned.clone() };
                let mut engine = NativeEngine::new(&planned, &setup, &options).unwrap_or_else(|e| panic!("{e}"));
                let found = step_by_step(&mut engine, &program, &setup, None);
                for (step, (expected, found)) in expected.iter().zip(&found).enumerate() {
                    assert_same_bits(
                        expected,
                        found,
                        &format!("networks {seed}, {level:?}, {threads} threads, step {step}"),
                    );
                }
            }
            #[cfg(feature = "xla")]
            if let Some(client) = crate::pjrt::cpu() {
                let mut engine = xla::engine(&program, &setup, Precision::F64, &client);
                let found = step_by_step(&mut engine, &program, &setup, Some(&expected));
                for (step, (expected, found)) in expected.iter().zip(&found).enumerate() {
                    assert_close(
                        expected,
                        found,
                        1e-9,
                        false,
                        &format!("networks {seed}, {level:?}, XLA, step {step}"),
                    );
                }
            }
        }
    }
    // All skeletons have occurred.
    assert!([(2, 1), (2, 2), (2, 3)].iter().all(|kind| passes_of_groups.contains(kind)), "{passes_of_groups:?}");
    assert!((0..=3).all(|passes| passes_of_records.contains(&passes)), "{passes_of_records:?}");
}

#[cfg(feature = "xla")]
mod xla {
    use super::*;
    use neuroc::engine::Recording;
    use neuroc::engine::xla::XlaEngine;
    use neuroc::pjrt::Client;

    /// One cell, and more than any tile or vector holds.
    const SIZES: &[usize] = &[1, 17, 600];

    pub(super) fn engine(program: &Verified, setup: &Setup, precision: Precision, client: &Client) -> XlaEngine {
        let plan = plan(program, &PlanOptions { precision, ..PlanOptions::default() }).unwrap();
        XlaEngine::new(&plan, setup, client.clone()).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn xla_gives_the_numbers_of_the_interpreter() {
        let Some(client) = crate::pjrt::cpu() else { return };
        for case in CASES {
            let program = program(case.name);
            for uniforms in case.uniforms {
                for &cells in SIZES {
                    let setup = setup(&program, uniforms, cells);
                    let expected = run(&mut Interp::new(program.clone(), &setup).unwrap(), &program, &setup);
                    let what = format!("{} with {cells} cells and {uniforms:?}", case.name);
                    let found = run(&mut engine(&program, &setup, Precision::F64, &client), &program, &setup);
                    assert_close(&expected, &found, case.xla_within, false, &what);
                    assert_eq!(expected.spikes, found.spikes, "{what}");
                    let Some(within) = case.f32_within.filter(|_| cells == 17) else { continue };
                    let found = run(&mut engine(&program, &setup, Precision::F32, &client), &program, &setup);
                    assert_close(&expected, &found, within, true, &format!("{what}, f32"));
                }
            }
        }
    }

    #[test]
    fn branched_cells_have_the_numbers_of_the_interpreter() {
        let Some(client) = crate::pjrt::cpu() else { return };
        let program = verify(parse(include_str!("../../src/interp/branches.ir")).unwrap()).unwrap();
        for &cells in SIZES {
            let setup = branched(&program, cells);
            let expected = run(&mut Interp::new(program.clone(), &setup).unwrap(), &program, &setup);
            let found = run(&mut engine(&program, &setup, Precision::F64, &client), &program, &setup);
            assert_close(&expected, &found, 1e-11, false, &format!("{cells} cells"));
            assert_eq!(expected.spikes, found.spikes, "{cells} cells");
            let found = run(&mut engine(&program, &setup, Precision::F32, &client), &program, &setup);
            assert_close(&expected, &found, 1e-3, true, &format!("{cells} cells, f32"));
        }
    }

    #[test]
    fn programs_optimized_for_xla_give_the_same_numbers() {
        let Some(client) = crate::pjrt::cpu() else { return };
        let names = passes::pipeline(passes::OptLevel::O2, passes::Backend::Xla);
        for case in CASES {
            let optimized =
                passes::run(program(case.name), names, &passes::Options::default(), &mut |_, _, _| {}).unwrap();
            let setup = setup(&optimized, case.uniforms[0], 17);
            let expected = run(&mut Interp::new(optimized.clone(), &setup).unwrap(), &optimized, &setup);
            let found = run(&mut engine(&optimized, &setup, Precision::F64, &client), &optimized, &setup);
            assert_close(&expected, &found, case.xla_within, false, case.name);
            assert_eq!(expected.spikes, found.spikes, "{}", case.name);
        }
    }

    /// Stretches of every grouping record what single steps show, and the same spikes.
    #[test]
    fn stretches_record_what_steps_show() {
        let Some(client) = crate::pjrt::cpu() else { return };
        for name in ["lif", "driven", "two_populations", "junctions", "spread", "deliveries", "remembered"] {
            let case = CASES.iter().find(|case| case.name == name).unwrap();
            let program = program(name);
            let setup = setup(&program, case.uniforms[0], 9);
            let fields: Vec<_> = program
                .program()
                .fields_where(|f| matches!(f.kind, FieldKind::State | FieldKind::Output))
                .into_iter()
                .filter_map(|field| {
                    let size = setup.sizes[program.program().field(field).over.unwrap().0 as usize];
                    (size > 0).then_some((field, size / 2..size))
                })
                .collect();
            let mut engine = engine(&program, &setup, Precision::F64, &client);
            for (every, steps) in [(1, 24), (2, 24), (3, 27), (7, 42), (8, 48), (40, 80)] {
                let recording = Recording { every, fields: fields.clone() };
                let stride = engine.prepare(&recording, steps).unwrap();
                assert_eq!(u64::from(stride.every), every, "{name}");
                assert_eq!(stride.steps(), steps, "{name}");
                engine.init().unwrap();
                let mut found = vec![Vec::new(); fields.len()];
                let mut spikes = Vec::new();
                engine.record(0, &mut found, &mut spikes).unwrap();
                engine.init().unwrap();
                let mut expected = vec![Vec::new(); fields.len()];
                let mut expected_spikes = Vec::new();
                for sample in 0..steps / every {
                    engine.step(sample * every, every as u32, &mut expected_spikes).unwrap();
                    engine.observe((sample + 1) * every).unwrap();
                    for ((field, cells), values) in fields.iter().zip(&mut expected) {
                        engine.read(*field, cells.clone(), values).unwrap();
                    }
                }
                let what = format!("{name}, every {every}");
                let names = fields.iter().map(|(field, _)| program.program().field(*field).name.clone());
                let seen = |values: Vec<Vec<f64>>| names.clone().zip(values).collect();
                let (expected, found) =
                    (Seen { values: seen(expected), spikes: expected_spikes }, Seen { values: seen(found), spikes });
                assert_eq!(expected.spikes, found.spikes, "{what}");
                assert_close(&expected, &found, 1e-12, false, &what);
            }
        }
    }
}

#[test]
fn every_operation_occurs() {
    let name = |kind: &OpKind| match *kind {
        OpKind::Const(_) => "const".into(),
        OpKind::Bool(_) => "bool".into(),
        OpKind::Field(_) => "field".into(),
        OpKind::Time => "time".into(),
        OpKind::StepIndex => "step_index".into(),
        OpKind::Index => "index".into(),
        OpKind::Unary(op, _) => format!("unary {op:?}"),
        OpKind::Binary(op, ..) => format!("binary {op:?}"),
        OpKind::Approximate(function, tolerance, _) => format!("{function:?} within {}", tolerance.name()),
        OpKind::Fma(..) => "fma".into(),
        OpKind::Select(..) => "select".into(),
        OpKind::Draw(distribution, ..) => format!("draw {distribution:?}"),
        OpKind::Sample(..) => "sample".into(),
        OpKind::Store(..) => "store".into(),
        OpKind::Emit(..) => "emit".into(),
        OpKind::Gather(_, map) => format!("gather along {}", map.name()),
        OpKind::Back(..) => "back".into(),
        OpKind::Spike(..) => "spike".into(),
        OpKind::SpikeBy(..) => "spike_by".into(),
        OpKind::Accumulate(..) => "accumulate".into(),
    };
    let mut missing: BTreeSet<String> = [
        "const",
        "bool",
        "field",
        "time",
        "step_index",
        "index",
        "fma",
        "select",
        "sample",
        "store",
        "emit",
        "gather along source",
        "gather along target",
        "spike",
        "spike_by",
        "accumulate",
    ]
    .map(String::from)
    .into();
    missing.extend(UnaryOp::ALL.iter().map(|(op, _)| format!("unary {op:?}")));
    missing.extend(BinaryOp::ALL.iter().map(|(op, _)| format!("binary {op:?}")));
    let within = |function: Elementary| Tolerance::ALL.map(|(_, within)| format!("{function:?} within {within}"));
    missing.extend(Elementary::ALL.iter().flat_map(|(function, _)| within(*function)));
    let distributions = [Distribution::Uniform, Distribution::Normal, Distribution::Exponential];
    missing.extend(distributions.map(|distribution| format!("draw {distribution:?}")));
    for case in CASES {
        let program = program(case.name);
        for op in program.program().functions.iter().flat_map(|f| f.ops()) {
            missing.remove(&name(&op.kind));
        }
    }
    assert!(missing.is_empty(), "no program of tests/ir has {missing:?}");
}

/// What engines agree on is not that nothing happens.
#[test]
fn edges_remember_events_of_both_sides() {
    let program = program("remembered");
    let setup = setup(&program, &[("kick", 0.5)], 17);
    let seen = run(&mut Interp::new(program.clone(), &setup).unwrap(), &program, &setup);
    for name in ["ab.sent", "ab.told", "ba.weight"] {
        let of = |when: &str| &seen.values.iter().find(|(other, _)| *other == format!("{name} {when}")).unwrap().1;
        let (before, after) = (of("after init"), of("at the end"));
        let changed = before.iter().zip(after).filter(|(a, b)| a != b).count();
        assert!(2 * changed > before.len(), "{name}: {changed} of {} have changed", before.len());
    }
}

#[test]
fn every_program_is_a_case() {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let files: BTreeSet<String> = files
        .filter(|path| path.extension().is_some_and(|e| e == "ir"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let cases: BTreeSet<String> = CASES.iter().map(|case| case.name.to_string()).collect();
    assert_eq!(files, cases);
}

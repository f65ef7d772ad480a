//! How long the parts of the compiler take: `cargo bench --bench compile`.
//!
//! Every part starts from what the part before it made of `examples/squid.neuro`.

use criterion::{Criterion, criterion_group, criterion_main};
use neuroc::codegen::plan::{PlanOptions, plan};
use neuroc::codegen::rust::kernel_files;
use neuroc::diag::Diagnostics;
use neuroc::driver::{Checked, CompileOptions, check_text, compile, flatten};
use neuroc::hir::Sources;
use neuroc::passes::{Backend, OptLevel, Options, pipeline, run};
use neuroc::source::{FileId, SourceMap};
use neuroc::step::Verified;
use neuroc::syntax::parse;
use std::hint::black_box;
use std::path::Path;

const MODEL: &str = include_str!("../examples/squid.neuro");

fn check() -> Checked {
    check_text("squid.neuro", Path::new(""), MODEL, &Sources)
}

fn optimize(program: &Verified) -> Verified {
    run(program.clone(), pipeline(OptLevel::O2, Backend::Native), &Options::default(), &mut |_, _, _| {})
        .expect("the passes run")
}

fn parts(c: &mut Criterion) {
    let file: FileId = SourceMap::default().add("squid.neuro", "", MODEL);
    c.bench_function("parse", |b| b.iter(|| parse(file, black_box(MODEL), &mut Diagnostics::default())));
    c.bench_function("check", |b| b.iter(check));

    let checked = check();
    let model = checked.model.as_ref().expect("the example has no errors");
    let options = CompileOptions::default();
    c.bench_function("flatten", |b| b.iter(|| flatten(black_box(model), &options)));

    let compiled = compile(&checked, &options, &mut |_, _, _| {}).expect("the example compiles");
    c.bench_function("passes", |b| b.iter(|| optimize(black_box(&compiled.plain))));
    c.bench_function("plan and emit", |b| {
        b.iter(|| kernel_files(&plan(black_box(&compiled.program), &PlanOptions::default()).expect("there is a plan")))
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = parts
}
criterion_main!(benches);

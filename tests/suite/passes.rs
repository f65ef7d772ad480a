//! Passes: every `tests/passes/<pass>/*.ir` goes through its pass, every `tests/passes/pipeline/*.ir` through O2.
//!
//! In come a program and directives in its comments; out go a snapshot beside it and the verdict of the checks below.
//! Never true here: a pass of the table is without at least two cases, or a directory is without a pass.
//!
//! Checked of each case: it verifies before and after; the pass changes nothing when it runs again; after the pass the
//! interpreter computes the same numbers and spikes from random data. Directives, one per comment line:
//!
//! ```text
//! // count exp: 4 -> 2           so many operations before and after; also `ops`, `regions`, `fields`
//! // count exp in body: 4 -> 2   the same in regions of one phase
//! // tolerance 1e-12             numbers may differ so much, relative to max(1, size); otherwise not in one bit
//! // values 0.5 3                the range of all random numbers (-2 2 otherwise)
//! // uniform @g 2.5              an option of `specialize`
//! // keep @a.v @a.w              an option of `dce` (all states otherwise)
//! // fuse 4                      an option of `fuse-steps` (1 otherwise)
//! // not idempotent              running again may change the program further
//! ```

use neuroc::engine::{Edges, Engine, Setup};
use neuroc::interp::Interp;
use neuroc::passes::{Backend, Keep, OptLevel, Options, PASSES, Pass, find, pipeline, run};
use neuroc::step::{FieldId, FieldKind, Phase, Program, op_name, parse, print, verify};
use std::collections::BTreeMap;
use std::fs;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

const CELLS: usize = 4;

#[test]
fn every_pass_has_at_least_two_cases() {
    let cases = cases();
    for pass in PASSES {
        let count = cases.get(pass.name).map_or(0, Vec::len);
        assert!(count >= 2, "tests/passes/{}/ has {count} cases; a pass needs two", pass.name);
    }
    for name in cases.keys() {
        assert!(passes_of(name).is_some(), "tests/passes/{name}/ belongs to no pass");
    }
}

#[test]
fn cases_hold() {
    let mut failures = Vec::new();
    for (directory, files) in cases() {
        let passes = passes_of(&directory).unwrap_or_else(|| panic!("tests/passes/{directory}/ belongs to no pass"));
        for file in files {
            let outcome = catch_unwind(AssertUnwindSafe(|| check(&passes, &file)));
            let outcome = outcome.unwrap_or_else(|panic| Err(message(&*panic)));
            failures.extend(outcome.err().map(|e| format!("{}: {e}", file.display())));
        }
    }
    assert!(failures.is_empty(), "{} cases failed\n{}", failures.len(), failures.join("\n"));
}

/// The passes that change no bit of any number, one after the other.
const STRUCTURAL: &[&str] =
    &["fold", "fuse-regions", "cse", "fold", "hoist", "cse", "dce", "fuse-steps", "specialize", "fold", "hoist", "dce"];

#[test]
fn structural_passes_together_change_no_bit() {
    let mut failures = Vec::new();
    for file in cases().into_values().flatten() {
        let outcome = together(&file);
        failures.extend(outcome.err().map(|e| format!("{}: {e}", file.display())));
    }
    assert!(failures.is_empty(), "{} cases failed\n{}", failures.len(), failures.join("\n"));
}

fn together(file: &Path) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|e| e.to_string())?;
    let mut directives = Directives::read(&text)?;
    directives.tolerance = 0.0;
    directives.options.fuse = 4;
    let before = parse(&text).map_err(|e| e.to_string())?;
    let verified = verify(before.clone()).map_err(|e| e.to_string())?;
    let after = run(verified, STRUCTURAL, &directives.options, &mut |_, _, _| {}).map_err(|e| e.to_string())?;
    same_numbers(&before, after.program(), &directives)
}

#[test]
fn structural_passes_hold_on_random_programs() {
    for seed in 0..40 {
        let mut directives = Directives::read("").unwrap_or_else(|e| panic!("{e}"));
        directives.options.fuse = 1 + seed as u32 % 4;
        let text = random_program(seed);
        let before = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let verified = verify(before.clone()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        if seed % 3 == 0 {
            directives.options.uniforms.push(("g".into(), 0.75));
        }
        if seed % 2 == 0 {
            directives.options.keep = Keep::Only(vec!["a.s1".into()]);
        }
        for pass in STRUCTURAL {
            let alone = run(verified.clone(), &[pass], &directives.options, &mut |_, _, _| {});
            let alone = alone.unwrap_or_else(|e| panic!("{e}\n{text}"));
            let same = same_numbers(&before, alone.program(), &directives);
            same.unwrap_or_else(|e| panic!("{pass}: {e}\n{text}\nbecomes\n{}", print(alone.program())));
        }
        let mut last = before.clone();
        let mut observer = |pass: &Pass, program: &Program, _| {
            let same = same_numbers(&last, program, &directives);
            same.unwrap_or_else(|e| panic!("{}: {e}\n{}\nbecomes\n{}", pass.name, print(&last), print(program)));
            last = program.clone();
        };
        run(verified, STRUCTURAL, &directives.options, &mut observer).unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
}

#[test]
fn every_pass_holds_on_random_programs() {
    for seed in 0..200 {
        let mut directives = Directives::read("").unwrap_or_else(|e| panic!("{e}"));
        directives.tolerance = 1e-9;
        let text = random_program(seed);
        let mut last = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let verified = verify(last.clone()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut observer = |pass: &Pass, program: &Program, _| {
            let same = same_numbers(&last, program, &directives);
            same.unwrap_or_else(|e| panic!("{}: {e}\n{}\nbecomes\n{}", pass.name, print(&last), print(program)));
            last = program.clone();
        };
        let o2 = run(verified, pipeline(OptLevel::O2, Backend::Native), &directives.options, &mut observer);
        o2.unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
}

/// A program with all phases, kinds of fields and operators, from a seed.
fn random_program(seed: usize) -> String {
    let mut writer = Writer { seed, count: 0, next: 0, text: String::new() };
    let mut text = String::from(
        "program \"random\"\nspace @a\nuniform @dt\nuniform @g\nseries @i\ndata @a.d over @a\ncell @a.c over @a\n\
         state @a.s0 over @a\nstate @a.s1 over @a\nstate @a.s2 over @a\ntemp @a.t0 over @a\ntemp @a.t1 over @a\n\
         output @a.o over @a\nevent @a.e over @a\n",
    );
    let stores = |names: &[&'static str]| names.to_vec();
    writer.kernel(
        "init",
        &[("call", vec!["@g"], vec![]), ("body", vec!["@a.d"], stores(&["@a.c", "@a.s0", "@a.s1", "@a.s2"]))],
    );
    let states = ["@a.s0", "@a.s1", "@a.s2", "@a.c", "@g", "@dt"];
    let with_temps = ["@a.s0", "@a.t0", "@a.t1", "@a.c", "@g", "@a.s2"];
    writer.kernel(
        "step",
        &[
            ("call", vec!["@g", "@dt"], vec![]),
            ("time", vec!["@g"], vec![]),
            ("cell", vec!["@a.c", "@g"], vec![]),
            ("cell", vec!["@a.c"], vec![]),
            ("body", states.to_vec(), stores(&["@a.t0", "@a.s0", "@a.t1", "@a.t0"])),
            ("body", with_temps.to_vec(), stores(&["@a.s1", "@a.t1", "@a.s1"])),
            ("body", with_temps.to_vec(), stores(&["@a.s0", "@a.s2"])),
        ],
    );
    writer.kernel("observe", &[("time", vec!["@g"], vec![]), ("body", states.to_vec(), stores(&["@a.o"]))]);
    text.push_str(&writer.text);
    text
}

/// Writes kernels of random operations.
struct Writer {
    seed: usize,
    count: usize,
    next: u32,
    text: String,
}

/// The numbers and truth values that a region may use.
#[derive(Clone, Default)]
struct Scope {
    reals: Vec<u32>,
    masks: Vec<u32>,
}

impl Writer {
    fn below(&mut self, n: usize) -> usize {
        self.count += 1;
        random(&format!("program {}", self.seed), self.count, (0.0, n as f64)) as usize
    }

    fn line(&mut self, op: &str) -> u32 {
        self.next += 1;
        self.text.push_str(&format!("%{} = {op}\n", self.next));
        self.next
    }

    /// Regions: phase, fields to read, fields to store in this order.
    fn kernel(&mut self, role: &str, regions: &[(&str, Vec<&str>, Vec<&str>)]) {
        self.text.push_str(&format!("kernel {role} over @a steps 1 {{\n"));
        let mut done: Vec<(&str, Scope)> = Vec::new();
        for (phase, reads, stores) in regions {
            self.text.push_str(&format!("{phase} {{\n"));
            let mut scope = Scope::default();
            let reaches = |from: &str| from != *phase && (from == "call" || *phase == "body");
            for (_, earlier) in done.iter().filter(|(from, _)| reaches(from)) {
                scope.reals.extend(&earlier.reals);
                scope.masks.extend(&earlier.masks);
            }
            let before = scope.clone();
            for piece in 0..=stores.len() {
                for _ in 0..5 {
                    self.op(phase, reads, &mut scope);
                }
                if let Some(field) = stores.get(piece) {
                    // Bounded, so that no random program overflows.
                    let value = self.real(&mut scope);
                    let value = self.line(&format!("tanh %{value}"));
                    self.text.push_str(&format!("store {field}, %{value}\n"));
                }
                if role == "step" && *phase == "body" {
                    let mask = self.mask(&mut scope);
                    self.text.push_str(&format!("emit @a.e, %{mask}\n"));
                }
            }
            self.text.push_str("}\n");
            scope.reals.drain(..before.reals.len());
            scope.masks.drain(..before.masks.len());
            done.push((phase, scope));
        }
        self.text.push_str("}\n");
    }

    fn real(&mut self, scope: &mut Scope) -> u32 {
        if scope.reals.is_empty() {
            scope.reals.push(self.line("const 0.5"));
        }
        // Often one of the first few, so that operations repeat, or of the last, so that results matter.
        let count = scope.reals.len();
        let (from, to) = [(0, count), (0, count.min(4)), (count.saturating_sub(3), count)][self.below(3)];
        scope.reals[from + self.below(to - from)]
    }

    fn mask(&mut self, scope: &mut Scope) -> u32 {
        if scope.masks.is_empty() {
            scope.masks.push(self.line("bool true"));
        }
        scope.masks[self.below(scope.masks.len())]
    }

    fn op(&mut self, phase: &str, reads: &[&str], scope: &mut Scope) {
        let timed = matches!(phase, "time" | "body");
        let per_cell = matches!(phase, "cell" | "body");
        let [a, b, c] = [0; 3].map(|_| self.real(scope));
        let [m, n] = [0; 2].map(|_| self.mask(scope));
        let read = reads[self.below(reads.len())];
        let real = match self.below(20) {
            0 => format!("add %{a}, %{b}"),
            1 => format!("mul %{b}, %{a}"),
            2 => format!("div %{a}, %{b}"),
            3 => format!("linoid %{a}"),
            4 => format!("fma %{a}, %{b}, %{c}"),
            5 => format!("select %{m}, %{a}, %{b}"),
            6 => format!("sample @i, %{a}"),
            7 if timed => "time".into(),
            8 if timed => "step_index".into(),
            9 if per_cell => "index".into(),
            10 if per_cell => {
                let counter = self.line("const 3.0");
                format!("draw uniform 1, %{counter}")
            }
            11 => "const 0.25".into(),
            12 => format!("sub %{a}, %{b}"),
            13 => format!("min %{b}, %{a}"),
            _ => format!("field {read}"),
        };
        let value = self.line(&real);
        scope.reals.push(value);
        let mask = match self.below(6) {
            0 => format!("lt %{a}, %{value}"),
            1 => format!("gt %{value}, %{a}"),
            2 => format!("and %{m}, %{n}"),
            3 => format!("or %{m}, %{n}"),
            4 => format!("not %{m}"),
            _ => "bool false".into(),
        };
        let mask = self.line(&mask);
        scope.masks.push(mask);
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_string()
}

/// What the cases of a directory go through.
fn passes_of(directory: &str) -> Option<Vec<&'static Pass>> {
    if directory == "pipeline" {
        return pipeline(OptLevel::O2, Backend::Native).iter().map(|name| find(name)).collect();
    }
    find(directory).map(|pass| vec![pass])
}

/// Runs passes on an unverified program, as it is.
fn transform(program: &mut Program, passes: &[&Pass], options: &Options) {
    for pass in passes {
        (pass.run)(program, options);
    }
}

/// The files of each directory of `tests/passes`, in order.
fn cases() -> BTreeMap<String, Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let entries = |dir: &Path| {
        let found = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        let mut paths: Vec<PathBuf> = found.map(|e| e.unwrap_or_else(|e| panic!("{e}")).path()).collect();
        paths.sort();
        paths
    };
    let directories = entries(&root).into_iter().filter(|p| p.is_dir());
    directories
        .map(|dir| {
            let name = dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let mut files = entries(&dir);
            files.retain(|f| f.extension().is_some_and(|e| e == "ir"));
            (name, files)
        })
        .collect()
}

fn check(passes: &[&Pass], file: &Path) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|e| e.to_string())?;
    let directives = Directives::read(&text)?;
    let before = parse(&text).map_err(|e| e.to_string())?;
    verify(before.clone()).map_err(|e| format!("before: {e}"))?;
    let mut after = before.clone();
    transform(&mut after, passes, &directives.options);
    verify(after.clone()).map_err(|e| format!("after: {e}\n{}", print(&after)))?;
    snapshot(file, &print(&after));
    for count in &directives.counts {
        count.check(&before, &after)?;
    }
    if directives.idempotent {
        let mut again = after.clone();
        transform(&mut again, passes, &directives.options);
        if print(&again) != print(&after) {
            return Err(format!("the pass is not idempotent:\n{}\nbecomes\n{}", print(&after), print(&again)));
        }
    }
    same_numbers(&before, &after, &directives)
}

fn snapshot(file: &Path, text: &str) {
    let name = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(file.parent().unwrap_or(Path::new(".")));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

struct Count {
    what: String,
    phase: Option<Phase>,
    before: usize,
    after: usize,
}

impl Count {
    fn check(&self, before: &Program, after: &Program) -> Result<(), String> {
        let found = (self.of(before), self.of(after));
        if found == (self.before, self.after) {
            return Ok(());
        }
        let place = self.phase.map(|p| format!(" in {p:?}")).unwrap_or_default();
        Err(format!(
            "count {}{place}: expected {} -> {}, found {} -> {}\n{}",
            self.what,
            self.before,
            self.after,
            found.0,
            found.1,
            print(after)
        ))
    }

    fn of(&self, program: &Program) -> usize {
        let regions = program.kernels.iter().flat_map(|k| &k.regions);
        let regions =
            regions.filter(|r| self.phase.is_none_or(|p| mem::discriminant(&p) == mem::discriminant(&r.phase)));
        match self.what.as_str() {
            "fields" => program.fields.len(),
            "regions" => regions.count(),
            "ops" => regions.map(|r| r.ops.len()).sum(),
            name => regions.flat_map(|r| &r.ops).filter(|op| op_name(&op.kind) == name).count(),
        }
    }
}

struct Directives {
    counts: Vec<Count>,
    tolerance: f64,
    values: (f64, f64),
    options: Options,
    idempotent: bool,
}

impl Directives {
    fn read(text: &str) -> Result<Directives, String> {
        let options = Options::default();
        let mut out = Directives { counts: Vec::new(), tolerance: 0.0, values: (-2.0, 2.0), options, idempotent: true };
        for line in text.lines().filter_map(|l| l.trim().strip_prefix("//")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            out.directive(&words).ok_or_else(|| format!("the directive `{}` is misspelled", line.trim()))?;
        }
        Ok(out)
    }

    /// Takes a directive or any other comment; `None` if it begins like a directive but is none.
    fn directive(&mut self, words: &[&str]) -> Option<()> {
        let name = |word: &&str| word.strip_prefix('@').map(|n| n.trim_matches('"').to_string());
        match words {
            ["count", what, rest @ ..] => {
                let (what, phase, rest) = match (what.strip_suffix(':'), rest) {
                    (Some(what), rest) => (what, None, rest),
                    (None, ["in", phase, rest @ ..]) => (*what, Some(phase_of(phase.strip_suffix(':')?)?), rest),
                    (None, _) => return None,
                };
                let [before, "->", after] = rest else { return None };
                let (before, after) = (before.parse().ok()?, after.parse().ok()?);
                self.counts.push(Count { what: what.into(), phase, before, after });
            }
            ["tolerance", x] => self.tolerance = x.parse().ok()?,
            ["values", low, high] => self.values = (low.parse().ok()?, high.parse().ok()?),
            ["uniform", field, x] => self.options.uniforms.push((name(field)?, x.parse().ok()?)),
            ["keep", fields @ ..] => self.options.keep = Keep::Only(fields.iter().map(name).collect::<Option<_>>()?),
            ["fuse", n] => self.options.fuse = n.parse().ok()?,
            ["not", "idempotent", ..] => self.idempotent = false,
            ["count" | "tolerance" | "values" | "uniform" | "fuse", ..] => return None,
            _ => {}
        }
        Some(())
    }
}

fn phase_of(word: &str) -> Option<Phase> {
    [
        ("call", Phase::Call),
        ("time", Phase::Time),
        ("cell", Phase::Cell),
        ("edge", Phase::Edge(FieldId(0))),
        ("body", Phase::Body),
    ]
    .into_iter()
    .find_map(|(name, phase)| (name == word).then_some(phase))
}

/// For every cell the two beside it and, for some, another one.
fn ring(name: &str) -> Edges {
    let mut edges = Edges { offsets: vec![0], sources: Vec::new() };
    for cell in 0..CELLS {
        edges.sources.extend([(cell + 1) % CELLS, (cell + CELLS - 1) % CELLS].map(|cell| cell as u32));
        if random(name, cell, (0.0, 1.0)) < 0.5 {
            edges.sources.push((cell * 3 % CELLS) as u32);
        }
        edges.offsets.push(edges.sources.len() as u32);
    }
    edges
}

/// A program at work, its fields by name.
struct Run<'a> {
    program: &'a Program,
    engine: Interp,
    spikes: Vec<(u64, String, u64)>,
}

impl<'a> Run<'a> {
    fn new(program: &'a Program, directives: &Directives) -> Result<Run<'a>, String> {
        let random = |name: &str, i: usize| random(name, i, directives.values);
        let mut setup = Setup { sizes: vec![CELLS; program.spaces.len()], seed: 42, ..Setup::default() };
        for (i, field) in program.fields.iter().enumerate() {
            let (id, name) = (FieldId(i as u32), field.name.as_str());
            match field.kind {
                FieldKind::Uniform => {
                    let given = directives.options.uniforms.iter().find(|(n, _)| n == name).map(|(_, x)| *x);
                    let otherwise = if name == "dt" { 0.025 } else { random(name, 0) };
                    setup.uniforms.push((id, given.unwrap_or(otherwise)));
                }
                FieldKind::Series => {
                    let samples = (0..5).map(|i| (0.07 * i as f64, random(name, i))).collect();
                    setup.series.push((id, samples));
                }
                FieldKind::Data(_) => setup.data.push((id, (0..CELLS).map(|i| random(name, i)).collect())),
                FieldKind::Edges(_) => setup.edges.push((id, ring(name))),
                FieldKind::Cell(_)
                | FieldKind::State(_)
                | FieldKind::Temp(_)
                | FieldKind::Output(_)
                | FieldKind::Event(_) => {}
            }
        }
        let verified = verify(program.clone()).map_err(|e| e.to_string())?;
        let engine = Interp::new(verified, &setup).map_err(|e| e.to_string())?;
        Ok(Run { program, engine, spikes: Vec::new() })
    }

    /// Replaces all states and cell fields by random numbers.
    fn scramble(&mut self, values: (f64, f64)) -> Result<(), String> {
        for id in self.program.fields_where(|k| matches!(k, FieldKind::Cell(_) | FieldKind::State(_))) {
            let name = &self.program.field(id).name;
            let numbers: Vec<f64> = (0..CELLS).map(|i| random(name, i, values)).collect();
            self.engine.write(id, &numbers).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn step(&mut self, first: u64, steps: u32) -> Result<(), String> {
        let mut spikes = Vec::new();
        self.engine.step(first, steps, &mut spikes).map_err(|e| e.to_string())?;
        self.spikes.extend(spikes.iter().map(|s| (s.step, self.program.field(s.field).name.clone(), s.cell)));
        self.engine.observe(first + u64::from(steps)).map_err(|e| e.to_string())
    }

    fn read(&self, id: FieldId) -> Result<Vec<f64>, String> {
        let mut out = Vec::new();
        self.engine.read(id, 0..CELLS, &mut out).map_err(|e| e.to_string())?;
        Ok(out)
    }
}

/// A number between two bounds that depends on a name and an index only.
fn random(name: &str, index: usize, (low, high): (f64, f64)) -> f64 {
    let start = name.bytes().fold(0xcbf29ce484222325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100000001b3));
    let mut x = start ^ (index as u64).wrapping_mul(0x9e3779b97f4a7c15);
    for _ in 0..3 {
        x = (x ^ (x >> 29)).wrapping_mul(0xbf58476d1ce4e5b9);
    }
    low + (high - low) * ((x >> 11) as f64 / (1u64 << 53) as f64)
}

fn same_numbers(before: &Program, after: &Program, directives: &Directives) -> Result<(), String> {
    let mut old = Run::new(before, directives)?;
    let mut new = Run::new(after, directives)?;
    old.engine.init().map_err(|e| e.to_string())?;
    new.engine.init().map_err(|e| e.to_string())?;
    compare(&old, &new, directives, "after init")?;
    for scrambled in [false, true] {
        if scrambled {
            old.scramble(directives.values)?;
            new.scramble(directives.values)?;
        }
        let mut at = 0;
        for steps in [1, 6, 2] {
            old.step(at, steps)?;
            new.step(at, steps)?;
            at += u64::from(steps);
            compare(&old, &new, directives, &format!("at step {at}, scrambled: {scrambled}"))?;
        }
    }
    Ok(())
}

fn compare(old: &Run<'_>, new: &Run<'_>, directives: &Directives, when: &str) -> Result<(), String> {
    if old.spikes != new.spikes {
        return Err(format!("{when} the spikes differ: {:?} and {:?}", old.spikes, new.spikes));
    }
    let comparable = |k: &FieldKind| matches!(k, FieldKind::Cell(_) | FieldKind::State(_) | FieldKind::Output(_));
    for id in old.program.fields_where(comparable) {
        let field = old.program.field(id);
        let Some(new_id) = new.program.find_field(&field.name) else {
            let kept = match &directives.options.keep {
                Keep::AllStates => matches!(field.kind, FieldKind::State(_)),
                Keep::Only(names) => names.contains(&field.name),
            };
            if kept || matches!(field.kind, FieldKind::Output(_)) {
                return Err(format!("`{}` is gone", field.name));
            }
            continue;
        };
        for (cell, (a, b)) in old.read(id)?.into_iter().zip(new.read(new_id)?).enumerate() {
            let scale = a.abs().max(b.abs()).max(1.0);
            let near = directives.tolerance > 0.0 && (a - b).abs() <= directives.tolerance * scale;
            if !(near || a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()) {
                return Err(format!("{when} `{}` of cell {cell} is {a:?}, then {b:?}", field.name));
            }
        }
    }
    Ok(())
}

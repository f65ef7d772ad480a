//! What elements are told apart by, their numbers and what chance gives them when they begin, as numbers that are loaded.
//!
//! In comes the program of one trial; out goes one in which no function asks for the number of an element and `init` draws nothing, and what to load
//! instead, the same in all trials.
//! Never true here: elements are numbered on from trial to trial, or a draw within a step changes, which is noise that every trial has of its own.

use crate::engine::Setup;
use crate::operators::Distribution;
use crate::runtime::rng::Draw;
use crate::step::{
    Field, FieldId, FieldKind, OpKind, Program, Region, RegionBuilder, Role, Source, SpaceId, Stage, ValueId,
};
use rustc_hash::FxHashMap as HashMap;

/// What an element is told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// How many elements come before it.
    Number,
    /// A draw from a stream with a counter.
    Drawn(Distribution, u32, u64),
}

/// The numbers to load.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    all: Vec<Column>,
}

/// One for each element of a space.
#[derive(Debug)]
struct Column {
    space: SpaceId,
    mark: Mark,
    /// The name of the field that they are loaded to.
    name: String,
    field: FieldId,
    /// Where it stays for the functions that read no data.
    kept: Option<FieldId>,
}

impl Loaded {
    /// Lets a program read what it would ask for.
    pub(super) fn instead(program: &mut Program) -> Loaded {
        let mut loaded = Loaded::default();
        for mut function in std::mem::take(&mut program.functions) {
            let role = function.role;
            function.regions_mut().for_each(|region| loaded.region(program, role, region));
            program.functions.push(function);
        }
        if let Some(init) = program.functions.iter_mut().find(|function| function.role == Role::Init) {
            for one in &loaded.all {
                let Some(kept) = one.kept else { continue };
                let mut b = RegionBuilder::new(Some(one.space), init.next_value());
                let number = b.field(one.field);
                b.store(kept, number);
                init.stages.push(Stage::Region(b.finish()));
            }
        }
        loaded
    }

    fn region(&mut self, program: &mut Program, role: Role, region: &mut Region) {
        let Some(space) = region.over else { return };
        let mut constants: HashMap<ValueId, f64> = HashMap::default();
        for op in &mut region.ops {
            let mark = match op.kind {
                OpKind::Const(x) => {
                    constants.extend(op.result.map(|result| (result, x)));
                    continue;
                }
                OpKind::Index => Mark::Number,
                OpKind::Draw(distribution, stream, counter) if role == Role::Init => {
                    let (Ok(stream), Some(&counter)) = (u32::try_from(stream), constants.get(&counter)) else {
                        continue;
                    };
                    Mark::Drawn(distribution, stream, counter as u64)
                }
                _ => continue,
            };
            op.kind = OpKind::Field(self.field(program, role, space, mark));
        }
    }

    /// The field that a function reads.
    fn field(&mut self, program: &mut Program, role: Role, space: SpaceId, mark: Mark) -> FieldId {
        let known = self.all.iter().position(|one| (one.space, one.mark) == (space, mark));
        let at = known.unwrap_or_else(|| {
            let name = format!("{}'loaded{}", program.space(space).name, self.all.len());
            let field = add(program, &name, FieldKind::Data, space);
            self.all.push(Column { space, mark, name, field, kept: None });
            self.all.len() - 1
        });
        let one = &mut self.all[at];
        match role {
            Role::Init => one.field,
            Role::Step | Role::Observe => {
                *one.kept.get_or_insert_with(|| add(program, &format!("{}'kept", one.name), FieldKind::Const, space))
            }
        }
    }

    /// Adds them to what one trial of such a program, whatever passes have made of it, is set up with.
    pub(super) fn set_up(&self, program: &Program, setup: &mut Setup) {
        for one in &self.all {
            // What nothing needs is gone.
            let Some(field) = program.find_field(&one.name) else { continue };
            let number = |at: usize| match one.mark {
                Mark::Number => at as f64,
                Mark::Drawn(distribution, stream, counter) => {
                    distribution.draw(Draw { seed: setup.seed, stream }, at as u32, counter)
                }
            };
            let values = (0..setup.sizes[one.space.0 as usize]).map(number).collect();
            setup.data.push((field, values));
        }
    }
}

fn add(program: &mut Program, name: &str, kind: FieldKind, over: SpaceId) -> FieldId {
    program.add_field(Field {
        name: name.to_string(),
        kind,
        over: Some(over),
        history: 0,
        source: Source::None,
        origin: None,
    })
}

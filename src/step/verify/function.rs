//! The rules that stages and operations obey, in the order in which they run.
//!
//! In come a program whose declarations hold and one of its functions; out goes the first rule that the function breaks.
//! Never true here: what an operation would read depends on the order of a space's elements.

use super::{Rule, VerifyError, exists, is_time_step};
use crate::step::print::{
    field_name, function_heading, kind_name, print_op, print_solve, region_heading, role_name, space_name,
};
use crate::step::{
    Field, FieldId, FieldKind, Function, Guard, Map, Op, OpKind, Program, Rate, Region, Role, Solve, SpaceId,
    SpaceKind, Stage, Surrogate, Type, ValueId,
};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

/// A rule and how it is broken.
type Broken = (Rule, String);

/// Checks a function.
pub(super) fn check(program: &Program, function: &Function) -> Result<(), VerifyError> {
    let (values, numbers) = (HashMap::default(), HashMap::default());
    let (stored, emitted, here) = (HashSet::default(), HashSet::default(), Touched::default());
    let mut check = Check { program, function, values, numbers, stored, emitted, here };
    let mut running = false;
    for (index, stage) in function.stages.iter().enumerate() {
        let fail = |place: String, (rule, problem): Broken| VerifyError {
            rule,
            place: format!("{}, {place}", function_heading(function.role)),
            problem,
        };
        match stage {
            Stage::Solve(solve) => {
                running = true;
                check.solve(solve).map_err(|e| fail(format!("`{}`", print_solve(program, solve)), e))?;
            }
            Stage::Region(region) => {
                let heading = region_heading(program, region);
                if running && region.rate == Rate::Once {
                    return Err(fail(heading, (Rule::OnceFirst, "it follows a stage that runs every step".into())));
                }
                running |= region.rate == Rate::Every;
                check.heading(region).map_err(|e| fail(heading.clone(), e))?;
                for op in &region.ops {
                    let place = || format!("{heading}, `{}`", print_op(program, op));
                    check.op(op, index, region).map_err(|e| fail(place(), e))?;
                }
                check.leave(region);
            }
        }
    }
    Ok(())
}

/// A function on the way from its first operation to its last.
struct Check<'a> {
    program: &'a Program,
    function: &'a Function,
    /// The type of each value so far, and the stage that defined it.
    values: HashMap<ValueId, (Type, usize)>,
    /// The values that are constant numbers.
    numbers: HashMap<ValueId, f64>,
    /// What earlier stages have stored for every element, or accumulated to.
    stored: HashSet<FieldId>,
    /// What earlier stages have emitted.
    emitted: HashSet<FieldId>,
    here: Touched,
}

/// What the region at hand has touched so far.
#[derive(Default)]
struct Touched {
    read: HashSet<FieldId>,
    /// Gathered, or gone back to.
    gathered: HashSet<FieldId>,
    stored: HashSet<FieldId>,
    accumulated: HashSet<FieldId>,
    emitted: HashSet<FieldId>,
}

impl<'a> Check<'a> {
    /// What a region says before its operations.
    fn heading(&mut self, region: &Region) -> Result<(), Broken> {
        if region.over.is_some_and(|space| !exists(self.program, space)) {
            return Err((Rule::IdsInRange, "it is over a space that does not exist".into()));
        }
        match &region.guard {
            Some(guard) => self.guard(guard, region),
            None => Ok(()),
        }
    }

    fn guard(&self, guard: &Guard, region: &Region) -> Result<(), Broken> {
        let fail = |problem: String| Err((Rule::Guards, problem));
        let event = self.field(guard.event)?;
        let delay = guard.delay.map(|f| self.field(f)).transpose()?;
        let Some(space) = region.over else { return fail("it is over nothing".into()) };
        if self.function.role != Role::Step || region.rate != Rate::Every {
            return fail(format!("this is a region of {}", self.when(region)));
        }
        if event.kind != FieldKind::Event {
            return fail(self.is_a(guard.event));
        }
        let emitter = guard.along.map_or(Some(space), |map| self.program.map(space, map));
        if emitter != event.over {
            return fail(format!("{} is {}", field_name(self.program, guard.event), self.over(event.over)));
        }
        match (guard.delay, delay) {
            (Some(id), Some(delay)) => {
                if delay.kind != FieldKind::Const || delay.over != region.over {
                    return fail(format!("{} {}", self.is_a(id), self.over(delay.over)));
                }
                Ok(())
            }
            (None, _) | (_, None) if !self.emitted.contains(&guard.event) => {
                fail(format!("{} is not emitted above", field_name(self.program, guard.event)))
            }
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// What a region has touched becomes what earlier stages have touched.
    fn leave(&mut self, region: &Region) {
        let here = std::mem::take(&mut self.here);
        if region.guard.is_none() {
            self.stored.extend(here.stored);
        }
        self.stored.extend(here.accumulated);
        self.emitted.extend(here.emitted);
    }

    fn solve(&mut self, solve: &Solve) -> Result<(), Broken> {
        let fail = |problem: String| Err((Rule::Solves, problem));
        if solve.origin.is_some_and(|o| o.0 as usize >= self.program.origins.len()) {
            return Err((Rule::IdsInRange, "its origin does not exist".into()));
        }
        let x = self.field(solve.x)?;
        for id in solve.reads() {
            self.field(id)?;
        }
        if self.function.role != Role::Step {
            return fail(format!("this is {}", role_name(self.function.role)));
        }
        let tree = |space: SpaceId| matches!(self.program.space(space).kind, SpaceKind::Product { tree: true, .. });
        if !x.over.is_some_and(tree) {
            return fail(format!("{} is {}", field_name(self.program, solve.x), self.over(x.over)));
        }
        if !matches!(x.kind, FieldKind::State | FieldKind::Temp) {
            return fail(self.is_a(solve.x));
        }
        for id in solve.reads() {
            let (name, read) = (field_name(self.program, id), self.field(id)?);
            let settled = match read.kind {
                FieldKind::Const | FieldKind::State => true,
                FieldKind::Temp => self.stored.contains(&id),
                FieldKind::Uniform | FieldKind::Series | FieldKind::Data | FieldKind::Output | FieldKind::Event => {
                    return fail(self.is_a(id));
                }
            };
            if !settled {
                return fail(format!("{name} is not stored above"));
            }
            if read.over != x.over {
                return fail(format!("{name} is {}", self.over(read.over)));
            }
            if id == solve.x {
                return fail(format!("{name} is read and set"));
            }
        }
        self.stored.insert(solve.x);
        Ok(())
    }

    fn op(&mut self, op: &Op, stage: usize, region: &Region) -> Result<(), Broken> {
        if op.origin.is_some_and(|o| o.0 as usize >= self.program.origins.len()) {
            return Err((Rule::IdsInRange, "its origin does not exist".into()));
        }
        let operands = op.kind.operands();
        let operands = operands.iter().map(|&v| self.used(v, stage, region)).collect::<Result<Vec<_>, _>>()?;
        let result = types(&op.kind, &operands)?;
        self.place(&op.kind, region)?;
        match (op.result, result) {
            (None, None) => Ok(()),
            (Some(_), None) => Err((Rule::Result, "it defines a value".into())),
            (None, Some(_)) => Err((Rule::Result, "it defines no value".into())),
            (Some(value), Some(ty)) => {
                if let OpKind::Const(x) = op.kind {
                    self.numbers.insert(value, x);
                }
                match self.values.insert(value, (ty, stage)) {
                    Some(_) => Err((Rule::DefinedOnce, format!("%{} is defined already", value.0))),
                    None => Ok(()),
                }
            }
        }
    }

    fn used(&self, value: ValueId, stage: usize, region: &Region) -> Result<Type, Broken> {
        let fail = |problem: String| Err((Rule::DefinedBefore, format!("%{} {problem}", value.0)));
        let Some(&(ty, from)) = self.values.get(&value) else { return fail("is not defined above".into()) };
        match self.function.stages.get(from).and_then(Stage::region) {
            Some(definer) if from != stage && !definer.reaches(region) => {
                let [definer, user] = [definer, region].map(|r| region_heading(self.program, r));
                fail(format!("belongs to `{definer}` and does not reach `{user}`"))
            }
            Some(_) | None => Ok(ty),
        }
    }

    /// Where an operation may stand and what it may touch.
    fn place(&mut self, kind: &OpKind, region: &Region) -> Result<(), Broken> {
        if kind.has_effect() && region.rate == Rate::Once {
            return Err((Rule::OnceFirst, "this region runs once".into()));
        }
        match *kind {
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Select(..)
            | OpKind::SpikeBy(..) => Ok(()),
            OpKind::Spike(surrogate, _) => surrogate_slope(surrogate),
            OpKind::Time | OpKind::StepIndex if region.rate == Rate::Once => {
                Err((Rule::TimePhases, "this region runs once".into()))
            }
            OpKind::StepIndex => Ok(()),
            OpKind::Time if self.program.fields.iter().any(is_time_step) => Ok(()),
            OpKind::Time => Err((Rule::TimeStep, "there is none".into())),
            OpKind::Index | OpKind::Draw(..) if region.over.is_none() => {
                Err((Rule::Elements, "this region is over nothing".into()))
            }
            OpKind::Draw(_, stream, _) if u32::try_from(stream).is_err() => {
                Err((Rule::Streams, format!("its stream is {stream}")))
            }
            OpKind::Index | OpKind::Draw(..) => Ok(()),
            OpKind::Field(field) => self.read(field, region),
            OpKind::Sample(field, _) => match self.field(field)?.kind {
                FieldKind::Series => Ok(()),
                FieldKind::Uniform
                | FieldKind::Data
                | FieldKind::Const
                | FieldKind::State
                | FieldKind::Temp
                | FieldKind::Output
                | FieldKind::Event => Err((Rule::Samples, self.is_a(field))),
            },
            OpKind::Gather(field, map) => self.gather(field, map, region),
            OpKind::Back(field, map, steps) => self.back(field, map, steps, region),
            OpKind::Accumulate(field, map, _) => self.accumulate(field, map, region),
            OpKind::Store(field, _) => self.store(field, region),
            OpKind::Emit(field, _) => self.emit(field, region),
        }
    }

    fn read(&mut self, id: FieldId, region: &Region) -> Result<(), Broken> {
        let field = self.own(id, region)?;
        let name = || field_name(self.program, id);
        self.readable(id, field.kind, region)?;
        if self.here.accumulated.contains(&id) {
            return Err((Rule::GatheredSettled, format!("this region accumulates to {}", name())));
        }
        if self.must_be_stored(field.kind) && !self.stored.contains(&id) && !self.here.stored.contains(&id) {
            return Err((Rule::StoredBeforeRead, format!("{} is not stored above", name())));
        }
        self.here.read.insert(id);
        Ok(())
    }

    fn gather(&mut self, id: FieldId, map: Map, region: &Region) -> Result<(), Broken> {
        let field = self.field(id)?;
        if matches!(field.kind, FieldKind::Uniform | FieldKind::Data) {
            return Err((Rule::Readable, self.is_a(id)));
        }
        self.readable(id, field.kind, region)?;
        self.leads(map, id, region)?;
        self.unchanged(id)?;
        if self.must_be_stored(field.kind) && !self.stored.contains(&id) {
            return Err((Rule::StoredBeforeRead, format!("{} is not stored above", field_name(self.program, id))));
        }
        self.here.gathered.insert(id);
        Ok(())
    }

    fn back(&mut self, id: FieldId, map: Option<Map>, steps: ValueId, region: &Region) -> Result<(), Broken> {
        let fail = |problem: String| Err((Rule::Back, problem));
        let field = match map {
            Some(map) => self.leads(map, id, region)?,
            None => self.own(id, region)?,
        };
        if self.function.role != Role::Step || region.rate == Rate::Once {
            return fail(format!("this is a region of {}", self.when(region)));
        }
        if field.kind != FieldKind::State {
            return fail(self.is_a(id));
        }
        if field.history == 0 {
            return fail(format!("{} has no history", field_name(self.program, id)));
        }
        if let Some(&steps) = self.numbers.get(&steps)
            && !(steps.fract() == 0.0 && (0.0..=f64::from(field.history)).contains(&steps))
        {
            let (name, history) = (field_name(self.program, id), field.history);
            return fail(format!("{name} has a history of {history} steps, and this goes back {steps}"));
        }
        self.unchanged(id)?;
        self.here.gathered.insert(id);
        Ok(())
    }

    fn accumulate(&mut self, id: FieldId, map: Option<Map>, region: &Region) -> Result<(), Broken> {
        let (field, role) = (self.field(id)?, self.function.role);
        let name = field_name(self.program, id);
        let legal = match field.kind {
            FieldKind::Temp => role != Role::Init,
            FieldKind::Output => role == Role::Observe && field.over.is_none(),
            FieldKind::Uniform
            | FieldKind::Series
            | FieldKind::Data
            | FieldKind::Const
            | FieldKind::State
            | FieldKind::Event => false,
        };
        if !legal {
            return Err((Rule::Accumulates, self.in_function(id)));
        }
        match map {
            Some(map) => {
                self.leads(map, id, region)?;
            }
            None if region.over.is_none() => return Err((Rule::Maps, "this region is over nothing".into())),
            None if field.over.is_some() => return Err((Rule::Maps, format!("{name} is {}", self.over(field.over)))),
            None => {}
        }
        let seen = [&self.here.gathered, &self.here.read, &self.here.stored];
        if seen.iter().any(|touched| touched.contains(&id)) {
            return Err((Rule::GatheredSettled, format!("this region reads or stores {name}")));
        }
        self.here.accumulated.insert(id);
        Ok(())
    }

    fn store(&mut self, id: FieldId, region: &Region) -> Result<(), Broken> {
        let (field, role) = (self.field(id)?, self.function.role);
        let legal = match field.kind {
            FieldKind::Const => role == Role::Init,
            FieldKind::State => matches!(role, Role::Init | Role::Step),
            FieldKind::Temp => matches!(role, Role::Step | Role::Observe),
            FieldKind::Output => role == Role::Observe,
            FieldKind::Uniform | FieldKind::Series | FieldKind::Data | FieldKind::Event => false,
        };
        if !legal {
            return Err((Rule::Storable, self.in_function(id)));
        }
        if self.own(id, region)?.over != region.over {
            let name = field_name(self.program, id);
            return Err((
                Rule::OwnElement,
                format!("{name} is over nothing, this region is {}", self.over(region.over)),
            ));
        }
        if self.here.gathered.contains(&id) || self.here.accumulated.contains(&id) {
            let name = field_name(self.program, id);
            return Err((Rule::GatheredSettled, format!("this region gathers, goes back to or accumulates to {name}")));
        }
        self.here.stored.insert(id);
        Ok(())
    }

    fn emit(&mut self, id: FieldId, region: &Region) -> Result<(), Broken> {
        if self.field(id)?.kind != FieldKind::Event || self.function.role == Role::Observe {
            return Err((Rule::Emits, self.in_function(id)));
        }
        self.own(id, region)?;
        if region.guard.is_some_and(|guard| guard.event == id) {
            return Err((Rule::Guards, format!("{} guards this region", field_name(self.program, id))));
        }
        self.here.emitted.insert(id);
        Ok(())
    }

    /// May this kind of field be read in a region like this?
    fn readable(&self, id: FieldId, kind: FieldKind, region: &Region) -> Result<(), Broken> {
        let init = self.function.role == Role::Init;
        let (readable, changes) = match kind {
            FieldKind::Uniform => (true, false),
            FieldKind::Data => (init, false),
            FieldKind::Const => (true, init),
            FieldKind::State => (true, true),
            FieldKind::Temp => (!init, true),
            FieldKind::Series | FieldKind::Output | FieldKind::Event => (false, false),
        };
        if !readable {
            return Err((Rule::Readable, self.in_function(id)));
        }
        if changes && region.rate == Rate::Once {
            return Err((Rule::ReadPhase, "this region runs once".into()));
        }
        Ok(())
    }

    /// Has such a field no value unless this function stores it?
    fn must_be_stored(&self, kind: FieldKind) -> bool {
        match kind {
            FieldKind::Temp => true,
            FieldKind::Const | FieldKind::State => self.function.role == Role::Init,
            FieldKind::Uniform | FieldKind::Series | FieldKind::Data | FieldKind::Output | FieldKind::Event => false,
        }
    }

    /// This region must not have changed what it reads of other elements.
    fn unchanged(&self, id: FieldId) -> Result<(), Broken> {
        if self.here.stored.contains(&id) || self.here.accumulated.contains(&id) {
            let name = field_name(self.program, id);
            return Err((Rule::GatheredSettled, format!("this region stores or accumulates to {name}")));
        }
        Ok(())
    }

    fn field(&self, id: FieldId) -> Result<&'a Field, Broken> {
        let field = self.program.fields.get(id.0 as usize);
        field.ok_or_else(|| (Rule::IdsInRange, format!("field {} does not exist", id.0)))
    }

    /// A field that an element has a value of, or that all share.
    fn own(&self, id: FieldId, region: &Region) -> Result<&'a Field, Broken> {
        let field = self.field(id)?;
        if field.over.is_some() && field.over != region.over {
            let name = field_name(self.program, id);
            let [of_field, of_region] = [field.over, region.over].map(|space| self.over(space));
            return Err((Rule::OwnElement, format!("{name} is {of_field}, this region is {of_region}")));
        }
        Ok(field)
    }

    /// A field over the space that a map leads to.
    fn leads(&self, map: Map, id: FieldId, region: &Region) -> Result<&'a Field, Broken> {
        let fail = |problem: String| Err((Rule::Maps, problem));
        let field = self.field(id)?;
        let Some(space) = region.over else { return fail("this region is over nothing".into()) };
        let Some(to) = self.program.map(space, map) else {
            return fail(format!("{} has no map `{}`", space_name(self.program, space), map.name()));
        };
        if field.over != Some(to) {
            let name = field_name(self.program, id);
            let (of_field, to) = (self.over(field.over), space_name(self.program, to));
            return fail(format!("{name} is {of_field}, `{}` leads to {to}", map.name()));
        }
        Ok(field)
    }

    fn over(&self, space: Option<SpaceId>) -> String {
        match space {
            Some(space) => format!("over {}", space_name(self.program, space)),
            None => "over nothing".into(),
        }
    }

    fn when(&self, region: &Region) -> String {
        let role = role_name(self.function.role);
        match region.rate {
            Rate::Once => format!("{role} that runs once"),
            Rate::Every => role.into(),
        }
    }

    fn is_a(&self, id: FieldId) -> String {
        let kind = self.program.fields.get(id.0 as usize).map_or("?", |field| kind_name(field.kind));
        format!("{} is a field of kind {kind}", field_name(self.program, id))
    }

    fn in_function(&self, id: FieldId) -> String {
        format!("{}, and this is {}", self.is_a(id), role_name(self.function.role))
    }
}

fn surrogate_slope(surrogate: Surrogate) -> Result<(), Broken> {
    match surrogate {
        Surrogate::None | Surrogate::StraightThrough => Ok(()),
        Surrogate::FastSigmoid(slope)
        | Surrogate::Arctan(slope)
        | Surrogate::Sigmoid(slope)
        | Surrogate::Triangular(slope) => {
            if slope > 0.0 && slope.is_finite() {
                Ok(())
            } else {
                Err((Rule::Surrogates, format!("its slope is {slope}")))
            }
        }
    }
}

/// The type of the result, if the operands have the types that the operation takes.
fn types(kind: &OpKind, operands: &[Type]) -> Result<Option<Type>, Broken> {
    use Type::{Mask, Real, Single};
    // Arithmetic of singles.
    let real = if operands.first() == Some(&Single) { Single } else { Real };
    let like = |ty: Type, from: Type, to: Type| if (from, to) == (Real, Real) { real } else { ty };
    let (expected, result): (Vec<Type>, Option<Type>) = match kind {
        OpKind::Const(_) | OpKind::Field(_) | OpKind::Gather(..) | OpKind::Time | OpKind::StepIndex | OpKind::Index => {
            (vec![], Some(Real))
        }
        OpKind::Bool(_) => (vec![], Some(Mask)),
        OpKind::Unary(op, _) => {
            let (from, to) = op.types();
            (vec![like(from, from, to)], Some(like(to, from, to)))
        }
        OpKind::Approximate(..) => (vec![Real], Some(Real)),
        OpKind::Binary(op, ..) => {
            let (from, to) = op.types();
            (vec![like(from, from, to); 2], Some(like(to, from, to)))
        }
        OpKind::Fma(..) => (vec![real; 3], Some(real)),
        OpKind::Select(..) => (vec![Mask, Real, Real], Some(Real)),
        OpKind::Draw(..) | OpKind::Sample(..) | OpKind::Back(..) => (vec![Real], Some(Real)),
        OpKind::Spike(..) => (vec![Real], Some(Mask)),
        OpKind::SpikeBy(..) => (vec![Real, Real], Some(Mask)),
        OpKind::Store(..) | OpKind::Accumulate(..) => (vec![Real], None),
        OpKind::Emit(..) => (vec![Mask], None),
    };
    for ((value, found), expected) in kind.operands().iter().zip(operands).zip(&expected) {
        if found != expected {
            let [found, expected] = [found, expected].map(|t| match t {
                Real => "real",
                Single => "single",
                Mask => "mask",
            });
            return Err((Rule::Types, format!("%{} is a {found}, a {expected} is needed", value.0)));
        }
    }
    Ok(result)
}

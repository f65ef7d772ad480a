//! The ways that events take: edges and their delays, as a checkpoint keeps them.
//!
//! In come a model and its extent, with the edges drawn; out goes a [`Way`] for each projection, or what has changed since a checkpoint.
//! Never true here: an edge is told by more than its digest, or edges count that depend on how long a run is.

use super::edges::projected;
use super::extent::Extent;
use crate::discretize::projection_space;
use crate::ode::{self, Kind, Model, NodeId};
use crate::results::{Checkpoint, Way};
use crate::step::{FieldKind, Function, Program, Role, SpaceId};

/// The ways of all projections, but of those from clocks, whose edges are longer where the run is.
pub(super) fn ways(model: &Model, program: &Program, extent: &Extent) -> Vec<Way> {
    counted(model).map(|projection| way(model, program, extent, projection)).collect()
}

/// The projections with a way, by index.
fn counted(model: &Model) -> impl Iterator<Item = usize> {
    (0..model.projections.len()).filter(|&at| model.populations[model.projections[at].from].kind != Kind::Clock)
}

fn way(model: &Model, program: &Program, extent: &Extent, projection: usize) -> Way {
    let space = projection_space(model, projection);
    let mut hasher = blake3::Hasher::new();
    if let Some((_, edges)) = extent.edges.iter().find(|(other, _)| *other == space) {
        let numbers = edges.offsets.iter().chain(&edges.sources);
        numbers.for_each(|number| {
            hasher.update(&number.to_le_bytes());
        });
    }
    let delays = delays(model, extent, projection, extent.size(space));
    Way { name: program.space(space).name.clone(), edges: short(&hasher), delays }
}

/// A digest of the delays in steps, and of what part of them is behind the synapse; none if they are not known any more.
fn delays(model: &Model, extent: &Extent, projection: usize, edges: usize) -> Option<String> {
    let p = &model.projections[projection];
    let of_edges = |root: NodeId| match ode::cells::values(model, root, None, edges, &|_, _| None) {
        // Only what is read for the edges makes them once more.
        None => projected(model, extent, p).ok()?.values(model, root),
        known => known,
    };
    let mut hasher = blake3::Hasher::new();
    for delay in of_edges(p.delay)? {
        hasher.update(&(delay / extent.grid.dt + 0.5).floor().to_le_bytes());
    }
    if let Some((part, _)) = p.plasticity.as_ref().and_then(|plasticity| plasticity.dendritic) {
        for part in of_edges(part)? {
            hasher.update(&part.to_le_bytes());
        }
    }
    Some(short(&hasher))
}

fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..32].to_owned()
}

/// What has changed since a checkpoint, so that its events would arrive elsewhere or at another time, or its states be those of other edges. The
/// error is a sentence. `now` are the ways of this run.
pub(super) fn unchanged(checkpoint: &Checkpoint, model: &Model, program: &Program, now: &[Way]) -> Result<(), String> {
    // Checkpoints that are older tell nothing of it.
    let Some(saved) = &checkpoint.ways else { return Ok(()) };
    for (projection, way) in counted(model).zip(now) {
        let name = &model.projections[projection].name;
        let space = projection_space(model, projection);
        let before = saved.iter().find(|before| before.name == way.name);
        let travels = under_way(checkpoint, program, space);
        let remembers = program.fields.iter().any(|field| field.kind == FieldKind::State && field.over == Some(space));
        if before.is_none_or(|before| before.edges != way.edges) && (travels || remembers) {
            let seed = match checkpoint.seed == model.seed {
                true => String::new(),
                false => format!("the seed, {}, ", checkpoint.seed),
            };
            let help = format!("go on with {seed}the rule and the sizes it was saved with");
            return Err(match remembers {
                true => format!(
                    "`{name}` has other edges than when it was saved, and what each of them remembers would be given to \
                     another one; {help}"
                ),
                false => format!(
                    "`{name}` has other edges than when it was saved, and spikes are on their way along them; {help}, \
                     or save when none are on their way"
                ),
            });
        }
        let delays = before.and_then(|before| before.delays.as_ref()).zip(way.delays.as_ref());
        if travels && delays.is_some_and(|(before, now)| before != now) {
            let seed = match checkpoint.seed == model.seed {
                true => String::new(),
                false => format!(" and the seed, {},", checkpoint.seed),
            };
            return Err(format!(
                "`{name}` has other delays than when it was saved, and spikes are on their way along its edges, which would be lost \
                 or arrive twice; go on with the delays{seed} it was saved with, or save when none are on their way"
            ));
        }
    }
    Ok(())
}

/// Are events on their way that go along the edges of this space?
fn under_way(checkpoint: &Checkpoint, program: &Program, edges: SpaceId) -> bool {
    let regions = program.function(Role::Step).into_iter().flat_map(Function::regions);
    let own = regions.filter(|region| region.over == Some(edges)).filter_map(|region| region.guard);
    let events: Vec<&str> =
        own.filter(|guard| guard.delay.is_some()).map(|guard| program.field(guard.event).name.as_str()).collect();
    checkpoint.events.iter().any(|sent| !sent.ago.is_empty() && events.contains(&sent.event.as_str()))
}

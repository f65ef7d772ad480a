//! Cells with sections at rest: what their membranes let through before the first step.
//!
//! In comes a cable; out go the slopes of its currents in the voltage, with all gates held where they begin, and its resistances. Never true here: time passes.

use super::cells::values;
use super::{Cable, Graph, Model, Node, NodeId, StateId, Through, derivative};
use crate::morphology::Tree;
use rustc_hash::FxHashMap as HashMap;

/// Numbers for each element of a cable's tree, in canonical units.
#[derive(Debug, Clone, PartialEq)]
pub struct Passive {
    /// Of the membrane, in mS/cm2.
    pub conductance: Vec<f64>,
    /// In uF/cm2.
    pub capacitance: Vec<f64>,
    /// In kohm cm.
    pub resistivity: Vec<f64>,
}

impl Passive {
    /// What holds of the first cell of a cable before the first step; `None` if something depends on the time, on chance or on data.
    pub fn of(model: &Model, cable: &Cable) -> Option<Passive> {
        let (tree, _) = model.elements(cable.population)?;
        let of_tree = |node: NodeId| values(model, node, Some(cable.population), tree.len(), &|_, _| None);
        let (capacitance, resistivity) = (of_tree(cable.cm)?, of_tree(cable.ra)?);
        let mut conductance = vec![0.0; tree.len()];
        for current in cable.currents.iter().filter(|current| current.through != Through::Clamp) {
            let mut model = model.clone();
            // What does not read the voltage adds no slope.
            let Some(slope) = derivative(&mut model.graph, current.outward, cable.v) else { continue };
            let slope = at_start(&mut model, slope)?;
            let (_, elements) = model.elements(current.population)?;
            let slopes = values(&model, slope, Some(current.population), elements.len(), &|_, _| None)?;
            elements.iter().zip(slopes).for_each(|(&e, slope)| conductance[e as usize] += slope);
        }
        Some(Passive { conductance, capacitance, resistivity })
    }

    /// What the cell resists at an element, in kohm; `None` if the membrane lets nothing through, or amplifies.
    pub fn input_resistance(&self, tree: &Tree, at: usize) -> Option<f64> {
        let mut conductance: Vec<f64> = tree.area.iter().zip(&self.conductance).map(|(area, g)| area * g).collect();
        let parent = |e: usize| tree.parents[e] as usize;
        let way = |e: usize| tree.near[e] * self.resistivity[e] + tree.far[e] * self.resistivity[parent(e)];
        let behind = |e: usize, g: f64| g / (1.0 + way(e) * g);
        // Parents stand before their children.
        for e in (1..tree.len()).rev() {
            conductance[parent(e)] += behind(e, conductance[e]);
        }
        // From the root to the element: what lies on the other side of it.
        let mut path = vec![at];
        while let Some(&e) = path.last().filter(|e| **e > 0) {
            path.push(parent(e));
        }
        let mut whole = conductance[0];
        for &e in path.iter().rev().skip(1) {
            let other = whole - behind(e, conductance[e]);
            whole = conductance[e] + behind(e, other);
        }
        Some(whole).filter(|g| g.is_finite() && *g > 0.0).map(|g| 1.0 / g)
    }

    /// How many length constants each element is long; `None` if a membrane amplifies.
    pub fn electrotonic(&self, tree: &Tree) -> Option<Vec<f64>> {
        let of = |e: usize| {
            let (length, area) = (tree.length[e], tree.area[e]);
            if area == 0.0 {
                return Some(0.0);
            }
            // A cylinder of this area.
            let diam = area / (std::f64::consts::PI * length);
            let constant = diam / (4.0 * self.resistivity[e] * self.conductance[e]);
            Some(length / constant.sqrt()).filter(|x| !x.is_nan())
        };
        (0..tree.len()).map(of).collect()
    }
}

/// An expression with every state where it begins.
fn at_start(model: &mut Model, mut root: NodeId) -> Option<NodeId> {
    // What one begins with may read another.
    for _ in 0..=model.states.len() {
        let read = |g: &Graph, n: NodeId| matches!(g.node(n), Node::State(_));
        if !model.graph.reachable([root]).into_iter().any(|n| read(&model.graph, n)) {
            return Some(root);
        }
        let starts: Vec<NodeId> = model.states.iter().map(|s| s.init).collect();
        let leaf = |node: Node| match node {
            Node::State(StateId(s)) => starts.get(s as usize).copied(),
            _ => None,
        };
        root = model.graph.replace(root, &leaf, &mut HashMap::default());
    }
    None
}

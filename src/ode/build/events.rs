//! Events: who sends them, and what they add to states.
//!
//! In come the projections and drives of a checked network; out go projections, and for each state of a receptor what events add to it.
//! Never true here: what an event adds depends on a state.

use super::Builder;
use crate::connect::RULES;
use crate::data::{DataFile, Numbers};
use crate::hir::{self, DataId, DriveSource, ExprKind};
use crate::ode::{ConnectionRule, Graded, Jump, Kind, Modulator, Node, NodeId, Pooled, Population, Projection, Wait};
use crate::operators::{BinaryOp, UnaryOp};
use crate::source::Span;
use crate::units::Dim;
use rustc_hash::FxHashMap as HashMap;
use std::path::PathBuf;

impl<'m> Builder<'m> {
    pub(super) fn projections(&mut self) -> Vec<Projection> {
        let network = self.network;
        let projection = |(at, p): (usize, &'m hir::Projection)| {
            self.distance_of(at, p);
            let mut weight = self.expr(None, &p.weight);
            let share = self.share(&p.rule);
            if share.is_some() {
                weight = self.drawn_for_the_kernel(weight, p);
            }
            let delay = self.expr(None, &p.delay);
            let given = p.given.iter().map(|given| self.expr(None, &given.value)).collect();
            self.distance = None;
            let graded = p.sent.as_ref().map(|sent| self.sent_for_one(p.from, &sent.value));
            Projection {
                name: p.name.clone(),
                // Of a cell with sections, the place that spikes or sends.
                from: match p.sent.as_ref() {
                    Some(sent) => self.sending(p.from, sent),
                    None => self.spiking(p.from),
                },
                to: self.receiving(p.to, p.receptor),
                weight,
                dim: p.weight.ty.dim(),
                unit: p.unit.clone(),
                share,
                arrives: self.arrives(at),
                delay,
                spacing: self.distances.get(&at).map(|known| known.1),
                plasticity: self.plasticity(at, p, weight, given),
                graded,
                rule: self.rule(&p.rule),
                place: (p.max_pool > 1).then_some(Pooled { first: at, number: 0 }),
                given: p.given.iter().map(|given| given.name.clone()).collect(),
                span: p.span,
            }
        };
        let mut projections: Vec<Projection> = network.projections.iter().enumerate().map(projection).collect();
        for (drive, file) in spikes_of_files(network) {
            let of_file = self.spikes_of_file(projections.len(), drive, file);
            projections.push(of_file);
        }
        // The places behind the first ones, of which a target gets the largest, stand behind all others.
        for (first, p) in network.projections.iter().enumerate() {
            for number in 1..p.max_pool * p.max_pool {
                let (place, arrives) = (Some(Pooled { first, number }), projections.len() as u32);
                let name = format!("{}'{number}", p.name);
                projections.push(Projection { name, arrives, place, ..projections[first].clone() });
            }
        }
        projections
    }

    /// What a projection of the network brings in a step: all that arrives, or the largest of what arrives at some places,
    /// the first one of those that bring the same.
    fn brought(&mut self, at: usize) -> NodeId {
        let first = self.graph.add(Node::Arrived(at as u32, 0));
        let behind = |p: &hir::Projection| p.max_pool * p.max_pool - 1;
        let all = &self.network.projections;
        let Some(count) = all.get(at).map(behind) else { return first };
        let begin = self.receivers().len() as u32 + all[..at].iter().map(behind).sum::<u32>();
        (begin..begin + count).fold(first, |largest, place| {
            let place = self.graph.add(Node::Arrived(place, 0));
            // Of two that are the same it is the second.
            self.graph.binary(BinaryOp::Max, place, largest)
        })
    }

    /// What a cell sends through a graded synapse whose weight is 1.
    fn sent_for_one(&mut self, population: usize, sent: &'m hir::Expr) -> Graded {
        let weight = self.weight.replace(self.graph.number(1.0, Dim::ONE));
        let mut one = self.expr(Some(population), sent);
        let weight = std::mem::replace(&mut self.weight, weight);
        // Mostly it is the weight times a state.
        if let Node::Binary(BinaryOp::Mul, a, b) = self.graph.node(one) {
            one = if Some(a) == weight {
                b
            } else if Some(b) == weight {
                a
            } else {
                one
            };
        }
        Graded { sent: one, dim: sent.ty.dim() }
    }

    /// The sum of what cells send to a receptor whose synapses are graded.
    pub(super) fn summed(&mut self, population: usize, sum: hir::SymbolId) -> Option<NodeId> {
        let network = self.network;
        let of_sum = |p: &hir::Projection| {
            p.to == population && network.populations[p.to].receptors[p.receptor].sum == Some(sum)
        };
        let at = network.projections.iter().position(of_sum)?;
        Some(self.graph.add(Node::Arrived(self.arrives(at), 0)))
    }

    /// Makes known how far the cells of the edges of a projection are from each other, if something of them depends on it.
    fn distance_of(&mut self, at: usize, p: &'m hir::Projection) {
        let mut read = None;
        for value in [&p.weight, &p.delay].into_iter().chain(p.given.iter().map(|given| &given.value)) {
            value.visit(&mut |e| {
                if e.kind == ExprKind::Distance {
                    read = Some((e.ty.dim(), e.span));
                }
            });
        }
        let Some((dim, span)) = read else { return };
        let name = format!("{}.distance", p.name);
        let numbers = Numbers::Distances;
        let steps = self.add_data(DataFile { name, directory: PathBuf::new(), column: None, span, numbers });
        let network = self.network;
        let spacing = [p.from, p.to].map(|population| match &network.populations[population].spacing {
            Some(spacing) => self.expr(None, spacing),
            None => self.graph.number(1.0, dim),
        });
        let distance = self.graph.binary(BinaryOp::Mul, steps, spacing[1]);
        self.distances.insert(at, (distance, spacing));
        self.distance = Some(distance);
    }

    /// Which receptor of which population each projection leads to, and whether it modulates its synapses: those of the network, then those of drives
    /// with spikes of files.
    fn receivers(&self) -> Vec<Receiver> {
        let of_projections =
            self.network.projections.iter().map(|p| Receiver { at: (p.to, p.receptor), modulates: p.modulates });
        let of_file =
            |(d, _): (&hir::Drive, DataId)| Receiver { at: (d.population, d.receptor), modulates: d.modulates };
        of_projections.chain(spikes_of_files(self.network).map(of_file)).collect()
    }

    /// The receptors whose synapses something modulates, each once.
    pub(super) fn modulated(&self) -> Vec<(usize, usize)> {
        let of_projections = self.receivers().into_iter().filter(|receiver| receiver.modulates).map(|r| r.at);
        let of_drives = self.network.drives.iter().filter(|d| d.modulates).map(|d| (d.population, d.receptor));
        let mut found: Vec<(usize, usize)> = of_projections.chain(of_drives).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What modulates synapses.
    pub(super) fn modulators(&mut self) -> Vec<Modulator> {
        let network = self.network;
        let mut modulators = Vec::new();
        for (to, receptor) in self.modulated() {
            let mut sum = None;
            for (at, receiver) in self.receivers().into_iter().enumerate() {
                if receiver.modulates && receiver.at == (to, receptor) && self.arrives(at) == at as u32 {
                    let arrived = self.graph.add(Node::Arrived(at as u32, 0));
                    sum = Some(self.added(sum, arrived));
                }
            }
            let drives: Vec<&hir::Drive> =
                network.drives.iter().filter(|d| d.modulates && (d.population, d.receptor) == (to, receptor)).collect();
            for d in drives.iter().filter(|d| !matches!(d.source, DriveSource::Spikes(_))) {
                let (carried, chosen) = self.carried(d);
                let nothing = self.graph.number(0.0, d.weight.ty.dim());
                let carried = chosen.map_or(carried, |chosen| self.graph.select(chosen, carried, nothing));
                sum = Some(self.added(sum, carried));
            }
            let of_cells = network.projections.iter().filter(|p| p.modulates && (p.to, p.receptor) == (to, receptor));
            let of_cells = of_cells.map(|p| (p.weight.ty.dim(), p.span));
            let first = of_cells.chain(drives.iter().map(|d| (d.weight.ty.dim(), d.span))).next();
            let (Some(amount), Some((dim, span))) = (sum, first) else { continue };
            let of = &network.populations[to];
            let name = format!("{}.{}", of.name, of.receptors[receptor].name);
            let population = self.receiving(to, receptor);
            modulators.push(Modulator { name, population, amount, dim, span });
        }
        modulators
    }

    fn added(&mut self, sum: Option<NodeId>, value: NodeId) -> NodeId {
        sum.map_or(value, |sum| self.graph.binary(BinaryOp::Add, sum, value))
    }

    /// What a drive brings in a step, and the cells that it is for if they are not all.
    fn carried(&mut self, d: &hir::Drive) -> (NodeId, Option<NodeId>) {
        let weight = self.expr(Some(d.population), &d.weight);
        let weight = self.for_receptor(d, weight, d.weight.ty.dim());
        let count = self.count(d);
        let carried = self.graph.binary(BinaryOp::Mul, weight, count);
        let chosen = d.cells.as_ref().map(|cells| match self.spreads(d) {
            true => self.is_of_one_of(d.population, cells, &d.name, d.span),
            false => self.is_one_of(cells),
        });
        (carried, chosen)
    }

    /// The first projection that leads to the receptor of this one, of those that remember nothing and do not lead to places.
    fn arrives(&self, at: usize) -> u32 {
        let all = self.receivers();
        let Receiver { at: (to, receptor), modulates } = all[at];
        let remembers = !modulates && self.network.populations[to].receptors[receptor].plastic.is_some();
        let projections = &self.network.projections;
        let pools = |at: usize| projections.get(at).is_some_and(|p| p.max_pool > 1);
        let together = |other: &usize| !remembers && !pools(at) && !pools(*other) && all[*other] == all[at];
        (0..all.len()).find(together).unwrap_or(at) as u32
    }

    /// A drive with the spikes of a file: a projection from a clock, whose edges are the spikes. Draws are those of the cells, as of other drives.
    fn spikes_of_file(&mut self, at: usize, drive: &hir::Drive, file: DataId) -> Projection {
        let zero = self.graph.number(0.0, Dim::TIME);
        let delay = drive.delay.as_ref().map_or(zero, |delay| self.expr(None, delay));
        self.wait(drive, delay);
        let cells = drive.cells.as_ref().map(|(first, end)| (self.expr(None, first), self.expr(None, end)));
        let weight = self.expr(None, &drive.weight);
        let given = |numbers: Numbers| DataFile {
            name: drive.name.clone(),
            directory: PathBuf::new(),
            column: None,
            span: drive.span,
            numbers,
        };
        let mut drawn = HashMap::default();
        for id in self.graph.reachable([weight]) {
            if let Node::Draw(distribution, stream) = self.graph.node(id) {
                let data = self.add_data(given(Numbers::Drawn(distribution, stream as u32)));
                drawn.insert(self.graph.node(id), data);
            }
        }
        let weight = self.graph.replace(weight, &|node| drawn.get(&node).copied(), &mut HashMap::default());
        let steps = self.add_data(given(Numbers::OfEdges));
        let ms = self.graph.number(1.0, Dim::TIME);
        Projection {
            // A drive may have the name of a connection.
            name: format!("{}'spikes", drive.name),
            from: self.clock(drive.span),
            to: self.receiving(drive.population, drive.receptor),
            weight,
            dim: drive.weight.ty.dim(),
            unit: drive.weight.ty.dim().display_unit(),
            share: None,
            delay: self.graph.binary(BinaryOp::Mul, steps, ms),
            spacing: None,
            arrives: self.arrives(at),
            plasticity: None,
            graded: None,
            rule: ConnectionRule::Spikes { file: file.0, cells, delay },
            place: None,
            given: Vec::new(),
            span: drive.span,
        }
    }

    fn add_data(&mut self, file: DataFile) -> NodeId {
        self.data.push(file);
        self.graph.add(Node::Data(self.data.len() as u32 - 1))
    }

    /// The clock of the model, which the first drive that needs one brings.
    fn clock(&mut self, span: Span) -> usize {
        let first = self.network.populations.len();
        let known = self.extra.iter().position(|p| p.kind == Kind::Clock);
        first
            + known.unwrap_or_else(|| {
                let name = "'clock".to_string();
                self.extra.push(Population { name, kind: Kind::Clock, sizes: Vec::new(), spike: None, span });
                self.extra.len() - 1
            })
    }

    /// Keeps how long the events of a drive take, for those who look at delays.
    fn wait(&mut self, drive: &hir::Drive, delay: NodeId) {
        if drive.delay.is_some() {
            let span = drive.delay.as_ref().map_or(drive.span, |delay| delay.span);
            self.waits.push(Wait { drive: drive.name.clone(), time: delay, since_start: false, span });
        }
    }

    pub(super) fn rule(&mut self, rule: &hir::ConnectionRule) -> ConnectionRule {
        match rule {
            hir::ConnectionRule::Named(name, args) => {
                ConnectionRule::Named(name, args.iter().map(|a| self.expr(None, a)).collect())
            }
            hir::ConnectionRule::File(data) => ConnectionRule::File(data.0),
        }
    }

    /// What part of a number of its kernel an edge has, if edges share a kernel: of a mean over outputs that belong to one target.
    fn share(&mut self, rule: &hir::ConnectionRule) -> Option<NodeId> {
        let hir::ConnectionRule::Named(name, args) = rule else { return None };
        let info = RULES.iter().find(|info| info.name == *name).filter(|_| rule.shares())?;
        let one = self.graph.number(1.0, Dim::ONE);
        let pool = info.arguments.iter().position(|argument| argument.name == "pool");
        let Some(pool) = pool.and_then(|at| args.get(at)) else { return Some(one) };
        let pool = self.expr(None, pool);
        let outputs = self.graph.binary(BinaryOp::Mul, pool, pool);
        Some(self.graph.binary(BinaryOp::Div, one, outputs))
    }

    /// With the draws that are made for kernels.
    pub(super) fn of_the_kernel(&mut self, value: NodeId) -> NodeId {
        let data = &self.kernels;
        self.graph.replace(value, &|node| data.get(&node).copied(), &mut HashMap::default())
    }

    /// Draws of edges are made once for each number of the kernel.
    fn drawn_for_the_kernel(&mut self, weight: NodeId, p: &hir::Projection) -> NodeId {
        for id in self.graph.reachable([weight]) {
            let Node::Draw(distribution, stream) = self.graph.node(id) else { continue };
            let file = DataFile {
                name: format!("{}.weight", p.name),
                directory: PathBuf::new(),
                column: None,
                span: p.span,
                numbers: Numbers::Drawn(distribution, stream as u32),
            };
            let data = self.graph.add(Node::Data(self.data.len() as u32));
            self.kernels.insert(self.graph.node(id), data);
            self.data.push(file);
        }
        self.of_the_kernel(weight)
    }

    /// What events add to states in a step.
    pub(super) fn jumps(&mut self) -> Vec<Jump> {
        let network = self.network;
        let mut jumps = Vec::new();
        for (at, receiver) in self.receivers().into_iter().enumerate() {
            if !receiver.modulates && self.arrives(at) == at as u32 {
                let arrived = self.brought(at);
                self.jumps_of(receiver.at, arrived, None, &mut jumps);
            }
            for &(state, number) in self.sent.get(at).map_or(&[][..], Vec::as_slice) {
                jumps.push(Jump { state, amount: self.graph.add(Node::Arrived(at as u32, number)) });
            }
        }
        for d in network.drives.iter().filter(|d| !d.modulates && !matches!(d.source, DriveSource::Spikes(_))) {
            let (carried, chosen) = self.carried(d);
            self.jumps_of((d.population, d.receptor), carried, chosen, &mut jumps);
        }
        jumps
    }

    /// The population whose elements have a receptor: that of the cells, or of a place in them.
    pub(super) fn receiving(&self, population: usize, receptor: usize) -> usize {
        let receptor = &self.network.populations[population].receptors[receptor];
        // Without a current it is on a cell without sections.
        receptor.current.map_or(population, |current| self.home(population, current))
    }

    /// Is the receptor of a drive in several compartments of each cell?
    fn spreads(&self, drive: &hir::Drive) -> bool {
        let at = self.receiving(drive.population, drive.receptor);
        at >= self.network.populations.len()
            && matches!(&self.extra[at - self.network.populations.len()].kind, Kind::Part { elements, .. } if elements.len() > 1)
    }

    /// Is there an event in a step, of those that come by chance and so often in a time? With a chance of rate times step, so that the mean is
    /// the rate; always, where that is more than 1.
    pub(super) fn by_chance(&mut self, population: Option<usize>, number: u64, rate: NodeId) -> NodeId {
        let whose = population.map_or("", |at| &self.network.populations[at].name);
        let hash = blake3::hash(format!("{whose}'spikes{number}").as_bytes());
        let mut stream = [0; 4];
        stream.copy_from_slice(&hash.as_bytes()[..4]);
        let stream = u64::from(u32::from_le_bytes(stream));
        let g = &mut self.graph;
        let dt = g.add(Node::StepLength);
        let (none, one) = (g.number(0.0, Dim::ONE), g.number(1.0, Dim::ONE));
        let chance = g.binary(BinaryOp::Mul, rate, dt);
        // Of a Poisson number, 0 has the chance exp(-mean).
        let rest = g.binary(BinaryOp::Sub, one, chance);
        let mean = g.unary(UnaryOp::Ln, rest);
        let mean = g.unary(UnaryOp::Neg, mean);
        let count = g.add(Node::Events(stream, mean));
        let some = g.binary(BinaryOp::Gt, count, none);
        let always = g.binary(BinaryOp::Ge, chance, one);
        g.binary(BinaryOp::Or, some, always)
    }

    /// What a drive brings its receptor: draws and files are values of cells.
    fn for_receptor(&mut self, drive: &hir::Drive, value: NodeId, dim: Dim) -> NodeId {
        if self.spreads(drive) {
            return self.of_cells(drive.population, value, &drive.name, dim, drive.span);
        }
        let at = self.receiving(drive.population, drive.receptor);
        self.hide_draws(at, value, &drive.name, drive.span)
    }

    /// What the events of a receptor add, that carry so much together.
    fn jumps_of(
        &mut self,
        (population, receptor): (usize, usize),
        carried: NodeId,
        chosen: Option<NodeId>,
        jumps: &mut Vec<Jump>,
    ) {
        let receptor = &self.network.populations[population].receptors[receptor];
        for (state, amount) in &receptor.jumps {
            let Some(Node::State(id)) = self.symbols[population][state.0 as usize].map(|n| self.graph.node(n)) else {
                continue;
            };
            self.weight = Some(carried);
            let amount = self.expr(Some(population), amount);
            self.weight = None;
            let nothing = self.graph.number(0.0, self.states[id.0 as usize].dim);
            let amount = chosen.map_or(amount, |chosen| self.graph.select(chosen, amount, nothing));
            jumps.push(Jump { state: id, amount });
        }
    }

    /// How many steps the events of a drive take; none if they take no time.
    fn delay_in_steps(&mut self, drive: &hir::Drive, dt: NodeId) -> Option<NodeId> {
        let delay = self.expr(Some(drive.population), drive.delay.as_ref()?);
        self.wait(drive, delay);
        let delay = self.for_receptor(drive, delay, Dim::TIME);
        Some(self.in_steps(delay, dt))
    }

    /// The number of steps that is nearest to a time.
    fn in_steps(&mut self, time: NodeId, dt: NodeId) -> NodeId {
        let steps = self.graph.binary(BinaryOp::Div, time, dt);
        let half = self.graph.number(0.5, Dim::ONE);
        let steps = self.graph.binary(BinaryOp::Add, steps, half);
        self.graph.unary(UnaryOp::Floor, steps)
    }

    /// The middle of a step, in steps: it is half a step away from all whole numbers, whatever is rounded on the way.
    fn middle(&mut self, dt: NodeId) -> NodeId {
        let begin = self.graph.add(Node::Time);
        let begin = self.graph.binary(BinaryOp::Div, begin, dt);
        let half = self.graph.number(0.5, Dim::ONE);
        self.graph.binary(BinaryOp::Add, begin, half)
    }

    /// How many events of a drive arrive in a step: those of its end, and before it, that no earlier step has seen.
    fn count(&mut self, drive: &hir::Drive) -> NodeId {
        let dt = self.graph.add(Node::StepLength);
        let delay = self.delay_in_steps(drive, dt);
        let (none, one) = (self.graph.number(0.0, Dim::ONE), self.graph.number(1.0, Dim::ONE));
        match &drive.source {
            DriveSource::Poisson { rate, stream } => {
                let mut rate = self.expr(Some(drive.population), rate);
                if let Some(delay) = delay {
                    let begin = self.graph.add(Node::Time);
                    let delay = self.graph.binary(BinaryOp::Mul, delay, dt);
                    let sent = self.graph.binary(BinaryOp::Sub, begin, delay);
                    let then = |node: Node| matches!(node, Node::Time | Node::StepTime).then_some(sent);
                    rate = self.graph.replace(rate, &then, &mut HashMap::default());
                }
                let dim = Dim::ONE.over(Dim::TIME);
                let rate = self.for_receptor(drive, rate, dim);
                let expected = self.graph.binary(BinaryOp::Mul, rate, dt);
                let count = self.graph.add(Node::Events(*stream, expected));
                // What arrives before was sent before the run.
                delay.map_or(count, |delay| {
                    let middle = self.middle(dt);
                    let sent = self.graph.binary(BinaryOp::Ge, middle, delay);
                    self.graph.select(sent, count, none)
                })
            }
            DriveSource::Times(times) => {
                let delay = delay.unwrap_or(none);
                let middle = self.middle(dt);
                let mut count = none;
                for time in times {
                    let (drive_name, span) = (drive.name.clone(), time.span);
                    let time = self.expr(Some(drive.population), time);
                    self.waits.push(Wait { drive: drive_name, time, since_start: true, span });
                    // The first step ends nearest to what comes before its middle.
                    let time = self.in_steps(time, dt);
                    let time = self.graph.binary(BinaryOp::Max, time, one);
                    // What differs from cell to cell stands alone: all else is small when it matters, and exact in single precision.
                    let from = self.graph.binary(BinaryOp::Sub, middle, time);
                    let to = self.graph.binary(BinaryOp::Add, from, one);
                    let late = self.graph.binary(BinaryOp::Ge, delay, from);
                    let early = self.graph.binary(BinaryOp::Lt, delay, to);
                    let now = self.graph.binary(BinaryOp::And, late, early);
                    let now = self.graph.select(now, one, none);
                    count = self.graph.binary(BinaryOp::Add, count, now);
                }
                count
            }
            // They come from the clock.
            DriveSource::Spikes(_) => none,
        }
    }

    /// The currents of receptors out of a port, added to what flows in.
    pub(super) fn receptor_currents(
        &mut self,
        population: usize,
        port: hir::SymbolId,
        sum: Option<NodeId>,
    ) -> Option<NodeId> {
        let network = self.network;
        network.populations[population].receptors.iter().filter(|r| r.port == Some(port)).fold(sum, |sum, receptor| {
            let Some(current) = receptor.current else { return sum };
            let mut out = self.symbol(population, current);
            let is_whole = self.cell(population).symbol(current).ty.dim() == Dim::CURRENT;
            if let (true, Some(area)) = (is_whole, receptor.area) {
                let area = self.symbol(population, area);
                out = self.graph.binary(BinaryOp::Div, out, area);
            }
            Some(self.taken(sum, out))
        })
    }
}

/// Where a projection leads.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Receiver {
    /// The population and the number of its receptor.
    at: (usize, usize),
    modulates: bool,
}

/// The drives that bring the spikes of files, each with its file.
fn spikes_of_files(network: &hir::Network) -> impl Iterator<Item = (&hir::Drive, DataId)> {
    network.drives.iter().filter_map(|d| match d.source {
        DriveSource::Spikes(file) => Some((d, file)),
        DriveSource::Poisson { .. } | DriveSource::Times(_) => None,
    })
}

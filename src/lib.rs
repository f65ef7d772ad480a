//! neuroc: a compiler for biophysical neuron models.
//!
//! To use it as a library, begin at [`Model`] (any stage of a model as text, for tests of your own models) or at [`driver`]
//! (the pipeline). What follows is for those who change the compiler.
//!
//! # The pipeline
//!
//! Nouns are data, verbs are phases; each arrow is one function.
//!
//! ```text
//!  text ──syntax::parse──▶ ast ──hir::lower──▶ hir::Model ──ode::build──▶ ode::Model
//!                                                                            │ discretize::discretize, step::verify
//!                                                                            ▼
//!            numbers ◀──interp── step::Verified ◀──passes::run──────── step::Verified ──differentiate::backward──▶ another
//!                                      │ codegen::plan::plan
//!                                      ▼
//!                                 plan::Plan ──codegen::rust──▶ crate ──engine::rustc──▶ kernel ──engine::native──▶ numbers
//!                                      │ with a plan::DevicePlan
//!                                      └──codegen::stablehlo──▶ entry points ──mlir──▶ modules ──pjrt, engine::xla──▶ numbers
//! ```
//!
//! | noun | what it says | what is never true of it |
//! |---|---|---|
//! | [`syntax::ast`] | how the file is spelt, every node with its place | a name is resolved |
//! | [`hir::Model`] | what each name means; every expression has a dimension; channels are part of their cells | an error was dropped |
//! | [`ode::Model`] | flat lists of parameters and states, one graph of equations in canonical units | a time step exists |
//! | [`step::Program`] | one time step as ordered stages of SSA dataflow over spaces: cells, compartments, edges | a unit, a derivative or a detail of a back end appears |
//! | [`codegen::plan::Plan`] | layout, precision, loops, order, buffers: every decision about code shape | an emitter decides anything |
//!
//! [`driver`] has the whole pipeline, one function for each part, [`stages`] each of its stages as text, [`cli`] is a thin layer of both. [`simulate`]
//! runs a program on any [`engine::Engine`]: time, what is recorded and the search for NaN are decided there and nowhere else; a device records by itself.
//!
//! Two words mean two things each. A *pass* of the optimizer rewrites a program (`src/passes/`); a *pass* of a step is what all kernels do before cells see
//! each other's stores (`src/codegen/plan/passes.rs`). A *vector* has as many *lanes* as one instruction works on; a *block* is what a kernel works on at
//! once, one to four vectors. The *machine* (`src/runtime/machine.rs`) holds the buffers of a native run and calls the kernels.
//!
//! # The modules
//!
//! | module | what it is |
//! |---|---|
//! | [`source`], [`diag`] | texts, places in them, modules that files use; messages, their codes, how they are shown |
//! | [`syntax`] | from text to tree (the rules are in `grammar/neuro.pest`), recovery after mistakes, the formatter |
//! | [`units`] | dimensions, units and canonical units; depends on nothing |
//! | [`hir`] | resolution and dimension checking, one kind of block per file; what can be wrong, in words; the table of built-in functions |
//! | [`ode`] | the continuous model; quotients that are 0/0 at one place; derivatives; parameters set from outside |
//! | [`discretize`] | one integration method per file |
//! | [`step`] | the discrete IR: spaces, maps, stages and operations; what each means is on its page; verifier, printer, parser |
//! | [`passes`] | one rewrite per file; the table of passes and the pipelines |
//! | [`differentiate`] | gradients: a program that goes back step by step, or one that carries derivatives along; the adjoint of every operation |
//! | [`interp`] | the oracle: slow, obvious, double precision |
//! | [`adaptive`] | steps as long as the error allows, for reference solutions: all equations together, events at their own times |
//! | [`codegen`] | the plan, and from it Rust: kernels, and the crate around them for Rust and C; or StableHLO: entry points over whole arrays |
//! | [`engine`] | what runs programs: calling rustc, keeping kernels, loading them; or XLA |
//! | `tpu` | compiling for TPUs elsewhere: chips, targets, the choice of gathers, the report |
//! | `artefact` | StableHLO with a manifest, for others to run |
//! | [`runtime`] | what the interpreter and generated code compute with: elementary functions, random numbers, lanes, threads |
//! | `plugins`, `pjrt` (feature `xla`) | where XLA's plugins are and how they get here; compiling and running StableHLO with them |
//! | [`connect`] | connection rules and edge lists: which cells are joined |
//! | [`morphology`] | sections of a cell, from files too, cut into the compartments of a tree |
//! | [`simulate`] | one idea a file: how large a run is, its values, its memory, its calls of the engine, what it records, the search for NaN |
//! | [`fit`] | which values of parameters bring a run near to traces and numbers: bounds, targets, the search |
//! | [`train`] | networks that learn classes of samples: losses, optimizers, what has been learnt |
//! | [`compare`] | what differences between runs mean: engines, steps, methods, moved states |
//! | [`data`], [`results`], [`plot`] | numbers that come in from files, results that go out, pictures of them |
//! | [`report`] | the web page of a run: the model, plots that zoom, spikes, parameters, in one file |
//! | [`operators`] | operators on single values, of equations and of the step IR: types and meaning; values of many rows |
//! | [`driver`], [`stages`], [`cli`] | the pipeline; its stages as text; the command, one file a verb |
//! | [`cache`] | the folder of what can be made again |
//! | [`stdlib`] | the `.neuro` files of the library, embedded |
//! | [`editor`] | the language server: what is wrong with open texts, what their names mean, what may be written next |
//!
//! Above all of them stands the Python package, a crate of its own in `python/`: a thin layer over [`driver`], [`simulate`] and [`results`].
//!
//! # Floors
//!
//! A module uses only modules on floors below its own, and none beside it. `tests/suite/floors.rs` reads this table.
//!
//! | floor | modules |
//! |---|---|
//! | 12 | `cli` |
//! | 11 | `tpu` |
//! | 10 | `artefact`, `editor`, `fit`, `stages`, `train` |
//! | 9 | `driver` |
//! | 8 | `adaptive`, `compare`, `interp`, `simulate` |
//! | 7 | `engine` |
//! | 6 | `codegen`, `differentiate`, `discretize`, `passes` |
//! | 5 | `ode`, `step` |
//! | 4 | `hir` |
//! | 3 | `connect`, `morphology`, `report` |
//! | 2 | `data`, `syntax` |
//! | 1 | `diag`, `operators`, `plot`, `plugins` |
//! | 0 | `cache`, `pjrt`, `results`, `runtime`, `source`, `stdlib`, `units` |
//!
//! # What always holds
//!
//! - **Fields are bound by id.** What a field of a program stands for is its [`step::Source`]; names are for people. Hidden ones have a `'`,
//!   which no name in a model can have.
//! - **Only the interpreter runs all of the step IR.** What no plan is made of so far is refused with the reason where it is planned
//!   (`refuse.rs`, `deliveries.rs`, `remember.rs` and `trees.rs` in `src/codegen/plan/`). Crates refuse bf16
//!   (`src/codegen/rust/`), checkpoints events on their way on devices, and histories
//!   (`src/simulate/checkpoint.rs`), learning synapses that remember, and on devices many cells whose delays learn between wide bounds
//!   (`src/driver/training.rs`, `training/programs.rs`), gradients, artefacts and crates potentials (`src/driver/gradient.rs`, `src/artefact.rs`, `src/driver/experiment.rs`).
//! - **Validity is a value.** Only [`step::verify`] makes a [`step::Verified`], and only that reaches interpreter and plan. In debug
//!   builds the verifier runs after every pass.
//! - **The IR is text**: `step::parse(step::print(p)) == p`, so that passes are tested on text.
//! - **One meaning of numbers.** Elementary functions and random numbers come from [`runtime`] in the interpreter, in constant
//!   folding and in generated code. Without rewriting passes the interpreter and native kernels agree bit for bit, whatever the lanes and the
//!   threads. XLA has elementary functions of its own, and is held to a tolerance (`xla_within` in `tests/suite/engines.rs`). Less accuracy is in the IR (`approximate exp2 1e-9`, singles between `narrow` and `widen`), so they agree on that too.
//! - **Same source, same bytes out.** No map with a random order, no path of the machine and no clock reaches an output, but for
//!   the seconds that a run took on its page ([`report`]).
//! - **Random numbers are counter-based**: a function of seed, stream, cell and step, so a run does not depend on how it is cut.
//! - **A mistake is reported once, at its cause**, and everything that is wrong in a file in one run. A phase never runs on
//!   what another phase rejected.
//! - **Units are gone after [`ode`]**: below it every number is canonical (mV, ms, mS/cm2, ...; see [`units`]).
//! - **`unsafe` is denied** but where kernels are loaded ([`engine::load`]), where XLA is called (`pjrt::ffi`), in the vector lanes
//!   and the pages of [`runtime`] and in the C interface of generated crates, each block with its reason.
//! - **Where every variant has a meaning, enums of our own are matched without `_`**, and the compiler tells what a new operation needs. Where only a few
//!   are asked for, `_` stands (`refuse.rs`, `passes.rs` and `trees.rs` of the plan, `sweep.rs`): an operation that reads or writes fields is added there by hand.
//!
//! # Why the step IR is as it is
//!
//! Six concepts carry what networks, branched cells, gradients and several devices need ([`step`] has their meaning): spaces of kinds with
//! maps, `gather` and `accumulate`, functions of ordered stages, guards with delays, solves along trees, histories. What was decided on the way:
//!
//! - **An edge set is a space**, so that weights, delays and plastic states are ordinary fields. `index` and draws over it are the edge's.
//! - **A batch is a product without a tree** (`space @e of @trial`), a tree is a product with one: both have the map `of`, a tree `parent` as well.
//! - **One value that functions store is a field over nothing**; `accumulate` into it without a map is a reduction.
//! - **A later region reads a value of an earlier one only if that runs less often or over nothing.** All else goes through fields, so that stages may be cut,
//!   fused and interleaved by what they read and write alone (`src/passes/fuse_regions.rs`).
//! - **Sums begin every step at 0**, so that no stage has to say so, and an engine may keep them in registers.
//! - **Delays are data.** How long events are remembered follows from the values of a run, so no program says it; what events bring to an element
//!   is added up in the order in which they were sent, whichever stages of an arrival they come through, then in the order of the edges. So the sum is
//!   the same whether every event is put into a ring of sums once (devices) or goes along its row step by step (native).
//! - **A stage stores nothing that it gathers or goes back to.** Then no order of elements can be told, and no copy is needed.
//! - Fields that are the same for all cells of a product (the geometry of a cell) have no form of their own yet: they are repeated for every cell.
//! - **What of a cell has states is a population** of the continuous model: its compartments (a tree of the cells), the compartments that have a channel
//!   (a part of the tree), a place (a part with one element for each cell, whose number is the cell's). States, parameters, records and spikes
//!   belong to a population, whatever it is, and a population is a space: so all that counts cells counts compartments ([`ode::Kind`]).
//! - **The method has what couples compartments**, not the equation: the derivative of a cable's voltage names its membrane alone
//!   ([`ode::Node::Outward`]), and rows and solve are made of the cable ([`ode::Cable`], `src/discretize/cable.rs`).
//!
//! # Why gradients are as they are
//!
//! - **A program that goes back is a program** ([`differentiate`]): `init`, `step` and `observe` of it mean what they mean elsewhere, so that passes, plans and
//!   engines know nothing of gradients, and the host writes states and seeds into it as it writes any states.
//! - **It is made before the passes run**, which then see both directions as one body. So no adjoint of a rewritten operation is ever needed, though those of
//!   all operations are there.
//! - **Fields have versions, and adjoints are sums of fields that one stage writes each**: then reversed stages are ordinary stages, and fusing them puts
//!   all of it into registers.
//! - **Forward mode has the rules of reverse mode** (`src/differentiate/forward.rs`): what an operand brings to the tangent of a value is what its adjoint would be, were its tangent that of the
//!   value. So every operation has one rule, and a program with tangents is the program with more fields, which keeps nothing and runs on devices as it is.
//! - **A step goes back by itself, too** ([`driver::StepBack`]): JAX calls it for each step that it takes, and keeps the states.
//! - **The derivative in a parameter that all cells share is a sum, which the host adds up**, cell by cell; and the derivatives of parameters in other parameters are expressions of
//!   the continuous model, so that a sum depends on no engine and no threads.
//! - **Events are carried outside of the program where networks learn** (`src/simulate/trials/`): the program of a step knows what arrives and who has spiked, as states, and
//!   edges are products outside it, forward and back. So each event costs its edges alone, trials share weights without a form of their own in the IR, and
//!   the adjoint of a delivery is needed nowhere in it.
//! - **Trials carry the numbers of their run** (`src/simulate/trials/number.rs`): in single precision, what arrives, states that are kept and derivatives are
//!   `f32` from engine to engine, as in other frameworks. What learns on the host and what optimizers remember of it is `f64` and rounded once for each batch, so that small
//!   steps add up; derivatives in parameters, and in numbers that edges share, are added up in `f64` over cells and edges. Weights that live on a device have
//!   the numbers of the run there.
//! - **An optimizer's rule is written once** (`src/train/optimizer.rs`), over what it computes with: single numbers of the host, or arrays of a function for a
//!   device, which is handed down to where steps are taken. So nothing below [`train`] knows an optimizer.
//! - **A product with spikes is a sum of rows** (`src/simulate/trials/rows.rs`): of weights for each trial, of derivatives for each sender, in one order whatever the
//!   threads. Only errors times weights is dense.
//! - **The tape is the host's** (`src/simulate/backward/`): states are read and written through the engine, and which are kept changes no bit.
//!
//! # Why adaptive steps are as they are
//!
//! - **They are an engine** ([`adaptive`]), so that recording, results, sweeps and plots know nothing of them: a run asks for the solution at multiples of `dt`, and gets
//!   it interpolated. The program of such a model has `init` and `observe`, which the interpreter runs, and no `step`.
//! - **The rates come from the graph of the continuous model**, not from a step: as lists of operations over the elements of a population, with exact slopes by
//!   [`ode::derivative`]. The step IR has no derivative, and no place for a time between two steps.
//! - **One sparse system for everything**: cables, gap junctions and channels are solved together, in the order of minimum degree, which takes a tree as Hines did.
//!   Nodes of cables and clamps are equations without a derivative.
//! - **A one-step method** (Rodas5P) begins again after an event at its full order, and has no iteration that fails; a multistep method is at order 1 after each of them.
//! - **Own code**: `diffsol` 0.18, which has what is needed, would bring 106 crates for some hundred lines, and events change states, times and equations between
//!   any two steps.
//!
//! # Why plans are as they are
//!
//! - **A kernel belongs to a space and a pass.** Stages of a step are put into the earliest pass in which they see what they must see and nothing
//!   later (`src/codegen/plan/passes.rs`); inside a pass, spaces and blocks go in any order. Most models have one pass. What is recorded has passes of
//!   its own where it comes along edges: cells see what others have once a sample, not once more in every step.
//! - **Spaces that edges join form a group**, whose members take each step together; the machine goes from pass to pass, and the threads meet
//!   where something is shared. A space that stands alone keeps its loop over steps to itself: blocks outermost if nobody reads its cells, steps
//!   outermost if its own cells do ([`codegen::plan::Nest`]).
//! - **What a later pass or another cell reads lives in memory**, all other temps in registers.
//! - **What is the same in all steps is computed again in every step of a connected kernel**: a buffer for it would be read in every step instead,
//!   and in all networks so far it is parameters only. Where a block of cells runs many steps by itself, it is computed once.
//! - **Events are the machine's work, not a kernel's** (`src/runtime/events.rs`). Each sender has one row of edges, sorted by delay, wherever they lead. In
//!   each step its event adds what the edges carry that it has reached by then to the sums of this step, and a kernel finds what arrives in a temp field.
//!   So only the sums of one step are written, which a cache holds; a ring of sums for all steps to come was 2.4 times as slow for the whole microcircuit.
//!   Where all edges of some senders carry the same and take as long, and a cell hears one in sixteen or more, rows stand as bits, too
//!   (`src/runtime/events/bits.rs`): in steps in which more than one event arrives at a cell, those are counted for hundreds of cells at once, and each sum is
//!   what adding one by one gives.
//!   Each thread has the rows that lead to its cells, and the threads tell each other who has emitted, so that no sum depends on their number. What an
//!   edge carries and how long it takes is computed before the run.
//! - **Spikes of a file are edges** from a clock ([`ode::Kind::Clock`]), whose element `k` emits in step `k` times [`ode::STRETCH`], element 0 before the run
//!   (`init` emits). An edge's delay is the rest of the way. So they cost what events cost, no engine has a form of its own for them, and no delay is longer than a
//!   stretch, which bounds the rings of devices.
//! - **Without a delay, events arrive between two steps** (`src/ode/late.rs`): in a program they have a delay of one step and are added to what the next one
//!   begins with, so that no step needs the spikes of its own. What a reset or a refractory time takes back of that is not added.
//! - **What comes to a receptor through several projections is one sum**, so that a kernel reads one temp for each receptor, not for each projection.
//! - **Edges that remember have kernels of their own** (`src/codegen/plan/remember.rs`), planned as if edges were cells: what they read of the cells that
//!   they lead to comes as data, what they send goes out as outputs. Where an event goes is noted when it is sent; when it arrives the machine
//!   (`src/runtime/remember.rs`) puts the edges that it reaches into blocks, runs the kernel and takes them back, a batch at a time.
//! - **No element of a branched cell reaches another cell**, so the kernels of its spaces run one after the other over as many cells as a cache holds, for many
//!   steps, and nobody waits (`src/codegen/plan/trees.rs`); where edges join them to cells, they take each step with the others. Edges see a copy of what a place has (`Source::There`), that
//!   of the beginning of the step, and what they bring is added up by a kernel of its own. Cells stand side by side, as many as the vectors of the solve have lanes, so that every map leads from
//!   a vector to a vector; the elements of a single cell follow each other (`src/runtime/branches.rs`). What maps or solves reach lies flat, field by field.
//! - **Nothing happens to an edge without an event.** Its equations are linear and solved when the next event comes, from the step in which it has
//!   seen the last one; this is in the program (`src/discretize/plasticity.rs`), so that all engines do the same.
//! - **What happens at a synapse is told when it would have come to the soma** (`src/ode/dendrite.rs`): a spike that arrives behind the whole delay, one of the cell behind twice the way of the dendrite
//!   after its own step. Both are shifted alike, so that they stand in the order in which the synapse sees them, and what is sent is there when the soma gets it. Coincident spikes that are no pair need one
//!   thing more: what the cell behind changes is kept as it was before (`keep_apart` in `src/ode/build/plasticity.rs`).
//! - **A modulator is an event of the cells that edges lead to**, as their spikes are: what arrives is added up where they are, and a cell that has got some emits.
//!   So delays, weights, rules and drives are those of any other projection, and edges need no third end.
//! - **On devices the events' ring stays there**, too (`src/codegen/stablehlo/deliveries.rs`): a loop over those who emit adds a row of edges to it in each
//!   round, so that work is proportional to what happens, shapes are static and none is lost. XLA's compiler for processors scatters in order, so
//!   that sums are those of the other engines. A chip that reads a large matrix in the time of a few rounds multiplies who has emitted with one for
//!   each delay instead ([`codegen::plan::DeliveryForm`]).
//! - **Receptors are part of the cell.** A population that has synapses gets a cell model of its own, with the symbols of its receptors: names, units,
//!   settings and records then work as for channels. All who send to a receptor add to its states; what only one
//!   synapse has is the projection's (`src/hir/plasticity.rs` tells them apart).
//! - **What a graded synapse sends is the sender's** (`src/hir/graded.rs` parts it): states before the synapse are one for each cell, not for each connection, and edges only
//!   weigh and add up (`src/discretize/graded.rs`). So engines know nothing of it: to them these are edges of junctions that read another state. Weights of their own stand beside the sources in
//!   the table that a kernel walks through (`Rows::number` in `src/runtime/rows.rs`), computed before a run as those of deliveries.
//! - **Max pooling is a projection for each place** of a target (`src/ode/build/events.rs`): what arrives at each is a sum of its own, and the maximum of the sums is an
//!   expression of the equations. So engines and adjoints know nothing of it; that all of them have one kernel is in the model ([`ode::Pooled`]) and where numbers learn.
//! - **Junctions become relations** (`src/ode/build.rs`). One is enough, with an edge each way, where both sides are one compartment and the current is odd in
//!   `dv` (`src/ode/parity.rs`); else there are two, one for each side.
//! - **Methods give stages** (`src/discretize/stages.rs`). Where cells are not joined, a step is one expression for each state, whatever the method.
//!
//! # To change X, go to Y
//!
//! `tests/README.md` says how each kind of test is written.
//!
//! | what | where | and its test |
//! |---|---|---|
//! | a word or bracket of the language | `grammar/neuro.pest`, `src/syntax/build.rs`, `src/syntax/ast.rs`, `editors/` | `grammar/README.md`, `src/syntax/tests.rs`, `tests/suite/lsp.rs` |
//! | a message after a syntax error, habits of other languages | `src/syntax/complain.rs`, `complain/habits.rs` | the slips in `src/syntax/tests.rs` |
//! | what a block means | the file of the block in `src/hir/` | `tests/errors`, `tests/models` |
//! | which keys a block has | `src/hir/keys.rs`, and the file of the block | `tests/errors`, `tests/models` |
//! | what is said about a mistake in a model | `src/hir/error/` | `tests/errors` |
//! | a unit | `src/units/mod.rs`, and the rule of units in the grammar | `src/units/tests.rs` |
//! | which unit results are shown in | [`units::Dim::display_unit`] | `src/units/tests.rs` |
//! | when a spike happens, what refractory means | `commit` in `src/discretize/mod.rs` | `tests/models/refractory.neuro` |
//! | white noise in equations | `white` in `src/ode/build.rs`, `src/ode/noise.rs`, `src/discretize/noise.rs` | `tests/suite/white_noise.rs`, `tests/errors/xi_*` |
//! | spikes that come by chance | `src/hir/spike.rs`, `by_chance` in `src/ode/build/events.rs`, `stdlib/cells/generators.neuro` | `tests/suite/generators.rs` |
//! | which values a quantity can have, what arguments must be | `src/hir/domain.rs`, `src/ode/domains.rs` | `tests/errors/domain_*`, `tests/suite/domains.rs` |
//! | when a time step is too long, at the start and in a run | `src/ode/timescale.rs`, `src/simulate/pace.rs` | `tests/errors/step_too_long*`, `tests/suite/domains.rs`, `tests/suite/found.rs` |
//! | what `check` says that only a run would | `src/driver/whole.rs` | `tests/errors` |
//! | which quotients are seen to have a limit at 0/0 | `src/ode/removable/` | `tests/reference/singularities.py`, `tests/suite/singular.rs` |
//! | a derivative | `src/ode/derivative.rs` | its tests, `tests/suite/singular.rs` |
//! | the adjoint of an operation | `src/differentiate/adjoint.rs` | `src/differentiate/tests.rs` |
//! | how derivatives go forward with a run | `src/differentiate/forward.rs`, `src/simulate/along.rs` | `src/differentiate/tests.rs`, `tests/suite/gradients.rs` |
//! | how stages are gone through backward, what has no gradient | `src/differentiate/sweep.rs`, `walk.rs` beside it | `src/differentiate/tests.rs`, `tests/suite/gradients.rs` |
//! | which states are kept for going back | `src/simulate/backward/` | its tests, `tests/suite/gradients.rs` |
//! | in which parameters runs are differentiated; runs that are only repeated | `src/driver/gradient.rs`; `repeated.rs` beside it | `tests/suite/gradients.rs` |
//! | which values a sweep has, what it may set | `src/hir/sweep.rs`, `src/ode/sweep.rs` | `tests/suite/sweeps.rs`, `tests/errors/sweep*` |
//! | how the runs of a sweep are done, its file, its pictures | `src/driver/sweep.rs`, `src/cli/sweep.rs`; `src/results/sweep.rs`, `src/plot/sweep.rs` | `tests/suite/sweeps.rs` |
//! | what a `fit` block says | `src/hir/fit.rs` | `tests/errors/fit*`, `tests/suite/gradients.rs` |
//! | how parameters are fitted, what a loss is, which numbers are read out of runs | `src/fit/` | its tests, `tests/suite/gradients.rs` |
//! | how spikes count backward, and what trials exchange | `Carried` in `src/discretize/mod.rs`, `src/simulate/trials/` | `tests/suite/training.rs` |
//! | how trials run on XLA: loops over steps, matrices or lists of edges | `src/codegen/stablehlo/entry/course.rs`, `src/simulate/trials/device.rs`, `tract/arrays.rs` | `tests/suite/training.rs` |
//! | what goes along edges between trials natively, in which numbers, in which order it is added up | `src/simulate/trials/host.rs`, `tract/carrier.rs`, `rows.rs` | their tests, `tests/suite/training.rs` |
//! | which states trials keep on the way forward, which steps they take again | `src/simulate/trials/tape.rs`, `src/simulate/backward/schedule.rs` | `tests/suite/training.rs` |
//! | how delays between steps are delivered and learnt | `src/simulate/trials/tract/between.rs` | its tests, `tests/suite/training.rs` |
//! | how a run is shown a sample | `sample` in `src/driver/training.rs`, `src/engine/frames.rs` | `tests/suite/training.rs`, `tests/suite/cli.rs` |
//! | which weights live on a device, what brings them there and back | `src/simulate/trials/held.rs`, `device.rs`, `src/engine/descent.rs`, `settle` in `src/driver/training.rs` | `tests/suite/training.rs` |
//! | losses, optimizers, samples | `src/train/`, `src/hir/train.rs`, `src/data/dataset.rs` | `src/train/`, `tests/suite/training.rs` |
//! | what of a network learns, in which order, what its loss reads | `learn.rs` and `reads.rs` in `src/driver/training/` | `tests/suite/training.rs` |
//! | what cells begin with in each trial | `src/driver/training/begin.rs` | `tests/suite/training.rs` |
//! | what passes may change, what they must keep | `src/passes/mod.rs`, `src/passes/exact.rs` | `tests/suite/random_models.rs` |
//! | the order of passes | `O2` in `src/passes/mod.rs` | `tests/passes/pipeline`, `tests/suite/passes.rs` |
//! | how many vectors, lanes, block sizes, memory layout | `vectors`, `space_plan` and `Precision::lanes` in `src/codegen/plan.rs` | `tests/ir/*.plan.snap` (of `tests/suite/crates.rs`) |
//! | the text of the step IR, what a program must not do | `src/step/print.rs`, `src/step/parse.rs`, `src/step/verify/` | `src/step/text_tests.rs`, `src/step/verify/tests.rs` |
//! | what a kernel computes in which of its loops, names of values | `src/codegen/plan/build.rs`; `kernel.rs` beside it is what emitters read | `tests/ir/*.plan.snap` |
//! | in which order a kernel computes its values | `src/codegen/plan/order.rs` | there |
//! | in which pass of a step a stage runs, which spaces run together | `src/codegen/plan/passes.rs`, `src/runtime/machine.rs` | there, `tests/suite/engines.rs` |
//! | how currents of junctions are summed natively | `EdgePlan` in `src/codegen/plan/kernel.rs`, `connected.rs` beside it; `src/codegen/rust/kernels.rs`, `src/runtime/rows.rs` | `tests/ir/two_edges.*.snap`, `tests/suite/junctions.rs` |
//! | where threads meet, what they tell each other | `Meeting` in `src/runtime/edges.rs`, `Barrier` in `src/runtime/threads.rs`; `exchange` in `src/runtime/machine.rs` | their tests, `tests/suite/engines.rs` |
//! | what edges see of places, junctions and electrodes of branched cells | `look` in `src/discretize/mod.rs`, `src/ode/build/cables.rs`; `seen_by_edges` in `src/ode/mod.rs` | `tests/suite/cables.rs` |
//! | which compartment a synapse of a section gets | `spread` in `src/simulate/edges.rs` | `tests/suite/cables.rs` |
//! | synapses that remember | `src/hir/plasticity.rs`, `src/ode/build/plasticity.rs`, `src/ode/dendrite.rs`, `src/discretize/plasticity.rs` | `tests/suite/plasticity.rs` |
//! | graded synapses | `src/hir/graded.rs`, `src/hir/projection/graded.rs`, `src/discretize/graded.rs`; where networks learn `src/simulate/trials/given.rs` | `tests/errors/graded_*`, `tests/suite/graded.rs` |
//! | parameters and initial values of each connection | `given` and `shared_because` in `src/hir/projection.rs`, `give` in `src/ode/build/plasticity.rs`, `rows_of_edges` in `src/ode/linear.rs` | `tests/suite/plasticity.rs`, `tests/errors/connection_*` |
//! | what modulates synapses | `modulation` in `src/hir/projection.rs`, `modulators` in `src/ode/build/events.rs`, `modulate` in `src/discretize/plasticity.rs` | `tests/errors/modulator_*`, `tests/suite/plasticity.rs` |
//! | what a synapse is, which receptor a line means | `src/hir/synapse.rs`, `src/hir/projection.rs` | `tests/errors/synapse_*`, `tests/suite/events.rs` |
//! | what arriving events add, and when | `src/ode/build/events.rs`, `arrivals` and `jump` in `src/discretize/mod.rs` | `tests/suite/events.rs` |
//! | in which order arrivals are added up | `Function::arrivals` in `src/step/mod.rs`; `arrive` in `src/interp/mod.rs` and `src/runtime/events.rs` | `src/interp/network_tests.rs`, tests beside them |
//! | who is connected, for other simulators and for NIR | `src/simulate/network.rs`, `python/src/network.rs` | `python/tests/test_model.py`, `test_nir.py` |
//! | how events travel in native runs | `src/codegen/plan/deliveries.rs`, `src/engine/deliveries.rs`, `src/runtime/events.rs` | `tests/suite/events.rs`, their tests |
//! | how events travel on devices | `src/codegen/plan/travel.rs`; `deliveries.rs` of `src/codegen/stablehlo/` | `tests/suite/events.rs`, `tests/stablehlo/deliveries*.snap` |
//! | what edges that remember do on devices | `src/codegen/plan/travel.rs`; `remember.rs` of `src/codegen/stablehlo/` | `tests/suite/plasticity.rs`, `tests/stablehlo/remembered.snap` |
//! | what a method does in a step | its file in `src/discretize/`, `stages.rs` beside it | `tests/suite/models.rs`, `tests/suite/random_models.rs`, `tests/suite/junctions.rs` |
//! | which equations `exact` takes, its propagators | `src/ode/linear.rs`, `src/discretize/exact.rs` | `tests/suite/exact.rs` |
//! | values of cells and edges before the first step | `src/operators/rows.rs` | its tests, `tests/suite/domains.rs` |
//! | what sections, regions and places mean | `src/hir/morphology.rs`, `src/ode/build/cables.rs` | `tests/errors/section_*`, `tests/suite/cables.rs` |
//! | how a section is cut, where sections meet | `src/morphology/mod.rs` | its tests |
//! | what an SWC file means: soma, stubs, names of sections | `src/morphology/swc.rs` | its tests, `tests/suite/cables.rs`, `tests/reference/swc_neuron.py` |
//! | where the compartments of a cell lie in a picture, how it is drawn | `src/morphology/drawing.rs`; `src/plot/cell.rs`, `src/cli/plot/cell.rs` | their tests, `tests/suite/cli.rs` |
//! | what is recorded in every compartment, what results say of them | `quantity_in` in `src/hir/morphology.rs`; `src/simulate/records.rs`, `src/results/contents.rs` | `tests/suite/cables.rs` |
//! | where cells and sections are in space, what a current makes at a contact; what a probe hears | `src/morphology/space.rs`; `src/hir/probe.rs`, `escape` in `src/discretize/cable.rs`, `src/simulate/potential.rs` | `tests/suite/lfp.rs`, `tests/errors/probe_*` |
//! | what `neuroc info` says of a cell's shape and membrane | `src/cli/info.rs`, `src/ode/passive.rs` | `tests/suite/cables.rs`, `tests/suite/cli.rs` |
//! | how cables are solved | `src/discretize/cable.rs`; `solve` in `src/interp/memory.rs` and `src/runtime/branches.rs` | `tests/suite/cables.rs` |
//! | what ions diffuse in, and how they are solved for | `Lumen` in `src/morphology/mod.rs`, `diffusion` in `src/hir/morphology.rs`; `src/discretize/diffusion.rs`, `of_diffusion` in `src/adaptive/equations.rs` | `tests/suite/diffusion.rs` |
//! | in which order the kernels of branched cells run | `src/codegen/plan/trees.rs` | there |
//! | branched cells on devices: tables of elements, the order of elimination along a tree | `src/codegen/plan/ties.rs` and `elimination.rs`; `branches.rs` of `src/codegen/stablehlo/` | there, `tests/suite/engines.rs`, `tests/suite/cables.rs` |
//! | where compartments stand in memory | `src/runtime/branches.rs`, `src/runtime/branched.rs`, `src/engine/branches.rs` | there, `tests/suite/cables.rs` |
//! | what a window of a convolution reaches, which edges share a number | `src/connect/windows.rs`; `share` in `src/ode/build/events.rs` | `src/connect/tests/windows.rs`, `tests/suite/training.rs` |
//! | what targets get of several places, of which they take the largest | `brought` in `src/ode/build/events.rs`, `ode::Pooled` | `tests/suite/training.rs` |
//! | how far two cells are from each other | `Shape::distance` in `src/connect/shape.rs`; `distance_of` in `src/ode/build/events.rs` | `tests/suite/space.rs` |
//! | which edges a connection has | `src/connect/`, `src/simulate/edges.rs` | `src/connect/tests`, `tests/suite/networks.rs` |
//! | where cells of connected populations stand in memory | `src/runtime/order.rs` | its tests, `tests/suite/engines.rs` |
//! | what generated Rust looks like | `src/codegen/rust/kernels.rs` | `tests/ir/*.rust.snap` |
//! | the interface of generated crates | `src/codegen/rust/model.rs`, `src/codegen/rust/fixed/`, `src/runtime/named.rs` | `tests/suite/crates.rs` |
//! | what a crate carries of edges, delays, weights and trees | `src/engine/wiring.rs`; `network_files` in `src/codegen/rust/model.rs` | there |
//! | `exp` and its accuracy | `src/runtime/math.rs` | `src/runtime/math/tests.rs` |
//! | the sine of large angles | `src/runtime/math/payne_hanek.rs` | `src/runtime/math/tests.rs`, `tests/reference/large_angles.py` |
//! | which number of a Poisson distribution a uniform number gives | `src/runtime/math/poisson.rs`; `poisson.rs` of `src/codegen/stablehlo/` | `src/runtime/math/tests/poisson.rs` |
//! | what `--accuracy` allows, its errors | `src/runtime/math/approximate.rs` | its tests, and `tests/suite/accuracy.rs` |
//! | what is computed in f32 at `--accuracy 1e-6` | `src/passes/narrow.rs` | `tests/passes/narrow` |
//! | what counts as a flop or a byte, what `bench` compares with | `src/codegen/plan/cost.rs`, `src/engine/limits.rs` | tests beside them |
//! | an operation of StableHLO, its types | `src/codegen/stablehlo/builder.rs` | there |
//! | what an operation of the plan becomes in StableHLO | `src/codegen/stablehlo/lanes.rs` | `tests/stablehlo/*.snap`, `tests/suite/engines.rs` |
//! | what arguments of entry points stand for, what they are given | `src/codegen/stablehlo/slot.rs`, `src/engine/inputs.rs` | `tests/stablehlo/*.snap`, `tests/suite/engines.rs` |
//! | loops, recording and spikes on devices | `src/codegen/stablehlo/entry.rs` | `tests/stablehlo/*.snap`, `tests/suite/engines.rs` |
//! | how many steps run between two visits of the host, forms of gathers | `src/codegen/plan/device.rs`; `lattice.rs` and `slabs.rs` beside it | there |
//! | which flags rustc gets, where kernels are kept | `src/engine/rustc.rs` | `tests/suite/engines.rs` |
//! | a call of PJRT | `src/runtime/pjrt/abi.rs` declares it, `ffi.rs` makes it | `tests/suite/pjrt.rs` |
//! | where plugins are looked for, which wheels are fetched | `src/plugins/` | its tests |
//! | what holds a state, the current that it takes | `src/hir/input.rs`, `src/ode/build/clamps.rs`, `commit` in `src/discretize/mod.rs` | `tests/suite/protocols.rs` |
//! | which distributions there are | `src/hir/builtins.rs`, `src/hir/draws.rs` | `tests/suite/protocols.rs` |
//! | which stimuli there are | `src/hir/builtins.rs`, `src/hir/calls.rs`, `src/ode/build/calls.rs` | `tests/suite/protocols.rs` |
//! | random numbers | `src/runtime/rng.rs`, `src/runtime/rng/` | its tests, `make lanes` |
//! | what differs from cell to cell before the first step | `src/ode/cells.rs` | `tests/suite/domains.rs`, `src/results/tests.rs` |
//! | what is recorded, where rows and spikes go | `src/simulate/records.rs`, `src/simulate/around.rs`, `src/simulate/sink.rs` | `src/simulate/tests.rs` |
//! | where a run begins, what it leaves for another: `--save`, `--load` | `src/simulate/checkpoint.rs`, `src/results/checkpoint.rs` | `tests/suite/checkpoints.rs` |
//! | what can be read and changed between two steps | `src/simulate/stepping.rs` | `tests/suite/stepping.rs` |
//! | what can be set from outside, number by number or cell by cell | `src/ode/overrides.rs` | `tests/suite/cli.rs`, `tests/suite/stepping.rs` |
//! | what results say of parameters and grids | `src/simulate/parameters.rs`, `src/results/contents.rs` | `src/results/tests.rs` |
//! | how a value that is NaN is found, what is said of it | `src/simulate/trap.rs`, `src/simulate/culprit.rs` | `src/simulate/tests.rs`, `tests/suite/cli.rs` |
//! | the files of results, a new format of them | `src/results/`: `FileFormat` in `mod.rs`, `writer.rs`, a file beside it | `src/results/tests.rs` |
//! | how long adaptive steps are, what ends them, which models they take | `src/adaptive/`: `mod.rs`, `events.rs`, `switches.rs`, `refuse.rs` | `tests/suite/adaptive.rs` |
//! | what `neuroc verify` calls a fault | `src/compare/judge.rs` | `src/compare/tests.rs`, `tests/suite/verify.rs` |
//! | how a plot looks, what it shows | `src/plot/style.rs`, `src/plot/panels.rs` | `src/plot/tests.rs` |
//! | the page of a run: what stands on it, how it is drawn, how large it may be | `src/report/`; `page.js` and `page.css` there | `src/report/tests.rs`, `make report` |
//! | how a message is shown | `src/diag/render.rs` | `tests/errors` |
//! | how a file is laid out | `src/syntax/format.rs` | `src/syntax/tests.rs` |
//! | what Python's users see | `python/` | `python/tests` |
//! | what an editor is told: hover, completion, renaming | its file in `src/editor/` | `tests/suite/lsp.rs` |
//! | which name is noted to mean what | `src/hir/uses.rs`, and where names are resolved | `tests/suite/lsp.rs` |
//! | which edit mends a mistake | `did_you_mean`, `fix` where the message is made | `tests/suite/lsp.rs` |
//! | an option of the command line | `src/cli/settings.rs` or the file of the verb | `tests/suite/cli.rs` |
//!
//! # How to add
//!
//! - **A form of channel kinetics**: a key or a block of a gate is a rule in the grammar, a member in `ast`, a field of `Kinetics` and
//!   its equations in `src/hir/gate.rs`. Nothing below [`hir`] knows of gates but the flag that `exp_euler` reads, nor
//!   of kinetic schemes (`src/hir/kinetics.rs`) but which states are one, for `src/discretize/kinetics.rs`. A rate
//!   *function* is easier: a row in [`hir::FUNCTIONS`] and its expression in `src/ode/build/calls.rs`. Document it in `grammar/README.md` (a
//!   test demands it) and prove it with a model whose answer is known.
//! - **A pass**: a file in `src/passes/` with `run(&mut Program, &Options)`, legal on every verified program and doing nothing when it
//!   runs again; a row in [`passes::PASSES`]; its place in `O2`; two cases in `tests/passes/NAME/` (a test demands them).
//! - **An operation**: a variant of [`step::OpKind`], [`operators::UnaryOp`] or [`operators::BinaryOp`]; then follow the compiler's errors through
//!   verifier, printer, parser, evaluation, adjoint, passes, plan and emitter; add it to the programs `tests/ir/all_ops_*.ir`.
//! - **An integration method**: a file in `src/discretize/` that gives each state's new value as an expression, in stages that see what
//!   earlier ones computed; a line in `scheme` (`src/discretize/mod.rs`); a variant, a name and an order in [`hir::Method`], whether it solves cables
//!   in `src/ode/cable.rs`; `grammar/README.md` and `docs/trust/methods.md` (a test demands it); its order of convergence in `tests/suite/models.rs`.
//! - **A connection rule**: a file in `src/connect/`, a variant of `Rule`, a row in `RULES` (`src/connect/table.rs`); then follow the compiler's errors; the
//!   table in `grammar/README.md`; the lists in `src/connect/tests/rules.rs` and `tests/suite/networks.rs`.
//! - **A key of a block**: a name in `Block::keys` (`src/hir/keys.rs`), its reading in the file of the block, a field in [`hir`] and, if runs need it, in
//!   [`ode::Model`]; `grammar/README.md`.
//! - **A file of the runtime**: a row in `RUNTIME` of `src/codegen/rust/mod.rs`, or generated crates lack it.
//! - **A diagnostic**: a variant of the enum of its idea in `src/hir/error/`, which holds the names and places that the message needs,
//!   and its words there; if no code fits, a row in `src/diag/codes.rs` (ids never change meaning) with the long story for `neuroc
//!   explain`; a wrong model in `tests/errors` whose snapshot is the message. Say what is true at the place, and an edit that helps.
//! - **An example**: a file in `examples/`, at most 80 lines unless its source is a long table, whose first lines say what it shows and name the paper. Tests check, format and
//!   run it. If it has a known answer, give it a case in `tests/models`.
//! - **A model of the library**: a file in `stdlib/`, every item described, its source named; its test is `tests/models/NAME.neuro` with `NAME.json`, and the
//!   name in `cases!` of `tests/suite/models.rs`.

pub mod adaptive;
#[cfg(feature = "xla")]
pub mod artefact;
pub mod cache;
pub mod cli;
pub mod codegen;
pub mod compare;
pub mod connect;
pub mod data;
pub mod diag;
pub mod differentiate;
pub mod discretize;
pub mod driver;
pub mod editor;
pub mod engine;
pub mod fit;
pub mod hir;
pub mod interp;
pub mod morphology;
pub mod ode;
pub mod operators;
pub mod passes;
// Beside the runtime that is embedded in generated crates, and no part of it.
#[cfg(feature = "xla")]
#[path = "runtime/pjrt/mod.rs"]
pub mod pjrt;
pub mod plot;
#[cfg(feature = "xla")]
pub mod plugins;
pub mod report;
pub mod results;
pub mod runtime;
pub mod simulate;
pub mod source;
pub mod stages;
pub mod stdlib;
pub mod step;
pub mod syntax;
#[cfg(feature = "xla")]
pub mod tpu;
pub mod train;
pub mod units;

pub use stages::{Error, Model, Stage};

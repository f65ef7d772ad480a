//! The table of diagnostic codes: id, severity, title and the long story that `neuroc explain` tells.

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The model does not compile.
    Error,
    /// The model compiles, but is probably not what was meant.
    Warning,
}

macro_rules! codes {
    ($($name:ident $id:literal $severity:ident $title:literal $story:literal;)*) => {
        /// A kind of mistake. Ids never change meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The stable id, such as `NU0201`.
            pub fn id(self) -> &'static str {
                match self { $(Code::$name => $id,)* }
            }

            /// Error or warning.
            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)* }
            }

            /// One line.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// What it means, why it matters and how it is mended.
            pub fn explanation(self) -> &'static str {
                match self { $(Code::$name => $story,)* }
            }
        }
    };
}

codes! {
// 00xx: text and syntax
NotText "NU0001" Error "the file is not UTF-8 text"
"A .neuro file is UTF-8 text. The message names the first byte that is not. Editors that save in
another encoding usually offer `save as UTF-8`; a compiled or compressed file given by mistake
shows the same message.";
Syntax "NU0002" Error "the text does not follow the grammar"
"The parser stopped at the place shown and says what could stand there. Each item of a file
(channel, cell, network, ...) is parsed on its own, so one mistake does not hide those in the
next item. What needs a broken item is not complained about until the item is mended.

  wrong   dm/dt = (0.5 - m) / 1 ms
  right   m' = (0.5 - m) / 1 ms";
TooDeep "NU0003" Error "definitions or brackets are nested too deeply"
"Brackets and conditionals may be nested 64 levels deep, and what functions and constants expand
to must stay within bounds too. Name parts of an expression with `let` and use the names, and
define what is used before what uses it.";
CannotRead "NU0004" Error "a file cannot be read"
"The file does not exist or cannot be opened. Names are relative to the file that mentions them;
the message shows the full name tried.";

More "NU0005" Error "there are too many mistakes to show"
"A hundred messages are shown; the rest is counted. Mend those first: many mistakes often have one
cause, such as a definition that is missing.";

// 01xx: names
UnknownName "NU0101" Error "a name is not known here"
"The name is not defined where it is used. A channel sees its own params, lets, gates and states,
`v`, `t`, `celsius` and what it declares with `reads`. A cell sees what is inside a compartment
by its path, such as `soma.v` or `soma.Na.m`. A function sees its parameters and constants only.

  wrong   spike when v crosses 0 mV           (in a cell with compartments)
  right   spike when soma.v crosses 0 mV";
DuplicateName "NU0102" Error "a name is defined twice"
"Two definitions in one scope have the same name; neither can win silently. Rename or delete one
of them. A channel inserted twice needs a name of its own.

  wrong   insert Leak, Leak(gbar = 0.1 mS/cm2)
  right   insert Leak, Leak as leak2(gbar = 0.1 mS/cm2)";
UnknownItem "NU0103" Error "no item of that name"
"A channel, cell or other item is used that is neither defined in the file nor brought in by
`use`, or it is an item of another kind. `neuroc lib` lists the standard library.

  right   use std.channels.hh.{Na, K}";
UnknownModule "NU0104" Error "no such module"
"`use a.b.{X}` looks for `a/b.neuro` beside the file; paths that begin with `std` are the
standard library (`neuroc lib` lists it).

  wrong   use channels.hh.{Na}
  right   use std.channels.hh.{Na}";
CyclicDefinition "NU0105" Error "a definition depends on itself"
"Parameters, constants, `let`s and functions must not depend on themselves, directly or through
others: there would be no place to start. A quantity that feeds back on itself in time is a
`state` with an equation.

  wrong   let w = 0.9 * w + 0.1
  right   state w: 1 = 0
          w' = (1 - w) / 10 ms";
CyclicUse "NU0106" Error "files use each other in a circle"
"File A uses B and B uses A. Move what both need into a third file.";
UnknownParameter "NU0107" Error "no parameter of that name"
"An override names a parameter that the channel, cell or model does not have. The message lists
those it has, or the one that was probably meant.

  wrong   insert Leak(e_rev = -60 mV)
  right   insert Leak(erev = -60 mV)";
AmbiguousParameter "NU0108" Error "an override fits several parameters"
"The name given to `--set` ends more than one parameter's full name. Write more of the path.

  wrong   --set gbar=100mS/cm2
  right   --set squid.soma.Na.gbar=100mS/cm2";
ReservedName "NU0109" Error "a reserved name is defined"
"Names such as `v`, `t`, `celsius`, `pi` and those of the built-in functions have a fixed meaning
and cannot be defined again. Choose another name.";
UnknownFunction "NU0110" Error "no function of that name"
"The function is neither built in nor defined with `function`. The grammar's README lists the
built-in ones.

  wrong   log(x)
  right   ln(x), log10(x)";
NotAValue "NU0111" Error "this name is not a value"
"The name belongs to a compartment, a channel instance, an item or a population, and cannot be
calculated with. Name a quantity of it.

  wrong   spike when soma crosses 0 mV
  right   spike when soma.v crosses 0 mV";

// 02xx: dimensions and units
DimensionMismatch "NU0201" Error "two dimensions do not agree"
"Only quantities of the same dimension can be added, subtracted, compared or assigned. The
message aligns both dimensions factor by factor (M mass, L length, T time, I current, \u{398}
temperature, N amount), so that the factor that is missing stands out. Typical causes: a time
constant is forgotten, a rate is given in ms instead of /ms, a density (per area) is mixed with
an absolute value.

  wrong   v' = v_rest - v
  right   v' = (v_rest - v) / tau";
UnknownUnit "NU0202" Error "no unit of that name"
"Units are SI prefixes with A, V, S, F, ohm, s, m, Hz, M (mol/L), mol, L, K, C, N, J, g and degC;
powers are written cm2 or cm^2, products S*m, quotients S/cm2 or S_per_cm2. Case matters: `ms`
is a millisecond, `mS` a millisiemens.

  wrong   50 mv, 5 msec, 0.12 mho/cm2
  right   50 mV, 5 ms,   0.12 S/cm2";
MissingUnit "NU0203" Error "a unit is missing"
"A bare number was given where a quantity with a dimension is needed. Numbers never get a unit
silently: a number copied from a program in mV and ms is exactly where mistakes come from.

  wrong   param erev = 50
  right   param erev = 50 mV";
NotDimensionless "NU0204" Error "a dimensionless value is needed"
"Functions such as exp, ln, sin and the exponent of a power take pure numbers. Divide by a
quantity of the same dimension; in published rates that quantity is often a number without a
unit.

  wrong   exp(-(v + 40 mV) / 9)
  right   exp(-(v + 40 mV) / 9 mV)";
BadPower "NU0205" Error "a power cannot be given a dimension"
"A quantity with a dimension can be raised to a constant whole power only, and a square root
needs even powers; the dimension of the result would not be known otherwise.

  wrong   v^k
  right   (v / 1 mV)^k";
WrongType "NU0206" Error "a condition and a number are mixed up"
"Conditions (`v > 0 mV`) and numbers are different kinds: `if` and `spike when` need a condition,
arithmetic needs numbers.

  wrong   inf = v > -40 mV
  right   inf = if v > -40 mV then 1 else 0";
WrongArguments "NU0207" Error "wrong arguments of a function"
"The call has too many, too few or unknown arguments. The message shows the function's signature;
arguments can be given by position or by name.

  right   pulse(delay = 10 ms, duration = 50 ms, amplitude = 10 uA/cm2)";

// 03xx: what a model must have
MissingInit "NU0301" Error "a state has no initial value"
"Every state needs one; there are no silent zeros.

  wrong   state v: mV
  right   state v: mV = -65 mV";
MissingEquation "NU0302" Error "a state has no equation"
"A state without an equation `name' = ...` would never change. If that is meant, make it a
`param`; if only spikes change it, write that its derivative is zero.

  right   state w: nA = 0 nA
          w' = 0 nA/ms";
EquationWithoutState "NU0303" Error "an equation for something that is not a state"
"`name' = ...` needs a state of that name in the same block. The voltage of a compartment needs
no equation: it follows from `cm` and the currents.

  right   state w: nA = 0 nA
          w' = -w / 100 ms";
IncompleteGate "NU0304" Error "a gate's kinetics are incomplete"
"A gate is given by `alpha` and `beta`, or by `inf` and `tau`, or is `instantaneous` with `inf`,
or consists of `fraction`s whose weights sum to 1.

  wrong   gate m^3 { inf = 1 / (1 + exp(-(v + 40 mV) / 9 mV)) }
  right   gate m^3 { inf = 1 / (1 + exp(-(v + 40 mV) / 9 mV)); tau = 0.5 ms }";
UnknownKey "NU0305" Error "no such key here"
"The block has no member of that name. The message lists the members it can have, or the one that
was probably meant.

  wrong   run { tstop = 100 ms; ... }
  right   run { duration = 100 ms; ... }";
MissingKey "NU0306" Error "a required key is missing"
"A compartment needs `cm` and `v_init`; a run needs `duration` and `dt`; a compartment needs
`area` as soon as a current in nA (and not a density) flows through its membrane.

  right   compartment soma { cm = 1 uF/cm2; v_init = -65 mV; area = 1000 um2 }";
MissingCurrent "NU0307" Error "a channel's current is not determined"
"Without a `current i = ...` line the current is gbar * gates * (v - erev), so the channel needs
the params `gbar` and `erev`.

  wrong   channel Leak { param g_max = 0.3 mS/cm2; param erev = -54 mV }
  right   channel Leak { param gbar = 0.3 mS/cm2; param erev = -54 mV }";
DuplicateKey "NU0308" Error "a key is given twice"
"Only one of two values could be used, so neither is. The same holds for two equations of one
state, two currents of one channel and two `run` blocks.";
MissingPool "NU0309" Error "a channel reads a pool that the compartment lacks"
"The channel says `reads X`, so each compartment it is inserted in needs a pool of that name, in
the same unit.

  right   pool Ca: mM { init = 0.1 mM; Ca' = (0.1 mM - Ca) / 20 ms }";
NoNetwork "NU0310" Error "nothing to run"
"A model that runs has a `network` with a population, and a `run` block; with several networks
the run says which one. Files with only channels and cells can be checked and used by others.

  right   network main { population cells: Squid[10] }";
BadSpike "NU0311" Error "a spike rule cannot work"
"A cell has at most one `spike` rule; its actions may assign states of the cell; `refractory`
needs a duration and holds the states that the condition reads. A condition that nothing resets
would make a spike in every step.

  wrong   spike when soma.v > 0 mV
  right   spike when soma.v crosses 0 mV
  right   spike when v > -50 mV { v = -60 mV; refractory 5 ms }";
BadTarget "NU0313" Error "a path does not lead to the right kind of thing"
"Paths begin with a population, not with a cell model: inputs drive a compartment, a port or a
point neuron of it; `record` names quantities, `init` states and `param` parameters of it.

  wrong   record soma.v
  right   record cells.soma.v";
BadValue "NU0314" Error "a value is out of range"
"The value cannot work: a negative size, a zero time step, a duration that is not a multiple of
the step, a number too large for the machine. The message gives the number.";
BadData "NU0315" Error "a data file does not fit"
"The file could be read, but not as numbers of the needed shape. .npy files hold float64, float32,
integer or boolean arrays in C order; .csv files hold one number per line, or named columns.";
BadRandom "NU0316" Error "a random draw in the wrong place"
"`uniform(...)`, `normal(...)` and the like stand behind `~` in `init` and `param` lines of a
network; `noise(...)` and stimuli stand in inputs. What an equation may have is `xi()`, white noise.

  wrong   init cells.soma.v = normal(-65 mV, 3 mV)
  right   init cells.soma.v ~ normal(-65 mV, 3 mV)";
BadCoupling "NU0317" Error "a coupling cannot work"
"`couple a <- b: g` gives compartment `a` a current from `b`. It needs two different compartments
of the cell and a conductance density as seen by `a`; the other direction is a line of its own.

  right   couple soma <- dend: 0.1 mS/cm2
          couple dend <- soma: 0.05 mS/cm2";
UnknownMethod "NU0318" Error "no such integration method"
"The methods are euler, exp_euler, cnexp, crank_nicolson, exact, heun, rk4 and adaptive. exp_euler, the default,
suits models with gates; cnexp is what NEURON does by default, crank_nicolson what it does with
secondorder = 2; exact solves linear equations, such as those of integrate-and-fire neurons with
current-based synapses; rk4 is the most accurate for smooth models;
adaptive takes steps as long as tolerances allow, for reference solutions of one cell or a small network.";
Unsupported "NU0320" Error "understood, but not compiled"
"The language has this feature, but this version of the compiler cannot compile it. `docs/status.md`
says what works, and the message names what is in the way: mostly another engine (`--engine native`) takes the model.
Generated crates have no potentials at probes, and XLA keeps no events in checkpoints.";
NotConstant "NU0319" Error "a constant is needed"
"The value is used before the run starts (a size, a constant, a duration), so it cannot depend on
states, `v`, the temperature or the time.";

OutOfDomain "NU0321" Error "a value that such a quantity cannot have"
"Capacitances, areas, time constants, periods and the durations of stimuli are above zero; rates and
standard deviations are not negative; the limits of a uniform draw are in order; a temperature is
above -273.15 degC. This is checked where the value stands, also through parameters, in values set
from outside, in values that are drawn and in those of data files: then the message names the cell.

  wrong   compartment soma { cm = 0 uF/cm2; v_init = -65 mV }
  right   compartment soma { cm = 1 uF/cm2; v_init = -65 mV }";
BadCells "NU0322" Error "a population has no such cells"
"Cells are counted from 0, and a range [first..end] ends before `end`: [0..10] are ten cells. Ranges
of inputs, `init`, `param` and `record` lines lie inside the population.

  wrong   population hh: Squid[10]
          input step: 1 uA/cm2 -> hh[5..20]
  right   input step: 1 uA/cm2 -> hh[5..10]";

BadEvent "NU0323" Error "an event cannot do this"
"In a synapse, `on event(weight: nS) { g += weight }` says what is added to a state when a spike arrives.
All synapses of a cell share the states that its current adds up, and spikes that arrive together are added
up before they act: to such a state multiples of the weight are added, and it is never set or read. What an
event sets or reads, and what `on post` changes, every synapse has for itself: traces of spikes, the weight.

  wrong   on event(weight: nS) { g = weight }
  right   on event(weight: nS) { g += weight }
  right   on event(weight: nS) { g += weight * left; left -= 0.3 * left }";

NotLinear "NU0324" Error "equations that cannot be solved as a whole"
"What every synapse has for itself is brought up to date when an event comes, by the solution of its
equations: they are linear, as `x' = -x / tau`, and nothing but parameters drives them.
`method = exact` solves equations that are linear in the states of a cell, with coefficients made of
parameters: integrate-and-fire neurons with current-based synapses. States may drive others, which
drive others, but not in a circle, and three deep at most, constant inputs counted.

  wrong   v' = (-g * (v - erev)) / c          with    method = exact, where g is a state
  right   method = exp_euler";

BadScheme "NU0325" Error "a kinetic scheme that cannot work"
"The states of a `kinetics` block are the fractions of channels that are in them: each reaction leads from
one state to one other, at a rate that reads none of the states, and their sum stays 1. Every state is
reached from every other one, if reactions are followed in both directions; what has nothing to do
with it is a block of its own. Without `init` lines a scheme begins in its steady state, of which there
must be one.

  wrong   kinetics { C <-> O (alpha, beta); O -> I (r); conserve C + O = 1 }
  right   kinetics { C <-> O (alpha, beta); O <-> I (r, s); conserve C + O + I = 1 }";

BadMorphology "NU0330" Error "sections and regions that make no cell"
"A cell with sections is a tree: one section, the root, has no `from` line, and all others begin at a
section that is reached from it. Sections have a `length` and a `diam`, and are cut into compartments
by `compartments { max_length = 20 um }`, by a number of their own, or by `d_lambda = 0.1`.
An SWC file is one tree, too: each line has seven columns, ids are there once, parents are there,
radii are above zero, and the points of type 1, the soma, are joined to each other.
What the membrane has stands in regions, which name sections or are `all`; of two regions that give a
section `cm`, `ra` or `v_init` the later one counts, and a channel is in a compartment once. A place is
`dend(0.3)`: 0 is the start of the section, 1 its end.
Ions of a pool diffuse along sections, with `diffusion = 0.22 um2/ms` in the pool of a region, and there in a
`shell` if they do not fill the cross-section; compartments that are written by hand have no length.

  right   cell Ball {
              section soma { length = 20 um; diam = 20 um }
              section dend { from soma(1); length = 200 um; diam = 2 um }
              compartments { max_length = 20 um }
              region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak(...) }
              spike when soma(0.5).v crosses -10 mV
          }";
CableMethod "NU0331" Error "a method that does not solve cables"
"The voltages of a cell with sections are solved for together, implicitly, by `method = cnexp`, backward
Euler along the cable and exponentials for gates, or by `crank_nicolson`, which is of
order 2; `adaptive` solves them with steps of its own. Explicit methods would need steps that are far too short.

  right   run { method = cnexp; ... }";
AdaptiveMethod "NU0332" Error "adaptive steps need equations at every time"
"`method = adaptive` solves the equations of a model with steps as long as the error allows, so
everything must be known between two steps, too. Noise and Poisson drives are drawn step by step, and
synapses that change with spikes are brought up to date by events: models with these take a method
with steps of `dt`. What makes a spike is a comparison of numbers.

  wrong   run { method = adaptive; ... }    with    input n: noise(0 nA, 1 nA, 0.1 ms) -> cells
  right   run { method = cnexp; dt = 0.025 ms; ... }";
BadNoise "NU0333" Error "white noise that cannot be solved"
"`xi()` is white noise in an equation, read as Ito reads it: x' = a + b * xi(), where a and b are of
anything but noise. The methods euler, exp_euler and cnexp solve it, others do not. It has no value
at one time: spikes, resets and initial values do not read it.

  wrong   run { method = rk4; ... }        with    v' = -v / tau + sigma * sqrt(2 / tau) * xi()
  right   run { method = exp_euler; ... }";

// 04xx: what is probably wrong
Unused "NU0401" Warning "something is never used"
"The parameter, pool or named expression influences nothing. Often a misspelt name elsewhere.
Nothing is said of items of other files, and of definitions that have mistakes.";
SuspiciousMagnitude "NU0402" Warning "a suspicious magnitude"
"The value is far outside what is found in neurons (for example gbar = 120 S/cm2 instead of
mS/cm2). If it is meant, nothing needs to change.";
GateRange "NU0403" Warning "a gate or a fraction outside [0, 1]"
"Gates are fractions of open channels, and so are the states of kinetic schemes. The initial value, given or
computed at v_init, lies outside [0, 1], or a run has met a state of a scheme that does, by more than a hundredth:
a rate is negative there. Check the rates and the sign of their arguments.";
NothingRecorded "NU0405" Warning "nothing is recorded"
"The run has no `record` line, so its result holds nothing but the time axis.

  right   record cells.soma.v every 0.1 ms
  right   record spikes of cells";

StepTooLong "NU0406" Warning "the time step is too long for the model"
"A state is faster than the method can follow with this step. Explicit methods (euler, heun, rk4)
become unstable a little above two time constants; exp_euler and cnexp stay stable, but spikes and
other fast events are lost where the step is longer than the time constants that make them. The
message tells the fastest state, its time constant at the start, or the shortest that a run has
met, and a step that would do.

  wrong   run { duration = 100 ms; dt = 5 ms }
  right   run { duration = 100 ms; dt = 0.025 ms }";
NoEffect "NU0407" Warning "this has no effect in the run"
"A stimulus or a time window begins after the run has ended, samples are further apart than the run is
long, or a clamp holds from the start what is given an initial value; a share of the samples of a `train`
block is less than one of them. Delays and the duration of a run are often in different units.";

MoreWarnings "NU0408" Warning "there are too many warnings to show"
"A hundred warnings are shown; the rest is counted. Warnings have places of their own: those of one
cause are mended together.";

DelayRounded "NU0410" Warning "a time is not a whole number of steps"
"Spikes travel, and cells are refractory, for whole steps. Such a time is rounded to the nearest; this one changes by
more than a hundredth of it. Take a step that divides the times, or times that are multiples of the step. Delays that
are drawn are rounded, too, without a word. Of the spikes of a file it is told how many are more than a hundredth of a
step away from the end of one.

  wrong   run { dt = 0.1 ms }          with    delay = 1.25 ms
  right   delay = 1.2 ms, or dt = 0.05 ms";

CutOff "NU0411" Warning "draws that miss their limits"
"`truncated(draw, low, high)` draws again while a number is outside, 16 times at most, and puts what is still
outside on the nearer limit. Where that happens often, the limits lie in the tail of what is drawn, and the numbers
are no longer distributed as meant: there is a heap of them on one limit. If no cell at all is within, it is an error.

  wrong   param cells.g ~ truncated(normal(1 nS, 0.2 nS), 1.5 nS, 2 nS)
  right   param cells.g ~ truncated(normal(1 nS, 0.2 nS), 0.5 nS, 2 nS)";
OneDirection "NU0412" Warning "a coupling in one direction"
"A coupling is a current per area of the compartment that it flows into. What flows out of the other
compartment is a line of its own, since its area may differ. With one of them missing, charge appears or is lost.

  wrong   couple soma <- dend: 0.1 mS/cm2
  right   couple soma <- dend: 0.1 mS/cm2
          couple dend <- soma: 0.1 mS/cm2";
OneOfSeveral "NU0413" Warning "one of several lines is recorded"
"Lines that connect the same cells through one synapse have one name with a number behind it: `a.b.Stdp`,
`a.b.Stdp_2`. What is recorded of the first is not recorded of the others. Record them all, or give the synapse of
each line another name, `via Stdp as late`, where they need not act on one state.

  wrong   record a.b.Stdp.weight every 1 s
  right   record a.b.{Stdp, Stdp_2}.weight every 1 s";
KeepsSpiking "NU0409" Warning "a spike that makes the next one"
"After the reset the condition of the spike rule is true again, so the cell spikes in every step, or
after every refractory time, for ever. The values are those at the start of the run.

  wrong   spike when v > -50 mV { v = -40 mV }
  right   spike when v > -50 mV { v = -60 mV }";

// 05xx: while running
NotFinite "NU0501" Error "a value became NaN or infinite"
"The run stopped at the first step that produced a value that is not finite, and names the cell,
the state and the time, and, where the equation itself has no value there, the operation: 0 / 0, a
division by 0, the root of a negative number. A quotient that has a limit where it is 0 / 0 is
computed as that limit if it is written in a form that is recognised, such as x / (exp(x) - 1) with
one x in both places (the language reference lists the forms); otherwise guard it: if abs(x) < 1e-6
then ... else ... Other usual causes: a time step too large for the method (try half of it, or
another method), a division by a quantity that reached zero.";

// 09xx: the compiler itself
Internal "NU0901" Error "a bug of the compiler"
"The compiler broke one of its own rules. Your model may be right. Please report it with the
model file and the message.";
}

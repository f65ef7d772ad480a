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
"A .neuro file is UTF-8 text. The message names the first byte that is not. Editors that save in another encoding usually \
offer `save as UTF-8`; a compiled or compressed file given by mistake shows the same message.";
Syntax "NU0002" Error "the text does not follow the grammar"
"The parser stopped at the place shown and lists what could stand there. Each item of a file (channel, cell, network, ...) is \
parsed on its own, so one mistake does not hide those in the next item.";
TooDeep "NU0003" Error "brackets are nested too deeply"
"Brackets and conditionals may be nested 64 levels deep. Name parts of the expression with `let` and use the names.";
CannotRead "NU0004" Error "a file cannot be read"
"The file does not exist or cannot be opened. Names are relative to the file that mentions them; the message shows the full name tried.";

// 01xx: names
UnknownName "NU0101" Error "a name is not known here"
"The name is not defined where it is used. In a channel one can use its own params, lets, gates and states, `v`, `t`, `celsius` and what \
it declares with `reads`. In a cell, names inside a compartment are reached as `soma.v` or `soma.Na.m`.";
DuplicateName "NU0102" Error "a name is defined twice"
"Two definitions in one scope have the same name; neither can win silently. Rename or delete one of them. A channel inserted twice \
needs its own name: `insert Leak as leak2`.";
UnknownItem "NU0103" Error "no item of that name"
"A channel, cell or other item is used that is neither defined in the file nor brought in by `use`. `neuroc lib` lists the standard library.";
UnknownModule "NU0104" Error "no such module"
"`use a.b.{X}` looks for `a/b.neuro` beside the file; paths that begin with `std` are the standard library (`neuroc lib`).";
CyclicDefinition "NU0105" Error "a definition depends on itself"
"Parameters, constants, `let`s and functions must not depend on themselves, directly or through others. A quantity that feeds back on \
itself in time is a `state` with an equation.";
CyclicUse "NU0106" Error "files use each other in a circle"
"File A uses B and B uses A. Move what both need into a third file.";
UnknownParameter "NU0107" Error "no parameter of that name"
"An override names a parameter that the channel, cell or model does not have. The message lists those it has.";
AmbiguousParameter "NU0108" Error "an override fits several parameters"
"The name given to `--set` ends more than one parameter's full name. Write more of the path, for example `squid.soma.Na.gbar`.";
ReservedName "NU0109" Error "a reserved name is defined"
"Names such as `v`, `t`, `celsius`, `pi` and the built-in functions have a fixed meaning and cannot be defined again.";
UnknownFunction "NU0110" Error "no function of that name"
"The function is neither built in nor defined with `function`. The grammar's README lists the built-in ones.";
NotAValue "NU0111" Error "this name is not a value"
"The name belongs to a compartment, a channel instance, an item or a population, and cannot be calculated with. Name a quantity of it, such as \
`soma.v` or `soma.Na.i`.";

// 02xx: dimensions and units
DimensionMismatch "NU0201" Error "two dimensions do not agree"
"Only quantities of the same dimension can be added, subtracted, compared or assigned. The message aligns both dimensions factor by factor, \
so the factor that is missing stands out. Typical causes: a conductance times a voltage added to a voltage; a rate given in ms instead of /ms; \
a density (per area) mixed with an absolute value.";
UnknownUnit "NU0202" Error "no unit of that name"
"Units are SI prefixes with A, V, S, F, ohm, s, m, Hz, M (mol/L), mol, L, K, C, N, J, g and degC; powers are written cm2 or cm^2, products S*m, quotients S/cm2 \
or S_per_cm2. Case matters: `ms` is a millisecond, `mS` a millisiemens.";
MissingUnit "NU0203" Error "a unit is missing"
"A bare number was given where a quantity with a dimension is needed. Numbers never get a unit silently.";
NotDimensionless "NU0204" Error "a dimensionless value is needed"
"Functions such as exp, ln, sin and the exponent of a power take pure numbers. Divide by a quantity of the same dimension, as in `exp(v / 10 mV)`.";
BadPower "NU0205" Error "a power cannot be given a dimension"
"A quantity with a dimension can be raised to a constant integer power only, and a square root needs even powers.";
WrongType "NU0206" Error "a condition and a number are mixed up"
"Conditions (`v > 0 mV`) and numbers are different kinds: `if` and `spike when` need a condition; arithmetic needs numbers.";
WrongArguments "NU0207" Error "wrong arguments of a function"
"The call has too many, too few or unknown arguments. The message shows the function's signature.";

// 03xx: what a model must have
MissingInit "NU0301" Error "a state has no initial value"
"Every state needs one: `state v: mV = -65 mV`. There are no silent zeros.";
MissingEquation "NU0302" Error "a state has no equation"
"A state without an equation `name' = ...` would never change. If that is meant, make it a `param`; if only spikes change it, write `name' = 0`.";
EquationWithoutState "NU0303" Error "an equation for something that is not a state"
"`name' = ...` needs `state name: unit = init` in the same block.";
IncompleteGate "NU0304" Error "a gate's kinetics are incomplete"
"A gate is given by `alpha` and `beta`, or by `inf` and `tau`, or is `instantaneous` with `inf`, or consists of `fraction`s whose weights sum to 1.";
UnknownKey "NU0305" Error "no such key here"
"The block has no member of that name. The message lists the members it can have.";
MissingKey "NU0306" Error "a required key is missing"
"A compartment needs `cm` and `v_init`; a run needs `duration` and `dt`; other blocks as the message says.";
MissingCurrent "NU0307" Error "a channel's current is not determined"
"Without a `current i = ...` line the current is gbar * gates * (v - erev), so the channel needs the params `gbar` and `erev`.";
DuplicateKey "NU0308" Error "a key is given twice"
"Only one of two values could be used, so neither is.";
MissingPool "NU0309" Error "a channel reads a pool that the compartment lacks"
"The channel says `reads X`, so each compartment it is inserted in needs `pool X { ... }`.";
NoNetwork "NU0310" Error "nothing to run"
"A model that runs has a `network` with a population, and a `run` block. Files with only channels and cells can be checked and used by others.";
BadSpike "NU0311" Error "a spike rule cannot work"
"A cell has at most one `spike` rule; its actions may assign states of the cell; `refractory` needs a duration and holds the states that the \
condition reads.";
MisplacedMember "NU0312" Error "a member in the wrong place"
"The member belongs elsewhere: gates and currents to channels, compartments to cells, populations to networks.";
BadTarget "NU0313" Error "a path does not lead to the right kind of thing"
"Inputs drive a compartment, a port or a point neuron of a population; `record` names quantities; `init` names states; `param` names parameters.";
BadValue "NU0314" Error "a value is out of range"
"The value cannot work: a negative size, a zero time step, a duration that is not a multiple of the step, fractions that do not sum to one. \
The message gives the number.";
BadData "NU0315" Error "a data file does not fit"
"The file could be read, but not as numbers of the needed shape. .npy files hold float64, float32 or integer arrays in C order; .csv files hold \
one number per line, or named columns.";
BadRandom "NU0316" Error "a random draw in the wrong place"
"`uniform(...)`, `normal(...)` and the like stand behind `~` in `init` and `param` lines of a network; `noise(...)` stands in inputs. Equations are deterministic.";
BadCoupling "NU0317" Error "a coupling cannot work"
"`couple a <- b: g` needs two different compartments of the cell and a conductance density.";
UnknownMethod "NU0318" Error "no such integration method"
"The methods are euler, exp_euler, cnexp, heun and rk4.";
Unsupported "NU0320" Error "understood, but not compiled"
"The language has this feature, but this version of the compiler cannot compile it. The README's table says what works.";
NotConstant "NU0319" Error "a constant is needed"
"The value is used before the run starts (a size, a default, a duration), so it cannot depend on states, `v` or time.";

// 04xx: what is probably wrong
Unused "NU0401" Warning "something is never used"
"The parameter, state or named expression influences nothing that is integrated or recorded. Often a misspelt name elsewhere.";
SuspiciousMagnitude "NU0402" Warning "a suspicious magnitude"
"The value is far outside what is found in neurons (for example gbar = 120 S/cm2 instead of mS/cm2). If it is meant, nothing needs to change.";
GateRange "NU0403" Warning "a gate starts outside [0, 1]"
"Gates are fractions. The initial value computed at v_init lies outside [0, 1]; check the rates and the sign of their arguments.";
UnitlessPair "NU0404" Warning "a unit may be missing"
"The value is used where a unit could be meant.";
NothingRecorded "NU0405" Warning "nothing is recorded"
"The run has no `record` line, so its result holds nothing but the time axis.";

// 05xx: while running
NotFinite "NU0501" Error "a value became NaN or infinite"
"The run stopped at the first step that produced a value that is not finite, and names the cell, the state and the time. Usual causes: a time step too large for \
the method (try half of it, or exp_euler), a rate function with a pole, a division by a quantity that reached zero.";

// 09xx: the compiler itself
Internal "NU0901" Error "a bug of the compiler"
"The compiler broke one of its own rules. Your model may be right. Please report it with the model file and the message.";
}

: Calcium in a shell of 1 um below the membrane.

NEURON {
    SUFFIX cashell
    USEION ca READ ica WRITE cai
    RANGE depth, tau, rest
}

UNITS {
    (mA) = (milliamp)
    (mM) = (milli/liter)
    (um) = (micron)
}

PARAMETER {
    depth = 1 (um)
    tau = 80 (ms)
    rest = 5e-5 (mM)
}

ASSIGNED { ica (mA/cm2) }

STATE { cai (mM) }

INITIAL { cai = rest }

BREAKPOINT { SOLVE states METHOD cnexp }

DERIVATIVE states { cai' = -(10000) * ica / (2 * 96485 (coulomb) * depth) - (cai - rest) / tau }

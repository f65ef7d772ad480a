: Potassium channel that opens by calcium.

NEURON {
    SUFFIX kca
    USEION ca READ cai
    USEION k READ ek WRITE ik
    RANGE gbar
}

UNITS {
    (S) = (siemens)
    (mV) = (millivolt)
    (mA) = (milliamp)
    (mM) = (milli/liter)
}

PARAMETER { gbar = 1e-3 (S/cm2) }

ASSIGNED {
    v (mV)
    ek (mV)
    cai (mM)
    ik (mA/cm2)
}

STATE { c }

INITIAL { c = cai / (cai + 1e-3) }

BREAKPOINT {
    SOLVE states METHOD cnexp
    ik = gbar * c * (v - ek)
}

DERIVATIVE states { c' = 50 (/ms/mM) * cai * (1 - c) - 0.05 (/ms) * c }

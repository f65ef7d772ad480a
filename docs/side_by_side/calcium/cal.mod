: Calcium channel that opens by voltage.

NEURON {
    SUFFIX cal
    USEION ca WRITE ica
    RANGE gbar, erev
}

UNITS {
    (S) = (siemens)
    (mV) = (millivolt)
    (mA) = (milliamp)
}

PARAMETER {
    gbar = 5e-5 (S/cm2)
    erev = 120 (mV)
}

ASSIGNED {
    v (mV)
    ica (mA/cm2)
}

STATE { q }

INITIAL { q = qinf(v) }

BREAKPOINT {
    SOLVE states METHOD cnexp
    ica = gbar * q * q * (v - erev)
}

DERIVATIVE states { q' = (qinf(v) - q) / 1 (ms) }

FUNCTION qinf(v (mV)) { qinf = 1 / (1 + exp(-(v + 20) / 5)) }

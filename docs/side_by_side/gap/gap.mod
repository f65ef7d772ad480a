: Half of a gap junction: what flows out of this side. A pair of them is one.

NEURON {
    POINT_PROCESS HalfGap
    NONSPECIFIC_CURRENT i
    RANGE g, i
    POINTER vother
}

PARAMETER { g = 0 (nanosiemens) }

ASSIGNED {
    v (millivolt)
    vother (millivolt)
    i (nanoamp)
}

BREAKPOINT { i = (0.001) * g * (v - vother) }

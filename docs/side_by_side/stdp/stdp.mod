: A synapse with the pair rule. Its events are spikes that arrive (weight above zero) and spikes of the target (below).

NEURON {
    POINT_PROCESS StdpSyn
    NONSPECIFIC_CURRENT i
    RANGE tau, e, tau_trace, a_plus, a_minus, w_max, w, g, i
}

UNITS {
    (nA) = (nanoamp)
    (mV) = (millivolt)
    (uS) = (microsiemens)
}

PARAMETER {
    tau = 5 (ms)
    e = 0 (mV)
    tau_trace = 20 (ms)
    a_plus = 0.05
    a_minus = 0.0525
    w_max = 0.001 (uS)
    w = 0.0005 (uS)
}

ASSIGNED {
    v (mV)
    i (nA)
    pre
    post
    last (ms)
}

STATE { g (uS) }

INITIAL {
    g = 0
    pre = 0
    post = 0
    last = 0
}

BREAKPOINT {
    SOLVE decay METHOD cnexp
    i = g * (v - e)
}

DERIVATIVE decay { g' = -g / tau }

NET_RECEIVE (kind) {
    pre = pre * exp((last - t) / tau_trace)
    post = post * exp((last - t) / tau_trace)
    last = t
    if (kind > 0) {
        g = g + w
        pre = pre + 1
        w = w - a_minus * w_max * post
        if (w < 0) { w = 0 }
    } else {
        post = post + 1
        w = w + a_plus * w_max * pre
        if (w > w_max) { w = w_max }
    }
}

: NEURON has no such cell, so this is one: a point process with states of its own, which WATCH resets.

NEURON {
    POINT_PROCESS Izhikevich
    RANGE a, b, c, d, drive, vm, u
}

UNITS { (mV) = (millivolt) }

PARAMETER {
    a = 0.02 (/ms)
    b = 0.2 (/ms)
    c = -65 (mV)
    d = 8 (mV/ms)
    drive = 0 (mV/ms)
}

STATE { vm (mV) u (mV/ms) }

INITIAL {
    vm = -65
    u = b * vm
    net_send(0, 1)
}

BREAKPOINT { SOLVE cell METHOD euler }

DERIVATIVE cell {
    vm' = 0.04 (/mV/ms) * vm * vm + 5 (/ms) * vm + 140 (mV/ms) - u + drive
    u' = a * (b * vm - u)
}

NET_RECEIVE (weight) {
    if (flag == 1) {
        WATCH (vm > 30) 2
    } else if (flag == 2) {
        net_event(t)
        vm = c
        u = u + d
    }
}

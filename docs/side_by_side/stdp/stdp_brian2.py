"""Pair STDP in Brian2: on_pre acts after the delay, on_post at once."""
import json

import numpy as np
from brian2 import SpikeGeneratorGroup, Synapses, defaultclock, ms, nS, prefs, run

prefs.codegen.target = "numpy"
defaultclock.dt = 0.1 * ms

cells = np.repeat(np.arange(8), 10)
pairs = np.tile(100 * np.arange(10), 8)
before = SpikeGeneratorGroup(8, cells, (50 + pairs) * ms)
behind = SpikeGeneratorGroup(8, cells, (51 + 10 * cells - 35 + pairs) * ms)
synapses = Synapses(before, behind, """
    w : siemens
    dpre/dt = -pre/(20*ms) : 1 (event-driven)
    dpost/dt = -post/(20*ms) : 1 (event-driven)
    """,
    on_pre="pre += 1; w = clip(w - 0.0525*nS*post, 0*nS, 1*nS)",
    on_post="post += 1; w = clip(w + 0.05*nS*pre, 0*nS, 1*nS)", delay={"pre": 1 * ms})
synapses.connect(condition="i == j")
synapses.w = 0.5 * nS
run(1000 * ms)
print(json.dumps({"weights": list(synapses.w / nS)}))

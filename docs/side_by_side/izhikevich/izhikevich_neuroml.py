"""Izhikevich's neuron in NeuroML (izhikevich.net.nml), run by jNeuroML: forward Euler."""
import json

import numpy as np
from pyneuroml import pynml

pynml.run_lems_with_jneuroml("LEMS_izhikevich.xml", nogui=True, verbose=False)
t, v, u = np.loadtxt("izhikevich.dat").T
spikes = np.loadtxt("izhikevich.spikes.dat", ndmin=2)[:, 1] * 1e3
print(json.dumps({"spikes": list(spikes), "v": list(v[:3001:10] * 1e3), "u": list(u[:3001:10])}))

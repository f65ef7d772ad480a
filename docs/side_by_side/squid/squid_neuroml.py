"""Squid axon in NeuroML (squid.net.nml), run by jNeuroML: forward Euler."""
import json

import numpy as np
from pyneuroml import pynml

pynml.run_lems_with_jneuroml("LEMS_squid.xml", nogui=True, verbose=False)
v = np.loadtxt("squid.v.dat")[:, 1] * 1e3               # files are in SI units
spikes = np.loadtxt("squid.spikes.dat", ndmin=2)[:, 1] * 1e3
print(json.dumps({"spikes": list(spikes), "v": list(v[:24001:40])}))

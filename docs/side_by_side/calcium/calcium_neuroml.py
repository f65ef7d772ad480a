"""Adaptation by calcium in NeuroML (calcium.net.nml), run by jNeuroML: forward Euler."""
import json

import numpy as np
from pyneuroml import pynml

pynml.run_lems_with_jneuroml("LEMS_calcium.xml", nogui=True, verbose=False)
print(json.dumps({"spikes": list(np.loadtxt("calcium.spikes.dat", ndmin=2)[:, 1] * 1e3)}))

"""Two cells and a gap junction in NeuroML (gap.net.nml), run by jNeuroML: forward Euler."""
import json

import numpy as np
from pyneuroml import pynml

pynml.run_lems_with_jneuroml("LEMS_gap.xml", nogui=True, verbose=False)
print(json.dumps({"spikes": [[t * 1e3, int(i)] for i, t in np.loadtxt("gap.spikes.dat")]}))

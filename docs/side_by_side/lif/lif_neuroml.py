"""f-I curve in NeuroML (lif.net.nml: iafRefCell), run by jNeuroML: forward Euler."""
import json

import numpy as np
from pyneuroml import pynml

pynml.run_lems_with_jneuroml("LEMS_lif.xml", nogui=True, verbose=False)
spikes = [[t * 1e3, int(i)] for i, t in np.loadtxt("lif.spikes.dat")]
print(json.dumps({"spikes": spikes, "counts": [sum(i == number for _, i in spikes) for number in range(12)]}))

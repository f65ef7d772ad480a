"""The cable in closed form: the sum over the spatial modes of a cable with sealed ends."""
import json

import numpy as np

length, diam, ra, rm, cm = 0.1, 2e-4, 100.0, 20e3, 1e-6             # cm, ohm cm, ohm cm2, F/cm2
current, rest, n = 0.05e-9, -65.0, 101
tau = rm * cm * 1e3                                                 # ms
lam = np.sqrt(rm * diam / (4 * ra))                                 # length constant, cm
scale = current * np.sqrt(rm * ra) * 2 / (np.pi * diam**1.5) * 1e3  # mV: what flows into a cable without end
t = np.arange(61.0)
k = np.arange(100_000)
mode = np.where(k == 0, 1, 2) / (length / lam)
rate = 1 + (k * np.pi * lam / length) ** 2


def v(x):
    """At the distance x (cm) from the end with the current: what settles, less the modes that have not yet decayed."""
    steady = np.cosh((length - x) / lam) / np.sinh(length / lam)
    slow = rate * 60 / tau < 1e7                                    # the modes beyond are over at once
    left = (mode * np.cos(k * np.pi * x / length) / rate)[slow] @ np.exp(-np.outer(rate[slow], t / tau))
    left[0] = steady                                                # all modes together, without the error of the cut
    return rest + scale * (steady - left)


# The voltage of a compartment is that in its middle, and `cable(1)` is the last compartment.
print(json.dumps({"middle": list(v(length / 2)), "end": list(v(length * (1 - 0.5 / n)))}))

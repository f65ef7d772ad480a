"""Hodgkin-Huxley cell of the inferior-olive benchmark's model comparison: forward Euler, golden values.

Not the squid axon of `squid_scipy.py`: ENa is 55 mV and EL is -65 mV here. The expressions below are written as the
benchmark states them; every update uses the old voltage and the old gates.
"""
import numpy as np

from common import store, versions

C, G_NA, G_K, G_L, E_NA, E_K, E_L, DT, I_EXT, V0 = 1.0, 120.0, 36.0, 0.3, 55.0, -77.0, -65.0, 0.025, 10.0, -60.0
# printed digits of the benchmark's own golden record: (value, digits after the point)
GOLDEN_0 = {"m": (0.09364195, 8), "h": (0.41815053, 8), "n": (0.39626825, 8)}
GOLDEN_400 = {"v": (-59.42519404, 8), "m": (0.0999435, 8), "h": (0.43556272, 8), "n": (0.38904835, 8)}


def e(x):
    return x / (np.exp(x) - 1.0)


def rates(v):
    return (e(-0.1 * v - 4.0), 4.0 * np.exp(-(v + 65.0) / 18.0),
            0.07 * np.exp(-0.05 * v - 3.25), 1.0 / (1.0 + np.exp(-0.1 * v - 3.5)),
            0.1 * e(-0.1 * v - 5.5), 0.125 * np.exp(-0.0125 * v - 0.8125))


def main():
    v = np.float64(V0)
    am, bm, ah, bh, an, bn = rates(v)
    m, h, n = am / (am + bm), ah / (ah + bh), an / (an + bn)
    out = {"0": dict(v=v, m=m, h=h, n=n)}
    spikes = []
    for step in range(1, 4001):
        am, bm, ah, bh, an, bn = rates(v)
        i = G_NA * m**3 * h * (v - E_NA) + G_K * n**4 * (v - E_K) + G_L * (v - E_L)
        v_new = v + DT * (I_EXT - i) / C
        m, h, n = m + DT * (am * (1 - m) - bm * m), h + DT * (ah * (1 - h) - bh * h), n + DT * (an * (1 - n) - bn * n)
        if v < -10.0 <= v_new:
            spikes.append(step)
        v = v_new
        if step in (1, 400, 4000):
            out[str(step)] = dict(v=v, m=m, h=h, n=n)
    for golden, got in ((GOLDEN_0, out["0"]), (GOLDEN_400, out["400"])):
        for k, (value, digits) in golden.items():
            assert round(float(got[k]), digits) == value, (k, got[k], value)
    store("hh_cell_facts", {
        "what": "HH benchmark cell, forward Euler, dt 0.025 ms, Iext 10, V0 -60 mV, gates at steady state; after n steps",
        "dt_ms": DT, "after_steps": out, "spike_steps_threshold_minus_10_mV": spikes, "versions": versions("numpy"),
    })
    print(out, spikes)


if __name__ == "__main__":
    main()

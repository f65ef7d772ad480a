"""Half centre of two Morris-Lecar cells that inhibit each other through graded synapses: exact solution. Conventions: see README.md.

The synapses of one direction have a state, s' = (s_inf(v_pre) - s) / (tau_s (1 - s_inf(v_pre))), and those of both directions a part without one.
"""
import numpy as np

from common import integrate, max_abs_diff, store, versions

C, I = 20.0, (105.0, 100.0)                            # pF, pA
G_SLOW, G_FAST, E_SYN = 0.8, (0.5, 0.25), -80.0        # nS, mV
HALF, SCALE, TAU_S = -20.0, 8.0, 20.0                 # mV, mV, ms


def released(v):
    return 1.0 / (1.0 + np.exp((HALF - v) / SCALE))


def rhs(_t, y, _k):
    out = np.empty(6)
    for at in (0, 1):
        v, w, s = y[3 * at:3 * at + 3]
        other = 1 - at
        v_pre, s_pre = y[3 * other], y[3 * other + 2]
        g = G_SLOW * s_pre + G_FAST[at] * released(v_pre)
        m_inf = 0.5 * (1.0 + np.tanh((v + 1.2) / 18.0))
        w_inf = 0.5 * (1.0 + np.tanh((v - 2.0) / 30.0))
        ionic = 2.0 * (v + 60.0) + 4.4 * m_inf * (v - 120.0) + 8.0 * w * (v + 84.0)
        out[3 * at] = (I[at] - ionic - g * (v - E_SYN)) / C
        out[3 * at + 1] = 0.04 * (w_inf - w) * np.cosh((v - 2.0) / 60.0)
        inf = released(v)
        out[3 * at + 2] = (inf - s) / (TAU_S * (1.0 - inf))
    return out


def main():
    breaks = [20.0 * k for k in range(26)]
    y0 = [-20.0, 0.1, 0.2, -50.0, 0.05, 0.0]
    runs = {method: integrate(rhs, y0, breaks, method)["states"] for method in ("DOP853", "Radau")}
    states = runs["DOP853"]
    data = {"what": "two cells with graded synapses; conventions in README.md", "every_ms": 20.0,
            "a": {"v_mV": states[:, 0].tolist(), "s": states[:, 2].tolist()},
            "b": {"v_mV": states[:, 3].tolist(), "s": states[:, 5].tolist()},
            "cross_check": {"DOP853_minus_Radau": max_abs_diff(states, runs["Radau"])},
            "versions": versions("numpy", "scipy")}
    store("graded_scipy", data)
    print(np.round(states[:, [0, 3, 2, 5]], 2), data["cross_check"], sep="\n")


if __name__ == "__main__":
    main()

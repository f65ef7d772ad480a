"""Squid axon patch (Hodgkin and Huxley 1952, 6.3 degC, modern voltage convention): the exact solution.

v mV, t ms, conductances mS/cm2, currents uA/cm2, cm uF/cm2.
"""
from common import exp_linear_rate, exp_rate, integrate, max_abs_diff, sigmoid_rate, store, versions

CM, G_NA, G_K, G_L, E_NA, E_K, E_L = 1.0, 120.0, 36.0, 0.3, 50.0, -77.0, -54.4
V_INIT, STIM, ON, OFF, END = -65.0, 10.0, 10.0, 60.0, 100.0


def rates(v):
    return (exp_linear_rate(v, 1.0, -40.0, 10.0), exp_rate(v, 4.0, -65.0, -18.0),
            exp_rate(v, 0.07, -65.0, -20.0), sigmoid_rate(v, 1.0, -35.0, 10.0),
            exp_linear_rate(v, 0.1, -55.0, 10.0), exp_rate(v, 0.125, -65.0, -80.0))


def steady(v):
    am, bm, ah, bh, an, bn = rates(v)
    return am / (am + bm), ah / (ah + bh), an / (an + bn)


def derivative(y, i_stim):
    import numpy as np
    v, m, h, n = y
    am, bm, ah, bh, an, bn = rates(v)
    i = G_NA * m**3 * h * (v - E_NA) + G_K * n**4 * (v - E_K) + G_L * (v - E_L)
    return np.array([(i_stim - i) / CM, am * (1 - m) - bm * m, ah * (1 - h) - bh * h, an * (1 - n) - bn * n])


def main():
    times = [5.0 * k for k in range(21)]
    rhs = lambda t, y, k: derivative(y, STIM if ON <= times[k] < OFF else 0.0)
    y0 = (V_INIT, *steady(V_INIT))
    # max_step keeps the 7th-order dense output as accurate as the steps themselves
    a = integrate(rhs, y0, times, "DOP853", 1e-12, threshold=0.0, max_step=0.02)
    b = integrate(rhs, y0, times, "Radau", 1e-12, threshold=0.0)
    cross = {
        "methods": "DOP853 (stored, max_step 0.02 ms) against Radau, rtol = atol = 1e-12",
        "steps": {"DOP853": a["steps"], "Radau": b["steps"]},
        "max_abs_diff": {name: max_abs_diff(a["states"][:, j], b["states"][:, j]) for j, name in enumerate("vmhn")},
        "spike_time_diff_ms": max_abs_diff(a["henon"], b["henon"]),
        "spike_time_dense_against_henon_ms": max_abs_diff(a["dense"], a["henon"]),
    }
    s = a["states"]
    store("squid_scipy", {
        "what": "squid axon patch, 10 uA/cm2 from 10 to 60 ms; spike = upward crossing of 0 mV",
        "spike_times_ms": a["dense"],
        "t_ms": times, "v_mV": s[:, 0], "m": s[:, 1], "h": s[:, 2], "n": s[:, 3],
        "cross_check": cross, "versions": versions("numpy", "scipy"),
    })
    print("spikes", a["dense"])
    print("cross", cross)


if __name__ == "__main__":
    main()

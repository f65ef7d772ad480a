"""Channels of the minimal cortical models of Pospischil et al. 2008, tabulated, and one regular-spiking cell.

v mV, t ms, conductances mS/cm2, currents uA/cm2, cm 1 uF/cm2. Formulas and sources: README.md.
"""
import math

from common import integrate, linear_ratio, max_abs_diff, store, versions

exp = math.exp


def na_kd(v, vt):
    """alpha and beta of m, h, n; written through x / (1 - exp(-x)), which is the published form rearranged."""
    return (0.32 * 4.0 * linear_ratio((v - vt - 13.0) / 4.0), 0.28 * 5.0 * linear_ratio(-(v - vt - 40.0) / 5.0),
            0.128 * exp(-(v - vt - 17.0) / 18.0), 4.0 / (1.0 + exp(-(v - vt - 40.0) / 5.0)),
            0.032 * 5.0 * linear_ratio((v - vt - 15.0) / 5.0), 0.5 * exp(-(v - vt - 10.0) / 40.0))


def m_current(v, tau_max):
    return (1.0 / (1.0 + exp(-(v + 35.0) / 10.0)),
            tau_max / (3.3 * exp((v + 35.0) / 20.0) + exp(-(v + 35.0) / 20.0)))


def l_type(v):
    return (0.055 * 3.8 * linear_ratio((v + 27.0) / 3.8), 0.94 * exp((-75.0 - v) / 17.0),
            0.000457 * exp((-13.0 - v) / 50.0), 0.0065 / (exp((-15.0 - v) / 28.0) + 1.0))


def t_type(v, vx):
    rise, fall = 211.4 + exp((v + vx + 113.2) / 5.0), 1.0 + exp((v + vx + 84.0) / 3.2)
    return {"s_inf": 1.0 / (1.0 + exp(-(v + vx + 57.0) / 6.2)), "u_inf": 1.0 / (1.0 + exp((v + vx + 81.0) / 4.0)),
            "tau_u": 30.8 + rise / (3.7 * fall),                    # the 3.7 divides the second term only
            "tau_u_nmodl": (30.8 + rise / fall) / 3.0**1.2,         # q10 3, 24 -> 36 degC, divides all: IT.mod
            "tau_u_one_fraction": (30.8 + rise) / (3.7 * fall)}     # everything over 3.7 (1 + exp)


def table(vt=-56.2, tau_max=608.0):
    vs = [float(v) for v in range(-90, 31, 10)]
    out = {"v_mV": vs}
    for v in vs:
        am, bm, ah, bh, an, bn = na_kd(v, vt)
        aq, bq, ar, br = l_type(v)
        p_inf, tau_p = m_current(v, tau_max)
        row = {}
        for name, a, b in (("m", am, bm), ("h", ah, bh), ("n", an, bn), ("q", aq, bq), ("r", ar, br)):
            row[f"{name}_inf"], row[f"tau_{name}"] = a / (a + b), 1.0 / (a + b)
        row["p_inf"], row["tau_p"] = p_inf, tau_p
        for vx in (2.0, -7.0):
            row |= {f"{k}@vx={vx:g}": x for k, x in t_type(v, vx).items()}
        for k, x in row.items():
            out.setdefault(k, []).append(x)
    return out


def regular_spiking(g_na, g_kd, g_m, g_leak, e_leak, e_k, vt, tau_max, density, method="DOP853", duration=500.0):
    import numpy as np
    e_na, v0 = 50.0, e_leak

    def rhs(t, y, k):
        v, m, h, n, p = y
        am, bm, ah, bh, an, bn = na_kd(v, vt)
        p_inf, tau_p = m_current(v, tau_max)
        i = (g_na * m**3 * h * (v - e_na) + (g_kd * n**4 + g_m * p) * (v - e_k) + g_leak * (v - e_leak))
        return np.array([density - i, am * (1 - m) - bm * m, ah * (1 - h) - bh * h, an * (1 - n) - bn * n,
                         (p_inf - p) / tau_p])

    am, bm, ah, bh, an, bn = na_kd(v0, vt)
    y0 = (v0, am / (am + bm), ah / (ah + bh), an / (an + bn), m_current(v0, tau_max)[0])
    return integrate(rhs, y0, [100.0 * k for k in range(round(duration / 100) + 1)], method, 1e-12, threshold=0.0)


def main():
    area_cm2 = math.pi * 61.4 * 61.4 * 1e-8
    density = 0.7e-3 / area_cm2                                     # nA -> uA
    base = dict(g_na=50.0, g_kd=5.0, g_m=0.07, g_leak=0.1, e_leak=-70.3, e_k=-90.0, vt=-56.2, tau_max=608.0,
                density=density)
    fitted = base | dict(g_na=56.0, g_kd=6.0, g_m=0.075, g_leak=0.0205)
    cells, cross = {}, {}
    for name, p in (("rs", base), ("rs_ek_minus_100", base | {"e_k": -100.0}), ("rs_fitted_table", fitted)):
        duration = 500.0 if name == "rs" else 200.0
        a = regular_spiking(**p, duration=duration)
        b = regular_spiking(**p, duration=duration, method="Radau") if name == "rs" else None
        s = a["states"]
        cells[name] = {"parameters": p, "v_init_mV": p["e_leak"], "duration_ms": duration, "spike_times_ms": a["henon"],
                       "every_100_ms": {"v": s[:, 0], "m": s[:, 1], "h": s[:, 2], "n": s[:, 3], "p": s[:, 4]}}
        if b:
            cross = {"rs_spike_time_DOP853_against_Radau_ms": max_abs_diff(a["henon"], b["henon"]),
                     "rs_state_DOP853_against_Radau": max_abs_diff(s, b["states"])}
        print(name, len(a["henon"]), a["henon"])
    print(density, cross)
    store("cortical_channels", {
        "what": "channels of Pospischil et al. 2008 (VT -56.2 mV, tau_max 608 ms), and regular-spiking cells",
        "vt_mV": -56.2, "tau_max_ms": 608.0, "table": table(), "area_um2": area_cm2 * 1e8,
        "cells": cells, "cross_check": cross, "versions": versions("numpy", "scipy"),
    })


if __name__ == "__main__":
    main()

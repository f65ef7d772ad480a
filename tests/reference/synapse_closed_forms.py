"""Synapses whose effect is a formula: arrivals at a passive membrane, conductances, short-term plasticity, pair STDP.

50 digits. Potentials are computed from the formula and checked by numerical integration of the convolution.
"""
import itertools

import mpmath
from mpmath import mp, mpf

from common import store, versions

mp.dps = 50
exp = mpmath.exp
C, GL, EL = mpf(250), mpf(25), mpf(-70)          # pF, nS, mV: tau_m 10 ms
TAU_M = C / GL
EPS = mpf(10) ** -9                              # two time constants nearer than this are taken as equal


# ---------------------------------------------------------------- kernels and what a passive membrane makes of them
def filtered(s, tau, power=0):
    """Integral from 0 to s of x^power exp(-x/tau) exp(-(s - x)/tau_m) dx, power 0 or 1."""
    d = 1 / TAU_M - 1 / tau                      # the integrand is exp(-s/tau_m) x^power exp(d x)
    if abs(d) < EPS:
        return exp(-s / TAU_M) * s ** (power + 1) / (power + 1)
    if power == 0:
        return exp(-s / TAU_M) * mpmath.expm1(d * s) / d
    return exp(-s / TAU_M) * (exp(d * s) * (d * s - 1) + 1) / d**2


def double_peak(rise, decay):
    """Time of the peak of exp(-s/decay) - exp(-s/rise) and 1/its value."""
    at = rise * decay / (decay - rise) * mpmath.log(decay / rise)
    return at, 1 / (exp(-at / decay) - exp(-at / rise))


def kernels():
    """name: (parameters, kernel(s), what one arrival of weight 1 pA adds to v, mV)."""
    out = {}
    for tau in (mpf(2), mpf(5), TAU_M, TAU_M + mpf(2) ** -20, mpf(20)):
        out[f"exponential_tau_{mpmath.nstr(tau, 12)}"] = (
            {"kind": "exponential", "tau_ms": tau}, lambda s, tau=tau: exp(-s / tau),
            lambda s, tau=tau: filtered(s, tau) / C)
        out[f"alpha_tau_{mpmath.nstr(tau, 12)}"] = (
            {"kind": "alpha", "tau_ms": tau}, lambda s, tau=tau: s / tau * exp(1 - s / tau),
            lambda s, tau=tau: mpmath.e / tau * filtered(s, tau, 1) / C)
    for rise, decay in ((mpf("0.5"), mpf(3)), (mpf(1), TAU_M), (TAU_M, mpf(20)), (mpf(2), mpf(2) + mpf(2) ** -20)):
        at, norm = double_peak(rise, decay)
        out[f"double_rise_{mpmath.nstr(rise, 12)}_decay_{mpmath.nstr(decay, 12)}"] = (
            {"kind": "double exponential", "tau_rise_ms": rise, "tau_decay_ms": decay, "norm": norm, "kernel_peak_ms": at},
            lambda s, r=rise, d=decay, n=norm: n * (exp(-s / d) - exp(-s / r)),
            lambda s, r=rise, d=decay, n=norm: n * (filtered(s, d) - filtered(s, r)) / C)
    return out


def currents():
    t0, w, v0 = mpf(2), mpf(400), mpf(-65)
    trains = [(mpf(2), mpf(400)), (mpf("3.5"), mpf(-150)), (mpf("3.5"), mpf(250)), (mpf(11), mpf(400))]
    ts = [mpf(k) / 2 for k in range(0, 25)] + [mpf(x) for x in (15, 20, 25, 30, 40, 60, 100)]
    out = {"C_pF": C, "gL_nS": GL, "EL_mV": EL, "t_ms": ts,
           "one_arrival": {"t_ms": t0, "w_pA": w, "v_init_mV": EL}, "several_arrivals": {
               "t_ms": [t for t, _ in trains], "w_pA": [x for _, x in trains], "v_init_mV": v0}, "synapses": {}}
    worst = mpf(0)
    for name, (parameters, kernel, answer) in kernels().items():
        for s in (mpf("0.1"), mpf(1), mpf(7), mpf(40)):
            points = [0, s] if s < 10 else [0, s / 4, s / 2, s]
            number = mpmath.quad(lambda x: kernel(x) * exp(-(s - x) / TAU_M) / C, points)
            worst = max(worst, abs(number - answer(s)) / abs(number))
        slope = lambda s: kernel(s) / C - answer(s) / TAU_M
        peak = mpmath.findroot(slope, (mpf("0.1"), mpf(60)), solver="anderson")
        at = lambda t, t0: answer(t - t0) if t > t0 else mpf(0)
        out["synapses"][name] = parameters | {
            "peak_after_ms": peak, "peak_mV": w * answer(peak), "one_v_mV": [EL + w * at(t, t0) for t in ts],
            "one_i_pA": [-w * kernel(t - t0) if t >= t0 else mpf(0) for t in ts],
            "several_v_mV": [EL + (v0 - EL) * exp(-t / TAU_M) + sum(x * at(t, a) for a, x in trains) for t in ts]}
    assert worst < mpf(10) ** -30, worst
    return out, {"potentials_against_quadrature_max_relative": worst}


# ---------------------------------------------------------------- conductances
def conductances():
    """g' = -g/tau, g += w at an arrival; and v of C v' = -gL(v - EL) - g(v - E), by an integrating factor."""
    ts, tau = [mpf(k) for k in range(0, 31)], mpf(5)
    arrivals = [(mpf(1), mpf(3)), (mpf(4), mpf("1.5")), (mpf(4), mpf(2)), (mpf("12.5"), mpf(3))]
    g = lambda t: sum(w * exp(-(t - a) / tau) for a, w in arrivals if t >= a)        # with the jump of an arrival at t
    out = {"t_ms": ts, "tau_ms": tau, "arrivals_ms": [a for a, _ in arrivals], "w_nS": [w for _, w in arrivals],
           "g_nS_after_the_jump": [g(t) for t in ts], "C_pF": C, "gL_nS": GL, "EL_mV": EL, "v_init_mV": EL}
    area = lambda t: sum(w * tau * -mpmath.expm1(-(t - a) / tau) for a, w in arrivals if t > a)  # integral of g from 0 to t
    for name, e in (("excitatory_E_0_mV", mpf(0)), ("inhibitory_E_-80_mV", mpf(-80))):
        v = []
        for t in ts[::3]:
            cuts = sorted({mpf(0), t} | {a for a, _ in arrivals if a < t})
            f = lambda x: exp(-(GL * (t - x) + area(t) - area(x)) / C) * (GL * EL + g(x) * e) / C
            v.append(EL * exp(-(GL * t + area(t)) / C) + sum(mpmath.quad(f, [a, b]) for a, b in zip(cuts, cuts[1:])))
        out[name] = {"t_ms": ts[::3], "v_mV": v}
    period = mpf(8)
    out["regular_train"] = {"period_ms": period, "w_nS": 1, "tau_ms": tau, "g_after_nth_jump_nS": [
        mpmath.expm1(-n * period / tau) / mpmath.expm1(-period / tau) for n in range(1, 11)],
        "g_after_jump_in_the_limit_nS": -1 / mpmath.expm1(-period / tau)}
    alpha, double = (mpf(3), mpf(1)), (mpf(1), mpf(6))
    norm = double_peak(*double)[1]
    out["one_arrival_at_0"] = {
        "w_nS": 2, "t_ms": ts, "alpha": {"tau_ms": alpha[0], "g_nS": [2 * t / alpha[0] * exp(1 - t / alpha[0]) for t in ts]},
        "double_exponential": {"tau_rise_ms": double[0], "tau_decay_ms": double[1], "norm": norm,
                               "g_nS": [2 * norm * (exp(-t / double[1]) - exp(-t / double[0])) for t in ts]}}
    return out


# ---------------------------------------------------------------- short-term plasticity
def tsodyks_markram():
    """At a spike first u += U (1 - u), then u x is released, x -= u x; between spikes x' = (1 - x)/tau_rec and u decays
    to 0 (Tsodyks, Uziel and Markram 2000: u_1 = U) or to U (Mongillo, Barak and Tsodyks 2008: u_1 = U + U(1 - U))."""
    rows = []
    sets = (("depressing", "0.5", 800, 0), ("facilitating", "0.05", 100, 1000), ("mixed", "0.2", 200, 300))
    for (name, use, rec, facil), period, rest in itertools.product(sets, (10, 50, 200), ("0", "U")):
        if facil == 0 and rest == "U":
            continue
        use, rec, facil, period = mpf(use), mpf(rec), mpf(facil), mpf(period)
        f, r = exp(-period / facil) if facil else mpf(0), exp(-period / rec)
        target = mpf(0) if rest == "0" else use
        u, x, us, xs = target, mpf(1), [], []
        for _ in range(20):
            if us:                                               # u and x: after the spike, so relax for one period
                u, x = target + (u - target) * f, 1 + (x - 1) * r
            u += use * (1 - u)
            us.append(u)
            xs.append(x)
            x -= u * x
        # in the limit: u = U + (1 - U)(target + (u - target) f), x = 1 + (x (1 - u) - 1) r
        u_end = (use + (1 - use) * target * (1 - f)) / (1 - (1 - use) * f)
        x_end = (1 - r) / (1 - (1 - u_end) * r)
        formula = [u_end + (us[0] - u_end) * ((1 - use) * f) ** n for n in range(20)]
        assert all(abs(a - b) < mpf(10) ** -40 for a, b in zip(formula, us))
        rows.append({"name": name, "U": use, "tau_rec_ms": rec, "tau_facil_ms": facil, "period_ms": period,
                     "u_relaxes_to": rest, "u_after_its_jump": us, "x_before_release": xs,
                     "released": [a * b for a, b in zip(us, xs)], "u_in_the_limit": u_end, "x_in_the_limit": x_end,
                     "released_in_the_limit": u_end * x_end})
    return rows


# ---------------------------------------------------------------- spike-timing dependent plasticity
def stdp():
    """dt = t_post - t_pre: A_plus exp(-dt/tau_plus) for dt > 0, -A_minus exp(dt/tau_minus) for dt < 0, additive, no bounds."""
    ap, am, tp, tm = mpf("0.01"), mpf("0.012"), mpf(20), mpf(25)
    window = lambda d: ap * exp(-d / tp) if d > 0 else -am * exp(d / tm)
    ds = [mpf(x) for x in (-100, -50, -20, -10, -5, -1, "-0.1", "0.1", 1, 5, 10, 20, 50, 100)]
    pre = [mpf(x) for x in (5, 17, 30, "30.5", 61, 90)]
    post = [mpf(x) for x in (8, 16, 33, 47, "60.5", 75, 95)]
    pairs = sum(window(b - a) for a in pre for b in post)
    # by traces, in the order of time: at pre w -= am ybar, at post w += ap xbar
    w, xs, ys, last, path = mpf(0), mpf(0), mpf(0), mpf(0), []
    for t, is_post in sorted([(t, False) for t in pre] + [(t, True) for t in post]):
        xs, ys, last = xs * exp(-(t - last) / tp), ys * exp(-(t - last) / tm), t
        w += ap * xs if is_post else -am * ys
        xs, ys = (xs, ys + 1) if is_post else (xs + 1, ys)
        path.append(w)
    assert abs(w - pairs) < mpf(10) ** -40
    near = sum(ap * exp(-(b - max(a for a in pre if a < b)) / tp) for b in post if any(a < b for a in pre)) \
        - sum(am * exp(-(a - max(b for b in post if b < a)) / tm) for a in pre if any(b < a for b in post))
    return {"A_plus": ap, "A_minus": am, "tau_plus_ms": tp, "tau_minus_ms": tm, "dt_ms": ds, "dw": [window(d) for d in ds],
            "trains": {"pre_ms": pre, "post_ms": post, "dw_all_pairs": pairs, "dw_nearest_spikes": near,
                       "event_ms": sorted(pre + post), "dw_after_each_event_all_pairs": path}}


def plain(x):
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    return float(x) if isinstance(x, mpf) else x


def main():
    current, cross = currents()
    store("synapse_closed_forms", plain({
        "what": "synapses in closed form; conventions in README.md", "current_synapses": current,
        "conductances": conductances(), "tsodyks_markram": tsodyks_markram(), "stdp": stdp(), "cross_check": cross,
        "versions": versions("mpmath")}))


if __name__ == "__main__":
    main()

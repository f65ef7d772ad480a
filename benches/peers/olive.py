"""What the inferior-olive peers share: the study's network, derivatives for any array library, and known answers.

The model is Landsmeer et al., Neurocomputing 598:127953 (2024): 14 states per cell, forward Euler with dt 0.025 ms, all
derivatives from the old state, gap junctions as a list of directed pairs. Units: mV, ms, mS/cm2, uA/cm2, uF/cm2.
"""
import os
import pathlib
import sys

import numpy as np

import peer

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "inferior_olive"))
import study_network                                                    # noqa: E402

FUSED, DT = 40, peer.DT
VS, K, L, HS, N, XS, VA, HA, XA, VD, CA, R, S, Q = range(14)            # rows of the state
GATES = {K: 0.7423159, L: 0.0321349, HS: 0.3596066, N: 0.2369847, XS: 0.1, HA: 0.9, XA: 0.2369847, CA: 3.715, R: 0.0113,
         S: 0.0049291, Q: 0.0337836}
REFERENCE = ROOT / ".." / "shared" / "data" / "io" / "io_n64_seed42.npz"
# 64 cells, seed 42, double precision, connected: soma of the first four cells and the mean over all, by time in ms
KNOWN = {1: ([-57.0155110936, -58.6879244103, -58.4060416918, -55.0024801478], -58.5594416148),
         10: ([-53.1837186511, -54.9309365804, -55.3432528159, -52.1528425024], -54.5192790446),
         100: ([-62.4284845243, -62.4800719771, -62.4628522939, -62.399990281], -62.4503427078),
         1000: ([-43.62309323, -43.62315513, -43.6231871, -43.62307124], -43.62311234)}
# the same without junctions, first three cells and the mean, after 1000 ms
KNOWN_APART = ([-45.4405582, -42.71417405, -41.49383125], -44.28549562)


def options(extra=()):
    a = peer.options(("f64", "f32"), [
        *extra,
        (("--apart",), dict(action="store_true", help="without gap junctions")),
        (("--network",), dict(help="`potentials`, `src` and `tgt` as .npz; by default the study's network is drawn")),
        (("--final",), dict(help="write the potentials of all somata after the first run (.npy)")),
        (("--form",), dict(choices=("tuned", "study"), default="tuned",
                           help="tuned: 14 arrays, products and few divisions; "
                                "study: one array [14, N] and the equations as they are printed")),
        (("--trust",), dict(action="store_true", help="do not compare with the known answers before timing"))],
        size=(("--side",), dict(type=int, default=20, help="cells are side^3")))
    a.cells = a.side ** 3
    if a.steps % getattr(a, "fused", FUSED):
        sys.exit(f"--steps must be a multiple of {getattr(a, 'fused', FUSED)}")
    return a


def network(a):
    """Initial state [14, N], sources, targets."""
    if a.network:
        with np.load(a.network) as file:
            potentials, src, tgt = file["potentials"], file["src"], file["tgt"]
        assert potentials.shape == (3, a.cells), (potentials.shape, a.cells)
    else:
        potentials, src, tgt = study_network.network(a.side)
    return initial(potentials), src, tgt


def initial(potentials):
    state = np.empty((14, potentials.shape[1]))
    for row, value in GATES.items():
        state[row] = value
    state[[VS, VA, VD]] = potentials
    return state


def study(lib, state, gap):
    """The derivative of 14 arrays as it is printed; `lib` has exp and minimum, `gap` is what the junctions bring."""
    exp = lib.exp
    vs, k, l, hs, n, xs, va, ha, xa, vd, ca, r, s, q = state

    def alpha(v):
        return 0.13 * (v + 25) / (1 - exp(-(v + 25) / 10))

    def beta(v):
        return 1.69 * exp(-(v + 35) / 80)

    m = 1 / (1 + exp(-(vs + 30) / 5.5))
    soma = (0.016 * (vs - 10) + 0.13 / 0.25 * (vs - vd) + 0.13 / (1 - 0.15) * (vs - va) + 1.1 * k ** 3 * l * (vs - 120)
            + 150 * m ** 3 * hs * (vs - 55) + 9 * n ** 4 * (vs + 75) + 5 * xs ** 4 * (vs + 75))
    m = 1 / (1 + exp(-(va + 30) / 5.5))
    axon = 0.016 * (va - 10) + 0.13 / 0.15 * (va - vs) + 240 * m ** 3 * ha * (va - 55) + 240 * xa ** 4 * (va + 75)
    i_cah = 4.5 * r ** 2 * (vd - 120)
    dend = 0.01532 * (vd - 10) + 0.13 / (1 - 0.25) * (vd - vs) + i_cah + 35 * s * (vd + 75) + 0.12 * q * (vd + 43)
    alpha_r, beta_r = 1.7 / (1 + exp(-(vd - 5) / 13.9)), 0.02 * (vd + 8.5) / (exp((vd + 8.5) / 5) - 1)
    inf_r, tau_r = alpha_r / (alpha_r + beta_r), 5 / (alpha_r + beta_r)
    alpha_s = lib.minimum(2e-5 * ca, 0.01)
    inf_s, tau_s = alpha_s / (alpha_s + 0.015), 1 / (alpha_s + 0.015)
    inf_xs, tau_xs = alpha(vs) / (alpha(vs) + beta(vs)), 1 / (alpha(vs) + beta(vs))
    inf_xa, tau_xa = alpha(va) / (alpha(va) + beta(va)), 1 / (alpha(va) + beta(va))
    return (
        -soma,
        1 / (1 + exp(-(vs + 61) / 4.2)) - k,
        (1 / (1 + exp((vs + 85) / 8.5)) - l) / (20 * exp((vs + 160) / 30) / (1 + exp((vs + 84) / 7.3)) + 35),
        (1 / (1 + exp((vs + 70) / 5.8)) - hs) / (3 * exp(-(vs + 40) / 33)),
        (1 / (1 + exp(-(vs + 3) / 10)) - n) / (5 + 47 * exp((vs + 50) / 900)),
        (inf_xs - xs) / tau_xs,
        -axon,
        (1 / (1 + exp((va + 60) / 5.8)) - ha) / (1.5 * exp(-(va + 40) / 33)),
        (inf_xa - xa) / tau_xa,
        gap - dend,
        -3 * i_cah - 0.075 * ca,
        (inf_r - r) / tau_r,
        (inf_s - s) / tau_s,
        (1 / (1 + exp((vd + 80) / 4)) - q) / (1 / (exp(-0.086 * vd - 14.6) + exp(0.070 * vd - 1.87))),
    )


def tuned(lib, state, gap):
    """The same with products for powers and as few divisions as an expert would leave."""
    exp = lib.exp
    vs, k, l, hs, n, xs, va, ha, xa, vd, ca, r, s, q = state

    def boltzmann(x):
        return 1 / (1 + exp(-x))

    def x_gate(v, x):
        u = (v + 25) / 10
        alpha = 1.3 * u / (1 - exp(-u))
        return alpha * (1 - x) - 1.69 * exp(-(v + 35) / 80) * x

    m = boltzmann((vs + 30) / 5.5)
    soma = (0.016 * (vs - 10) + 0.13 / 0.25 * (vs - vd) + 0.13 / 0.85 * (vs - va) + 1.1 * (k * k * k) * l * (vs - 120)
            + 150 * (m * m * m) * hs * (vs - 55) + (9 * (n * n) * (n * n) + 5 * (xs * xs) * (xs * xs)) * (vs + 75))
    m = boltzmann((va + 30) / 5.5)
    axon = (0.016 * (va - 10) + 0.13 / 0.15 * (va - vs) + 240 * (m * m * m) * ha * (va - 55)
            + 240 * (xa * xa) * (xa * xa) * (va + 75))
    i_cah = 4.5 * r * r * (vd - 120)
    dend = 0.01532 * (vd - 10) + 0.13 / 0.75 * (vd - vs) + i_cah + 35 * s * (vd + 75) + 0.12 * q * (vd + 43)
    u = (vd + 8.5) / 5
    return (
        -soma,
        boltzmann((vs + 61) / 4.2) - k,
        (boltzmann(-(vs + 85) / 8.5) - l) / (35 + 20 * exp((vs + 160) / 30) / (1 + exp((vs + 84) / 7.3))),
        (boltzmann(-(vs + 70) / 5.8) - hs) * (exp((vs + 40) / 33) / 3),
        (boltzmann((vs + 3) / 10) - n) / (5 + 47 * exp((vs + 50) / 900)),
        x_gate(vs, xs),
        -axon,
        (boltzmann(-(va + 60) / 5.8) - ha) * (exp((va + 40) / 33) / 1.5),
        x_gate(va, xa),
        gap - dend,
        -3 * i_cah - 0.075 * ca,
        0.2 * (1.7 * boltzmann((vd - 5) / 13.9) * (1 - r) - 0.1 * u / (exp(u) - 1) * r),
        lib.minimum(2e-5 * ca, 0.01) * (1 - s) - 0.015 * s,
        (boltzmann(-(vd + 80) / 4) - q) * (exp(-0.086 * vd - 14.6) + exp(0.070 * vd - 1.87)),
    )


def junction(lib, difference):
    """Inward current of a junction; `difference` is there minus here."""
    return 0.05 * difference * (0.2 + 0.8 * lib.exp(difference * difference * -0.01))


def verify(a, make):
    """Compares with the known answers. `make(state, src, tgt)` gives a function of a number of steps, which returns the
    state behind them; without junctions, both lists are None."""
    relative, absolute = (1e-9, 0.0) if a.precision == "f64" else (0.0, 0.02)
    potentials, src, tgt = study_network.network(4)

    def compare(what, got, expected, at_least=0.0):
        wrong = np.abs(got - expected) > absolute + max(relative, at_least) * np.abs(expected)
        if wrong.any():
            got, expected = np.asarray(got)[wrong], np.asarray(expected)[wrong]
            sys.exit(f"{a.precision}: {what}: {got[:4]} instead of {expected[:4]}")

    if a.apart:
        state = make(initial(potentials), None, None)(40_000)
        compare("soma without junctions", state[VS, :3], KNOWN_APART[0], 2e-9)
        compare("mean soma without junctions", state[VS].mean(keepdims=True), np.array(KNOWN_APART[1:]), 2e-9)
        return
    advance, now = make(initial(potentials), src, tgt), 0
    reference = np.load(REFERENCE) if REFERENCE.exists() and a.precision == "f64" else None
    for at, (first, mean) in KNOWN.items():
        state = advance(FUSED * (at - now))
        now = at
        compare(f"soma after {at} ms", state[VS, :4], first)
        compare(f"mean soma after {at} ms", state[VS].mean(keepdims=True), np.array([mean]))
        if reference is not None:
            row = list(reference["t_ms"]).index(at)
            compare(f"all states after {at} ms", state, reference["state"][row])


def measure(a, tool, version, make, more=dict):
    """Verifies, times and reports, and what else `more` tells afterwards."""
    import time
    if not a.trust:
        verify(a, make)
    state, src, tgt = network(a)
    t = time.perf_counter()
    advance = make(state, *((None, None) if a.apart else (src, tgt)))
    setup = time.perf_counter() - t
    first = []

    def run():
        t = time.perf_counter()
        advance(a.steps, fetch=False)
        t = time.perf_counter() - t
        if not first:
            first.append(advance(0)[VS])
        return t

    best = peer.timed(run, a.repeat)
    if a.final:
        np.save(a.final, first[0])
    peer.report(tool, version, a, setup, best, first[0].mean(), connected=not a.apart, form=a.form,
                verified=not a.trust, **more())


DERIVATIVE = {"study": study, "tuned": tuned}


def use_one_thread():
    ours = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ours}".strip()

"""Channels of the library at fixed voltages: steady states, time constants, currents, and relaxation for 4 ms.

Straight from the published formulas, in the form in which they are published (mV, ms, mS/cm2, uA/cm2, mM). A channel is
a Channel(g, e, gates) with the current g x1^p1 x2^p2 ... (v - e), or one with a current of its own. A gate is
(power, inf, tau, q): x' = q (inf - x) / tau; tau None is an instantaneous one. Sources: README.md.
"""
import math
from dataclasses import dataclass, field
from typing import Callable, Optional

from common import store

exp, log = math.exp, math.log
GAS, FARADAY = 8.314462618, 96485.33212         # J/K/mol, C/mol
NEARLY_CLOSED, START, DURATION = 0.001, 0.3, 4.0       # gates when currents are taken, and before they relax; ms
STEP = 40.0                                             # mV, of gates with fractions, which begin at their steady state


@dataclass
class Channel:
    g: float
    e: Optional[float]
    gates: dict
    current: Optional[Callable] = None
    parts: dict = field(default_factory=dict)   # gates with fractions: name -> [(weight, inf, tau)]


def linoid(x, y):
    """x / (1 - exp(-x / y)), which is y where x is 0."""
    return y if x == 0.0 else x / -math.expm1(-x / y)


def linoid_down(x, y):
    """x / (exp(x / y) - 1), which is y where x is 0."""
    return y if x == 0.0 else x / math.expm1(x / y)


def boltzmann(v, mid, k):
    return 1.0 / (1.0 + exp((v - mid) / k))


def rates(power, a, b, q=1.0):
    return power, a / (a + b), 1.0 / (a + b), q


def nernst_ca(kelvin, outside, inside):
    return 1000.0 * GAS * kelvin / (2.0 * FARADAY) * log(outside / inside)


# ---------------------------------------------------------------- Hay et al. 2011, 34 degC, original 21 degC
def pyramidal(v, kelvin, ca):
    qt = 2.3**((kelvin - 273.15 - 21.0) / 10.0)

    def na(shift):
        return {"m": rates(3, 0.182 * linoid(v + 38.0 - shift, 6.0), 0.124 * linoid(-v - 38.0 + shift, 6.0), qt),
                "h": rates(1, 0.015 * linoid_down(v + 66.0 - shift, 6.0),
                           0.015 * linoid_down(-v - 66.0 + shift, 6.0), qt)}

    alpha_p, beta_p = 0.182 * linoid(v + 38.0, 6.0), 0.124 * linoid(-v - 38.0, 6.0)
    alpha_ph, beta_ph = 2.88e-6 * linoid_down(v + 17.0, 4.63), 6.94e-6 * linoid(v + 64.4, 2.63)
    w = v + 10.0                                # the junction potential
    tau_kp = 1.25 + 175.03 * exp(w * 0.026) if w < -50.0 else 1.25 + 13.0 * exp(-w * 0.026)
    return {
        "NaTa": Channel(2040.0, 50.0, na(0.0)),
        "NaTs": Channel(980.0, 50.0, na(6.0)),
        "NaP": Channel(1.72, 50.0, {"m": (3, boltzmann(v, -52.6, -4.6), 6.0 / (alpha_p + beta_p), qt),
                                    "h": (1, boltzmann(v, -48.8, 10.0), 1.0 / (alpha_ph + beta_ph), qt)}),
        "KP": Channel(2.23, -85.0, {
            "m": (2, boltzmann(w, -1.0, -12.0), tau_kp, qt),
            "h": (1, boltzmann(w, -54.0, 11.0),
                  360.0 + (1010.0 + 24.0 * (w + 55.0)) * exp(-((w + 75.0) / 48.0)**2), qt)}),
        "KT": Channel(81.2, -85.0, {
            "m": (4, boltzmann(w, 0.0, -19.0), 0.34 + 0.92 * exp(-((w + 71.0) / 59.0)**2), qt),
            "h": (1, boltzmann(w, -66.0, 10.0), 8.0 + 49.0 * exp(-((w + 73.0) / 23.0)**2), qt)}),
        "Kv31": Channel(693.0, -85.0, {
            "m": (1, boltzmann(v, 18.7, -9.7), 0.2 * 20.0 * boltzmann(v, -46.56, -44.14), 1.0)}),
        "M": Channel(0.0675, -85.0, {"m": rates(1, 3.3e-3 * exp(2.5 * 0.04 * (v + 35.0)),
                                                3.3e-3 * exp(-2.5 * 0.04 * (v + 35.0)), qt)}),
        "Ih": Channel(0.2, -45.0, {
            "m": rates(1, 0.001 * 6.43 * linoid_down(v + 154.9, 11.9), 0.001 * 193.0 * exp(v / 33.1))}),
        "CaHVA": Channel(0.992, 131.0, {
            "m": rates(2, 0.055 * linoid_down(-27.0 - v, 3.8), 0.94 * exp((-75.0 - v) / 17.0)),
            "h": rates(1, 0.000457 * exp((-13.0 - v) / 50.0), 0.0065 / (exp((-v - 15.0) / 28.0) + 1.0))}),
        "CaLVA": Channel(3.43, 131.0, {
            "m": (2, boltzmann(w, -30.0, -6.0), 5.0 + 20.0 * boltzmann(w, -25.0, 5.0), qt),
            "h": (1, boltzmann(w, -80.0, 6.4), 20.0 + 50.0 * boltzmann(w, -40.0, 7.0), qt)}),
        "SK": Channel(44.1, -85.0, {"z": (1, 1.0 / (1.0 + (0.00043 / ca)**4.8), 1.0, 1.0)}),
    }


# ---------------------------------------------------------------- Connor et al. 1977
def connor_stevens(v, kelvin, ca):
    return {
        "Na": Channel(120.0, 55.0, {
            "m": rates(3, 0.38 * linoid(v + 29.7, 10.0), 15.2 * exp(-0.0556 * (v + 54.7))),
            "h": rates(1, 0.266 * exp(-0.05 * (v + 48.0)), 3.8 * boltzmann(v, -18.0, -10.0))}),
        "K": Channel(20.0, -72.0, {"n": rates(4, 0.02 * linoid(v + 45.7, 10.0), 0.25 * exp(-0.0125 * (v + 55.7)))}),
        "A": Channel(47.7, -75.0, {
            "a": (3, math.pow(0.0761 * exp(0.0314 * (v + 94.22)) / (1.0 + exp(0.0346 * (v + 1.17))), 1.0 / 3.0),
                  0.3632 + 1.158 / (1.0 + exp(0.0497 * (v + 55.96))), 1.0),
            "b": (1, (1.0 + exp(0.0688 * (v + 53.3)))**-4.0, 1.24 + 2.678 / (1.0 + exp(0.0624 * (v + 50.0))), 1.0)}),
        "Leak": Channel(0.3, -17.0, {}),
    }


# ---------------------------------------------------------------- Wang and Buzsaki 1996
def wang_buzsaki(v, kelvin, ca):
    am, bm = 0.1 * linoid(v + 35.0, 10.0), 4.0 * exp(-(v + 60.0) / 18.0)
    return {
        "Na": Channel(35.0, 55.0, {"m": (3, am / (am + bm), None, 1.0),
                                   "h": rates(1, 0.07 * exp(-(v + 58.0) / 20.0), boltzmann(v, -28.0, -10.0), 5.0)}),
        "K": Channel(9.0, -90.0, {"n": rates(4, 0.01 * linoid(v + 34.0, 10.0), 0.125 * exp(-(v + 44.0) / 80.0), 5.0)}),
        "Leak": Channel(0.1, -65.0, {}),
    }


# ---------------------------------------------------------------- Prinz et al. 2003
def stomatogastric(v, kelvin, ca):
    e_ca = nernst_ca(kelvin, 3.0, ca)
    return {
        "Na": Channel(200.0, 50.0, {
            "m": (3, boltzmann(v, -25.5, -5.29), 2.64 - 2.52 * boltzmann(v, -120.0, -25.0), 1.0),
            "h": (1, boltzmann(v, -48.9, 5.18),
                  1.34 / (1.0 + exp(-(v + 62.9) / 10.0)) * (1.5 + 1.0 / (1.0 + exp((v + 34.9) / 3.6))), 1.0)}),
        "CaT": Channel(2.5, e_ca, {
            "m": (3, boltzmann(v, -27.1, -7.2), 43.4 - 42.6 * boltzmann(v, -68.1, -20.5), 1.0),
            "h": (1, boltzmann(v, -32.1, 5.5), 210.0 - 179.6 * boltzmann(v, -55.0, -16.9), 1.0)}),
        "CaS": Channel(4.0, e_ca, {
            "m": (3, boltzmann(v, -33.0, -8.1), 2.8 + 14.0 / (exp((v + 27.0) / 10.0) + exp((v + 70.0) / -13.0)), 1.0),
            "h": (1, boltzmann(v, -60.0, 6.2),
                  120.0 + 300.0 / (exp((v + 55.0) / 9.0) + exp((v + 65.0) / -16.0)), 1.0)}),
        "A": Channel(50.0, -80.0, {"m": (3, boltzmann(v, -27.2, -8.7), 23.2 - 20.8 * boltzmann(v, -32.9, -15.2), 1.0),
                                   "h": (1, boltzmann(v, -56.9, 4.9), 77.2 - 58.4 * boltzmann(v, -38.9, -26.5), 1.0)}),
        "KCa": Channel(5.0, -80.0, {"m": (4, ca / (ca + 0.003) * boltzmann(v, -28.3, -12.6),
                                          180.6 - 150.2 * boltzmann(v, -46.0, -22.7), 1.0)}),
        "Kd": Channel(50.0, -80.0, {
            "n": (4, boltzmann(v, -12.3, -11.8), 14.4 - 12.8 * boltzmann(v, -28.3, -19.2), 1.0)}),
        "H": Channel(0.01, -20.0, {"m": (1, boltzmann(v, -75.0, 5.5),
                                         2.0 / (exp((v + 169.7) / -11.6) + exp((v - 26.7) / 14.3)), 1.0)}),
        "Leak": Channel(0.02, -50.0, {}),
    }


# ---------------------------------------------------------------- Traub et al. 1991; u is counted from rest
def ca3(v, kelvin, ca):
    u = v + 60.0
    ar = 0.005 if u <= 0.0 else exp(-u / 20.0) / 200.0
    br = 0.0 if u <= 0.0 else 0.005 - ar
    if u < 50.0:
        ac = exp((u - 10.0) / 11.0 - (u - 6.5) / 27.0) / 18.975
        bc = 2.0 * exp(-(u - 6.5) / 27.0) - ac
    else:
        ac, bc = 2.0 * exp(-(u - 6.5) / 27.0), 0.0
    return {
        "Na": Channel(30.0, 55.0, {
            "m": rates(2, 0.32 * linoid_down(13.1 - u, 4.0), 0.28 * linoid_down(u - 40.1, 5.0)),
            "h": rates(1, 0.128 * exp((17.0 - u) / 18.0), 4.0 / (1.0 + exp((40.0 - u) / 5.0)))}),
        "Kdr": Channel(15.0, -75.0, {"n": rates(1, 0.016 * linoid_down(35.1 - u, 5.0), 0.25 * exp((20.0 - u) / 40.0))}),
        "A": Channel(5.0, -75.0, {
            "a": rates(1, 0.02 * linoid_down(13.1 - u, 10.0), 0.0175 * linoid_down(u - 40.1, 10.0)),
            "b": rates(1, 0.0016 * exp((-13.0 - u) / 18.0), 0.05 / (1.0 + exp((10.1 - u) / 5.0)))}),
        "CaHVA": Channel(4.0, 80.0, {
            "s": rates(2, 1.6 / (1.0 + exp(-0.072 * (u - 65.0))), 0.02 * linoid_down(u - 51.1, 5.0)),
            "r": rates(1, ar, br)}),
        "KC": Channel(10.0, -75.0, {"c": rates(1, ac, bc)},
                      lambda x, ch: ch.g * x["c"] * min(1.0, ca / 250.0) * (v - ch.e)),
        "KAHP": Channel(0.8, -75.0, {"q": rates(1, min(0.2e-4 * ca, 0.01), 0.001)}),
        "Leak": Channel(0.1, -60.0, {}),
    }


# ---------------------------------------------------------------- Migliore et al. 1999
def ca1(v, kelvin, ca):
    celsius = kelvin - 273.15
    qna, qka, qh = 2.0**((celsius - 24.0) / 10.0), 5.0**((celsius - 24.0) / 10.0), 4.5**((celsius - 33.0) / 10.0)
    per_mv = 1e-3 * 9.648e4 / (8.315 * kelvin)
    am, bm = 0.4 * linoid(v + 30.0, 7.2), 0.124 * linoid(-(v + 30.0), 7.2)
    ah, bh = 0.03 * linoid(v + 45.0, 1.5), 0.01 * linoid(-(v + 45.0), 1.5)

    def ka(zeta, half, gm, a0, least):
        z = zeta - 1.0 / (1.0 + exp((v + 40.0) / 5.0))
        alpha, beta = exp(z * (v - half) * per_mv), exp(z * gm * (v - half) * per_mv)
        return {"n": (1, 1.0 / (1.0 + alpha), max(beta / (qka * a0 * (1.0 + alpha)), least), 1.0),
                "l": (1, 1.0 / (1.0 + exp(3.0 * (v + 56.0) * per_mv)), max(0.26 * (v + 50.0), 2.0), 1.0)}

    a_dr, b_dr = exp(-3.0 * (v - 13.0) * per_mv), exp(-3.0 * 0.7 * (v - 13.0) * per_mv)
    a_h, b_h = exp(0.0378 * 2.2 * (v + 75.0)), exp(0.0378 * 2.2 * 0.4 * (v + 75.0))
    return {
        "Na": Channel(25.0, 50.0, {"m": (3, am / (am + bm), max(1.0 / (am + bm) / qna, 0.02), 1.0),
                                   "h": (1, boltzmann(v, -50.0, 4.0), max(1.0 / (ah + bh) / qna, 0.5), 1.0)}),
        "Kdr": Channel(10.0, -90.0, {"n": (1, 1.0 / (1.0 + a_dr), max(b_dr / (0.02 * (1.0 + a_dr)), 2.0), 1.0)}),
        "KaProximal": Channel(30.0, -90.0, ka(-1.5, 11.0, 0.55, 0.05, 0.1)),
        "KaDistal": Channel(30.0, -90.0, ka(-1.8, -1.0, 0.39, 0.1, 0.2)),
        "H": Channel(0.05, -30.0, {"l": (1, boltzmann(v, -73.0, 8.0), b_h / (0.011 * (1.0 + a_h)), qh)}),
        "Leak": Channel(0.0357, -65.0, {}),
    }


# ---------------------------------------------------------------- Maex and De Schutter 1998, in V, s; u is 10 mV below
def granule(v, kelvin, ca):
    u = 1e-3 * (v - 10.0)
    ams, bms = 1500.0 * exp(81.0 * (u + 0.039)), 1500.0 * exp(-66.0 * (u + 0.039))
    ahs, bhs = 120.0 * exp(-89.0 * (u + 0.050)), 120.0 * exp(89.0 * (u + 0.050))
    a_kh = 0.76 if u > -0.046 else 0.7 + 0.065 * exp(-80.0 * (u + 0.046))
    a_cah = 5.0 if u < -0.060 else 5.0 * exp(-50.0 * (u + 0.060))

    def per_s(power, a, b):
        return rates(power, 1e-3 * a, 1e-3 * b, 5.0)

    return {
        "NaF": Channel(55.7227, 55.0, {"m": (3, ams / (ams + bms), 1e3 * max(1.0 / (ams + bms), 5e-5), 5.0),
                                       "h": (1, ahs / (ahs + bhs), 1e3 * max(1.0 / (ahs + bhs), 2.25e-4), 5.0)}),
        "Kdr": Channel(8.89691, -90.0, {
            "m": per_s(4, 170.0 * exp(73.0 * (u + 0.038)), 170.0 * exp(-18.0 * (u + 0.038))),
            "h": per_s(1, a_kh, 1.1 / (1.0 + exp(-80.7 * (u + 0.044))))}),
        "KA": Channel(1.14567, -90.0, {
            "m": (3, boltzmann(1e3 * u, -46.7, -19.8), 0.41 * exp((1e3 * u + 43.5) / -42.8) + 0.167, 1.0),
            "h": (1, boltzmann(1e3 * u, -78.8, 8.4),
                  10.8 + 0.03 * u * 1000.0 + 1.0 / (57.9 * exp(u * 127.0) + 134e-6 * exp(u * -59.0)), 1.0)}),
        "H": Channel(0.03090506, -42.0, {"n": per_s(1, 0.8 * exp(-90.9 * (u + 0.075)), 0.8 * exp(90.9 * (u + 0.075)))}),
        "CaHVA": Channel(0.9084216, 80.0, {
            "m": per_s(2, 1600.0 / (1.0 + exp(-72.0 * (u - 0.005))), 20.0 * linoid_down(1e3 * u + 8.9, 5.0)),
            "h": per_s(1, a_cah, 5.0 - a_cah)}),
        "KCa": Channel(17.9811, -90.0, {"m": per_s(1, 2500.0 / (1.0 + 1.5e-3 * exp(-85.0 * u) / ca),
                                                   1500.0 / (1.0 + ca / (1.5e-4 * exp(-77.0 * u))))}),
        "Leak": Channel(0.0330033, -65.0, {}),
    }


# ---------------------------------------------------------------- De Schutter and Bower 1994
def purkinje(v, kelvin, ca):
    def form(a, c, d, f):
        """The paper's a / (c + exp((v + d) / f))."""
        return a / (c + exp((v + d) / f))

    def kdr(w):
        """Five times the rates of Yamada et al. 1989. The table has 23.5 /s/mV and 5.0 /ms: in one unit the channel would be open at rest."""
        return -23.5 * -linoid_down(-(w + 12.0), 12.0) / 1000.0, 5.0 * exp(-(w + 147.0) / 30.0)

    (a_inf, b_inf), (a_tau, b_tau) = kdr(v - 20.0), kdr(v)
    h = boltzmann(v, -82.0, 7.0)
    return {
        "NaF": Channel(7500.0, 45.0, {"m": rates(3, form(35.0, 0.0, 5.0, -10.0), form(7.0, 0.0, 65.0, 20.0)),
                                            "h": rates(1, form(0.225, 1.0, 80.0, 10.0), form(7.5, 0.0, -3.0, -18.0))}),
        "NaP": Channel(1.0, 45.0, {"m": rates(3, form(200.0, 1.0, -18.0, -16.0), form(25.0, 1.0, 58.0, 8.0))}),
        "CaP": Channel(4.5, 135.0, {"m": rates(1, form(8.5, 1.0, -8.0, -12.5), form(35.0, 1.0, 74.0, 14.5)),
                                    "h": rates(1, form(0.0015, 1.0, 29.0, 8.0), form(0.0055, 1.0, 23.0, -8.0))}),
        "CaT": Channel(0.5, 135.0, {"m": rates(1, form(2.6, 1.0, 21.0, -8.0), form(0.18, 1.0, 40.0, 4.0)),
                                    "h": rates(1, form(0.0025, 1.0, 40.0, 8.0), form(0.19, 1.0, 50.0, -10.0))}),
        "KA": Channel(15.0, -85.0, {"m": rates(4, form(1.4, 1.0, 27.0, -12.0), form(0.49, 1.0, 30.0, 4.0)),
                                    "h": rates(1, form(0.0175, 1.0, 50.0, 8.0), form(1.3, 1.0, 13.0, -10.0))}),
        "Kdr": Channel(600.0, -85.0, {"m": (2, a_inf / (a_inf + b_inf), 1.0 / (a_tau + b_tau), 1.0),
                                      "h": (1, boltzmann(v, -25.0, 4.0), 1200.0 if v < -25.0 else 10.0, 1.0)}),
        "KM": Channel(0.04, -85.0, {"m": (1, boltzmann(v, -35.0, -10.0),
                                          200.0 / (3.3 * exp((v + 35.0) / 20.0) + exp(-(v + 35.0) / 20.0)), 1.0)}),
        "KC": Channel(80.0, -85.0, {"m": rates(1, 7.5, form(0.11, 0.0, -35.0, 14.9)),
                                    "z": (2, 1.0 / (1.0 + 4e-3 / ca), 10.0, 1.0)}),
        "K2": Channel(0.39, -85.0, {"m": rates(1, 25.0, form(0.075, 0.0, 25.0, 6.0)),
                                    "z": (2, 1.0 / (1.0 + 0.2e-3 / ca), 10.0, 1.0)}),
        "H": Channel(0.3, -30.0, {}, lambda x, ch: ch.g * x["n"] * (v - ch.e), {"n": [(0.8, h, 7.6), (0.2, h, 36.8)]}),
        "Leak": Channel(0.1, -80.0, {}),
    }


# ---------------------------------------------------------------- thalamus; shift 2 mV
def thalamus(v, kelvin, ca):
    celsius, w = kelvin - 273.15, v + 2.0
    q_a, q_m, q_h = 3.0**((celsius - 23.5) / 10.0), 5.0**((celsius - 24.0) / 10.0), 3.0**((celsius - 24.0) / 10.0)
    tau_a = 1.0 / (exp((v + 35.82) / 19.69) + exp(-(v + 79.69) / 12.7)) + 0.37
    fast = 1.0 / (exp((v + 46.05) / 5.0) + exp(-(v + 238.4) / 37.45))
    h_a = boltzmann(v, -78.0, 6.0)
    tau_h = exp((w + 467.0) / 66.6) if w < -80.0 else 28.0 + exp(-(w + 22.0) / 10.5)

    def ghk(x, ch):
        """cm/s, C/mol, mM to uA/cm2: 1 cm/s C/mol mol/m3 = 1e-2 A/m2 = 1 uA/cm2."""
        z = 2.0 * FARADAY * 1e-3 * v / (GAS * kelvin)
        efun = lambda y: 1.0 if y == 0.0 else y / math.expm1(y)
        return 5e-5 * x["m"]**2 * x["h"] * 2.0 * FARADAY * (ca * efun(-z) - 2.0 * efun(z))

    return {
        "Na": Channel(40.0, 45.0, {
            "m": rates(3, 0.091 * linoid(v + 38.0, 5.0), 0.062 * linoid_down(v + 38.0, 5.0)),
            "h": rates(1, 0.016 * exp((-55.0 - v) / 15.0), 2.07 / (1.0 + exp((17.0 - v) / 21.0)))}),
        "A": Channel(3.45, -105.0, {
            "m1": (4, boltzmann(v, -60.0, -8.5), tau_a, q_a), "m2": (4, boltzmann(v, -36.0, -20.0), tau_a, q_a),
            "h1": (1, h_a, fast if v < -63.0 else 19.0, q_a), "h2": (1, h_a, fast if v < -73.0 else 60.0, q_a)},
            lambda x, ch: ch.g * (0.6 * x["m1"]**4 * x["h1"] + 0.4 * x["m2"]**4 * x["h2"]) * (v - ch.e)),
        "H": Channel(0.05, -43.0, {"m": (1, boltzmann(v, -75.0, 5.5),
                                         1.0 / (exp(-14.59 - 0.086 * v) + exp(-1.87 + 0.0701 * v)), 1.0)}),
        "CaT": Channel(5e-5, None, {
            "m": (2, boltzmann(w, -57.0, -6.2),
                  0.612 + 1.0 / (exp(-(w + 132.0) / 16.7) + exp((w + 16.8) / 18.2)), q_m),
            "h": (1, boltzmann(w, -81.0, 4.0), tau_h, q_h)}, ghk),
        "CaTReticular": Channel(1.75, nernst_ca(kelvin, 2.0, ca), {
            "m": (2, boltzmann(w, -50.0, -7.4), 3.0 + 1.0 / (exp((w + 25.0) / 10.0) + exp(-(w + 100.0) / 15.0)), q_m),
            "h": (1, boltzmann(w, -78.0, 5.0), 85.0 + 1.0 / (exp((w + 46.0) / 4.0) + exp(-(w + 405.0) / 50.0)), q_h)}),
    }


# ---------------------------------------------------------------- Traub et al. 2005; fast sodium moved by -2.5 mV
def column(v, kelvin, ca):
    w = v - 2.5
    if v < -10.0:
        ac = 2.0 / 37.95 * exp((v + 50.0) / 11.0 - (v + 53.5) / 27.0)
        bc = 2.0 * exp((-v - 53.5) / 27.0) - ac
    else:
        ac, bc = 2.0 * exp((-v - 53.5) / 27.0), 0.0
    return {
        "NaF": Channel(60.0, 50.0, {
            "m": (3, 1.0 / (1.0 + exp((-w - 38.0) / 10.0)),
                  0.0125 + 0.1525 * exp((w + 30.0) / 10.0) if w < -30.0 else 0.02 + 0.145 * exp((-w - 30.0) / 10.0),
                  1.0),
            "h": (1, 1.0 / (1.0 + exp((v + 58.3) / 6.7)), 0.225 + 1.125 / (1.0 + exp((v + 37.0) / 15.0)), 1.0)}),
        "NaP": Channel(0.6, 50.0, {
            "m": (3, 1.0 / (1.0 + exp((-w - 38.0) / 10.0)),
                  0.0125 + 0.1525 * exp((w + 30.0) / 10.0) if w < -30.0 else 0.02 + 0.145 * exp((-w - 30.0) / 10.0),
                  1.0)}),
        "Kdr": Channel(100.0, -100.0, {
            "m": (4, 1.0 / (1.0 + exp((-v - 27.0) / 11.5)),
                  0.25 + 4.35 * (exp((v + 10.0) / 10.0) if v <= -10.0 else exp((-v - 10.0) / 10.0)), 1.0)}),
        "KA": Channel(1.0, -100.0, {
            "m": (4, 1.0 / (1.0 + exp((-v - 60.0) / 8.5)),
                  0.185 + 0.5 / (exp((v + 35.8) / 19.7) + exp((-v - 79.7) / 12.7)), 1.0),
            "h": (1, 1.0 / (1.0 + exp((v + 78.0) / 6.0)),
                  0.5 / (exp((v + 46.0) / 5.0) + exp((-v - 238.0) / 37.5)) if v < -63.0 else 9.5, 1.0)}),
        "K2": Channel(0.5, -100.0, {
            "m": (1, 1.0 / (1.0 + exp((-v - 10.0) / 17.0)),
                  4.95 + 0.5 / (exp((v - 81.0) / 25.6) + exp((-v - 132.0) / 18.0)), 1.0),
            "h": (1, 1.0 / (1.0 + exp((v + 58.0) / 10.6)),
                  60.0 + 0.5 / (exp((v - 1.33) / 200.0) + exp((-v - 130.0) / 7.1)), 1.0)}),
        "KM": Channel(0.5, -100.0, {
            "m": rates(1, 0.02 / (1.0 + exp((-v - 20.0) / 5.0)), 0.01 * exp((-v - 43.0) / 18.0))}),
        "KC": Channel(25.0, -100.0, {"m": rates(1, ac, bc, 2.0)},
                      lambda x, ch: ch.g * x["m"] * min(1.0, 0.004 * ca) * (v - ch.e)),
        "KAHP": Channel(0.1, -100.0, {"m": rates(1, ca / 50000.0 if ca < 500.0 else 0.01, 0.001)}),
        "CaL": Channel(0.1, 125.0, {
            "m": rates(2, 1.6 / (1.0 + exp(-0.072 * (v - 5.0))), 0.02 * linoid_down(v + 8.9, 5.0))}),
        "CaT": Channel(0.05, 125.0, {
            "m": (2, 1.0 / (1.0 + exp((-v - 52.0) / 7.4)),
                  1.0 + 0.33 / (exp((v + 27.0) / 10.0) + exp((-v - 102.0) / 15.0)), 1.0),
            "h": (1, 1.0 / (1.0 + exp((v + 80.0) / 5.0)),
                  28.3 + 0.33 / (exp((v + 48.0) / 4.0) + exp((-v - 407.0) / 50.0)), 1.0)}),
        "H": Channel(0.025, -40.0, {"m": (1, 1.0 / (1.0 + exp((v + 75.0) / 5.5)),
                                          1.0 / (exp(-14.6 - 0.086 * v) + exp(-1.87 + 0.07 * v)), 1.0)}),
    }


# ---------------------------------------------------------------- Jahr and Stevens 1990, 1 mM magnesium
def nmda(v, kelvin, ca):
    return {"Nmda": Channel(0.1, 0.0, {"b": (1, 1.0 / (1.0 + exp(-0.062 * v) * 1.0 / 3.57), None, 1.0)})}


# ---------------------------------------------------------------- channels of cells
def morris_lecar(v, kelvin, ca, ca_g=4.4, v3=2.0, v4=30.0, phi=0.04):
    return {"Ca": Channel(ca_g, 120.0, {"m": (1, 0.5 * (1.0 + math.tanh((v + 1.2) / 18.0)), None, 1.0)}),
            "K": Channel(8.0, -84.0, {"w": (1, 0.5 * (1.0 + math.tanh((v - v3) / v4)),
                                            1.0 / math.cosh((v - v3) / (2.0 * v4)) / phi, 1.0)}),
            "Leak": Channel(2.0, -60.0, {})}


def pinsky_rinzel(v, kelvin, ca):
    c = ca3(v, kelvin, 0.0 if ca is None else ca)
    power, m_inf, _, q = c["Na"].gates["m"]
    return {"Na": Channel(30.0, 60.0, {"m": (power, m_inf, None, q), "h": c["Na"].gates["h"]}),
            "CaHVA": Channel(10.0, 80.0, {"s": c["CaHVA"].gates["s"]})}


def butera(v, kelvin, ca):
    """Conductances in nS and currents in pA; by 21 pF these are uA/cm2 and uF/cm2."""
    tau = 10.0 / math.cosh((v + 29.0) / (2.0 * 4.0))
    return {"NaP": Channel(2.8, 50.0, {"m": (1, boltzmann(v, -40.0, -6.0), None, 1.0),
                                       "h": (1, boltzmann(v, -48.0, 6.0),
                                             10000.0 / math.cosh((v + 48.0) / (2.0 * 6.0)), 1.0)}),
            "Na": Channel(28.0, 50.0, {"m": (3, boltzmann(v, -34.0, -5.0), None, 1.0),
                                       "h": (1, boltzmann(v, -29.0, 4.0), tau, 1.0)}),
            "K": Channel(11.2, -85.0, {"n": (4, boltzmann(v, -29.0, -4.0), tau, 1.0)}),
            "Leak": Channel(2.8, -60.0, {})}


def plant(v, kelvin, ca):
    u, q = 127.0 * v / 105.0 + 8265.0 / 105.0, 1.0 / 12.5
    am, bm = 0.1 * linoid_down(50.0 - u, 10.0), 4.0 * exp((25.0 - u) / 18.0)
    return {"Fast": Channel(4.0, 30.0, {
                "m": (3, am / (am + bm), None, 1.0),
                "h": rates(1, 0.07 * exp((25.0 - u) / 20.0), 1.0 / (1.0 + exp((55.0 - u) / 10.0)), q)}),
            "K": Channel(0.3, -75.0, {
                "n": rates(4, 0.01 * linoid_down(55.0 - u, 10.0), 0.125 * exp((45.0 - u) / 80.0), q)}),
            "Slow": Channel(0.01, 30.0, {"x": (1, 1.0 / (exp(0.15 * (-v - 50.0)) + 1.0), 235.0, 1.0)}),
            "KCa": Channel(0.03, -75.0, {"c": (1, ca / (0.5 + ca), None, 1.0)}),
            "Leak": Channel(0.003, -40.0, {})}



# module: formulas, first voltage and step (mV), number of voltages, temperature (degC), calcium at the first and step
MODULES = {
    "pyramidal": (pyramidal, -92, 6, 21, 34.0, 1e-4, 5e-5),
    "connor_stevens": (connor_stevens, -90, 10, 13, None, None, None),
    "wang_buzsaki": (wang_buzsaki, -90, 5, 25, None, None, None),
    "stomatogastric": (stomatogastric, -90, 10, 13, 10.0, 5e-5, 1e-3),
    "ca3": (ca3, -90, 10, 13, None, 0.0, 50.0),
    "ca1": (ca1, -90, 5, 25, 35.0, None, None),
    "granule": (granule, -90, 10, 13, None, 7.55e-5, 1e-3),
    "purkinje": (purkinje, -92, 10, 13, None, 4e-5, 1e-3),
    "thalamus": (thalamus, -90, 10, 13, 36.0, 2.4e-4, 1e-4),
    "column": (column, -90, 10, 13, None, 0.0, 50.0),
    "nmda": (nmda, -90, 10, 13, None, None, None),
    "morris_lecar": (morris_lecar, -90, 10, 13, None, None, None),
    "pinsky_rinzel": (pinsky_rinzel, -90, 10, 13, None, None, None),
    "butera": (butera, -90, 10, 13, None, None, None),
    "plant": (plant, -90, 10, 13, None, 0.0, 0.1),
}


def relaxed(before, inf, tau, q):
    return inf + (before - inf) * exp(-q * DURATION / tau)


def table(formulas, first, step, count, celsius, ca_first, ca_step):
    out = {"v_mV": [float(first + step * k) for k in range(count)]}
    for k, v in enumerate(out["v_mV"]):
        kelvin = None if celsius is None else celsius + 273.15
        ca = None if ca_first is None else ca_first + ca_step * k
        for name, ch in formulas(v, kelvin, ca).items():
            at_first, row = {}, {}
            for gate, (power, inf, tau, q) in ch.gates.items():
                at_first[gate] = NEARLY_CLOSED if tau is not None else inf
                row[f"{name}.{gate}.inf"] = inf
                if tau is not None:
                    row[f"{name}.{gate}.tau"] = tau
                    row[f"{name}.{gate}.end"] = relaxed(START, inf, tau, q)
            for gate, parts in ch.parts.items():
                at_first[gate] = sum(w * inf for w, inf, tau in parts)
                stepped = formulas(v + STEP, kelvin, ca)[name].parts[gate]
                row[f"{name}.{gate}.first"] = at_first[gate]
                row[f"{name}.{gate}.stepped"] = sum(w * relaxed(before, inf, tau, 1.0)
                                                    for (_, before, _), (w, inf, tau) in zip(parts, stepped))
            if formulas is butera:
                pass                            # nA, and nothing that the runs of cells do not show
            elif ch.current:
                row[f"{name}.i"] = ch.current(at_first, ch)
            else:
                row[f"{name}.i"] = ch.g * math.prod(at_first[g]**ch.gates[g][0] for g in ch.gates) * (v - ch.e)
            for key, x in row.items():
                out.setdefault(key, []).append(x)
    return out


def main():
    store("library_channels", {
        "what": "inf, tau without the temperature factor, i with gates at nearly_closed, end of gates that began at "
                "start, first and stepped of gates with fractions, before and after a step of v",
        "nearly_closed": NEARLY_CLOSED, "start": START, "duration_ms": DURATION,
    } | {name: table(*spec) for name, spec in MODULES.items()})


if __name__ == "__main__":
    main()

"""Makes order.npz, the samples of spike_order.neuro: python3 examples/data/order.py

A sample is 60 frames of 1 ms. Each of 12 input cells spikes once: in which order and how far apart says the class, of which there are 8; when it begins
says nothing. Spikes are 1 ms early or late (a standard deviation), and one of ten is missing.
"""

from pathlib import Path

import numpy as np

SAMPLES, FRAMES, INPUTS, CLASSES = 1600, 50, 12, 12

rng = np.random.default_rng(3)
pattern = 2.0 * np.argsort(rng.random((CLASSES, INPUTS)), axis=1)
y = rng.integers(0, CLASSES, SAMPLES).astype(np.uint8)
begin = rng.integers(3, 13, SAMPLES)
time = np.rint(begin[:, None] + pattern[y] + rng.normal(0, 0.7, (SAMPLES, INPUTS))).astype(int).clip(0, FRAMES - 1)
there = rng.random((SAMPLES, INPUTS)) < 0.9
x = np.zeros((SAMPLES, FRAMES, INPUTS), np.uint8)
sample, cell = np.nonzero(there)
x[sample, time[sample, cell], cell] = 1
np.savez_compressed(Path(__file__).with_name("order.npz"), x=x, y=y)

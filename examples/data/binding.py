"""Makes binding.npz, the samples of feature_binding.neuro: python3 examples/data/binding.py

An object has one of two shapes (features 0 and 1) and one of two colours (features 2 and 3), each more or less strong. Class 0 are two combinations,
class 1 the other two, so that every feature alone occurs in both classes as often.
"""

from pathlib import Path

import numpy as np

SAMPLES = 200

rng = np.random.default_rng(1)
pairs = np.array([(0, 2), (1, 3), (0, 3), (1, 2)])
kind = rng.permutation(np.arange(SAMPLES) % len(pairs))
x = np.zeros((SAMPLES, 4))
np.put_along_axis(x, pairs[kind], rng.uniform(0.8, 1.2, (SAMPLES, 2)).round(2), axis=1)
np.savez_compressed(Path(__file__).with_name("binding.npz"), x=x, y=(kind // 2).astype(np.uint8))

"""Makes evidence.npz, the samples of evidence.neuro: python3 examples/data/evidence.py

A sample is 100 frames of 1 ms of spikes of 12 input cells: five cues of 8 ms, each on the left (cells 0 to 3) or on the right (4 to 7),
7 ms apart; a delay; in the last 15 ms the signal to answer (8 and 9). Two cells (10 and 11) spike at random. The class is the side that had more cues.
"""

from pathlib import Path

import numpy as np

SAMPLES, FRAMES, CUES = 800, 100, 5

rng = np.random.default_rng(7)
sides = rng.integers(0, 2, (SAMPLES, CUES))
chance = np.full((SAMPLES, FRAMES, 12), 0.01)
for cue in range(CUES):
    begin = 5 + 15 * cue
    for side in (0, 1):
        which = sides[:, cue] == side
        chance[which, begin : begin + 8, 4 * side : 4 * side + 4] = 0.4
chance[:, 85:, 8:10] = 0.4
chance[:, :, 10:] = 0.05
x = (rng.random(chance.shape) < chance).astype(np.uint8)
y = (sides.sum(axis=1) > CUES / 2).astype(np.uint8)
np.savez_compressed(Path(__file__).with_name("evidence.npz"), x=x, y=y)

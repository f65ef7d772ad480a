"""Writes digits.npz: 1797 handwritten digits of 8 by 8 pixels from scikit-learn (Alpaydin and Kaynak, Optical Recognition of Handwritten
Digits, UCI Machine Learning Repository, 1998, CC BY 4.0). `x`: brightness 0 to 16, samples by pixels; `y`: the digits."""

import pathlib

import numpy
from sklearn.datasets import load_digits

digits = load_digits()
x, y = digits.data.astype(numpy.uint8), digits.target.astype(numpy.uint8)
numpy.savez_compressed(pathlib.Path(__file__).with_suffix(".npz"), x=x, y=y)

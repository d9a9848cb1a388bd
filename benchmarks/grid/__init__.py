"""Designs with known truth to coverage, type I error and power of every estimator, ours and peers'.

One file per family of estimators; each offers `cells()`. `benchmarks/validity.py` runs them and writes the page.
"""

import os

# Matrices are small: threads would only wait for each other. Must come before NumPy is loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

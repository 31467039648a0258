"""What runs emulated: the program of FILE.lbx once, on the arrays of FILE.npz. Prints where its code lies."""

from __future__ import annotations

import sys

import numpy as np

import landbridge as lb
from landbridge.vm.code_image import load_image

executable = lb.load(sys.argv[1])
session = lb.Session(executable, num_threads=1)
with np.load(sys.argv[2]) as given:
    for spec in session.inputs:
        session.set_input(spec.name, given[spec.name])
session.run()
for module in executable.modules:
    loaded = load_image(module.image)
    symbol, offset = next(iter(module.image.symbols.items()))
    print(loaded.address(symbol) - offset)

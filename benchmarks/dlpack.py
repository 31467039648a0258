"""What it costs to exchange a Tensor: with numpy by DLPack both ways, and as the argument of a PackedFunc.

python benchmarks/dlpack.py
"""

from __future__ import annotations

from functools import partial

import numpy as np
import tvm_ffi
from measure import interleaved, write

import landbridge as lb


def main() -> None:
    array = np.ones((16, 64), np.float32)
    borrowed = lb.from_dlpack(array)
    owned = lb.empty((16, 64), dtype="float32")
    narrow = lb.empty((16, 64), dtype="bfloat16")
    theirs = tvm_ffi.from_dlpack(array)
    nothing = tvm_ffi.get_global_func("testing.nop")
    packed = "PackedFunc that does nothing, "
    actions = {
        "lb.from_dlpack(array)": partial(lb.from_dlpack, array),
        "lb.asarray(array)": partial(lb.asarray, array),
        "np.from_dlpack(t), t of lb.empty": partial(np.from_dlpack, owned),
        "np.from_dlpack(t), t of lb.from_dlpack(array)": partial(np.from_dlpack, borrowed),
        "np.asarray(t), t of lb.empty": partial(np.asarray, owned),
        "t.__dlpack__() of bfloat16": narrow.__dlpack__,
        f"{packed}no argument": nothing,
        f"{packed}a Tensor": partial(nothing, owned),
        # peers
        "np.from_dlpack(array)": partial(np.from_dlpack, array),
        "tvm_ffi.from_dlpack(array)": partial(tvm_ffi.from_dlpack, array),
        f"{packed}a tvm_ffi.Tensor": partial(nothing, theirs),
        f"{packed}an array": partial(nothing, array),
    }
    spent = {name: value * 1e6 for name, value in interleaved(actions, rounds=200, calls=1000).items()}
    ours = [name for name in spent if name.startswith(("lb.from_dlpack", "np.from_dlpack(t)"))]
    goals = dict.fromkeys(ours, 1.0)
    rows = [(name, value, "us", goals.get(name, "")) for name, value in spent.items()]
    argument = spent[f"{packed}a Tensor"] - spent[f"{packed}no argument"]
    rows.append(("of which the Tensor argument", argument, "us", 0.3))
    write("dlpack", ("what", "median", "unit", "goal"), rows)


if __name__ == "__main__":
    main()

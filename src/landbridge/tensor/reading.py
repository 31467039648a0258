"""Reading of a Tensor's elements through numpy: by index, as a list, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np


class _Tensor(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    def numpy(self) -> np.ndarray[Any, Any]: ...


class Readable:
    """A mixin that reads elements over ``__array__`` without copies. It raises HostViewError as that does."""

    __slots__ = ()

    def numpy(self: _Tensor) -> np.ndarray[Any, Any]:
        """Returns a numpy array over the bytes, without a copy; raises HostViewError where the host cannot read them in
        place.

        ``t.to_device("cpu").numpy()`` copies such memory.
        """
        return self.__array__()

    def tolist(self: _Tensor) -> Any:
        """Returns the elements as nested lists of Python numbers, or one number for a scalar."""
        return self.numpy().tolist()

    def item(self: _Tensor) -> Any:
        """Returns the one element as a Python number; raises ValueError where there are several."""
        return self.numpy().item()

    def __getitem__(self: _Tensor, key: Any) -> Any:
        """Returns numpy's result for ``key``: a view of the elements, or one of them."""
        return self.numpy()[key]

    def __len__(self: _Tensor) -> int:
        """Returns the first extent; raises TypeError for a scalar."""
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __iter__(self: _Tensor) -> Iterator[Any]:
        return iter(self.numpy())

    def __float__(self: _Tensor) -> float:
        return float(self.numpy().item())

    def __int__(self: _Tensor) -> int:
        return int(self.numpy().item())

    def __bool__(self: _Tensor) -> bool:
        """Returns whether the one element is not zero; raises ValueError where there are several, as numpy does."""
        return bool(self.numpy())

"""Tensors of any size and place on a device that copies words alone: neighbours keep their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import CopyForbiddenError
from landbridge.memory.ledger import ledger
from tests.testing.admitted import admitted
from tests.testing.honest_devices import CopiesWords

N = 41


class Words(CopiesWords):
    """Tensors begin at any byte."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds = {scope: replace(kind, offset_alignment=1) for scope, kind in self._kinds.items()}


@pytest.fixture
def device() -> Iterator[lb.Device]:
    with admitted(Words()):
        yield lb.device("mutant")


def filled(device: lb.Device, seed: int, nbytes: int = N) -> lb.Tensor:
    return lb.asarray(bytes_of(seed, nbytes)).to_device(device)


def bytes_of(seed: int, nbytes: int = N) -> np.ndarray:
    return (np.arange(nbytes) * 7 + seed).astype(np.uint8)


def part(tensor: lb.Tensor, start: int, nbytes: int) -> lb.Tensor:
    return lb.Tensor(tensor.storage, "uint8", (nbytes,), None, start)


@pytest.mark.parametrize("nbytes", [1, 3, 4, 5, N])
def test_there_and_back(device: lb.Device, nbytes: int) -> None:
    assert (np.asarray(filled(device, 1, nbytes).to_device("cpu")) == bytes_of(1, nbytes)).all()


@pytest.mark.parametrize(("source", "target"), [(0, 0), (1, 1), (3, 7), (2, 5), (5, 2), (4, 8)])
@pytest.mark.parametrize("nbytes", [1, 6, 19])
def test_parts_within_the_device(device: lb.Device, source: int, target: int, nbytes: int) -> None:
    first, second = filled(device, 1), filled(device, 90)
    part(second, target, nbytes).copy_from(part(first, source, nbytes))
    wanted = bytes_of(90)
    wanted[target : target + nbytes] = bytes_of(1)[source : source + nbytes]
    assert (np.asarray(second.to_device("cpu")) == wanted).all()


@pytest.mark.parametrize("offset", [0, 1, 6])
def test_parts_from_and_to_the_host(device: lb.Device, offset: int) -> None:
    there, here = filled(device, 1), lb.asarray(bytes_of(50, 11))
    part(there, offset, 11).copy_from(here)
    wanted = bytes_of(1)
    wanted[offset : offset + 11] = bytes_of(50, 11)
    assert (np.asarray(there.to_device("cpu")) == wanted).all()
    assert (np.asarray(part(there, offset, 11).to_device("cpu")) == bytes_of(50, 11)).all()


def test_what_is_copied_beside_them_is_in_the_ledger(device: lb.Device) -> None:
    there = filled(device, 1)
    with ledger() as copies:
        part(there, 5, 2).to_device("cpu")
    assert [(copy.cause, copy.nbytes) for copy in copies] == [("to_device", 2), ("to_device:granule", 4)]
    with lb.no_copies(), pytest.raises(CopyForbiddenError):
        part(there, 5, 2).to_device("cpu")


def test_whole_words_are_copied_as_they_are(device: lb.Device) -> None:
    with ledger() as copies:
        filled(device, 1, 1 << 20)
    assert [copy.nbytes for copy in copies] == [1 << 20]

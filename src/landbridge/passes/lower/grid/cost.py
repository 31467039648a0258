"""The tuning numbers of grids: sizes of workgroups, and how work is divided among them.

Said as in ``passes/lower/cost.py``: what a number decides, and where it was measured, or that it was chosen. H200 and
H100 are GPUs of NVIDIA in virtual machines, llvmpipe is the driver of Mesa that runs Vulkan on a CPU.
"""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class Workgroups:
    """The work-items of a workgroup, and the number of workgroups."""

    #: The default size: enough to fill the vector units of any device. Chosen, 2026-11-21.
    default_size: int = 128
    #: The largest size of a workgroup that reduces rows. Chosen, 2026-11-21.
    largest_size: int = 256
    #: How many workgroups share the work whose amount a length decides, on a CPU for each core, as each costs time even
    #: without work. Chosen, 2026-11-29.
    of_a_core: int = 4
    #: The same on a GPU, in all. Chosen, 2026-11-29.
    of_a_gpu: int = 1024


@record(frozen=True)
class WorkgroupRows:
    """When a workgroup computes a row, and how its work-items share reductions."""

    #: The narrowest row for which a workgroup per row pays, where there are more than ``few_rows``. Chosen, 2026-11-21.
    width: int = 16
    few_rows: int = 256
    #: The most operations of a row that one workgroup runs alone, where there are few rows. Chosen, 2026-11-21.
    operations: int = 1 << 18
    #: A workgroup shares reductions of at least this length, if a nest has at most ``many_points``. Chosen, 2026-11-21.
    long_reduction: int = 128
    many_points: int = 1 << 14
    #: The most points of a nest, in a row, that the whole workgroup reduces one after the other. Chosen, 2026-11-21.
    few_points: int = 8
    #: The shortest reduction that work-items share. Chosen, 2026-11-21.
    shared_reduction: int = 32
    #: The fewest work-items that share a reduction which may be too long for one. More take longer where it is short
    #: after all; so many reduce a million elements. Measured: llvmpipe, 2026-11-29, command not recorded.
    sharers: int = 16


@record(frozen=True)
class DividedReductions:
    """When several workgroups share a long reduction of few results."""

    #: The number of work-items that saturate the memory bandwidth of a GPU core, with one read in flight each: the mean
    #: of 256 MB takes 106 us, 85 % of the bandwidth. Measured: H100, 2026-11-26, ``benchmarks/gpu_kernels.py``.
    items_of_a_core: int = 2048
    #: The fewest iterations of a work-item of a part: fewer take no longer than another launch. Chosen, 2026-11-26.
    iterations: int = 32


@record(frozen=True)
class Contractions:
    """The tiles of contractions, by an estimate of multiply-adds and loads."""

    #: The fewest rows, columns or iterations: fewer leave most of a tile empty. Chosen, 2026-11-21.
    extent: int = 8
    #: The number of work-items that occupies a core of a GPU; smaller tiles are taken to reach it. Chosen, 2026-11-21.
    items_of_a_core: int = 512
    #: The numbers of parts that the iterations may be split into, one for each workgroup. Chosen, 2026-11-26.
    splits: tuple[int, ...] = (1, 2, 4, 8, 16)
    #: The fewest iterations of a part. Chosen, 2026-11-26.
    iterations_of_a_part: int = 64
    #: The cost of the launch that adds the parts up, in multiply-adds of one core: a few microseconds. Measured: H200,
    #: 2026-11-26, ``benchmarks/gpu_kernels.py``.
    launch: int = 500_000
    #: The work-items of a workgroup along M and N that are tried. Chosen, 2026-11-21.
    threads: tuple[tuple[int, int], ...] = ((16, 16), (32, 8), (16, 8), (8, 8))
    #: The results of a work-item along M and N that are tried. Chosen, 2026-11-21.
    blocks: tuple[tuple[int, int], ...] = ((8, 8), (8, 4), (4, 4), (4, 2), (2, 2), (1, 2), (1, 1))
    #: The iterations whose operands are in local memory at a time. Chosen, 2026-11-21.
    depth: int = 16
    #: The cost of a load from local memory, and of one from global memory, in multiply-adds. Chosen, 2026-11-21.
    local_load: float = 1.5
    global_load: int = 8


WORKGROUPS = Workgroups()
WORKGROUP_ROWS = WorkgroupRows()
DIVIDED_REDUCTIONS = DividedReductions()
CONTRACTIONS = Contractions()

"""The tuning numbers of schedules: what is estimated, what pays, and from where on.

Each record has the numbers of one decision. Behind "Measured" stand the processor, the date and the command that shows
it; "not recorded" is said of a command that no file names. "Chosen" is said of a number that nobody varied. Facts of
processors are in ``targets/machine.py``, the numbers of grids in ``passes/lower/grid/cost.py``.

Ice Lake is an Intel Xeon at 2.8 GHz, Zen 4 an AMD EPYC at 2.6 GHz, both with AVX-512 and two cores of a
virtual machine. Neoverse N1 is the model of LLVM 22.
"""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class TaskSizes:
    """How the work of a kernel is divided into tasks, and what memory a task has."""

    #: The least scalar operations of a task, so that the cost of handing it to a thread is small in comparison. Chosen,
    #: 2026-11-21.
    operations: int = 1 << 19
    #: Enough tasks for any number of threads; nothing is divided further. Chosen, 2026-11-21.
    enough: int = 64
    #: Enough tasks, if each of them copies its columns. Chosen, 2026-11-26, with ``COLUMN_COPIES``.
    enough_with_copies: int = 16
    #: Enough tasks, if each of them reads columns from beyond L2. Chosen, 2026-11-26, with ``row_passes.py``.
    enough_beyond_l2: int = 16
    #: The most bytes of temporaries that a task may have on its thread's stack. Chosen, 2026-11-25: an eighth of the 8
    #: MiB that Linux gives a thread.
    stack_bytes: int = 1 << 20


@record(frozen=True)
class RegisterTile:
    """The estimated cycles of a register tile, in multiply-adds of one vector, and the tiles that are estimated."""

    #: The most rows (M) of a tile. Chosen, 2026-11-25.
    rows: int = 14
    #: The most columns (N) of a tile of several rows. Chosen, 2026-11-21: with more, a tile of 32 registers has at most
    #: four rows.
    columns: int = 6
    #: The most columns of a tile of one row. Chosen, 2026-11-21: more than hide the latency of additions.
    columns_of_one_row: int = 12
    #: The cost of a load. Measured: Ice Lake, 2026-11-26, products of 840x512x192, 840x128x192 and 128x768x768 and the
    #: convolutions of ResNet-50, columns aligned to cache lines, command not recorded.
    load: float = 0.6
    #: The cost of a load if the scalars of several iterations are lanes of one vector. Chosen, 2026-11-26, when
    #: ``load`` was fitted.
    lane_load: float = 0.3
    #: Multiply-adds that begin while a vector of 64 bytes comes from beyond L2: reading 8 MB of weights once takes 0.8
    #: ms, 17 cycles a vector. Measured: Ice Lake, 2026-11-26, command not recorded.
    beyond_l2_load: int = 35
    #: The additional cost of a row's scalar whose cache line L1 does not retain (``l1_rows.py``): tiles of 14x2 take
    #: 1.5 times as long. Measured: Zen 4, 2026-11-27, command not recorded.
    lost_line: float = 1.0
    #: The relative error of the estimate: costs closer than this count as equal. Measured: Ice Lake, 2026-11-25,
    #: ResNet-50 and PP-OCRv4 det are as fast with 23 kernels as with 32, and with 50 as with 77, command not recorded.
    equal_within: float = 0.01


@record(frozen=True)
class ElementwiseBodies:
    """How bodies without sums are unrolled, transposed and masked, by their number of operations."""

    #: The most operations of a body that is emitted ``short_copies`` times. Chosen, 2026-11-21.
    short_body: int = 12
    short_copies: int = 4
    #: The most operations of a body that is emitted ``medium_copies`` times. Chosen, 2026-11-21.
    medium_body: int = 40
    medium_copies: int = 2
    #: The predicted cost of an iteration of the loop around the copies, in operations: a comparison and a jump. Chosen,
    #: 2026-11-30.
    iteration: int = 2
    #: The copies of a body with a function such as exp, on targets where each of its constants takes a register: with
    #: four, softmax spills 12 registers. Measured: Neoverse N1, 2026-11-26, ``benchmarks/instructions.py``.
    copies_with_functions: int = 2
    #: With more functions in a body, as in the gates of an LSTM, there are no registers for a second copy. Measured:
    #: Neoverse N1, 2026-11-26, ``benchmarks/instructions.py``.
    functions_of_a_copy: int = 2
    #: Transposed tiles have as many rows as lanes if the body has at most so many operations, and else
    #: ``transposed_rows``, because the body is emitted for each row. Chosen, 2026-11-25.
    transposed_body: int = 12
    transposed_rows: int = 4
    #: The most lanes of a transposed block, which needs a register for each. Chosen, 2026-11-25.
    transposed_lanes: int = 16
    #: The most interleaved rows that are shuffled from as many vectors as there are rows. Chosen, 2026-11-25.
    parted_rows: int = 8
    #: The fewest operations of a body for which masks of padded lanes pay; a copy is as fast without vectors. Measured:
    #: Ice Lake, 2026-11-25, command not recorded.
    masked_body: int = 5
    #: The largest stride between lanes, in elements, for which all elements in between are loaded and the lanes picked.
    #: Chosen, 2026-11-25.
    stride: int = 4
    #: An open loop without an expected size counts as long if it may have more vectors than this. Chosen, 2026-11-29.
    vectors_of_long_loops: int = 8
    #: The vectors in a tile of a running fold: an iteration then reads whole cache lines, and its additions overlap.
    #: Chosen, 2026-11-25.
    vectors_of_scans: int = 8

    def copies(self, operations: int) -> int:
        """Returns how many copies of a body of so many operations are unrolled together."""
        if operations <= self.short_body:
            return self.short_copies
        return self.medium_copies if operations <= self.medium_body else 1


@record(frozen=True)
class SumOrder:
    """The numbers that the order of additions depends on: a change of one changes results.

    The blocks were measured by ``benchmarks/model_errors.py`` (errors) and in interleaved runs (time), Ice Lake,
    2026-11-26: blocks of 192 take 1.00 of the time of unlimited ones in ResNet-50 and PP-OCRv4 det, those of 128 up to
    1.09.
    """

    #: The most terms that one accumulator takes; longer sums are added up in blocks. Measured: see above.
    chain_terms: int = 256
    #: The most terms of a block. Blocks have equal lengths, so that there are few: each costs a read, an addition and a
    #: write of every accumulator. Chains of onnxruntime have 48 to 144 terms in most convolutions and 128 in products.
    #: The error grows with the square root, so it stays below twice that of onnxruntime. Measured: see above.
    block_terms: int = 192
    #: The same two limits, if a term is one element of memory: reading it takes longer than adding it, so that short
    #: chains cost nothing. Variances that models compute as E[x^2] - E[x]^2 need such exact sums: the error of magika
    #: is 3e-5 instead of 2.9e-3. Measured: Ice Lake, 2026-11-26, ``benchmarks/model_errors.py``.
    plain_terms: int = 32
    #: The fewest terms of each partial sum. Chosen, 2026-11-21.
    terms_of_a_partial_sum: int = 4
    #: The most accumulators of a tile whose results have ``many_partial_sums`` each, and the most with
    #: ``some_partial_sums``: together they are as many as ``fma_pipes * fma_latency``. Chosen, 2026-11-21.
    fewest_accumulators: int = 2
    many_partial_sums: int = 4
    few_accumulators: int = 4
    some_partial_sums: int = 2

    def partial_sums(self, accumulators: int) -> int:
        """Returns the partial sums of each result of a tile with so many accumulators, if its sums are long."""
        if accumulators <= self.fewest_accumulators:
            return self.many_partial_sums
        return self.some_partial_sums if accumulators <= self.few_accumulators else 1


@record(frozen=True)
class BlockTotals:
    """Memory for the totals of sums that are added up in blocks."""

    #: With more sums in a tile, their totals spill from registers while a block is computed. The totals then begin as
    #: the sums of the first block, which gets a loop of its own. Zeros would be stored right after the results of the
    #: previous tile, and wait with them for cache lines: products of 1024 terms take 1.02 to 1.03 times as long that
    #: way. Measured: Zen 4, 2026-11-27, command not recorded.
    in_registers: int = 8
    #: The capacity for the totals of a task that goes over all rows block by block, in elements, on the stack of its
    #: thread. Chosen, 2026-11-26.
    elements_of_a_task: int = 1 << 14
    #: With fewer tiles of rows, a block is read too seldom for passes over all rows to pay. Measured: Ice Lake,
    #: 2026-11-26, 3x3 convolutions of 7x7 and 14x14 pixels, command not recorded.
    tiles_of_a_pass: int = 4


@record(frozen=True)
class SharedWindows:
    """Which neighbouring iterations share the vectors or scalars of a window."""

    #: The widest window whose iterations are unrolled together. Chosen, 2026-11-25: the largest kernel of the
    #: convolutions of the measured models.
    iterations: int = 7
    #: The most unrolled iterations of a window along the rows, and along all its other loops. Chosen, 2026-11-25.
    row_iterations: int = 8
    other_iterations: int = 8
    #: With no more rows than this, partial sums hide the latency of additions instead of a window. Chosen, 2026-11-27.
    few_rows: int = 4


@record(frozen=True)
class Unrolling:
    """Which loops inside a tile are unrolled."""

    #: The unrolled iterations of a long loop, and how many iterations make it long. Loops over 16 channels of a
    #: convolution are as fast without unrolling, or faster. Measured: Ice Lake, 2026-11-26, command not recorded.
    iterations: int = 4
    long_loop: int = 64
    #: The fewest rows of a tile for which unrolling pays. Chosen, 2026-11-26.
    rows: int = 4
    #: Registers for what a row reads, and for addresses and constants of vectors. Chosen, 2026-11-29.
    other_registers: int = 2
    #: Where lanes are summed, the most terms of all sums of a tile that are unrolled in part, and as whole rows: tiles
    #: of 8 rows of 256 bytes read memory at 21 to 26 GB/s row by row, and at 17 otherwise. Measured: Zen 4, 2026-11-29,
    #: command not recorded.
    terms: int = 64
    terms_of_whole_rows: int = 128
    #: The vectors of an iteration of the loop over rows that computes what follows the sums: that is a chain of
    #: operations, each of which waits for the one before. Chosen, 2026-11-29.
    vectors_after_sums: int = 8
    #: The fewest operations after the sums, in all copies, that such a loop is emitted for. Chosen, 2026-11-29, for the
    #: bytes of code.
    operations_after_sums: int = 200
    #: Operations that a function of the dialect ``math`` counts as there. Chosen, 2026-11-29.
    operations_of_a_function: int = 16


@record(frozen=True)
class Edges:
    """How padding and rows left over are emitted."""

    #: The fewest iterations of the loops inside a loop whose bounds depend on the row; with fewer, the bounds cost more
    #: time than the shared code saves. Chosen, 2026-11-26.
    iterations_within: int = 8
    #: The most edge tiles that are emitted one by one; with more, padded reads test their bounds at run time. Chosen,
    #: 2026-11-21, for the bytes of code.
    tiles: int = 6
    #: Signals are assumed to be at least so many times as long as their padding: a convolution of 8,000 samples takes
    #: 0.56 ms instead of 1.31. Measured: Ice Lake, 2026-11-27, log-mel of nemo, command not recorded.
    signal_of_padding: int = 4
    #: Iterations left over of an open extent are cut into tiles smaller by this factor. Chosen, 2026-11-25: a
    #: transformer of open length takes 1.00 to 1.03 of the time of one of known length.
    shrink_of_last_tiles: int = 3


@record(frozen=True)
class Prefetches:
    """Which vectors are prefetched, and how far ahead."""

    #: The distance in bytes of vectors that come from L2 or beyond, and the fewest iterations that it takes. All
    #: distances from 256 to 2048 bytes are faster than no prefetch in convolutions of 64 to 1024 channels, and 1024 is
    #: fastest; ResNet-50 takes 0.90 of the time. Measured: Ice Lake, 2026-11-26, command not recorded.
    distance: int = 1024
    iterations: int = 8
    #: Tiles with fewer rows use each vector too seldom to pay for its prefetch. Measured: Ice Lake, 2026-11-26, command
    #: not recorded.
    rows: int = 4
    #: Where lanes are summed: the distance in bytes, the fewest columns that use each vector of a row, and the least
    #: bytes of memory that L2 does not hold. The scores of 4 queries for keys of 128 elements, which tiles read in
    #: pieces, take 0.4 of their time from L3 and 0.5 from memory; distances of 4 and 8 KiB are slower, as is a prefetch
    #: into L1. With one query for each key, prefetches gain nothing. Measured: Zen 4, 2026-11-29, command not recorded.
    l2_distance: int = 16384
    columns: int = 4
    large_bytes: int = 1 << 20
    #: Where rows are few: how many bytes of column vectors are on their way into L2. Sums of 4096 rows of 128 values
    #: with 4 weights each, half a row in each tile, take 0.76 of their time from memory; with half as much, 7 % more.
    #: Measured: Zen 4, 2026-11-29, command not recorded.
    l2_stream: int = 16384
    #: With more tiles of columns, most elements of rows are in L1 already. Prefetching them makes convolutions with
    #: groups of 136 and of 68 channels 1.4 and 1.1 times as fast when their weights come from beyond L2. Measured: Zen
    #: 4, 2026-11-27, shufflenet, command not recorded.
    column_tiles: int = 3


@record(frozen=True)
class ColumnCopies:
    """When tasks copy strided columns of a product before they read them (``strided_columns.py``)."""

    #: With fewer rows in a task, a copy takes longer than it saves. Measured: Ice Lake, 2026-11-26,
    #: ``benchmarks/products.py``.
    rows: int = 112
    #: The most bytes of a copy, which is on the stack of a thread. Chosen, 2026-11-26: half of ``TASKS.stack_bytes``.
    nbytes: int = 1 << 19
    #: The share of L2 that columns can occupy while rows go through it. In products of 512x512 they occupy 0.8 of the
    #: sets, and copies are not faster there. Measured: Ice Lake, 2026-11-26, ``benchmarks/products.py``.
    share_of_l2: float = 0.9
    #: The number of adjacent column vectors that is assumed for the estimate. Chosen, 2026-11-26.
    adjacent_vectors: int = 2


@record(frozen=True)
class MemoryOrder:
    """Tiles that read large memory once and in order, as prefetchers of the hardware follow it best."""

    #: The most rows of a tile whose columns stay in registers (``retained_columns.py``). Measured: Zen 4, 2026-11-29:
    #: tiles of 8x2 read memory at 30 GB/s, of 4x4 at 20, command not recorded.
    retaining_rows: int = 8
    #: The most columns of such products: with more, multiply-adds take longer than memory. Chosen, 2026-11-29.
    retaining_columns: int = 16
    #: The least memory of tiles with one column, in sizes of L2. They read L1 once for each multiply-add, which takes
    #: 1.07 of the time of other tiles where rows come from L3, and 0.4 to 0.7 where they come from memory. Measured:
    #: Zen 4, 2026-11-29, command not recorded.
    retaining_l2_sizes: int = 4
    #: The most vectors of a row of memory that a tile reads whole (``streaming_tile.py``). Chosen, 2026-11-29.
    streaming_vectors: int = 16
    #: The most vectors of a row for which such a tile has several rows: with one row, each multiply-add takes a load.
    #: Chosen, 2026-11-29.
    streaming_vectors_of_rows: int = 8
    #: The least memory of tiles with one of several rows, in sizes of L2: they take 1.04 of the time of others where
    #: columns come from L3, and 0.5 where they come from memory. Measured: Zen 4, 2026-11-29, command not recorded.
    streaming_l2_sizes: int = 4
    #: The most rows: with more, multiply-adds take longer than memory, and each vector that tiles of many rows read is
    #: used more often. Chosen, 2026-11-29.
    streaming_rows: int = 16
    #: The fewest iterations of a sum that is long. Chosen, 2026-11-29.
    streaming_iterations: int = 64
    #: A block of columns that tiles go through together takes one part in so many of L1 (``streamed_sums.py``): sums of
    #: 4 rows of 128 columns read memory at 30 GB/s with blocks of 8 or 16 iterations, and at 21 with blocks of 32.
    #: Measured: Zen 4 with an L1 of 32 KiB, one core, 2026-11-29, command not recorded.
    l1_parts_of_columns: int = 4
    #: A block of rows that tiles of columns share takes one part in so many of L1 (``shared_rows.py``). The scores of 4
    #: queries for keys of 128 elements, whose tiles have 8 rows of 512 bytes and 2 columns, read memory at 31 GB/s in
    #: blocks of one or two tiles, and at 25 in blocks of four; from L2, one tile is 2 % faster than two. Measured: Zen
    #: 4 with an L1 of 32 KiB, 2026-11-29, command not recorded.
    l1_parts_of_rows: int = 8


@record(frozen=True)
class SharedCode:
    """Which numbers of kernels with shared code are taken as multiples of others (``call_words.py``)."""

    #: The largest factor that is looked for; larger ones are coincidences, not columns or rows of a tile. Chosen,
    #: 2026-11-25.
    factor: int = 16


TASKS = TaskSizes()
REGISTER_TILE = RegisterTile()
ELEMENTWISE = ElementwiseBodies()
SUM_ORDER = SumOrder()
BLOCK_TOTALS = BlockTotals()
SHARED_WINDOWS = SharedWindows()
UNROLLING = Unrolling()
EDGES = Edges()
PREFETCHES = Prefetches()
COLUMN_COPIES = ColumnCopies()
MEMORY_ORDER = MemoryOrder()
SHARED_CODE = SharedCode()

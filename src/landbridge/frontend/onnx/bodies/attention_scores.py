"""The parts of attention of ``com.microsoft`` after queries, keys and values are split into heads: scores, masks,
sums.
"""

from __future__ import annotations

from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, integer_list, like, number
from landbridge.sizes.size import same

_LOWEST = -3.4028234663852886e38


def as_heads(x: str, y: str, heads: int) -> str:
    """Returns statements for ``y`` (batch, heads, steps, size) from ``x`` (batch, steps, heads * size)."""
    return f"""{y}_to = Constant <value_ints = [0, 0, {heads}, -1]> () {y}_split = Reshape ({x}, {y}_to)
        {y} = Transpose <perm = [0, 2, 1, 3]> ({y}_split)"""


def as_rows(x: str, y: str) -> str:
    """Returns statements for ``y`` (batch, steps, heads * size) from ``x`` (batch, heads, steps, size)."""
    return f"""{y}_rows = Transpose <perm = [0, 2, 1, 3]> ({x}) {y}_to = Constant <value_ints = [0, 0, -1]> ()
        {y} = Reshape ({y}_rows, {y}_to)"""


def split(x: str, created: str, widths: list[int], axis: int) -> str:
    """Returns statements that split ``x`` along ``axis`` into parts of ``widths``; ``created`` are their names, between
    commas.
    """
    at = f"{x}_widths"
    return f"{at} = Constant <value_ints = {integer_list(widths)}> () {created} = Split <axis = {axis}> ({x}, {at})"


def retained_in_buffer(new: str, past: str, present: str, length: str, axis: int = 2) -> str:
    """Returns statements for ``present``, the buffer ``past`` with ``new`` inserted after its first ``length`` steps,
    and for the number of steps so far, which has the name of ``new`` with ``_total``. A run whose steps do not fit is
    refused.

    ``new`` and ``past`` have their steps along ``axis``: 2 of (batch, heads, steps, size).
    """
    return f"""{new}_wide = Cast <to = 7> ({length}) {new}_one = Constant <value_ints = [1]> ()
        {new}_filled = Reshape ({new}_wide, {new}_one)
        {present} = landbridge.Append <axis = {axis}> ({past}, {new}, {new}_filled)
        {new}_total = landbridge.LengthAfter <axis = {axis}> ({new}_filled, {new}, {past})"""


def attended(n: NodeFacts, mask: str, *, is_causal: bool = False) -> str:
    """Returns statements for ``output`` (batch, steps, heads * size) from the heads ``q``, ``keys`` and ``values``, and
    for ``qk``, the scores before they are normalized.
    """
    lines = ["keys_t = Transpose <perm = [0, 1, 3, 2]> (keys) raw = MatMul (q, keys_t)", _factor(n)]
    lines.append("scores_0 = Mul (raw, factor)")
    terms = ["attention_bias"] if n.has("attention_bias") else []
    if n.has(mask):
        lines.append(_masked(n, mask))
    if is_causal:
        lines.append(_causal("of_mask" if n.has(mask) else ""))
    if n.has(mask) or is_causal:
        terms.append("of_later" if is_causal else "of_mask")
    scores = "scores_0"
    for number_of, term in enumerate(terms, 1):
        lines.append(f"scores_{number_of} = Add ({scores}, {term})")
        scores = f"scores_{number_of}"
    lines.append(f"qk = Identity ({scores}) normalized = Softmax <axis = -1> (qk) mixed = MatMul (normalized, values)")
    lines.append(as_rows("mixed", "output"))
    return " ".join(lines)


def _factor(n: NodeFacts) -> str:
    if n.attribute("scale", 0.0):
        return like("factor", n.attribute("scale", 0.0), "raw")
    return """size_of = Shape <start = 3, end = 4> (q) size_1 = Squeeze (size_of) size = CastLike (size_1, raw)
        root = Sqrt (size) factor = Reciprocal (root)"""


def _masked(n: NodeFacts, mask: str) -> str:
    """Returns statements for ``of_mask``: the term that excludes masked keys from the scores."""
    shape = n.shape(mask)
    lines = [
        """m_zero = Constant <value_int = 0> () m_one = Constant <value_int = 1> ()
        total_of = Shape <start = 2, end = 3> (keys) total = Squeeze (total_of)"""
    ]
    if len(shape) == 1:
        lines.append(_by_lengths(n, mask))
    elif len(shape) in (2, 3):
        lines.append(f"m_typed = CastLike (m_zero, {mask}) kept_2 = Greater ({mask}, m_typed)")
    elif len(shape) == 4:  # a mask of all possible steps for all possible steps
        lines.append(f"""m_typed = CastLike (m_zero, {mask}) kept_all = Greater ({mask}, m_typed)
            m_count = Shape <start = 2, end = 3> (q) m_first = Sub (total_of, m_count)
            m_from = Constant <value_ints = [0]> () m_starts = Concat <axis = 0> (m_first, m_from)
            m_ends = Concat <axis = 0> (total_of, total_of) m_both = Constant <value_ints = [2, 3]> ()
            kept_2 = Slice (kept_all, m_starts, m_ends, m_both)""")
    else:
        raise n.unsupported(f"a mask of {len(shape)} axes; legal: 1 to 4")
    axes = {1: "[1, 2]", 2: "[1, 2]", 3: "[1]"}.get(len(shape))
    lines.append(
        f"m_axes = Constant <value_ints = {axes}> () kept = Unsqueeze (kept_2, m_axes)"
        if axes
        else "kept = Identity (kept_2)"
    )
    lines.append(f"""m_f = Constant <value_float = {number(n.attribute("mask_filter_value", -10000.0))}> ()
        out = CastLike (m_f, raw) in_0 = Constant <value_float = 0.0> () in = CastLike (in_0, raw)
        of_mask = Where (kept, in, out)""")
    return " ".join(lines)


def _by_lengths(n: NodeFacts, mask: str) -> str:
    """Returns statements for ``kept_2`` (batch, keys) from the ends of rows; starts may follow the ends, anything after
    them is not read.
    """
    (count,), batch = n.shape(mask), n.shape("input" if n.has("input") else "query")[0]
    lines = [
        f"""m_steps = Range (m_zero, total, m_one) m_axis = Constant <value_ints = [1]> ()
        m_wide = Cast <to = 7> ({mask})"""
    ]
    if same(count, batch):
        return f"{lines[0]} m_ends = Unsqueeze (m_wide, m_axis) kept_2 = Less (m_steps, m_ends)"
    has_starts = same(count, 2 * batch)
    if not has_starts and not same(count, 3 * batch + 2):
        raise n.unsupported(f"a mask of {count} lengths for a batch of {batch}; legal: one for each, or twice as many")
    lines.append("""m_from = Constant <value_ints = [0]> () m_rows = Shape <start = 0, end = 1> (q)
        m_ends_1 = Slice (m_wide, m_from, m_rows) m_ends = Unsqueeze (m_ends_1, m_axis)
        before_end = Less (m_steps, m_ends)""")
    if has_starts:
        lines.append("""m_twice = Add (m_rows, m_rows) m_starts_1 = Slice (m_wide, m_rows, m_twice)
            m_starts = Unsqueeze (m_starts_1, m_axis) behind_start = GreaterOrEqual (m_steps, m_starts)
            kept_2 = And (before_end, behind_start)""")
    else:
        lines.append("kept_2 = Identity (before_end)")
    return " ".join(lines)


def _causal(mask: str) -> str:
    """Returns statements for ``of_later``: the term that excludes keys after a query; queries are the last of the keys.

    Other keys get ``mask``. Both terms may be the lowest float, so they are not added: the sum would be infinite.
    """
    return f"""c_zero = Constant <value_int = 0> () c_one = Constant <value_int = 1> ()
        c_keys = Shape <start = 2, end = 3> (keys) c_queries = Shape <start = 2, end = 3> (q)
        c_total = Squeeze (c_keys) c_count = Squeeze (c_queries) c_past = Sub (c_total, c_count)
        c_at = Range (c_zero, c_total, c_one) c_of = Range (c_zero, c_count, c_one) c_from = Add (c_of, c_past)
        c_axis = Constant <value_ints = [1]> () c_rows = Unsqueeze (c_from, c_axis)
        c_kept = LessOrEqual (c_at, c_rows) c_low = Constant <value_float = {number(_LOWEST)}> ()
        c_least = CastLike (c_low, raw) c_0 = Constant <value_float = 0.0> () c_none = CastLike (c_0, raw)
        of_later = Where (c_kept, {mask or "c_none"}, c_least)"""

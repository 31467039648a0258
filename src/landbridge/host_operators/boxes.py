"""NonMaxSuppression: which boxes stay of those that overlap."""

from __future__ import annotations

import numpy as np

from landbridge.host_operators.registry import Array, HostValue, Results, host_operator


def _results(*_: HostValue | None, **__: int) -> Results:
    return [((None, 3), "int64")]


@host_operator("", "NonMaxSuppression", results=_results)
def non_max_suppression(
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    overlap: Array | None = None,
    least: Array | None = None,
    *,
    center_point_box: int = 0,
) -> Array:
    """Rows of batch, class and box, by score within a class: a box goes that overlaps a better one by more."""
    most_kept = 0 if most is None else int(most.reshape(-1)[0])
    limit = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    threshold = None if least is None else float(least.reshape(-1)[0])
    found: list[tuple[int, int, int]] = []
    for batch in range(boxes.shape[0]):
        corners = _corners(boxes[batch].astype(np.float32), center_point_box)
        areas = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        for of in range(scores.shape[1]):
            each = scores[batch, of]
            candidates = np.arange(each.size) if threshold is None else np.flatnonzero(each > threshold)
            candidates = candidates[np.argsort(-each[candidates], kind="stable")]
            kept = 0
            while candidates.size and kept < most_kept:
                best, candidates = candidates[0], candidates[1:]
                found.append((batch, of, int(best)))
                kept += 1
                candidates = candidates[_overlaps(corners, areas, best, candidates) <= limit]
    return np.array(found, np.int64).reshape(-1, 3)


def _corners(boxes: Array, center: int) -> Array:
    """Least and largest coordinates, a row a box."""
    if center:
        half = boxes[:, 2:] / 2
        return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], 1)
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


def _overlaps(corners: Array, areas: Array, best: int, others: Array) -> Array:
    """The area that each of ``others`` has in common with ``best``, of what both cover."""
    low = np.maximum(corners[best, :2], corners[others, :2])
    high = np.minimum(corners[best, 2:], corners[others, 2:])
    common = np.prod(np.maximum(high - low, 0), 1)
    both = areas[best] + areas[others] - common
    return np.asarray(np.divide(common, both, out=np.zeros_like(common), where=both > 0))

"""Computes probabilities of classes from scores of pairs of them, as libsvm does for support vector machines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from landbridge.operators import Array, HostValue, Results, host_operator

#: The least probability of a pair.
_LEAST = 1e-7
_MOST_ITERATIONS = 100


def _results(scores: HostValue, *, classes: int, prob_a: Sequence[float], prob_b: Sequence[float]) -> Results:
    return [((scores.shape[0], classes), "float32")]


@host_operator("landbridge", "PairProbabilities", results=_results)
def pair_probabilities(scores: Array, *, classes: int, prob_a: Sequence[float], prob_b: Sequence[float]) -> Array:
    """Returns the probabilities of ``classes`` for each row of ``scores`` (rows, pairs).

    Pairs are (0, 1), (0, 2), ...: the first of one is as likely as ``1 / (1 + exp(prob_a * score + prob_b))`` says
    (Platt, 1999), and those of all follow from pairs by the second method of Wu, Lin and Weng, "Probability
    estimates for multi-class classification by pairwise coupling", 2004, whose iterations end, row by row, as libsvm's
    do.
    """
    pairs = np.triu_indices(classes, 1)
    with np.errstate(over="ignore"):  # avoids the logarithm of a probability of 0
        first = 1 / (1 + np.exp(scores.astype(np.float64) * np.array(prob_a) + np.array(prob_b)))
    r = np.zeros((len(scores), classes, classes))
    r[:, pairs[0], pairs[1]] = np.clip(first, _LEAST, 1 - _LEAST)
    r[:, pairs[1], pairs[0]] = 1 - r[:, pairs[0], pairs[1]]
    transposed = r.transpose(0, 2, 1)
    q = -transposed * r
    owned = np.arange(classes)
    q[:, owned, owned] = (transposed**2).sum(2)
    return np.asarray(_coupled(q, 0.005 / classes), np.float32)


def _coupled(q: Array, enough: float) -> Array:
    """Returns the p (rows, classes), of sum 1, that minimizes p q p: it changes one class after the other, until all
    agree.
    """
    rows, classes, _ = q.shape
    p = np.full((rows, classes), 1 / classes)
    active = np.arange(rows)
    for _ in range(_MOST_ITERATIONS):
        owned, now = q[active], p[active]
        by = np.einsum("nij,nj->ni", owned, now)
        whole = (now * by).sum(1)
        goes_on = np.abs(by - whole[:, None]).max(1, initial=0) >= enough
        active, owned, now, by, whole = active[goes_on], owned[goes_on], now[goes_on], by[goes_on], whole[goes_on]
        if not len(active):
            break
        for i in range(classes):
            step = (whole - by[:, i]) / owned[:, i, i]
            now[:, i] += step
            whole = (whole + step * (step * owned[:, i, i] + 2 * by[:, i])) / (1 + step) ** 2
            by = (by + step[:, None] * owned[:, i]) / (1 + step)[:, None]
            now /= (1 + step)[:, None]
        p[active] = now
    return p

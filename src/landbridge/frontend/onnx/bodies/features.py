"""Support vector machines and encodings of features of ``ai.onnx.ml``."""

from __future__ import annotations

import numpy as np

from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, number
from landbridge.operators import definition

_ML = "ai.onnx.ml"


@definition(_ML, "Binarizer", inputs="X", outputs="Y")
def binarizer(n: NodeFacts) -> str:
    threshold = number(n.attribute("threshold", 0.0))
    return f"t = Constant <value_float = {threshold}> () u = CastLike (t, X) m = Greater (X, u) Y = CastLike (m, X)"


@definition(_ML, "FeatureVectorizer", inputs="*X", outputs="Y")
def feature_vectorizer(n: NodeFacts) -> str:
    names = n.variadic("X")
    casts = " ".join(f"f{i} = Cast <to = 1> ({name})" for i, name in enumerate(names))
    return f"{casts} Y = Concat <axis = 1> ({', '.join(f'f{i}' for i in range(len(names)))})"


@definition(_ML, "OneHotEncoder", inputs="X", outputs="Y")
def one_hot_encoder(n: NodeFacts) -> str:
    kinds = n.attribute("cats_int64s", [])
    if not kinds:
        raise n.unsupported("categories that are text; legal: integers")
    n.array("kinds", np.array(kinds, np.int64))
    return """wide = Cast <to = 7> (X) last = Constant <value_ints = [-1]> () column = Unsqueeze (wide, last)
        same = Equal (column, kinds) Y = Cast <to = 1> (same)"""


@definition(_ML, "SVMRegressor", inputs="X", outputs="Y")
def svm_regressor(n: NodeFacts) -> str:
    count = n.attribute("n_supports", 0)
    n.array("factors", np.array(n.attribute("coefficients", []), np.float32).reshape(-1, 1))
    n.array("rho", np.array(n.attribute("rho", [0.0])[:1], np.float32))
    one_class = "zero = Constant <value_float = 0.0> () m = Greater (s, zero) f = Cast <to = 1> (m)"
    sign = "two = Constant <value_float = 2.0> () o = Constant <value_float = 1.0> () g = Mul (two, f) Y = Sub (g, o)"
    last = f"{one_class} {sign}" if n.attribute("one_class", 0) else "Y = Identity (s)"
    return f"x = Cast <to = 1> (X) {_kernel(n, count)} p = MatMul (k, factors) s = Add (p, rho) {last}"


@definition(_ML, "SVMClassifier", inputs="X", outputs="Y, Z")
def svm_classifier(n: NodeFacts) -> str:
    """Returns the votes of each pair of classes and the scores of pairs, or the probabilities of classes computed from
    them.
    """
    labels, per_class = n.attribute("classlabels_ints", []), n.attribute("vectors_per_class", [])
    if not labels or not per_class:
        raise n.unsupported("labels that are text, or no support vectors")
    if n.attribute("post_transform", "NONE") != "NONE" or len(labels) != len(per_class):
        raise n.unsupported(f"post_transform {n.attribute('post_transform', 'NONE')!r}; legal: NONE")
    classes, total = len(per_class), sum(per_class)
    dual = np.array(n.attribute("coefficients", []), np.float32).reshape(classes - 1, total)
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    starts = np.concatenate([[0], np.cumsum(per_class)])
    factors, votes = np.zeros((total, len(pairs)), np.float32), np.zeros((2, len(pairs), classes), np.float32)
    for column, (i, j) in enumerate(pairs):
        factors[starts[i] : starts[i + 1], column] = dual[j - 1, starts[i] : starts[i + 1]]
        factors[starts[j] : starts[j + 1], column] = dual[i, starts[j] : starts[j + 1]]
        votes[0, column, i] = votes[1, column, j] = 1
    n.array("factors", factors)
    n.array("rho", np.array(n.attribute("rho", []), np.float32)[: len(pairs)])
    n.array("labels", np.array(labels, np.int64))
    n.array("first", votes[0])
    n.array("second", votes[1])
    prob_a, prob_b = (", ".join(map(number, n.attribute(name, [])[: len(pairs)])) for name in ("prob_a", "prob_b"))
    scores = "neg = Neg (s) Z = Concat <axis = 1> (neg, s)" if classes == 2 else "Z = Identity (s)"
    if prob_a:
        scores = f"Z = landbridge.PairProbabilities <classes = {classes}, prob_a = [{prob_a}], prob_b = [{prob_b}]> (s)"
    return f"""x = Cast <to = 1> (X) {_kernel(n, total)} p = MatMul (k, factors) s = Add (p, rho)
        zero = Constant <value_float = 0.0> () w = Greater (s, zero) f = Cast <to = 1> (w)
        o = Constant <value_float = 1.0> () l = Sub (o, f) a = MatMul (f, first) b = MatMul (l, second)
        v = Add (a, b) at = ArgMax <axis = 1, keepdims = 0> (v) Y = Gather (labels, at) {scores}"""


def _kernel(n: NodeFacts, count: int) -> str:
    """Returns statements for ``k``: the kernel function of each row of ``x`` and each support vector."""
    kind, parameters = n.attribute("kernel_type", "LINEAR"), [*n.attribute("kernel_params", []), 0.0, 0.0, 3.0]
    gamma, offset, degree = parameters[:3] if n.attribute("kernel_params", []) else (0.0, 0.0, 3.0)
    if not count:
        raise n.unsupported("no support vectors")
    vectors = np.array(n.attribute("support_vectors", []), np.float32).reshape(count, -1)
    n.array("vectors", np.ascontiguousarray(vectors.T) if kind != "RBF" else vectors)
    product = "dot = MatMul (x, vectors)"
    shifted = f"""gamma = Constant <value_float = {number(gamma)}> () k1 = Mul (dot, gamma)
        offset = Constant <value_float = {number(offset)}> () k2 = Add (k1, offset)"""
    if kind == "LINEAR":
        return "k = MatMul (x, vectors)"
    if kind == "POLY":
        return f"{product} {shifted} degree = Constant <value_float = {number(degree)}> () k = Pow (k2, degree)"
    if kind == "SIGMOID":
        return f"{product} {shifted} k = Tanh (k2)"
    if kind == "RBF":
        return f"""row = Constant <value_ints = [1]> () x3 = Unsqueeze (x, row) d = Sub (x3, vectors)
            last = Constant <value_ints = [2]> () dd = ReduceSumSquare <keepdims = 0> (d, last)
            gamma = Constant <value_float = {number(-gamma)}> () e = Mul (dd, gamma) k = Exp (e)"""
    raise n.unsupported(f"kernel {kind!r}; legal: LINEAR, POLY, SIGMOID, RBF")

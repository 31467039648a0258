"""Outputs that name classes: lists of maps, and text. Programs return numbers; the names are kept separately."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import onnx

from landbridge.frontend.onnx.label_names import Labels

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

_ML = "ai.onnx.ml"
#: An opset with Identity, for files that name no opset.
_OF_IDENTITY = 7
#: Operators whose results may be text: the label of a class.
_CLASSIFIERS = ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")


def labels_of(model: ModelProto) -> list[Labels]:
    """Returns the outputs of ``model`` that name classes."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    return without_names(changed)


def has_names(model: ModelProto) -> bool:
    """Returns whether an output of ``model`` names classes, or is computed by an operator that does."""
    return any(_attribute(node, "classlabels_strings") or node.op_type == "ZipMap" for node in model.graph.node)


def without_names(model: ModelProto) -> list[Labels]:
    """Change the outputs of ``model`` to numbers; returns their meanings. Text that nodes compute with is not
    changed.
    """
    graph, outputs = model.graph, {value.name: value for value in model.graph.output}
    found: list[Labels] = []
    for node in graph.node:
        if node.domain == _ML and node.op_type == "ZipMap" and node.output[0] in outputs:
            names = _names(node, "classlabels_strings", "classlabels_int64s")
            found.append(Labels(node.output[0], names, are_maps=True))
            _become(node, "Identity")
            kind = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [None, len(names)])
            outputs[node.output[0]].type.CopyFrom(kind)
        elif node.domain == _ML and node.op_type in _CLASSIFIERS:
            names = _names(node, "classlabels_strings")
            ends = [*_ends(graph, node.output[0], set(outputs))] if names else []
            if ends and all(name is not None for name in ends):
                found += [Labels(name, names, are_maps=False) for name in ends if name is not None]
                _number(graph, node, len(names))
                for name in ends:
                    outputs[name or ""].type.tensor_type.elem_type = onnx.TensorProto.INT64
    # only operators of the machine learning domain have them
    if found and all(entry.domain for entry in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid("", _OF_IDENTITY))
    return found


def _names(node: NodeProto, *attributes: str) -> tuple[str, ...] | tuple[int, ...]:
    for name in attributes:
        found = _attribute(node, name)
        if found is not None and found.strings:
            return tuple(text.decode() for text in found.strings)
        if found is not None and found.ints:
            return tuple(found.ints)
    return ()


def _attribute(node: NodeProto, name: str) -> onnx.AttributeProto | None:
    return next((each for each in node.attribute if each.name == name), None)


def _become(node: NodeProto, op_type: str) -> None:
    node.op_type, node.domain = op_type, ""
    del node.attribute[:]


def _ends(graph: GraphProto, value: str, outputs: set[str]) -> Iterator[str | None]:
    """Yields the outputs that ``value`` is passed on to; None for any other use."""
    if value in outputs:
        yield value
    for node in graph.node:
        if value in node.input:
            if not _hands_on(node):
                yield None
            else:
                yield from _ends(graph, node.output[0], outputs)


def _hands_on(node: NodeProto) -> bool:
    to = _attribute(node, "to") if node.op_type == "Cast" else None
    return node.op_type == "Identity" or (to is not None and to.i == onnx.TensorProto.STRING)


def _number(graph: GraphProto, classifier: NodeProto, classes: int) -> None:
    """Change ``classifier`` to return class numbers, and the nodes that pass its result on to pass numbers."""
    key = "classlabels_ints" if classifier.op_type != "TreeEnsembleClassifier" else "classlabels_int64s"
    retained = [each for each in classifier.attribute if each.name != "classlabels_strings"]
    del classifier.attribute[:]
    classifier.attribute.extend([*retained, onnx.helper.make_attribute(key, list(range(classes)))])
    pending = [classifier.output[0]]
    while pending:
        value = pending.pop()
        for node in graph.node:
            if value in node.input:
                _become(node, "Identity")
                pending.append(node.output[0])

"""A model of one node drawn from fuzz bytes: any operator, shapes and attributes that mostly fit each other."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

import numpy as np
import onnx
from draw import EDGES, Draw
from onnx import helper, numpy_helper

from landbridge.operators import REGISTRY, Kernel
from landbridge.ops.rules import Rules, rules_of

Array = np.ndarray[Any, Any]

OPSETS = (7, 9, 10, 11, 12, 13, 16, 18, 20, 21, 22)
EXTENTS = (1, 2, 3, 4, 2, 3, 1, 6, 0, 8, 5, 17)
#: Operands whose values are better known when the model is compiled.
CONSTANTS = {
    "shape", "axes", "axis", "starts", "ends", "steps", "repeats", "split", "pads", "K", "k", "depth", "scales",
    "sizes", "roi", "start", "limit", "delta", "frame_step", "frame_length", "dft_length", "training_mode",
    "sequence_lens",
}  # fmt: skip


@cache
def _schema(op_type: str, opset: int) -> Any:
    return onnx.defs.get_schema(op_type, opset, "")


@cache
def _known(opset: int) -> list[str]:
    """The operators that this opset has and Landbridge compiles."""
    names = sorted({each.op_type for each in REGISTRY.of_kind(Kernel) if not each.domain})
    return [n for n in names if onnx.defs.has(n, opset, "") and REGISTRY.find(Kernel, "", n, opset)]


def draw_model(data: bytes, op_type: str = "") -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model and values of its inputs; ``op_type``: of this operator."""
    d = Draw(data)
    opset = d.choice(OPSETS)
    names = _known(opset)
    chosen = op_type if op_type in names else names[d.below(65536) % len(names)]
    return _Node(d, chosen, opset).model()


class _Node:
    def __init__(self, d: Draw, op_type: str, opset: int) -> None:
        self.d, self.op_type, self.opset = d, op_type, opset
        self.schema = _schema(op_type, opset)
        kernel = REGISTRY.find(Kernel, "", op_type, opset)
        assert kernel is not None
        declared = rules_of(kernel.function)
        assert declared is not None
        self.rules: Rules = declared
        self.dims: dict[str, Any] = {}
        self.wild = d.below(4) == 0  # else the shapes fit the rules

    def model(self) -> tuple[onnx.ModelProto, dict[str, Array]]:
        d = self.d
        types: dict[str, str] = {}
        for constraint in self.schema.type_constraints:
            allowed = sorted(t for t in constraint.allowed_type_strs if _dtype(t) is not None)
            preferred = [t for t in allowed if t in ("tensor(float)", "tensor(int64)")]
            types[constraint.type_param_str] = d.choice(allowed if d.below(3) == 0 or not preferred else preferred)
        inputs, initializers, names, feeds = [], [], [], {}
        for name, formal in self._formals():
            if name == "":
                names.append("")
                continue
            names.append(name)
            dtype = _dtype(types.get(formal.type_str, formal.type_str)) or np.dtype(np.float32)
            array = self._array(formal.name, dtype, self._shape(formal.name))
            if d.below(8) < (7 if formal.name in CONSTANTS else 1):
                initializers.append(numpy_helper.from_array(array, name))
            else:
                feeds[name] = array
                kind = helper.np_dtype_to_tensor_dtype(array.dtype)
                inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        count = len(self.schema.outputs)
        if count and self.schema.outputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic:
            count += d.below(3)
        outputs = [f"y{i}" for i in range(max(self.schema.min_output, d.below(count + 1), 1))]
        node = helper.make_node(self.op_type, names, outputs, name="node")
        node.attribute.extend(self._attributes())
        graph = helper.make_graph([node], "drawn", inputs, [onnx.ValueInfoProto(name=n) for n in outputs], initializers)
        for value in graph.output:
            value.type.tensor_type.elem_type = 1
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        _infer(model)
        return model, feeds

    def _formals(self) -> list[tuple[str, Any]]:
        """(name in the model or "", formal operand) of each operand of the node."""
        option = onnx.defs.OpSchema.FormalParameterOption
        found: list[tuple[str, Any]] = []
        for formal in self.schema.inputs:
            if formal.option == option.Variadic:
                found += [(f"x{i}", formal) for i in range(1 + self.d.below(3))]
            elif formal.option == option.Optional and self.d.below(5) < 2:
                found.append(("", formal))
            else:
                found.append((formal.name, formal))
        while found and not found[-1][0]:
            found.pop()
        if self.d.below(64) == 0 and found:
            found.pop()
        return found

    def _extent(self) -> int:
        return self.d.choice(EXTENTS)

    def _shape(self, name: str) -> tuple[int, ...]:
        operand = next((o for o in self.rules.operands if o.name == name), None)
        if operand is None or self.d.below(24) == 0 or (self.wild and self.d.below(3) == 0):
            shape = [self._extent() for _ in range(self.d.below(5))]
        else:
            shape = []
            for word in self.d.choice(operand.forms):
                if word == "_" or word == "...":
                    shape += [self._extent() for _ in range(1 if word == "_" else self.d.below(4))]
                elif word.isdigit():
                    shape.append(int(word))
                elif word[0] in "*&<":
                    many = self.dims.setdefault(f"*{word[1:]}", [self._extent() for _ in range(self.d.below(4))])
                    shape += [1 if word[0] in "&<" and self.d.below(4) == 0 else e for e in many]
                else:
                    shape.append(self.dims.setdefault(word, self._extent()))
        if shape and self.d.below(8) == 0:  # almost fits
            shape[self.d.below(len(shape))] = self._extent()
        while np.prod([float(e) for e in shape]) > 20000:
            shape.pop()
        return tuple(shape)

    def _array(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        size = int(np.prod(shape))
        if name in CONSTANTS and len(shape) == 1 and self.d.below(4):
            shape = (min(size, 2 * len(self.dims.get("*S", ())) or size),)
            size = int(np.prod(shape))
        if dtype.kind == "f" and name not in CONSTANTS:
            values = np.random.default_rng(self.d.byte()).normal(size=size) * (1 + self.d.below(3))
            if size and self.d.below(6) == 0:
                values[self.d.below(size)] = self.d.choice((np.nan, np.inf, -np.inf, 1e30, -1e30))
            return values.astype(dtype).reshape(shape)
        if name in CONSTANTS:
            draws = [self._integer() for _ in range(size)]
            values = np.array(draws, object) if dtype.kind != "f" else np.array(draws, np.float64) / 2
        else:
            values = np.random.default_rng(self.d.byte()).integers(-3 if self.d.flag() else 0, 6, size)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            values = np.array([min(max(int(v), limits.min), limits.max) for v in values], object)
        with np.errstate(all="ignore"):
            return values.astype(dtype).reshape(shape)

    def _integer(self) -> int:
        kind = self.d.byte()
        return self.d.choice(EDGES) if kind > 250 else self.d.choice((0, 1, 2, 3, -1, 1, 2, -2, 4, 5, 1, 0))

    def _attributes(self) -> list[onnx.AttributeProto]:
        made = []
        for name, formal in sorted(self.schema.attributes.items()):
            if not formal.required and self.d.below(2) and name not in ("kernel_shape",):
                continue
            value = self._value(name, formal.type.name)
            if value is not None:
                kind = getattr(onnx.AttributeProto, formal.type.name)
                made.append(helper.make_attribute(name, value, attr_type=kind))
        return made

    def _value(self, name: str, kind: str) -> Any:
        d, legal = self.d, self.rules.attributes.get(name)
        spatial = next((v for v in map(self.dims.get, ("*D", "*S")) if v is not None), (1, 1))
        many = len(spatial) * (2 if name == "pads" else 1)
        many = d.below(6) if d.below(8) == 0 else many
        match kind:
            case "INT" if name in ("to", "dtype", "output_dtype"):
                return d.choice((1, 6, 7, 9, 10, 11, 2, 3, 12, 16, 8, 0, 99))
            case "INT" if name == "group":
                return d.choice((1, 1, 1, 2, 3, 0, -1))
            case "INT":
                return self._integer()
            case "INTS" if name in ("strides", "dilations", "kernel_shape") and d.below(8):
                return [1 + d.below(3) for _ in range(many)]
            case "INTS" if name == "pads" and d.below(8):
                return [d.below(2) for _ in range(many)]
            case "INTS":
                return [self._integer() for _ in range(many)]
            case "FLOAT":
                return d.choice((0.5, 1.0, 0.0, -1.0, 2.0, float("nan"), float("inf"), 1e30, 1e-5))
            case "FLOATS":
                return [d.choice((0.5, 1.0, 2.0, 0.0, -1.0, float("nan"), 1e30)) for _ in range(many)]
            case "STRING":
                choices: tuple[Any, ...] = ("", "none", "bogus")
                if legal is not None and d.below(16):
                    choices = ast.literal_eval(f"({legal.text},)") if legal.text.startswith("'") else choices
                if name == "equation":
                    choices = (
                        "ij,jk->ik",
                        "ij->ji",
                        "ii->i",
                        "...i,...i->...",
                        "ij,jk",
                        "i->",
                        "ij,kj->",
                        "a,b->c",
                        "i1",
                    )
                return d.choice(choices)
            case "STRINGS":
                return [d.choice(("Tanh", "Sigmoid", "Relu", "Nothing")) for _ in range(many)]
            case "TENSOR":
                shape = tuple(self._extent() for _ in range(d.below(3)))
                dtype = np.dtype(d.choice(("f4", "i8", "?", "f8")))
                return numpy_helper.from_array(self._array("", dtype, shape))
        return None


def _dtype(text: str) -> np.dtype[Any] | None:
    inner = text.removeprefix("tensor(").removesuffix(")")
    names = {"float": "float32", "double": "float64"}
    try:
        return np.dtype(names.get(inner, inner)) if inner not in ("string", "complex64", "complex128") else None
    except TypeError:
        return None


def _infer(model: onnx.ModelProto) -> None:
    """Give the outputs the types that ONNX infers; where it infers none, of any shape of rank 1."""
    for value in model.graph.output:
        value.ClearField("type")
    try:
        # onnx dies of negative batch_dims, and never returns from an equation that is none.
        hostile = model.graph.node[0].op_type in ("GatherND", "Einsum")
        inferred = model if hostile else onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:
        inferred = model
    for value, found in zip(model.graph.output, inferred.graph.output, strict=True):
        value.type.CopyFrom(found.type)
        tensor = value.type.tensor_type
        tensor.elem_type = tensor.elem_type or 1
        if not tensor.HasField("shape"):
            tensor.shape.dim.add().dim_param = "any"

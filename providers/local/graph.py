"""all-MiniLM-L6-v2 as an ONNX graph, built from its weights with neither torch nor a download.

Token ids and mask in; mean-pooled sentence vectors of unit length out. The layers are onnxruntime's own fused
operators for BERT (domain `com.microsoft`), which saves its optimiser the search for them at each start.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

BUILDER_VERSION: Final = 1
"""Raise it with every change of this module: it is part of the built file's name."""

LAYERS: Final = 6
HEADS: Final = 12
DIMENSIONS: Final = 384
_EPSILON: Final = 1e-12

Weights = Mapping[str, NDArray[Any]]


class _Graph:
    """Nodes and initializers, each under a name of its own."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """`value` as an initializer."""
        self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def weight(self, name: str, *, transpose: bool = False) -> str:
        """A weight of the model; torch keeps linear layers as (out, in), MatMul wants (in, out)."""
        value = self.weights[name].astype(np.float32, copy=False)
        return self.constant(name, value.T if transpose else value)

    def add(self, operator: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        """One node with one output that anything uses."""
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, domain=domain, **attributes))
        return output


def build(weights: Weights) -> bytes:
    """The serialised model. Inputs `input_ids` and `attention_mask`, int64 (batch, tokens); output `sentence`
    (batch, 384)."""
    graph = _Graph(weights)
    hidden = _embeddings(graph)
    for layer in range(LAYERS):
        hidden = _layer(graph, layer, hidden)
    _pooling(graph, hidden)
    tokens: list[Any] = ["batch", "tokens"]
    built = helper.make_graph(
        graph.nodes,
        "all-MiniLM-L6-v2",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, tokens),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, tokens),
        ],
        [helper.make_tensor_value_info("sentence", TensorProto.FLOAT, ["batch", DIMENSIONS])],
        list(graph.initializers.values()),
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(built, opset_imports=opsets, ir_version=8, producer_name="mnemostream")
    return bytes(model.SerializeToString())


def _embeddings(graph: _Graph) -> str:
    """Word, position and segment embeddings, added and normalised. Every sentence is segment 0."""
    words = graph.weight("embeddings.word_embeddings.weight")
    segment = graph.weights["embeddings.token_type_embeddings.weight"][0]
    positions = graph.weights["embeddings.position_embeddings.weight"] + segment
    graph.constant("positions", positions.astype(np.float32))
    graph.constant("zero", np.array([0], np.int64))
    graph.constant("one", np.array([1], np.int64))
    graph.add("Gather", [words, "input_ids"], "words")
    graph.add("Shape", ["input_ids"], "shape")
    graph.add("Slice", ["shape", "one", graph.constant("two", np.array([2], np.int64))], "length")
    graph.add("Slice", ["positions", "zero", "length", "zero"], "places")
    graph.add("Add", ["words", "places"], "embedded")
    graph.add("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
    norm = "embeddings.LayerNorm"
    return graph.add(
        "LayerNormalization",
        ["embedded", graph.weight(f"{norm}.weight"), graph.weight(f"{norm}.bias")],
        "hidden",
        axis=-1,
        epsilon=_EPSILON,
    )


def _layer(graph: _Graph, layer: int, hidden: str) -> str:
    """One transformer block: attention, then the feed-forward part, each with its residual and normalisation."""
    name = f"encoder.layer.{layer}"
    parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
    projection = np.concatenate([graph.weights[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([graph.weights[f"{part}.bias"] for part in parts])
    attention = graph.add(
        "Attention",
        [
            hidden,
            graph.constant(f"{name}.qkv", projection.astype(np.float32)),
            graph.constant(f"{name}.qkv_bias", bias.astype(np.float32)),
            "mask",
        ],
        f"{name}.attended",
        domain="com.microsoft",
        num_heads=HEADS,
    )
    mixed = _residual(graph, f"{name}.attention.output", attention, hidden)
    wide = graph.weight(f"{name}.intermediate.dense.weight", transpose=True)
    graph.add("MatMul", [mixed, wide], f"{name}.wide")
    graph.add(
        "BiasGelu",
        [f"{name}.wide", graph.weight(f"{name}.intermediate.dense.bias")],
        f"{name}.active",
        domain="com.microsoft",
    )
    return _residual(graph, f"{name}.output", f"{name}.active", mixed)


def _residual(graph: _Graph, name: str, inner: str, outer: str) -> str:
    """normalise(outer + inner · dense + bias)"""
    graph.add("MatMul", [inner, graph.weight(f"{name}.dense.weight", transpose=True)], f"{name}.projected")
    norm = [graph.weight(f"{name}.LayerNorm.{part}") for part in ("weight", "bias")]
    return graph.add(
        "SkipLayerNormalization",
        [f"{name}.projected", outer, *norm, graph.weight(f"{name}.dense.bias")],
        f"{name}.normalised",
        domain="com.microsoft",
        epsilon=_EPSILON,
    )


def _pooling(graph: _Graph, hidden: str) -> None:
    """The mean over the real tokens, at unit length."""
    graph.constant("last", np.array([-1], np.int64))
    graph.add("Cast", ["attention_mask"], "weights", to=TensorProto.FLOAT)
    graph.add("Unsqueeze", ["weights", "last"], "weights_wide")
    graph.add("Mul", [hidden, "weights_wide"], "kept")
    graph.add("ReduceSum", ["kept", "one"], "summed", keepdims=0)
    graph.add("ReduceSum", ["weights", "one"], "counted", keepdims=1)
    graph.add("Div", ["summed", "counted"], "mean")
    graph.add("ReduceL2", ["mean"], "size", axes=[1], keepdims=1)
    graph.add("Div", ["mean", "size"], "sentence")

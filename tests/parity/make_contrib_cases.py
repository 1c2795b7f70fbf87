#!/usr/bin/env python3
"""Writes operators of domain com.microsoft, of If, Loop and Scan, and random quantised networks
(quantized_cases.py), with ONNX Runtime's answers.

    make_contrib_cases.py FOLDER

The layout is that of make_ml_cases.py. Exit code 77: a Python package is missing.
"""

import json
import pathlib
import sys

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}; the cases need numpy, onnx and onnxruntime")
    sys.exit(77)

import quantized_cases
import references

HERE = pathlib.Path(__file__).resolve().parent
FLOAT, INT32, INT64, BOOL = (TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64,
                             TensorProto.BOOL)
TYPES = {"float32": FLOAT, "int32": INT32, "int64": INT64}
random = np.random.RandomState(0)


def floats(*shape):
    return random.randn(*shape).astype(np.float32)


def contrib(name, op, inputs, outputs=1, **attributes):
    """A model of one node; an input of None is absent."""
    names = [f"i{k}" if array is not None else "" for k, array in enumerate(inputs)]
    given = [(n, a) for n, a in zip(names, inputs) if n]
    makes = [f"o{k}" for k in range(outputs)]
    domain = attributes.pop("domain", "com.microsoft")
    node = helper.make_node(op, names, makes, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], name,
        [helper.make_tensor_value_info(n, TYPES[str(a.dtype)], a.shape) for n, a in given],
        [helper.make_tensor_value_info(n, FLOAT, None) for n in makes])
    return name, graph, [a for _, a in given]


def operators():
    x, b = floats(3, 5, 8), floats(8)
    yield contrib("gelu", "Gelu", [x])
    yield contrib("bias_gelu", "BiasGelu", [x, b])
    yield contrib("fast_gelu", "FastGelu", [x])
    yield contrib("fast_gelu_bias", "FastGelu", [x, b])
    yield contrib("quick_gelu", "QuickGelu", [x], alpha=1.5)
    yield contrib("fused_matmul", "FusedMatMul", [floats(2, 4, 3), floats(2, 4, 5)], transA=1,
                  alpha=0.3)
    yield contrib("fused_matmul_right", "FusedMatMul", [floats(2, 3, 4), floats(5, 4)], transB=1)
    yield contrib("fused_matmul_batch", "FusedMatMul", [floats(6, 2, 4), floats(2, 4, 5)],
                  transBatchA=1)
    yield contrib("fused_gemm", "FusedGemm", [floats(4, 3), floats(3, 5), floats(5)],
                  activation="LeakyRelu", activation_alpha=0.2)
    yield contrib("fused_conv", "FusedConv", [floats(2, 3, 6, 6), floats(4, 3, 3, 3), floats(4)],
                  activation="Relu", kernel_shape=[3, 3])
    yield contrib("skip_layer_norm", "SkipLayerNormalization",
                  [x, floats(3, 5, 8), floats(8), floats(8), floats(8)], epsilon=1e-5)
    yield contrib("skip_layer_norm_plain", "SkipLayerNormalization",
                  [x, floats(3, 5, 8), floats(8)], epsilon=1e-5)
    yield contrib("simplified_layer_norm", "SimplifiedLayerNormalization", [x, floats(8)],
                  domain="", axis=-1, epsilon=1e-5)
    yield contrib("cdist", "CDist", [floats(4, 3), floats(6, 3)], metric="euclidean")
    yield contrib("cdist_square", "CDist", [floats(4, 3), floats(6, 3)], metric="sqeuclidean")
    weights = [floats(8, 24), floats(24)]
    yield contrib("attention", "Attention", [x, *weights], num_heads=2)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 1, 0, 1]], np.int32)
    yield contrib("attention_mask", "Attention", [x, *weights, mask], num_heads=2)
    yield contrib("attention_lengths", "Attention",
                  [x, *weights, np.array([3, 5, 1], np.int32)], num_heads=2)
    yield contrib("attention_causal", "Attention", [x, *weights], num_heads=4, unidirectional=1)
    yield contrib("multi_head", "MultiHeadAttention",
                  [x, floats(3, 7, 8), floats(3, 7, 8), floats(24)], num_heads=2)
    ids = random.randint(0, 9, (2, 4)).astype(np.int32)
    parts = random.randint(0, 2, (2, 4)).astype(np.int32)
    name, graph, arrays = contrib(
        "embed_layer_norm", "EmbedLayerNormalization",
        [ids, parts, floats(9, 8), floats(6, 8), floats(2, 8), floats(8), floats(8)], outputs=2,
        epsilon=1e-5)
    del graph.output[1]
    yield name, graph, arrays


def packed_products():
    """MatMulNBits with 4 bits: ONNX Runtime 1.16 knows no others, and packs the zero points of all
    rows without a gap, which an even number of blocks makes the same as later versions."""
    for name, zeros in (("matmul_nbits", False), ("matmul_nbits_zeros", True)):
        packed = random.randint(0, 256, (5, 4, 16)).astype(np.uint8)
        constants = [numpy_helper.from_array(packed, "b"),
                     numpy_helper.from_array(np.abs(floats(20)), "s")]
        inputs = ["x", "b", "s"]
        if zeros:
            given = random.randint(0, 256, 10).astype(np.uint8)
            constants.append(numpy_helper.from_array(given, "z"))
            inputs.append("z")
        node = helper.make_node("MatMulNBits", inputs, ["y"], domain="com.microsoft", K=112, N=5,
                                bits=4, block_size=32)
        x = floats(4, 112)
        yield name, helper.make_graph(
            [node], name, [helper.make_tensor_value_info("x", FLOAT, x.shape)],
            [helper.make_tensor_value_info("y", FLOAT, None)], constants), [x]


def quantized_lstms():
    for name, directions in (("quantized_lstm", 1), ("quantized_lstm_both_ways", 2)):
        way = "bidirectional" if directions == 2 else "forward"
        arrays = {"w": random.randint(-90, 90, (directions, 3, 16)).astype(np.int8),
                  "r": random.randint(-90, 90, (directions, 4, 16)).astype(np.int8),
                  "b": floats(directions, 32), "ws": np.abs(floats(directions)) * 0.02,
                  "wz": np.zeros(directions, np.int8), "rs": np.abs(floats(directions)) * 0.02,
                  "rz": np.zeros(directions, np.int8)}
        inputs = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
        node = helper.make_node("DynamicQuantizeLSTM", inputs, ["y", "h", "c"],
                                domain="com.microsoft", hidden_size=4, direction=way)
        x = floats(5, 1, 3)
        yield name, helper.make_graph(
            [node], name, [helper.make_tensor_value_info("x", FLOAT, x.shape)],
            [helper.make_tensor_value_info(k, FLOAT, None) for k in "yhc"],
            [numpy_helper.from_array(v, k) for k, v in arrays.items()]), [x]


def quantized_case(name, op, inputs, output, **attributes):
    """One operator on quantised constants and a float input: x is quantised, the answer is not."""
    constants, names = [], []
    for k, array in enumerate(inputs):
        names.append("q" if isinstance(array, str) else f"c{k}" if array is not None else "")
        if names[-1] == f"c{k}":
            constants.append(numpy_helper.from_array(np.asarray(array), f"c{k}"))
    scale, zero = np.float32(0.05), np.uint8(120)
    constants += [numpy_helper.from_array(np.asarray(scale), "scale"),
                  numpy_helper.from_array(np.asarray(zero), "zero")]
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
             helper.make_node(op, names, ["r"], domain="com.microsoft", **attributes)]
    if output:
        constants += [numpy_helper.from_array(np.asarray(part), f"out{k}")
                      for k, part in enumerate(output)]
        nodes.append(helper.make_node("DequantizeLinear", ["r", "out0", "out1"], ["y"]))
    else:
        nodes[1].output[0] = "y"
    x = floats(*attributes_shape(op))
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", FLOAT, x.shape)],
                              [helper.make_tensor_value_info("y", FLOAT, None)], constants)
    return name, graph, [x]


def attributes_shape(op):
    return (2, 3, 4, 4) if op == "QLinearGlobalAveragePool" else (4, 6)


def quantized_operators():
    scale, zero = np.float32(0.05), np.uint8(120)
    out = (np.float32(0.07), np.uint8(110))
    x = ["x", scale, zero]
    other = [random.randint(0, 255, (4, 6)).astype(np.uint8), np.float32(0.03), np.uint8(99)]
    yield quantized_case("qlinear_add", "QLinearAdd", [*x, *other, *out], out)
    yield quantized_case("qlinear_mul", "QLinearMul", [*x, *other, *out], out)
    shares = (np.float32(1 / 256), np.uint8(0))
    yield quantized_case("qlinear_sigmoid", "QLinearSigmoid", [*x, *shares], shares)
    yield quantized_case("qlinear_leaky_relu", "QLinearLeakyRelu", [*x, *out], out, alpha=0.2)
    yield quantized_case("qlinear_softmax", "QLinearSoftmax", [*x, *shares], shares, axis=-1,
                         opset=13)
    yield quantized_case("qlinear_average", "QLinearGlobalAveragePool", [*x, *out], out,
                         channels_last=0)
    yield quantized_case("qlinear_concat", "QLinearConcat", [*out, *x, *other], out, axis=1)
    weights = random.randint(-100, 100, (5, 6)).astype(np.int8)
    bias = random.randint(-3000, 3000, 5).astype(np.int32)
    each = (0.01 + 0.001 * np.arange(5)).astype(np.float32)
    none = np.zeros(5, np.int8)
    yield quantized_case("qgemm", "QGemm", [*x, weights, each, none, bias, *out], out, transB=1)
    yield quantized_case("qgemm_float", "QGemm",
                         [*x, weights, np.float32(0.02), np.int8(0), bias], (), transB=1)
    turned = np.ascontiguousarray(weights.T)
    yield quantized_case("matmul_integer_to_float", "MatMulIntegerToFloat",
                         ["x", turned, scale, each, zero, none, floats(5)], ())


def value(name, kind, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def loops():
    """A loop that ends by its condition, a scan over two axes, and a branch by the data."""
    limit = numpy_helper.from_array(np.array(40, np.float32), "limit")
    body = helper.make_graph(
        [helper.make_node("Mul", ["s", "w"], ["next"]),
         helper.make_node("ReduceMax", ["next"], ["most"], keepdims=0),
         helper.make_node("Less", ["most", "limit"], ["goes"]),
         helper.make_node("Identity", ["next"], ["part"])],
        "body", [value("i", INT64, []), value("go", BOOL, []), value("s", FLOAT, [3])],
        [value("goes", BOOL, []), value("next", FLOAT, [3]), value("part", FLOAT, [3])], [limit])
    node = helper.make_node("Loop", ["", "", "x"], ["y", "parts"], body=body)
    yield "loop", helper.make_graph([node], "loop", [value("x", FLOAT, [3]), value("w", FLOAT, [3])],
                                    [value("y", FLOAT, [3]), value("parts", FLOAT, [None, 3])]), [
        np.array([1, 2, 3], np.float32), np.array([1.5, 2, 1.1], np.float32)]

    body = helper.make_graph(
        [helper.make_node("Add", ["s", "a"], ["next"]), helper.make_node("Mul", ["next", "b"], ["p"])],
        "body", [value("s", FLOAT, [3]), value("a", FLOAT, [3]), value("b", FLOAT, [])],
        [value("next", FLOAT, [3]), value("p", FLOAT, [3])])
    node = helper.make_node("Scan", ["s0", "x", "z"], ["last", "parts"], body=body,
                            num_scan_inputs=2, scan_input_axes=[1, 0],
                            scan_input_directions=[1, 0], scan_output_axes=[1])
    yield "scan", helper.make_graph(
        [node], "scan", [value("s0", FLOAT, [3]), value("x", FLOAT, [3, 5]), value("z", FLOAT, [5])],
        [value("last", FLOAT, [3]), value("parts", FLOAT, [3, 5])]), [floats(3), floats(3, 5),
                                                                     floats(5)]

    branches = {}
    for key, op in (("then_branch", "Exp"), ("else_branch", "Neg")):
        branches[key] = helper.make_graph([helper.make_node(op, ["x"], [f"{op}_out"])], key, [],
                                          [value(f"{op}_out", FLOAT, [4])])
    nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
             helper.make_node("Greater", ["sum", "zero"], ["positive"]),
             helper.make_node("If", ["positive"], ["y"], **branches)]
    zero = numpy_helper.from_array(np.array(0, np.float32), "zero")
    for name, sign in (("if_true", 1), ("if_false", -1)):
        yield name, helper.make_graph(nodes, name, [value("x", FLOAT, [4])],
                                      [value("y", FLOAT, [4])], [zero]), [
            sign * np.abs(floats(4))]


def write_case(folder, name, graph, arrays):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                    helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    given = [i.name for i in graph.input]
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    results = session.run(None, dict(zip(given, arrays)))
    (folder / name).mkdir()
    (folder / name / "model.onnx").write_bytes(model.SerializeToString())
    for kind, found in (("input", arrays), ("output", results)):
        for k, array in enumerate(found):
            np.save(folder / name / f"{kind}_{k}.npy", array)
    return {"name": name, "inputs": given, "outputs": [o.name for o in graph.output]}


def write_all(folder):
    nodes = (*operators(), *quantized_operators(), *loops(), *packed_products(), *quantized_lstms())
    index = {"nodes": [write_case(folder, *case) for case in nodes],
             "quantized": [write_case(folder, *case) for case in quantized_cases.cases()]}
    (folder / "index.json").write_text(json.dumps(index, indent=1))
    print(f"{len(index['nodes'])} cases, {len(index['quantized'])} quantised networks")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_contrib_cases.py FOLDER")
    references.make_once(pathlib.Path(sys.argv[1]),
                         [HERE / "make_contrib_cases.py", HERE / "quantized_cases.py"],
                         onnxruntime.__version__ + onnx.__version__, write_all)


if __name__ == "__main__":
    main()

"""Operators as older and newer operator sets define them.

ONNX's own tests cover one version of each operator. Files in use were written for many: attributes
became inputs, Softmax changed its meaning, Upsample became Resize. Each case here is written out
from the specification of its version, with NumPy as the reference.
"""

import math

import numpy as np
from onnx import TensorProto, helper

LARGEST = np.iinfo(np.int64).max


def int64(*values):
    return np.array(values, np.int64)


def case(name, opset, op, inputs, outputs, **attributes):
    """One node; `inputs` and `outputs` are arrays, None an optional input that is absent."""
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64,
             np.dtype(bool): TensorProto.BOOL}

    def info(label, array):
        return helper.make_tensor_value_info(label, kinds[array.dtype], array.shape)

    labels = ["" if x is None else f"in{i}" for i, x in enumerate(inputs)]
    results = [f"out{i}" for i in range(len(outputs))]
    present = [(label, x) for label, x in zip(labels, inputs) if x is not None]
    graph = helper.make_graph([helper.make_node(op, labels, results, **attributes)], name,
                              [info(*pair) for pair in present],
                              [info(*pair) for pair in zip(results, outputs)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return name, op, model, [x for _, x in present], outputs


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def gelu(x):
    erf = np.vectorize(math.erf)(x / math.sqrt(2)).astype(np.float32)
    return (0.5 * x * (1 + erf)).astype(np.float32)


def gelu_tanh(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return (0.5 * x * (1 + np.tanh(inner))).astype(np.float32)


def nearest(x, factor):
    return x.repeat(factor, 2).repeat(factor, 3)


def linear_asymmetric(x, factor):
    """Along the last axis: x_original = x_resized / factor, clamped at the end."""
    at = np.arange(x.shape[-1] * factor) / factor
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, x.shape[-1] - 1)
    return (x[..., low] * (1 - (at - low)) + x[..., high] * (at - low)).astype(np.float32)


def attribute_cases(x):
    """Before they became inputs (opset 9 to 11)."""
    yield case("clip_9", 9, "Clip", [x], [x.clip(-0.5, 0.7)], min=-0.5, max=0.7)
    yield case("clip_9_max_only", 9, "Clip", [x], [np.minimum(x, 0.2)], max=0.2)
    yield case("dropout_9", 9, "Dropout", [x], [x], ratio=0.3)
    yield case("dropout_10", 10, "Dropout", [x], [x], ratio=0.3)
    yield case("reduce_sum_11", 11, "ReduceSum", [x], [x.sum((0, 2))], axes=[0, -1], keepdims=0)
    yield case("reduce_sum_9_all", 9, "ReduceSum", [x], [x.sum(keepdims=True)])
    yield case("reduce_mean_9", 9, "ReduceMean", [x], [x.mean(1, keepdims=True)], axes=[1])
    yield case("reduce_max_11", 11, "ReduceMax", [x], [x.max(1)], axes=[-2], keepdims=0)
    yield case("squeeze_9", 9, "Squeeze", [x[:, None, :, :, None]], [x], axes=[1, 4])
    yield case("squeeze_11_negative", 11, "Squeeze", [x[..., None]], [x], axes=[-1])
    yield case("unsqueeze_9", 9, "Unsqueeze", [x], [x[:, None, :, :, None]], axes=[1, 4])
    yield case("unsqueeze_11_negative", 11, "Unsqueeze", [x], [x[..., None]], axes=[-1])
    yield case("split_9", 9, "Split", [x], [x[..., :1], x[..., 1:]], axis=2, split=[1, 3])
    yield case("split_11_equal", 11, "Split", [x], [x[..., :2], x[..., 2:]], axis=-1)
    yield case("slice_9", 9, "Slice", [x], [x[:, 1:-1]], axes=[1], starts=[1], ends=[-1])
    yield case("slice_9_far", 9, "Slice", [x], [x[-1:, :, 1:]], axes=[0, 2], starts=[-1, 1],
               ends=[LARGEST, 1000])
    yield case("slice_9_all_axes", 9, "Slice", [x], [x[0:1, 1:3]], starts=[0, 1], ends=[1, 3])
    yield case("pad_9", 9, "Pad", [x], [np.pad(x, ((0, 0), (1, 0), (2, 3)), constant_values=0.5)],
               pads=[0, 1, 2, 0, 0, 3], value=0.5)
    yield case("pad_9_reflect", 9, "Pad", [x], [np.pad(x, ((0, 0), (0, 0), (1, 2)), "reflect")],
               pads=[0, 0, 1, 0, 0, 2], mode="reflect")
    yield case("arg_max_9", 9, "ArgMax", [x], [x.argmax(1)], axis=1, keepdims=0)
    yield case("constant_9", 9, "Constant", [], [x],
               value=helper.make_tensor("v", TensorProto.FLOAT, x.shape, x.ravel()))
    yield case("constant_12_float", 12, "Constant", [], [np.array(1.5, np.float32)],
               value_float=1.5)
    yield case("constant_12_ints", 12, "Constant", [], [int64(3, -1)], value_ints=[3, -1])


def meaning_cases(x):
    """Operators whose meaning changed."""
    flat = x.reshape(2, 12)
    yield case("softmax_11", 11, "Softmax", [x], [softmax(flat, 1).reshape(x.shape)])
    yield case("softmax_11_axis_0", 11, "Softmax", [x],
               [softmax(x.reshape(1, 24), 1).reshape(x.shape)], axis=0)
    yield case("softmax_13_default", 13, "Softmax", [x], [softmax(x, 2)])
    yield case("log_softmax_9", 9, "LogSoftmax", [x],
               [np.log(softmax(flat, 1)).reshape(x.shape)])
    yield case("log_softmax_13", 13, "LogSoftmax", [x], [np.log(softmax(x, 1))], axis=1)
    b, c = x[0].T.repeat(3, 0), x[:, :1, 0]
    yield case("gemm_9_broadcast", 9, "Gemm", [flat, b, c], [2 * flat @ b + 3 * c], alpha=2.0,
               beta=3.0)
    yield case("pow_9", 9, "Pow", [abs(x), x[0, 0]], [abs(x) ** x[0, 0]])
    yield case("max_9_broadcast", 9, "Max", [x, x[:, :1], x[0]],
               [np.maximum(np.maximum(x, x[:, :1]), x[0])])
    yield case("sum_9", 9, "Sum", [x, x, x], [3 * x])
    yield case("mean_9_broadcast", 9, "Mean", [x, x[0]], [(x + x[0]) / 2])
    yield case("equal_11", 11, "Equal", [x, x.round()], [x == x.round()])
    yield case("gather_9", 9, "Gather", [x, np.array([[3, 0]], np.int64)], [x[:, :, [[3, 0]]]],
               axis=2)
    yield case("reshape_9", 9, "Reshape", [x, int64(0, -1)], [flat])


def resize_cases(image):
    """Upsample, and Resize before it had rules for coordinates."""
    scales = np.array([1, 1, 2, 2], np.float32)
    wide = np.array([1, 1, 1, 3], np.float32)
    yield case("upsample_7", 7, "Upsample", [image], [nearest(image, 2)], scales=scales.tolist())
    yield case("upsample_9", 9, "Upsample", [image, scales], [nearest(image, 2)])
    yield case("upsample_9_linear", 9, "Upsample", [image, wide], [linear_asymmetric(image, 3)],
               mode="linear")
    yield case("resize_10", 10, "Resize", [image, scales], [nearest(image, 2)])
    yield case("resize_10_linear", 10, "Resize", [image, wide], [linear_asymmetric(image, 3)],
               mode="linear")
    corners = np.stack([x[..., [0, 3]] for x in image[:, :, [0, 2]]])
    yield case("resize_13_corners", 13, "Resize", [image, None, None, int64(1, 2, 2, 2)],
               [corners], mode="linear", coordinate_transformation_mode="align_corners")
    yield case("resize_18_axes", 18, "Resize", [image, None, None, int64(6, 8)],
               [nearest(image, 2)], axes=[2, 3], mode="nearest")
    yield case("resize_18_antialias", 18, "Resize", [image, None, scales], [nearest(image, 2)],
               mode="linear", antialias=1)


def newer_cases(x):
    """Operator sets 18 to 20."""
    yield case("reduce_mean_18", 18, "ReduceMean", [x, int64(1, -1)], [x.mean((1, 2))], keepdims=0)
    yield case("reduce_max_18", 18, "ReduceMax", [x, int64(0)], [x.max(0, keepdims=True)])
    yield case("reduce_min_18_all", 18, "ReduceMin", [x], [x.min(keepdims=True)])
    yield case("reduce_mean_18_noop", 18, "ReduceMean", [x], [x], noop_with_empty_axes=1)
    wide = np.concatenate([x, x], 2)[..., :7]
    yield case("split_18_uneven", 18, "Split", [wide],
               [wide[..., :3], wide[..., 3:6], wide[..., 6:]], axis=2, num_outputs=3)
    yield case("pad_18_axes", 18, "Pad", [x, int64(1, 2), None, int64(-1)],
               [np.pad(x, ((0, 0), (0, 0), (1, 2)))])
    yield case("pad_19_wrap", 19, "Pad", [x, int64(0, 0, 1, 0, 0, 2)],
               [np.pad(x, ((0, 0), (0, 0), (1, 2)), "wrap")], mode="wrap")
    yield case("gelu_20", 20, "Gelu", [x], [gelu(x)])
    yield case("gelu_20_tanh", 20, "Gelu", [x], [gelu_tanh(x)], approximate="tanh")


def cases():
    random = np.random.RandomState(0)
    x = random.randn(2, 3, 4).astype(np.float32)
    image = random.randn(1, 2, 3, 4).astype(np.float32)
    yield from attribute_cases(x)
    yield from meaning_cases(x)
    yield from resize_cases(image)
    yield from newer_cases(x)

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


def scattered(x, rows, values):
    result = x.copy()
    for column, row in enumerate(rows):
        result[row, column] = values[column]
    return result


def attribute_cases(x):
    """Before they became inputs (opset 9 to 11)."""
    yield case("clip_9", 9, "Clip", [x], [x.clip(-0.5, 0.7)], min=-0.5, max=0.7)
    for p in (1, 2):
        norm = np.linalg.norm(x, p, axis=1, keepdims=True)
        yield case(f"lp_normalization_{p}", 9, "LpNormalization", [x], [x / norm], axis=1, p=p)
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
    yield case("top_k_9", 9, "TopK", [x], [-np.sort(-x, 2)[..., :2], np.argsort(-x, 2)[..., :2]],
               k=2)
    yield case("scatter_9", 9, "Scatter", [x[0], np.array([[2, 0, 1, 1]], np.int64), x[1, :1]],
               [scattered(x[0], [2, 0, 1, 1], x[1, 0])])
    yield case("dropout_7", 7, "Dropout", [x], [x], ratio=0.3)
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
    whole = (3 * x).astype(np.int64)
    yield case("cast_13", 13, "Cast", [3 * x], [whole], to=int(TensorProto.INT64))
    yield case("cast_like_15", 15, "CastLike", [3 * x, whole[0]], [whole])
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


def blocks_summed(blocks, size, block):
    """[N, C * k, L] to the image of which they are all blocks, one pixel apart."""
    rows, places = blocks.shape[0], [s - b + 1 for s, b in zip(size, block)]
    parts = blocks.reshape(rows, -1, *block, *places)
    image = np.zeros((rows, parts.shape[1], *size), np.float32)
    for i in range(block[0]):
        for j in range(block[1]):
            image[:, :, i:i + places[0], j:j + places[1]] += parts[:, :, i, j]
    return image


def convolved(image, weights):
    """A convolution of one image without padding."""
    out, inside, high, wide = weights.shape
    places = image.shape[2] - high + 1, image.shape[3] - wide + 1
    result = np.zeros((1, out, *places), np.float32)
    for i in range(high):
        for j in range(wide):
            part = image[0, :, i:i + places[0], j:j + places[1]]
            result[0] += np.einsum("oc,cpq->opq", weights[:, :, i, j], part)
    return result


def bit_cases(random):
    a, b = random.randint(-99, 99, (2, 3)), random.randint(-99, 99, (3,))
    for op, function in (("And", np.bitwise_and), ("Or", np.bitwise_or), ("Xor", np.bitwise_xor)):
        yield case(f"bitwise_{op.lower()}_18", 18, f"Bitwise{op}", [a, b], [function(a, b)])
    yield case("bitwise_not_18", 18, "BitwiseNot", [a], [~a])


def recent_cases(random):
    """Operator sets 18 to 24, of which older packages of onnx have no tests."""
    yield from bit_cases(random)
    blocks = random.randn(2, 12, 20).astype(np.float32)
    yield case("col2im_18", 18, "Col2Im", [blocks, int64(5, 7), int64(2, 3)],
               [blocks_summed(blocks, (5, 7), (2, 3))])
    image, weights = random.randn(1, 2, 4, 5), random.randn(3, 2, 2, 2)
    image, weights = image.astype(np.float32), weights.astype(np.float32)
    moved = np.concatenate([image[..., 1:], np.zeros((1, 2, 4, 1), np.float32)], 3)
    offset = np.tile(np.array([0, 1], np.float32).reshape(1, 2, 1, 1), (1, 4, 3, 4))
    yield case("deform_conv_19", 19, "DeformConv", [image, weights, offset],
               [convolved(moved, weights)], kernel_shape=[2, 2])
    plane = (10 * np.arange(8)[:, None] + np.arange(9)).astype(np.float32)[None, None]
    rows, columns = np.array([2.5, 4.5, 6.5]) - 0.5, np.array([2, 4]) - 0.5  # of the bins' middles
    yield case("roi_align_16", 16, "RoiAlign",
               [plane, np.array([[1, 1.5, 5, 7.5]], np.float32), int64(0)],
               [(10 * rows[:, None] + columns).astype(np.float32)[None, None]], output_height=3,
               output_width=2, sampling_ratio=2)
    x = random.randn(2, 3, 4).astype(np.float32)
    yield case("swish_24", 24, "Swish", [x], [(x / (1 + np.exp(-x))).astype(np.float32)])
    written = x.copy()
    written[0, 1:3], written[1, 0:2] = x[1, :2], x[0, :2]
    yield case("tensor_scatter_24", 24, "TensorScatter", [x, x[::-1, :2].copy(), int64(1, 0)],
               [written])


def group_norm(x, groups, scale, bias):
    rows = x.reshape(x.shape[0], groups, -1)
    mean, variance = rows.mean(2, keepdims=True), rows.var(2, keepdims=True)
    normal = ((rows - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)
    return (normal * scale[:, None, None] + bias[:, None, None]).astype(np.float32)


def attention(q, k, v, bias=0):
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1]) + bias
    return (softmax(scores, -1) @ v).astype(np.float32)


def rotated(x, cosine, sine):
    """x is [N, heads, T, size], the angles [N, T, size / 2]."""
    a, b = np.split(x, 2, -1)
    c, s = cosine[:, None], sine[:, None]
    return np.concatenate([a * c - b * s, a * s + b * c], -1).astype(np.float32)


def transformer_cases(random):
    """Operators that came with operator sets 18 to 23."""
    x = random.randn(2, 4, 3, 6).astype(np.float32)
    scale, bias = random.randn(4).astype(np.float32), random.randn(4).astype(np.float32)
    yield case("mish_18", 18, "Mish", [x], [(x * np.tanh(np.log1p(np.exp(x)))).astype(np.float32)])
    yield case("group_normalization_18", 18, "GroupNormalization", [x, scale[:2], bias[:2]],
               [group_norm(x, 2, scale[:2].repeat(2), bias[:2].repeat(2))], num_groups=2)
    yield case("group_normalization_21", 21, "GroupNormalization", [x, scale, bias],
               [group_norm(x, 2, scale, bias)], num_groups=2)
    weight = random.randn(6).astype(np.float32)
    square = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    yield case("rms_normalization_23", 23, "RMSNormalization", [x, weight], [x / square * weight])
    angle = random.randn(2, 3, 3).astype(np.float32)
    yield case("rotary_embedding_23", 23, "RotaryEmbedding", [x, np.cos(angle), np.sin(angle)],
               [rotated(x, np.cos(angle), np.sin(angle))])
    k, v = random.randn(2, 4, 5, 6).astype(np.float32), random.randn(2, 4, 5, 7).astype(np.float32)
    mask = random.randn(3, 5).astype(np.float32)
    yield case("attention_23", 23, "Attention", [x, k, v], [attention(x, k, v)])
    yield case("attention_23_mask", 23, "Attention", [x, k, v, mask], [attention(x, k, v, mask)])
    flat = x.transpose(0, 2, 1, 3).reshape(2, 3, 24)
    hidden = np.where(np.tri(3, dtype=bool), 0, -np.inf).astype(np.float32)
    yield case("attention_23_causal_flat", 23, "Attention", [flat, flat, flat],
               [attention(x, x, x, hidden).transpose(0, 2, 1, 3).reshape(2, 3, 24)],
               is_causal=1, q_num_heads=4, kv_num_heads=4)


def cases():
    random = np.random.RandomState(0)
    x = random.randn(2, 3, 4).astype(np.float32)
    image = random.randn(1, 2, 3, 4).astype(np.float32)
    yield from attribute_cases(x)
    yield from meaning_cases(x)
    yield from resize_cases(image)
    yield from newer_cases(x)
    yield from transformer_cases(random)
    yield from recent_cases(random)

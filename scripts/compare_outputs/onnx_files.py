"""Small ONNX networks, written byte by byte, so that no package is needed and every machine writes
the same."""
import random
import struct

FLOAT, INT64, STRING = 1, 7, 8


def varint(value):
    data = b""
    value &= (1 << 64) - 1
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def field(number, value):
    """One field of a protobuf message: text, bytes or a number."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    data = field(1, name)
    if isinstance(value, float):
        return data + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, int):
        return data + field(3, value) + field(20, 2)
    if isinstance(value[0], str):
        return data + b"".join(field(9, text) for text in value) + field(20, 8)
    return data + b"".join(field(8, number) for number in value) + field(20, 7)


def node(op, inputs, output, domain="", **attributes):
    data = b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op)
    data += b"".join(field(5, attribute(*item)) for item in attributes.items())
    return field(1, data + (field(7, domain) if domain else b""))


def floats(name, shape, values):
    return field(5, b"".join(field(1, d) for d in shape) + field(2, FLOAT) + field(8, name) +
                 field(9, struct.pack(f"<{len(values)}f", *values)))


def integers(name, values):
    return field(5, field(1, len(values)) + field(2, INT64) + field(8, name) +
                 field(9, struct.pack(f"<{len(values)}q", *values)))


def info(name, shape, kind=FLOAT):
    dimensions = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d))
                          for d in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dimensions)))


def model(parts, inputs, outputs, opset=13, ml=False):
    """Inputs are triples (name, shape, type); outputs are pairs (name, shape)."""
    graph = b"".join(parts) + field(2, "network")
    graph += b"".join(field(11, info(*entry)) for entry in inputs)
    graph += b"".join(field(12, info(*entry)) for entry in outputs)
    domains = field(8, field(2, opset)) + (field(8, field(1, "ai.onnx.ml") + field(2, 2)) if ml else b"")
    return field(1, 8) + field(7, graph) + domains


def fields(data):
    """Number and content of each field of a message; nothing where it is none."""
    place = 0

    def number():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    found = []
    try:
        while place < len(data):
            key = number()
            start, length = place, {1: 8, 5: 4}.get(key & 7)
            if key & 7 == 0:
                number()
                length = place - start
            elif key & 7 == 2:
                length = number()
                start = place
            place = start + length
            found.append((key >> 3, data[start:place]))
    except (IndexError, TypeError):
        return []
    return found


def pieces(data):
    """What a network is made of, by names: metadata, initializers, nodes and all else."""
    found = {}

    def put(name, content):
        found[name] = found.get(name, b"") + content
    for number, content in fields(data):
        if number == 14:  # metadata
            entry = dict(fields(content))
            put(f"metadata {entry.get(1, b'').decode()}", entry.get(2, b""))
        elif number != 7:  # not the graph
            put(f"field {number}", content)
        else:
            for part, inner in fields(content):
                if part == 1:
                    names = [text.decode() for key, text in fields(inner) if key == 2]
                    put(f"node of {', '.join(names)}", inner)
                elif part == 5:
                    put(f"initializer {dict(fields(inner)).get(8, b'').decode()}", inner)
                else:
                    put({11: "inputs", 12: "outputs"}.get(part, f"field {part} of the graph"), inner)
    return found


class Weights:
    """Normal numbers from a seed, scaled for a layer."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def matrix(self, name, rows, columns, scale=1.0):
        deviation = scale / rows ** 0.5
        return floats(name, (rows, columns),
                      [self.random.gauss(0, deviation) for _ in range(rows * columns)])

    def vector(self, name, size, deviation=0.1):
        return floats(name, (size,), [self.random.gauss(0, deviation) for _ in range(size)])

    def linear(self, name, source, rows, columns, scale=1.4):
        """The nodes and numbers of one layer, whose output has its name."""
        return [node("Gemm", [source, name + "_w", name + "_b"], name),
                self.matrix(name + "_w", rows, columns, scale), self.vector(name + "_b", columns)]


def perceptron(seed=1, outputs=1):
    """Four columns, two hidden layers, no metadata: a network that someone else trained."""
    weights = Weights(seed)
    parts = [*weights.linear("layer1", "x", 4, 16), node("Relu", ["layer1"], "hidden1"),
             *weights.linear("layer2", "hidden1", 16, 12), node("Relu", ["layer2"], "hidden2"),
             *weights.linear("y", "hidden2", 12, outputs)]
    return model(parts, [("x", ["batch", 4], FLOAT)], [("y", ["batch", outputs])])


def with_spread():
    """Outputs `y` and `spread`."""
    weights = Weights(2)
    parts = [*weights.linear("layer1", "x", 4, 16), node("Tanh", ["layer1"], "hidden"),
             *weights.linear("y", "hidden", 16, 1), *weights.linear("raw", "hidden", 16, 1),
             node("Softplus", ["raw"], "spread")]
    return model(parts, [("x", ["batch", 4], FLOAT)],
                 [("y", ["batch", 1]), ("spread", ["batch", 1])])


def with_quantiles():
    """Outputs `low` and `high`, the second above the first, and `middle`."""
    weights = Weights(3)
    parts = [*weights.linear("layer1", "x", 4, 16), node("Relu", ["layer1"], "hidden"),
             *weights.linear("middle", "hidden", 16, 1), *weights.linear("raw", "hidden", 16, 1),
             node("Softplus", ["raw"], "width"), node("Sub", ["middle", "width"], "low"),
             node("Add", ["middle", "width"], "high")]
    return model(parts, [("x", ["batch", 4], FLOAT)],
                 [(name, ["batch", 1]) for name in ("low", "middle", "high")])


def with_attention():
    """Four columns as two tokens of two numbers, one head of attention with a residual."""
    weights = Weights(4)
    parts = [integers("tokens", [-1, 2, 2]), integers("flat", [-1, 12]),
             node("Reshape", ["x", "tokens"], "rows"),
             weights.matrix("embed", 2, 6, 1.4), node("MatMul", ["rows", "embed"], "embedded")]
    for name in "qkv":
        parts += [weights.matrix("w" + name, 6, 6), node("MatMul", ["embedded", "w" + name], name)]
    parts += [node("Transpose", ["k"], "kt", perm=[0, 2, 1]), node("MatMul", ["q", "kt"], "products"),
              node("Softmax", ["products"], "shares", axis=-1),
              node("MatMul", ["shares", "v"], "mixed"), node("Add", ["embedded", "mixed"], "residual"),
              weights.vector("gain", 6, 1.0), weights.vector("shift", 6),
              node("LayerNormalization", ["residual", "gain", "shift"], "normal", axis=-1),
              node("Reshape", ["normal", "flat"], "features"),
              *weights.linear("layer1", "features", 12, 8), node("Relu", ["layer1"], "hidden"),
              *weights.linear("y", "hidden", 8, 1)]
    return model(parts, [("x", ["batch", 4], FLOAT)], [("y", ["batch", 1])], opset=17)


def with_several_inputs():
    """`ids`, three whole numbers below 10, and `x`, two numbers."""
    weights = Weights(5)
    parts = [weights.matrix("table", 10, 5, 3.0), node("Gather", ["table", "ids"], "words"),
             node("ReduceMean", ["words"], "mean", axes=[1], keepdims=0),
             node("Concat", ["mean", "x"], "joined", axis=1),
             *weights.linear("layer1", "joined", 7, 12), node("Relu", ["layer1"], "hidden"),
             *weights.linear("y", "hidden", 12, 1)]
    return model(parts, [("ids", ["batch", 3], INT64), ("x", ["batch", 2], FLOAT)],
                 [("y", ["batch", 1])])


def with_text():
    """`city` is text, as scikit-learn's encoders take it; `age` is a number."""
    weights = Weights(6)
    parts = [node("OneHotEncoder", ["city"], "hot", "ai.onnx.ml",
                  cats_strings=["Oslo", "Rome", "Ulm"], zeros=1),
             integers("flat", [-1, 3]), node("Reshape", ["hot", "flat"], "cities"),
             node("Concat", ["cities", "age"], "joined", axis=1),
             *weights.linear("layer1", "joined", 4, 8), node("Relu", ["layer1"], "hidden"),
             *weights.linear("y", "hidden", 8, 1)]
    return model(parts, [("city", ["batch", 1], STRING), ("age", ["batch", 1], FLOAT)],
                 [("y", ["batch", 1])], ml=True)


def colours():
    """The mean of each channel of an image of 6 x 6 pixels, times 3, is the logit of its class."""
    diagonal = [3.0 if i == j else 0.0 for i in range(3) for j in range(3)]
    parts = [node("GlobalAveragePool", ["image"], "mean"), node("Flatten", ["mean"], "feature"),
             floats("w", (3, 3), diagonal), node("Gemm", ["feature", "w"], "logits")]
    return model(parts, [("image", ["batch", 3, 6, 6], FLOAT)], [("logits", ["batch", 3])])


def convolution():
    """Images of 6 x 6 pixels, two layers of windows, three classes."""
    weights = Weights(7)
    parts = [weights.matrix("first_flat", 27, 8, 1.4), integers("first_shape", [8, 3, 3, 3]),
             node("Reshape", ["first_flat", "first_shape"], "first_w"),
             node("Conv", ["image", "first_w"], "first", pads=[1, 1, 1, 1]),
             node("Relu", ["first"], "hidden"),
             node("MaxPool", ["hidden"], "pooled", kernel_shape=[2, 2], strides=[2, 2]),
             node("Flatten", ["pooled"], "feature"), *weights.linear("logits", "feature", 72, 3)]
    return model(parts, [("image", ["batch", 3, 6, 6], FLOAT)], [("logits", ["batch", 3])])


def unknown_operator():
    return model([node("Frobnicate", ["x"], "y")], [("x", ["batch", 4], FLOAT)],
                 [("y", ["batch", 4])])


def leaking():
    """y = Relu(x) + Tanh(x): a cut behind Relu is passed by Tanh."""
    parts = [node("Relu", ["x"], "a"), node("Tanh", ["x"], "b"), node("Add", ["a", "b"], "y")]
    return model(parts, [("x", ["batch", 1], FLOAT)], [("y", ["batch", 1])])

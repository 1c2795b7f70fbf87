"""Random small networks on images and lines, in the form of quantised files: QuantizeLinear and
DequantizeLinear around every Conv, Gemm and MatMul, and the steps of the last one as the answer.

Scales cover what the tensors of a case hold. Weights of int8 stay below 64 in size: without dot
products of bytes ONNX Runtime adds pairs of larger ones in 16 bits, which do not hold them."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

CASES = 100
OPSETS = [helper.make_opsetid("", 17)]


class Network:
    """One random network, made node by node; `at` is what the last node makes."""

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)
        self.name = f"quantized_{seed}"
        self.nodes, self.constants, self.at = [], [], "x"
        self.kind = self.choose([np.uint8, np.int8])
        self.per_channel = self.choose([False, True])
        axes = self.whole(1, 2)
        self.shape = (self.whole(1, 9), *(self.whole(7, 15) for _ in range(axes)))
        self.x = self.random.randn(3, *self.shape).astype(np.float32)

    def whole(self, low, high):
        return int(self.random.randint(low, high + 1))

    def choose(self, values):
        return values[self.random.randint(len(values))]

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def graph(self, output):
        value = helper.make_tensor_value_info
        return helper.make_graph(self.nodes, self.name,
                                 [value("x", TensorProto.FLOAT, ["n", *self.x.shape[1:]])],
                                 [value(output, TensorProto.FLOAT, None)], self.constants)

    def numbers(self):
        if self.at == "x":
            return self.x
        model = helper.make_model(self.graph(self.at), opset_imports=OPSETS)
        model.ir_version = 8
        session = onnxruntime.InferenceSession(model.SerializeToString(),
                                               providers=["CPUExecutionProvider"])
        return session.run(None, {"x": self.x})[0]

    def quantize(self):
        """What the last node makes, in new steps that cover most of it."""
        numbers = self.numbers()
        low, high = min(numbers.min() * 0.9, 0), max(numbers.max() * 0.9, 1e-3)
        self.scale = np.float32((high - low) / 255)
        least = np.iinfo(self.kind).min
        zero = self.kind(np.clip(round(-low / self.scale) + least, least, least + 255))
        self.steps = self.constant(self.scale), self.constant(zero)
        self.quantize_again()

    def quantize_again(self):
        """In the last steps."""
        self.quantized = self.add("QuantizeLinear", self.at, *self.steps)
        self.at = self.add("DequantizeLinear", self.quantized, *self.steps)

    def weights(self, shape, axis):
        """Of int8 or, in one scale for all, of uint8 around any zero point."""
        count = shape[axis] if self.per_channel else 1
        scale = self.random.uniform(0.002, 0.02, count).astype(np.float32)
        if not self.per_channel:
            scale = scale[0]
        if self.kind == np.uint8 and not self.per_channel and self.choose([False, True]):
            zero = self.whole(90, 160)
            steps, zeros = self.random.randint(zero - 90, zero + 91, shape), np.uint8(zero)
        else:
            steps, zeros = self.random.randint(-63, 64, shape), np.zeros(scale.shape, np.int8)
        return scale, self.add("DequantizeLinear", self.constant(steps.astype(zeros.dtype)),
                               self.constant(scale), self.constant(zeros), axis=axis)

    def bias(self, outputs, scale):
        """Absent, or in steps of the sums."""
        if self.choose([True, False, False]):
            return []
        steps = self.random.randint(-3000, 3001, outputs).astype(np.int32)
        each = np.broadcast_to(scale * self.scale, outputs).astype(np.float32)
        step = self.constant(each if self.per_channel else each[0])
        return [self.add("DequantizeLinear", self.constant(steps), step, axis=0)]

    def activation(self):
        op = self.choose(["Relu", "Clip", ""])
        if op == "Relu":
            self.at = self.add(op, self.at)
        elif op == "Clip":
            largest = np.abs(self.numbers()).max()
            ends = np.array([0, self.random.uniform(0.3, 0.8)]) * largest
            self.at = self.add(op, self.at, *(self.constant(np.float32(end)) for end in ends))

    def conv(self):
        channels, *sides = self.shape
        filters = self.whole(1, 40)
        kernel = [self.choose([1, 3, 5]) for _ in sides]
        strides = [self.whole(1, 2) for _ in sides]
        pads = [self.whole(0, k // 2) for k in kernel * 2]
        sides = [(side + pads[i] + pads[i + len(sides)] - kernel[i]) // strides[i] + 1
                 for i, side in enumerate(sides)]
        scale, w = self.weights((filters, channels, *kernel), 0)
        self.at = self.add("Conv", self.at, w, *self.bias(filters, scale), kernel_shape=kernel,
                           strides=strides, pads=pads)
        self.shape = (filters, *sides)
        self.activation()
        self.quantize()

    def pool(self):
        channels, *sides = self.shape
        strides = [self.whole(1, 2) for _ in sides]
        self.at = self.add("MaxPool", self.at, kernel_shape=[2 for _ in sides],
                           strides=strides)
        self.shape = (channels, *((side - 2) // stride + 1 for side, stride in zip(sides, strides)))
        self.quantize_again()

    def product(self):
        inputs, outputs = int(np.prod(self.shape)), self.whole(1, 40)
        self.at = self.add("Flatten", self.at)
        self.quantize_again()
        op = self.choose(["Gemm", "MatMul"])
        turned = op == "Gemm" and self.choose([False, True])
        scale, w = self.weights((outputs, inputs) if turned else (inputs, outputs),
                                0 if turned else 1)
        if op == "Gemm":
            self.at = self.add(op, self.at, w, *self.bias(outputs, scale), transB=int(turned))
        else:
            self.at = self.add(op, self.at, w)
        self.activation()
        self.quantize()


def cases():
    for seed in range(CASES):
        network = Network(seed)
        network.quantize()
        network.conv()
        if min(network.shape[1:]) >= 2 and network.choose([False, True]):
            network.pool()
        if min(network.shape[1:]) >= 5 and network.choose([False, True]):
            network.conv()
        if network.choose([False, True]):
            network.product()
        network.nodes.pop()  # the last steps are the answer
        steps = network.add("Cast", network.quantized, to=TensorProto.FLOAT)
        yield network.name, network.graph(steps), [network.x]

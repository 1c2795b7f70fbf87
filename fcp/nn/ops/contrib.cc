// Operators of domain com.microsoft that ONNX Runtime's optimiser and converters write: matrix
// products with a factor and transposes, GELU and its relatives with a bias, normalisations with
// what is added before them, the distances of every two rows, and fused activations.
//
// Gradients flow; of bounds only Gelu's are known.
// Cost: that of the operators they stand for. Reference: ONNX Runtime, docs/ContribOperators.md.
// Tested by tests/nn/ops/contrib_test.cc and tests/parity/ml_cases_test.cc.
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/index.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

// An operator out of a function that keeps what it read of the node.
class ContribOp : public Op {
 public:
  using Function = std::function<Tensors(const Tensors&)>;
  explicit ContribOp(Function function) : function_(std::move(function)) {}
  Tensors forward(const Tensors& inputs) const override { return function_(inputs); }

 private:
  Function function_;
};

torch::Tensor contrib_input(const Tensors& inputs, size_t index) {
  return index < inputs.size() ? inputs[index] : torch::Tensor();
}

torch::Tensor plain_gelu(const torch::Tensor& x) {
  return x * (torch::erf(x * 0.7071067811865476) + 1) / 2;
}

torch::Tensor fast_gelu(const torch::Tensor& x) {
  return x * (torch::tanh((x + x * x * x * 0.044715) * 0.7978845608028654) + 1) / 2;
}

// f(X + B) where a bias is given, otherwise f(X).
OpPointer biased(OpArguments& arguments, size_t least,
                 torch::Tensor (*function)(const torch::Tensor&)) {
  arguments.expect_inputs(least, 2);
  const Node node = arguments.node();
  return std::make_unique<ContribOp>([node, function](const Tensors& inputs) -> Tensors {
    expect_floating(inputs[0], node, "X");
    const torch::Tensor bias = contrib_input(inputs, 1);
    return {function(bias.defined() ? inputs[0] + bias : inputs[0])};
  });
}

}  // namespace

OpPointer make_bias_gelu(OpArguments& arguments) { return biased(arguments, 2, plain_gelu); }
OpPointer make_fast_gelu(OpArguments& arguments) { return biased(arguments, 1, fast_gelu); }

OpPointer make_quick_gelu(OpArguments& arguments) {
  arguments.expect_inputs(1, 1);
  const double alpha = arguments.number("alpha", 1.702f);
  const Node node = arguments.node();
  return std::make_unique<ContribOp>([node, alpha](const Tensors& inputs) -> Tensors {
    expect_floating(inputs[0], node, "X");
    return {inputs[0] * torch::sigmoid(inputs[0] * alpha)};
  });
}

// α · op(A) op(B). transA exchanges the last two axes; transBatchA brings the first axis to the
// place before the last.
OpPointer make_fused_matmul(OpArguments& arguments) {
  arguments.expect_inputs(2, 2);
  const double alpha = arguments.number("alpha", 1);
  const Node node = arguments.node();
  struct Turn {
    bool last, batch;
    torch::Tensor operator()(torch::Tensor x) const {
      if (batch && x.dim() > 2) {
        std::vector<int64_t> order;
        for (int64_t i = 1; i + 1 < x.dim(); ++i) order.push_back(i);
        order.insert(order.end(), {0, x.dim() - 1});
        x = x.permute(order);
      }
      return last && x.dim() > 1 ? x.transpose(-1, -2) : x;
    }
  };
  const Turn a{arguments.integer("transA", 0) != 0, arguments.integer("transBatchA", 0) != 0};
  const Turn b{arguments.integer("transB", 0) != 0, arguments.integer("transBatchB", 0) != 0};
  return std::make_unique<ContribOp>([node, alpha, a, b](const Tensors& inputs) -> Tensors {
    expect_floating(inputs[0], node, "A");
    expect_type_of(inputs[0], inputs[1], node, "B");
    return {torch::matmul(a(inputs[0]), b(inputs[1])) * alpha};
  });
}

namespace {

// A product or a convolution with an activation behind it.
OpPointer with_activation(OpArguments& arguments, OpFactory layer, const char* attribute) {
  const std::string name = arguments.text(attribute, "");
  std::vector<float> numbers = arguments.numbers("activation_params");
  for (const char* key : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (arguments.has(key)) numbers.push_back(static_cast<float>(arguments.number(key, 0)));
  }
  const auto number = [&](size_t i, float fallback) {
    return i < numbers.size() ? numbers[i] : fallback;
  };
  UnaryFunction function;
  if (name == "Relu") function = [](const torch::Tensor& x) { return torch::relu(x); };
  if (name == "Tanh") function = [](const torch::Tensor& x) { return torch::tanh(x); };
  if (name == "Sigmoid") function = [](const torch::Tensor& x) { return torch::sigmoid(x); };
  if (name == "LeakyRelu") {
    function = [slope = number(0, 0.01f)](const torch::Tensor& x) {
      return torch::where(x >= 0, x, x * slope);
    };
  }
  if (name == "Clip") {
    const float largest = std::numeric_limits<float>::max();
    function = [low = number(0, -largest), high = number(1, largest)](const torch::Tensor& x) {
      return torch::clamp(x, low, high);
    };
  }
  if (name == "HardSigmoid") {
    function = [a = number(0, 0.2f), b = number(1, 0.5f)](const torch::Tensor& x) {
      return torch::clamp(x * a + b, 0, 1);
    };
  }
  if (!name.empty() && !function) {
    fail(describe(arguments.node()), ": attribute '", attribute, "' is '", name,
         "', expected Relu, Tanh, Sigmoid, LeakyRelu, Clip or HardSigmoid");
  }
  const std::shared_ptr<const Op> op = layer(arguments);
  return std::make_unique<ContribOp>([op, function](const Tensors& inputs) -> Tensors {
    const torch::Tensor y = op->forward(inputs)[0];
    return {function ? function(y) : y};
  });
}

}  // namespace

OpPointer make_fused_gemm(OpArguments& arguments) {
  return with_activation(arguments, make_gemm, "activation");
}
OpPointer make_fused_conv(OpArguments& arguments) {
  if (arguments.node().inputs.size() > 3 && !arguments.node().inputs[3].empty()) {
    fail(describe(arguments.node()), ": adds a fourth input, which is not supported");
  }
  return with_activation(arguments, make_conv, "activation");
}

namespace {

// The sum of the given ones, normalised along the last axis: by mean and deviation (`centers`), or
// by the root of the mean square.
struct SkipNorm {
  Node node;
  double epsilon;
  bool centers;

  torch::Tensor operator()(const torch::Tensor& x, const torch::Tensor& gamma,
                           const torch::Tensor& beta) const {
    expect_floating(x, node, "the input");
    expect_vector(gamma, x.size(-1), node, "gamma");
    if (beta.defined()) expect_vector(beta, x.size(-1), node, "beta");
    if (centers) return torch::layer_norm(x, {x.size(-1)}, gamma, beta, epsilon);
    const torch::Tensor power = x.square().mean(-1, /*keepdim=*/true);
    return x * torch::rsqrt(power + epsilon) * gamma;
  }
};

// input, skip, gamma, beta (if it centers), bias; the fourth output is the sum before normalising.
OpPointer skip_norm(OpArguments& arguments, bool centers) {
  arguments.expect_inputs(3, centers ? 5 : 4);
  const SkipNorm norm{arguments.node(), arguments.number("epsilon", 1e-12f), centers};
  for (size_t i = 1; i < std::min<size_t>(3, norm.node.outputs.size()); ++i) {
    if (!norm.node.outputs[i].empty())
      fail(describe(norm.node), ": output ", i, " is not supported");
  }
  return std::make_unique<ContribOp>([norm](const Tensors& inputs) -> Tensors {
    torch::Tensor sum = inputs[0] + inputs[1];
    const torch::Tensor bias = contrib_input(inputs, norm.centers ? 4 : 3);
    if (bias.defined()) sum = sum + bias;
    const torch::Tensor beta = norm.centers ? contrib_input(inputs, 3) : torch::Tensor();
    return {norm(sum, inputs[2], beta), torch::Tensor(), torch::Tensor(), sum};
  });
}

}  // namespace

OpPointer make_skip_layer_norm(OpArguments& arguments) { return skip_norm(arguments, true); }
OpPointer make_skip_rms_norm(OpArguments& arguments) { return skip_norm(arguments, false); }

OpPointer make_simplified_layer_norm(OpArguments& arguments) {
  arguments.expect_inputs(2, 2);
  const SkipNorm norm{arguments.node(), arguments.number("epsilon", 1e-5f), false};
  arguments.ignore("stash_type");
  if (arguments.integer("axis", -1) != -1) {
    fail(describe(norm.node), ": normalises other axes than the last, which is not supported");
  }
  return std::make_unique<ContribOp>(
      [norm](const Tensors& inputs) -> Tensors { return {norm(inputs[0], inputs[1], {})}; });
}

// Words, positions and segments embedded, added and normalised: input_ids, segment_ids,
// word, position and segment embeddings, gamma, beta, mask, position_ids.
OpPointer make_embed_layer_norm(OpArguments& arguments) {
  arguments.expect_inputs(7, 9);
  const SkipNorm norm{arguments.node(), arguments.number("epsilon", 1e-12f), true};
  arguments.ignore("mask_index_type");
  return std::make_unique<ContribOp>([norm](const Tensors& inputs) -> Tensors {
    const auto rows = [&](const torch::Tensor& table, const torch::Tensor& ids) {
      expect_rank(table, 2, 2, norm.node, "an embedding");
      const torch::Tensor at = checked_indices(ids, table.size(0), norm.node, table.device());
      std::vector<int64_t> shape = ids.sizes().vec();
      shape.push_back(table.size(1));
      return table.index_select(0, at.reshape({-1})).reshape(shape);
    };
    const torch::Tensor& ids = inputs[0];
    expect_rank(ids, 2, 2, norm.node, "input_ids");
    torch::Tensor at = contrib_input(inputs, 8);
    if (!at.defined()) at = torch::arange(ids.size(1), torch::kLong).unsqueeze(0);
    torch::Tensor sum = rows(inputs[2], ids) + rows(inputs[3], at);
    if (inputs[1].defined() && inputs[4].defined()) sum = sum + rows(inputs[4], inputs[1]);
    const torch::Tensor mask = contrib_input(inputs, 7);
    const torch::Tensor lengths =
        mask.defined() ? mask.sum(1).to(torch::kInt) : torch::zeros({ids.size(0)}, torch::kInt);
    return {norm(sum, inputs[5], inputs[6]), lengths, sum};
  });
}

// A [..., K] times the transpose of weights [N, K] of 2, 4 or 8 bits, packed into bytes and scaled
// by blocks: A, B [N, blocks, bytes], scales and zero points [N, blocks], g_idx, bias. The zero
// points are packed as well, or plain numbers.
OpPointer make_matmul_nbits(OpArguments& arguments) {
  arguments.expect_inputs(3, 6);
  arguments.ignore("accuracy_level");  // no less than single precision here
  const Node node = arguments.node();
  const int64_t k = arguments.integer("K", 0), n = arguments.integer("N", 0);
  const int64_t bits = arguments.integer("bits", 4), block = arguments.integer("block_size", 0);
  if (arguments.integer("weight_prepacked", 0) != 0 ||
      (node.inputs.size() > 4 && !node.inputs[4].empty())) {
    fail(describe(node), ": has prepacked or reordered weights, which are not supported");
  }
  if ((bits != 2 && bits != 4 && bits != 8) || k < 1 || n < 1 || block < 16) {
    fail(describe(node), ": has ", n, " x ", k, " weights of ", bits, " bits in blocks of ", block,
         ", expected 2, 4 or 8 bits and blocks of 16 at least");
  }
  const int64_t blocks = (k + block - 1) / block;
  checked_elements({n, blocks, block}, node);
  // `count` numbers of each row of bytes.
  const auto unpacked = [bits](const torch::Tensor& bytes, int64_t count) {
    Tensors parts;
    for (int64_t shift = 0; shift < 8; shift += bits) {
      parts.push_back(
          bytes.to(torch::kInt).bitwise_right_shift(shift).bitwise_and((1 << bits) - 1));
    }
    return torch::stack(parts, -1).flatten(-2).narrow(-1, 0, count);
  };
  return std::make_unique<ContribOp>([=](const Tensors& inputs) -> Tensors {
    const torch::Tensor &a = inputs[0], &b = inputs[1];
    expect_rank(a, 1, 16, node, "A");
    expect_floating(a, node, "A");
    const int64_t bytes = block * bits / 8;
    const int64_t zero_bytes = (blocks * bits + 7) / 8;
    if (a.size(-1) != k || b.scalar_type() != torch::kByte || b.numel() != n * blocks * bytes ||
        inputs[2].numel() != n * blocks) {
      fail(describe(node), ": A has shape ", shape_text(a.sizes()), ", B ", shape_text(b.sizes()),
           ", scales ", shape_text(inputs[2].sizes()), ", expected ", k, " columns, ",
           n * blocks * bytes, " bytes and ", n * blocks, " scales");
    }
    torch::Tensor zero = torch::full({1}, 1 << (bits - 1), a.options());
    if (const torch::Tensor given = contrib_input(inputs, 3); given.defined()) {
      const bool packed = given.scalar_type() == torch::kByte;
      if (given.numel() != n * (packed ? zero_bytes : blocks)) {
        fail(describe(node), ": zero_points have shape ", shape_text(given.sizes()), ", expected ",
             n * (packed ? zero_bytes : blocks), " numbers");
      }
      const torch::Tensor each =
          packed ? unpacked(given.reshape({n, zero_bytes}), blocks) : given.reshape({n, blocks});
      zero = each.to(a.options()).unsqueeze(2);
    }
    const torch::Tensor q = unpacked(b.reshape({n, blocks, bytes}), block).to(a.options());
    const torch::Tensor w = (q - zero) * inputs[2].reshape({n, blocks, 1}).to(a.options());
    const torch::Tensor y = torch::matmul(a, w.flatten(1).narrow(1, 0, k).t());
    const torch::Tensor bias = contrib_input(inputs, 5);
    return {bias.defined() ? y + bias : y};
  });
}

// The distance of every row of A to every row of B, [N, M].
OpPointer make_cdist(OpArguments& arguments) {
  arguments.expect_inputs(2, 2);
  const Node node = arguments.node();
  const std::string metric = arguments.text("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") {
    fail(describe(node), ": attribute 'metric' is '", metric,
         "', expected sqeuclidean or euclidean");
  }
  const bool root = metric == "euclidean";
  return std::make_unique<ContribOp>([node, root](const Tensors& inputs) -> Tensors {
    expect_rank(inputs[0], 2, 2, node, "A");
    expect_rank(inputs[1], 2, 2, node, "B");
    expect_type_of(inputs[0], inputs[1], node, "B");
    const torch::Tensor squares =
        (inputs[0].unsqueeze(1) - inputs[1].unsqueeze(0)).square().sum(-1);
    return {root ? squares.sqrt() : squares};
  });
}

}  // namespace fcp

// DFT and STFT: the discrete Fourier transform along one axis, and of windows of a signal. A
// complex number is two along the last axis; a real one may be alone there. Computed as a product
// with the matrix of cosines and sines,
//
//   X_k = Σ_t x_t e^{−2πi kt / n}        (inverse: e^{+2πi kt / n} / n)
//
// whose angles are reduced exactly, kt mod n. With `onesided` only k = 0 … n/2 are given, which
// says everything of a real signal; the inverse of that gives the real signal back,
//
//   x_t = (Re X_0 + Σ_k c_k (Re X_k cos(2π kt / n) − Im X_k sin(2π kt / n))) / n,
//
// c_k = 2, but 1 for k = n/2. Gradients flow; no bounds.
// Cost: n² products per signal. Reference: ONNX operator specification, DFT 17 and 20, STFT 17.
// Tested by tests/parity/op_cases_test.cc.
#include <algorithm>
#include <cmath>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/ops/factories.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {
namespace {

constexpr int64_t kLongestSignal = 1 << 14;  // n² numbers are made

int64_t one_integer(const torch::Tensor& value, const Node& node, const char* what) {
  const std::vector<int64_t> numbers = to_integers(value.reshape({-1}), node, what);
  if (numbers.size() != 1) fail(describe(node), ": ", what, " must be one number");
  return numbers[0];
}

bool has_input(const Tensors& inputs, size_t index) {
  return index < inputs.size() && inputs[index].defined();
}

struct FourierOptions {
  bool inverse = false, onesided = false;
};

// x [..., n, 1 or 2] along its last but one axis.
torch::Tensor fourier_transform(const torch::Tensor& x, const FourierOptions& options,
                                const Node& node) {
  const int64_t n = x.size(-2), parts = x.size(-1);
  if (parts != 1 && parts != 2) {
    fail(describe(node), ": the last axis has ", parts, " numbers, expected 1 or 2");
  }
  if (n < 1 || n > kLongestSignal) {
    fail(describe(node), ": a signal of ", n, " numbers, expected 1 to ", kLongestSignal);
  }
  const int64_t count = options.onesided ? n / 2 + 1 : n;
  const torch::Tensor places = torch::arange(n, torch::kLong);
  const torch::Tensor turns =
      (places.unsqueeze(1) * torch::arange(count, torch::kLong)).remainder(n);
  const torch::Tensor angles = turns.to(torch::kDouble) * (2 * M_PI / static_cast<double>(n));
  const double share = options.inverse ? 1.0 / static_cast<double>(n) : 1.0;
  const torch::Tensor cosines = (angles.cos() * share).to(x.options());  // [n, count]
  const torch::Tensor sines = (angles.sin() * (options.inverse ? -share : share)).to(x.options());
  const torch::Tensor real = x.select(-1, 0);
  torch::Tensor even = torch::matmul(real, cosines), odd = -torch::matmul(real, sines);
  if (parts == 2) {
    const torch::Tensor imaginary = x.select(-1, 1);
    even = even + torch::matmul(imaginary, sines);
    odd = odd + torch::matmul(imaginary, cosines);
  }
  return torch::stack({even, odd}, -1);
}

// x [..., bins, 2], of which the first n / 2 + 1 count, to the real signal [..., n, 1].
torch::Tensor real_signal(const torch::Tensor& x, int64_t n, const Node& node) {
  if (x.size(-1) != 2) {
    fail(describe(node), ": the last axis has ", x.size(-1), " numbers, expected 2");
  }
  if (n < 1 || n > kLongestSignal) {
    fail(describe(node), ": a signal of ", n, " numbers, expected 1 to ", kLongestSignal);
  }
  const int64_t count = std::min(n / 2 + 1, x.size(-2));
  const torch::Tensor bins = torch::arange(count, torch::kLong);
  const torch::Tensor turns = (bins.unsqueeze(1) * torch::arange(n, torch::kLong)).remainder(n);
  const torch::Tensor angles = turns.to(torch::kDouble) * (2 * M_PI / static_cast<double>(n));
  const torch::Tensor alone = (bins == 0).logical_or(bins * 2 == n);
  const torch::Tensor share = torch::where(alone, torch::ones(count, torch::kDouble),
                                           torch::full(count, 2.0, torch::kDouble))
                                  .unsqueeze(1) /
                              static_cast<double>(n);
  const torch::Tensor used = x.narrow(-2, 0, count);
  const torch::Tensor y =
      torch::matmul(used.select(-1, 0), (angles.cos() * share).to(x.options())) -
      torch::matmul(used.select(-1, 1), (angles.sin() * share).to(x.options()));
  return y.unsqueeze(-1);
}

class DftOp : public Op {
 public:
  explicit DftOp(OpArguments& arguments) : node_(arguments.node()), opset_(arguments.opset()) {
    if (opset_ < 17) fail(describe(node_), ": DFT exists from opset 17 on, found ", opset_);
    arguments.expect_inputs(1, opset_ < 20 ? 2 : 3);
    if (opset_ < 20) axis_ = arguments.integer("axis", 1);
    options_.inverse = arguments.integer("inverse", 0) != 0;
    options_.onesided = arguments.integer("onesided", 0) != 0;
  }

  Tensors forward(const Tensors& inputs) const override {
    expect_floating(inputs[0], node_, "input");
    expect_rank(inputs[0], 2, 16, node_, "input");
    int64_t axis = axis_;
    if (has_input(inputs, 2)) axis = one_integer(inputs[2], node_, "axis");
    axis = normalize_axis(axis, inputs[0].dim(), node_);
    if (axis == inputs[0].dim() - 1) {
      fail(describe(node_), ": axis ", axis, " is that of real and imaginary parts");
    }
    torch::Tensor x = inputs[0].transpose(axis, -2);
    if (options_.inverse && options_.onesided) {
      const int64_t length =
          has_input(inputs, 1) ? one_integer(inputs[1], node_, "dft_length") : 2 * (x.size(-2) - 1);
      return {real_signal(x, length, node_).transpose(axis, -2).contiguous()};
    }
    if (has_input(inputs, 1)) x = of_length(x, one_integer(inputs[1], node_, "dft_length"));
    return {fourier_transform(x, options_, node_).transpose(axis, -2).contiguous()};
  }

 private:
  // Cut off, or zeros behind it.
  torch::Tensor of_length(const torch::Tensor& x, int64_t length) const {
    if (length < 1 || length > kLongestSignal) {
      fail(describe(node_), ": dft_length is ", length, ", expected 1 to ", kLongestSignal);
    }
    const int64_t own = x.size(-2);
    if (length <= own) return x.narrow(-2, 0, length);
    return torch::constant_pad_nd(x, {0, 0, 0, length - own});
  }

  Node node_;
  int64_t opset_;
  int64_t axis_ = -2;
  FourierOptions options_;
};

// signal [N, L, 1 or 2] or [N, L], frame_step, window [n], frame_length.
class StftOp : public Op {
 public:
  explicit StftOp(OpArguments& arguments) : node_(arguments.node()) {
    arguments.expect_inputs(2, 4);
    options_.onesided = arguments.integer("onesided", 1) != 0;
  }

  Tensors forward(const Tensors& inputs) const override {
    expect_floating(inputs[0], node_, "signal");
    expect_rank(inputs[0], 2, 3, node_, "signal");
    const torch::Tensor signal = inputs[0].dim() == 2 ? inputs[0].unsqueeze(-1) : inputs[0];
    const int64_t step = one_integer(inputs[1], node_, "frame_step");
    const bool windowed = has_input(inputs, 2);
    if (!windowed && !has_input(inputs, 3)) {
      fail(describe(node_), ": neither a window nor frame_length is given");
    }
    const int64_t length =
        windowed ? inputs[2].numel() : one_integer(inputs[3], node_, "frame_length");
    if (step < 1 || length < 1 || length > signal.size(1)) {
      fail(describe(node_), ": frames of ", length, " at steps of ", step,
           " do not fit a signal of ", signal.size(1));
    }
    torch::Tensor frames = signal.unfold(1, length, step).transpose(-1, -2);  // [N, F, n, 1 or 2]
    if (windowed) frames = frames * inputs[2].reshape({length, 1}).to(frames.scalar_type());
    return {fourier_transform(frames, options_, node_)};
  }

 private:
  Node node_;
  FourierOptions options_;
};

}  // namespace

OpPointer make_dft(OpArguments& arguments) { return std::make_unique<DftOp>(arguments); }

OpPointer make_stft(OpArguments& arguments) { return std::make_unique<StftOp>(arguments); }

}  // namespace fcp

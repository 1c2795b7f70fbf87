#include "fcp/nn/ops/ml/transforms.h"

#include <array>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {

PostTransform read_post_transform(OpArguments& arguments, const std::string& name) {
  constexpr std::array<std::pair<const char*, PostTransform>, 5> kNames = {{
      {"NONE", PostTransform::kNone},
      {"SOFTMAX", PostTransform::kSoftmax},
      {"LOGISTIC", PostTransform::kLogistic},
      {"SOFTMAX_ZERO", PostTransform::kSoftmaxZero},
      {"PROBIT", PostTransform::kProbit},
  }};
  const std::string text = arguments.text(name, "NONE");
  for (const auto& [known, transform] : kNames) {
    if (text == known) return transform;
  }
  fail(describe(arguments.node()), ": attribute '", name, "' is '", text,
       "', expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT");
}

PostTransform post_transform_of(int64_t number, const Node& node) {
  if (number < 0 || number > 4) {
    fail(describe(node), ": attribute 'post_transform' is ", number, ", expected 0 to 4");
  }
  return static_cast<PostTransform>(number);
}

torch::Tensor apply(PostTransform transform, const torch::Tensor& scores) {
  switch (transform) {
    case PostTransform::kSoftmax:
      return torch::softmax(scores, -1);
    case PostTransform::kLogistic:
      return torch::sigmoid(scores);
    case PostTransform::kSoftmaxZero: {  // a softmax that leaves scores of 0 out
      const torch::Tensor absent = scores.abs() <= 1e-7;
      const torch::Tensor terms =
          torch::exp(scores - scores.amax(-1, /*keepdim=*/true)).masked_fill(absent, 0);
      const torch::Tensor sum = terms.sum(-1, /*keepdim=*/true);
      return terms / torch::where(sum == 0, torch::ones_like(sum), sum);
    }
    case PostTransform::kProbit:
      return torch::erfinv(scores * 2 - 1) * 1.4142135623730951;
    default:
      return scores;
  }
}

torch::Tensor rows_of(const torch::Tensor& given, int64_t features, const Node& node) {
  expect_rank(given, 1, 2, node, "X");
  torch::Tensor x = given.dim() == 1 ? given.unsqueeze(0) : given;
  if (!x.is_floating_point()) {
    x = x.to(x.scalar_type() == torch::kLong ? torch::kDouble : torch::kFloat);
  }
  if (x.size(1) < features) {
    fail(describe(node), ": X has shape ", shape_text(given.sizes()), ", expected at least ",
         features, " columns");
  }
  return x.to(torch::kCPU).contiguous();
}

}  // namespace fcp

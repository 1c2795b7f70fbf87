#include "fcp/predictor/rounding.h"

#include <algorithm>
#include <cmath>

#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/nn/graph/half.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

using RoundingJson = nlohmann::ordered_json;

constexpr int64_t kMostColumns = 4096;  // beyond, all columns share one size

double power_above(double value) {
  return value > 0 ? std::exp2(std::ceil(std::log2(value))) : 0.0;
}

void take_larger(Rounding::Loss& loss, const Rounding::Loss& other) {
  loss.difference = std::max(loss.difference, other.difference);
  loss.size = std::max(loss.size, other.size);
}

// Of the numbers that are finite in both.
Rounding::Loss loss_between(const torch::Tensor& found, const torch::Tensor& exact) {
  const torch::Tensor a = found.to(torch::kCPU, torch::kDouble).flatten();
  const torch::Tensor b = exact.to(torch::kCPU, torch::kDouble).flatten();
  const torch::Tensor known = a.isfinite().logical_and(b.isfinite());
  if (!known.any().item<bool>()) return {};
  return {power_above((a - b).abs().masked_select(known).max().item<double>()),
          power_above(a.abs().masked_select(known).max().item<double>())};
}

std::vector<double> largest_columns(const torch::Tensor& x) {
  if (!x.is_floating_point() || x.dim() < 2 || x.numel() == 0) return {};
  torch::Tensor sizes = x.flatten(1).abs().to(torch::kDouble);
  sizes = sizes.masked_fill(sizes.isfinite().logical_not(), 0).amax(0);
  if (sizes.numel() > kMostColumns) sizes = sizes.max().reshape({1});
  std::vector<double> largest;
  for (int64_t i = 0; i < sizes.numel(); ++i) {
    largest.push_back(std::max(1.0, power_above(sizes[i].item<double>())));
  }
  return largest;
}

// The same truths judged by both: those at the ends of the regions of single precision.
void measure_scores(const ScoredNetwork& single, const ScoredNetwork& wide,
                    const torch::Tensor& features, const torch::Tensor& wide_features,
                    const std::vector<double>& radii, Rounding& rounding) {
  for (const double radius : radii) {
    const Regions found = single.score().region(features, radius);
    const Regions exact = wide.score().region(wide_features, radius);
    for (const auto& [end, other] :
         {std::pair(found.lower, exact.lower), std::pair(found.upper, exact.upper)}) {
      take_larger(rounding.ends, loss_between(end, other));
      const auto scores = [&](const ScoredNetwork& network, const torch::Tensor& v) {
        return torch::tensor(network.score().score(v, end), torch::kDouble);
      };
      take_larger(rounding.score,
                  loss_between(scores(single, features), scores(wide, wide_features)));
    }
  }
}

RoundingJson loss_json(const Rounding::Loss& loss) { return {loss.difference, loss.size}; }

Rounding::Loss read_loss(const RoundingJson& json) {
  const Rounding::Loss loss{json.at(0).get<double>(), json.at(1).get<double>()};
  for (const double number : {loss.difference, loss.size}) {
    if (!(number >= 0) || std::isinf(number)) fail("its 'fcp.rounding' is damaged");
  }
  return loss;
}

}  // namespace

size_t rounding_rows(const Graph& network) {
  int64_t numbers = 1;
  for (const auto& [name, tensor] : network.initializers) numbers += tensor.numel();
  return static_cast<size_t>(std::clamp<int64_t>((int64_t{1} << 26) / numbers, 8, 256));
}

Rounding measure_rounding(const Graph& network, const ScoreOptions& score, const std::string& cut,
                          const torch::Tensor& x, const std::vector<double>& radii) {
  const torch::NoGradGuard no_gradients;
  Rounding rounding;
  if (x.size(0) == 0) return rounding;
  try {
    const ScoredNetwork single(network, score, cut), wide(in_double(network), score, cut);
    const torch::Tensor features = single.features(x);
    const torch::Tensor wide_features =
        wide.features(x.is_floating_point() ? x.to(torch::kDouble) : x);
    const Tensors found = run_apart(*single.shared_head(), {features});
    const Tensors exact = run_apart(*wide.shared_head(), {wide_features});
    for (size_t i = 0; i < found.size(); ++i) {
      const TensorInfo& output = single.shared_head()->outputs()[i];
      if (found[i].is_floating_point()) {
        rounding.outputs[output.name] = loss_between(found[i], exact[i]);
      }
    }
    if (score.traits().labels && score.pixels == 0) {
      const auto logits = [&](const ScoredNetwork& scored, const torch::Tensor& v) {
        return run_apart(*logit_head(scored.shared_head(), score.output).network, {v})[0];
      };
      rounding.logits = loss_between(logits(single, features), logits(wide, wide_features));
    } else if (score.find(field::floor) != nullptr) {  // of features, and exported
      measure_scores(single, wide, features, wide_features, radii, rounding);
    }
  } catch (const Error&) {
    return {};
  } catch (const c10::Error&) {
    return {};
  }
  rounding.rows = static_cast<size_t>(x.size(0));
  rounding.largest = largest_columns(x);
  return rounding;
}

Rounding joined(const Rounding& a, const Rounding& b) {
  if (!a.measured() || !b.measured()) return a.measured() ? a : b;
  Rounding both = a;
  both.rows += b.rows;
  // The smaller sizes: rows above them are given the larger differences.
  if (both.largest.size() != b.largest.size()) both.largest.clear();
  for (size_t i = 0; i < both.largest.size(); ++i) {
    both.largest[i] = std::min(both.largest[i], b.largest[i]);
  }
  for (const auto& [name, loss] : b.outputs) take_larger(both.outputs[name], loss);
  take_larger(both.logits, b.logits);
  take_larger(both.score, b.score);
  take_larger(both.ends, b.ends);
  return both;
}

std::string rounding_text(const Rounding& rounding) {
  RoundingJson outputs = RoundingJson::object();
  for (const auto& [name, loss] : rounding.outputs) outputs[name] = loss_json(loss);
  return RoundingJson{{"rows", rounding.rows},
                      {"largest", rounding.largest},
                      {"outputs", outputs},
                      {"logits", loss_json(rounding.logits)},
                      {"score", loss_json(rounding.score)},
                      {"ends", loss_json(rounding.ends)}}
      .dump();
}

Rounding read_rounding(const std::string& text) {
  const RoundingJson json = RoundingJson::parse(text);
  Rounding rounding;
  rounding.rows = json.at("rows").get<size_t>();
  rounding.largest = json.at("largest").get<std::vector<double>>();
  for (const double size : rounding.largest) {
    if (!(size >= 1) || std::isinf(size)) fail("its 'fcp.rounding' is damaged");
  }
  for (const auto& [name, loss] : json.at("outputs").items()) {
    rounding.outputs[name] = read_loss(loss);
  }
  rounding.logits = read_loss(json.at("logits"));
  rounding.score = read_loss(json.at("score"));
  rounding.ends = read_loss(json.at("ends"));
  return rounding;
}

}  // namespace fcp

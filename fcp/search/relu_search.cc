#include "fcp/search/relu_search.h"

#include <algorithm>

#include <torch/utils.h>

#include "fcp/base/parallel.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

constexpr size_t kBlockRows = 64;    // hidden and moved rows of a block stay in the first cache
constexpr size_t kThreadRows = 512;  // below, a thread costs more than it does
constexpr int kTracedSteps = 32;     // at once, and then twice as many

// Rows [N, D] float32 on the CPU.
torch::Tensor plain_rows(const torch::Tensor& rows) {
  return rows.detach().to(torch::kCPU, torch::kFloat).flatten(1).contiguous();
}

size_t search_threads() { return static_cast<size_t>(at::get_num_threads()); }

// Hands the rows, ready to be walked, to `work`, block by block.
template <typename Work>
void for_blocks(const ReluWalk& walk, const torch::Tensor& v, const torch::Tensor& y,
                const Work& work) {
  const ReluRows& head = walk.head;
  const float* features = v.data_ptr<float>();
  const float* truth = y.data_ptr<float>();
  parallel_rows(static_cast<size_t>(v.size(0)), kThreadRows, search_threads(),
                [&](size_t begin, size_t end) {
                  FloatRows hidden(kBlockRows * head.hidden_width);
                  FloatRows moved(kBlockRows * head.feature_width);
                  for (size_t first = begin; first < end; first += kBlockRows) {
                    const size_t rows = std::min(kBlockRows, end - first);
                    hidden_rows(head, features + first * head.features, rows, hidden.data());
                    std::fill(moved.begin(), moved.end(), 0.0f);
                    work(first, ReluWalkers{rows, truth + first, hidden.data(), moved.data()});
                  }
                });
}

}  // namespace

ReluSearch::ReluSearch(const ReluHead& head, double rate)
    : head_(head), walk_(make_relu_walk(head, rate)) {}

bool ReluSearch::takes(const torch::Tensor& features, const torch::Tensor& truth) const {
  return takes_rows(head_, features, truth);
}

torch::Tensor ReluSearch::walk(const torch::Tensor& features, const torch::Tensor& truth,
                               int steps) const {
  const torch::Tensor v = plain_rows(features), y = plain_rows(truth.reshape({-1, 1}));
  torch::Tensor found = torch::empty_like(v);
  const float* from = v.data_ptr<float>();
  float* to = found.data_ptr<float>();
  const ReluRows& head = walk_.head;
  for_blocks(walk_, v, y, [&](size_t first, const ReluWalkers& walkers) {
    walk_rows(walk_, walkers, steps);
    for (size_t row = 0; row < walkers.rows; ++row) {
      const size_t at = (first + row) * head.features;
      const float* moved = walkers.moved + row * head.feature_width;
      for (size_t d = 0; d < head.features; ++d) to[at + d] = from[at + d] + moved[d];
    }
  });
  return found.view(features.sizes());
}

torch::Tensor ReluSearch::distances(const torch::Tensor& features, const torch::Tensor& truth,
                                    int steps, DistanceOrder order) const {
  const torch::Tensor v = plain_rows(features), y = plain_rows(truth.reshape({-1, 1}));
  torch::Tensor distances = torch::zeros({v.size(0)});
  float* to = distances.data_ptr<float>();
  for_blocks(walk_, v, y, [&](size_t first, const ReluWalkers& walkers) {
    walk_rows(walk_, walkers, steps, {to + first, 0, true, order});
  });
  return distances;
}

torch::Tensor ReluSearch::distances(const torch::Tensor& features, const torch::Tensor& truth,
                                    int steps, DistanceOrder order,
                                    const DistanceObserver& observe) const {
  const torch::Tensor v = plain_rows(features), y = plain_rows(truth.reshape({-1, 1}));
  const ReluRows& head = walk_.head;
  const auto rows = static_cast<size_t>(v.size(0));
  FloatRows hidden(rows * head.hidden_width), moved(rows * head.feature_width);
  torch::Tensor last = torch::zeros({v.size(0)});
  for (int done = 0, count = 0; done < steps; done += count) {
    count = std::min(done == 0 ? kTracedSteps : 2 * kTracedSteps, steps - done);
    torch::Tensor trace = torch::empty({count, v.size(0)});
    parallel_rows(rows, kThreadRows, search_threads(), [&](size_t begin, size_t end) {
      float* p = hidden.data() + begin * head.hidden_width;
      if (done == 0) hidden_rows(head, v.data_ptr<float>() + begin * head.features, end - begin, p);
      walk_rows(
          walk_,
          {end - begin, y.data_ptr<float>() + begin, p, moved.data() + begin * head.feature_width},
          count, {trace.data_ptr<float>() + begin, rows, false, order});
    });
    for (int step = 0; step < count; ++step) {
      last = trace[step].clone();
      if (!observe(done + step + 1, last)) return last;
    }
  }
  return last;
}

std::shared_ptr<const ReluSearch> make_relu_search(const Network& head, size_t output,
                                                   const SearchOptions& options) {
  if (options.adam || options.loss != SearchLoss::kSquaredError) return nullptr;
  if (!head.device().is_cpu() || options.weights.size() > 1) return nullptr;
  const std::optional<ReluHead> matched = match_relu_head(head, output);
  if (!matched || matched->w2.size(0) != 1) return nullptr;
  const double weight = options.weights.empty() ? 1 : options.weights[0];
  return std::make_shared<const ReluSearch>(*matched, options.rate * weight);
}

}  // namespace fcp

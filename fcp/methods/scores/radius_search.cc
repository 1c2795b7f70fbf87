#include "fcp/methods/scores/radius_search.h"

#include <algorithm>
#include <limits>

namespace fcp {
namespace {

constexpr int64_t kInfinityKey = 0x7f800000;  // of the float32 +∞

int64_t smallest_key(RadiusRange range) {
  return range == RadiusRange::kSigned ? 1 - kInfinityKey : 0;
}

int bisection_steps(RadiusRange range) { return range == RadiusRange::kSigned ? 32 : 31; }

torch::Tensor radius_of_key(const torch::Tensor& key) {
  const torch::Tensor size = key.abs().to(torch::kInt).contiguous().view(torch::kFloat);
  return torch::where(key < 0, -size, size);
}

// The key of the largest float32 ≤ radius, at least one below the smallest key of the range.
torch::Tensor key_below(const torch::Tensor& radius, RadiusRange range) {
  const torch::Tensor wanted = radius.to(torch::kDouble);
  const torch::Tensor nearest = wanted.to(torch::kFloat).contiguous();
  const torch::Tensor size = nearest.abs().contiguous().view(torch::kInt).to(torch::kLong);
  const torch::Tensor key = torch::where(nearest < 0, -size, size);
  const torch::Tensor above = nearest.to(torch::kDouble) > wanted;
  return (key - above.to(torch::kLong)).clamp_min(smallest_key(range) - 1);
}

// The keys between which the answer lies: it does not hold at `below`, and +∞ stands for above.
struct Bracket {
  torch::Tensor below, above;

  Bracket(int64_t rows, torch::Device device, RadiusRange range) {
    const auto keys = torch::dtype(torch::kLong).device(device);
    below = torch::full({rows}, smallest_key(range) - 1, keys);
    above = torch::full({rows}, kInfinityKey, keys);
  }

  torch::Tensor middle() const { return below + (above - below).div(2, "floor"); }
  torch::Tensor open() const { return above - below > 1; }

  // Rows that are no longer open stay as they are, because their middle is `below`.
  void go(const torch::Tensor& middle, const torch::Tensor& down) {
    const torch::Tensor really = down.logical_and(open());
    above = torch::where(really, middle, above);
    below = torch::where(really, below, middle);
  }
};

}  // namespace

torch::Tensor smallest_radius(int64_t rows, torch::Device device, RadiusRange range,
                              const HoldsAt& holds) {
  Bracket bracket(rows, device, range);
  for (int step = 0; step < bisection_steps(range); ++step) {
    const torch::Tensor middle = bracket.middle();
    bracket.go(middle, holds(radius_of_key(middle.clamp_min(smallest_key(range)))));
  }
  return radius_of_key(bracket.above).to(torch::kDouble);
}

RadiusBelow radius_below(const torch::Tensor& radius, RadiusRange range) {
  const torch::Tensor key = key_below(radius, range);
  return {radius_of_key(key.clamp(smallest_key(range), kInfinityKey - 1)),
          key >= smallest_key(range)};
}

std::vector<PathStep> path_back(const torch::Tensor& radius, RadiusRange range) {
  const torch::Tensor key = key_below(radius, range);
  Bracket bracket(radius.size(0), radius.device(), range);
  std::vector<PathStep> path;
  for (int step = 0; step < bisection_steps(range); ++step) {
    const torch::Tensor middle = bracket.middle();
    const torch::Tensor within = middle <= key;
    path.push_back({radius_of_key(middle.clamp_min(smallest_key(range))), within, bracket.open()});
    bracket.go(middle, within.logical_not());
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace fcp

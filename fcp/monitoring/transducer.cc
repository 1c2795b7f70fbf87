#include "fcp/monitoring/transducer.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr uint64_t kTosses = uint64_t{1} << 20;

}  // namespace

Transducer::Transducer(std::vector<double> reference, uint64_t seed, size_t most)
    : bag_(std::move(reference)), seed_(seed), random_(seed), most_(std::max(most, bag_.size())) {}

// Of a million tosses each, seeded anew, so that going on from a state is quick: it winds forward
// through the last of them.
uint64_t Transducer::toss() {
  if (tossed_ % kTosses == 0) random_ = Random(seed_ ^ (tossed_ / kTosses) << 32);
  ++tossed_;
  return random_.bits();
}

uint64_t Transducer::toss_below(uint64_t limit) {
  const uint64_t rejected = (0 - limit) % limit;  // 2^64 mod limit would come too often
  uint64_t found = toss();
  while (found < rejected) found = toss();
  return found % limit;
}

double Transducer::next(double score) {
  const size_t before = bag_.size();
  const size_t at_most = bag_.count_at_most(score);
  const size_t equal = at_most - bag_.count_below(score);
  const double coin = 1 - static_cast<double>(toss() >> 11) * 0x1p-53;
  bag_.insert(score);
  if (bag_.size() > most_) bag_.erase(bag_.kth(toss_below(bag_.size())));
  return (static_cast<double>(before - at_most) + coin * static_cast<double>(1 + equal)) /
         static_cast<double>(before + 1);
}

void Transducer::exchange(SavedState& state) {
  state.expect(most_, "scores at most");
  std::vector<double> scores = bag_.sorted();
  state.numbers(scores);
  if (scores.size() > most_) fail("a monitor's state has ", scores.size(), " scores of ", most_);
  size_t tossed = tossed_;
  state.count(tossed);
  if (state.writes()) return;
  bag_ = RankedScores(std::move(scores));
  tossed_ = tossed - tossed % kTosses;
  while (tossed_ < tossed) toss();
}

}  // namespace fcp

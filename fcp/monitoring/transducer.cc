#include "fcp/monitoring/transducer.h"

#include <utility>

namespace fcp {

Transducer::Transducer(std::vector<double> reference, uint64_t seed, size_t most)
    : bag_(std::move(reference)), random_(seed), most_(most) {}

double Transducer::next(double score) {
  const size_t before = bag_.size();
  const size_t at_most = bag_.count_at_most(score);
  const size_t equal = at_most - bag_.count_below(score);
  const double coin = 1 - random_.uniform();
  if (before >= most_) bag_.clear();
  bag_.insert(score);
  return (static_cast<double>(before - at_most) + coin * static_cast<double>(1 + equal)) /
         static_cast<double>(before + 1);
}

}  // namespace fcp

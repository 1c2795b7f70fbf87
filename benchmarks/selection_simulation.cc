// What distributed selection costs, simulated: rounds and bytes up to 1,000 ranks and 10^9 rows.
//
//   selection_simulation
//
// Two ways, for the same table. "run": ranks are threads of this process that hold real scores and
// run distributed_select; their traffic is counted. "sampled": no scores at all. The refinement
// asks only for bucket counts, and for independent scores with distribution function F the counts
// of an interval that holds n of them are multinomial with known probabilities: they are drawn,
// exactly in law, bucket by bucket (binomials by the Beta law of the middle order statistic). The
// answer x for rank k of N must then satisfy F(x) ≈ k / N; the distance is shown in standard
// deviations of that order statistic.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/conformal/quantile.h"
#include "fcp/distributed/selection.h"

#include "tests/support/thread_ranks.h"

namespace fcp {
namespace {

// Scores are absolute values of standard normals, as residuals often are.
double share_below(double x) { return std::erf(x * std::sqrt(0.5)); }

// The key below which a share p of the scores lies, by bisection.
uint64_t key_of_share(double p) {
  uint64_t low = ordered_key(0.0);
  uint64_t high = ordered_key(40.0);
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (share_below(from_ordered_key(middle)) < p) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Gamma of shape ≥ 1 (Marsaglia and Tsang, 2000).
double gamma_number(Random& random, double shape) {
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - random.uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

// How many of n independent uniforms are below p: the middle one is Beta, and says on which side of
// p half of them are.
uint64_t binomial(Random& random, uint64_t n, double p) {
  uint64_t below = 0;
  while (n > 20) {
    const uint64_t middle = n / 2 + 1;
    const double a = gamma_number(random, static_cast<double>(middle));
    const double b = gamma_number(random, static_cast<double>(n + 1 - middle));
    const double x = a / (a + b);
    if (x <= p) {
      below += middle;
      n -= middle;
      p = (p - x) / (1 - x);
    } else {
      n = middle - 1;
      p = p / x;
    }
  }
  for (; n > 0; --n) below += random.uniform() < p ? 1 : 0;
  return below;
}

// Probabilities of the buckets of an interval, up to a common factor. Where an interval is too
// small for differences of F, the density is constant on it to many digits.
std::vector<double> bucket_shares(uint64_t start, int bucket_width, size_t buckets) {
  const auto edge = [&](size_t j) {
    const uint64_t key = start + (static_cast<uint64_t>(j) << bucket_width);
    return from_ordered_key(std::min(key, ordered_key(40.0)));
  };
  const bool small = share_below(edge(buckets)) - share_below(edge(0)) < 1e-6;
  std::vector<double> shares(buckets);
  for (size_t j = 0; j < buckets; ++j) {
    shares[j] = small ? edge(j + 1) - edge(j) : share_below(edge(j + 1)) - share_below(edge(j));
  }
  return shares;
}

void draw_counts(Random& random, uint64_t n, const std::vector<double>& shares,
                 std::span<uint64_t> counts) {
  double left = 0;
  for (const double share : shares) left += share;
  for (size_t j = 0; j < shares.size() && n > 0; ++j) {
    counts[j] = left > 0 ? binomial(random, n, std::min(1.0, shares[j] / left)) : 0;
    n -= counts[j];
    left -= shares[j];
  }
  counts[shares.size() - 1] += n;  // what rounding of the shares left over
}

struct Cost {
  Traffic traffic;
  std::vector<uint64_t> candidates;  // of all ranks, after each round
  double distance = 0;               // largest, in standard deviations
};

double distance(double x, double k, double rows) {
  const double p = k / (rows + 1);
  return std::abs(share_below(x) - p) / std::sqrt(p * (1 - p) / rows);
}

void add_collective(Traffic& traffic, uint64_t bytes) {
  ++traffic.collectives;
  traffic.collective_bytes += bytes;
  traffic.largest_collective = std::max(traffic.largest_collective, bytes);
}

Cost sampled(uint64_t rows, const std::vector<Level>& levels, int bits, uint64_t seed) {
  Random random(seed);
  std::vector<uint64_t> ks;
  for (const Level& level : levels) ks.push_back(conformal_rank(level, rows));
  const double n = static_cast<double>(rows);
  const uint64_t lowest = key_of_share(-std::expm1(std::log1p(-random.uniform()) / n));
  const uint64_t highest = key_of_share(std::exp(std::log1p(-random.uniform()) / n));
  Refinement refinement(lowest, highest, ks, bits);
  Cost cost;
  add_collective(cost.traffic, 8);   // number of rows
  add_collective(cost.traffic, 16);  // smallest and largest
  std::vector<uint64_t> starts = refinement.starts();
  std::vector<uint64_t> inside = {rows};  // scores in each interval
  while (!refinement.done()) {
    const size_t buckets = refinement.buckets();
    const int bucket_width = refinement.bucket_width();
    std::vector<uint64_t> counts(refinement.intervals() * buckets);
    for (size_t i = 0; i < inside.size(); ++i) {
      draw_counts(random, inside[i], bucket_shares(starts[i], bucket_width, buckets),
                  std::span(counts).subspan(i * buckets, buckets));
    }
    add_collective(cost.traffic, 8 * counts.size());
    refinement.narrow(counts);
    std::vector<uint64_t> next_inside;
    uint64_t candidates = 0;
    for (const uint64_t start : refinement.starts()) {
      const auto after = std::upper_bound(starts.begin(), starts.end(), start);
      const auto i = static_cast<size_t>(after - starts.begin()) - 1;
      next_inside.push_back(counts[i * buckets + ((start - starts[i]) >> bucket_width)]);
      candidates += next_inside.back();
    }
    cost.candidates.push_back(candidates);
    starts = refinement.starts();
    inside = std::move(next_inside);
  }
  const std::vector<uint64_t> found = refinement.found();
  for (size_t i = 0; i < ks.size(); ++i) {
    const double x = from_ordered_key(found[i]);
    cost.distance = std::max(cost.distance, distance(x, static_cast<double>(ks[i]), n));
  }
  return cost;
}

Cost run(uint64_t rows, int size, const std::vector<Level>& levels, int bits) {
  Cost cost;
  std::vector<double> answer;
  std::vector<uint64_t> ks;
  for (const Level& level : levels) ks.push_back(conformal_rank(level, rows));
  cost.traffic = run_threads(size, [&](Communicator& ranks) {
    Random random(1000 + static_cast<uint64_t>(ranks.rank()));
    std::vector<uint64_t> keys(rows / static_cast<uint64_t>(size));
    for (uint64_t& key : keys) key = ordered_key(std::abs(random.normal()));
    const std::vector<double> found = distributed_select(ranks, std::move(keys), ks, bits);
    if (ranks.rank() == 0) answer = found;
  });
  for (size_t i = 0; i < levels.size(); ++i) {
    const auto k = static_cast<double>(ks[i]);
    cost.distance = std::max(cost.distance, distance(answer[i], k, static_cast<double>(rows)));
  }
  return cost;
}

void print_row(const char* how, uint64_t rows, int size, size_t levels, int bits,
               const Cost& cost) {
  const auto payload = static_cast<double>(cost.traffic.collective_bytes);
  const double moved = 2 * payload * (size - 1) / size;
  std::string candidates;
  for (size_t i = 0; i < std::min<size_t>(3, cost.candidates.size()); ++i) {
    candidates += (i > 0 ? ", " : "") + std::to_string(cost.candidates[i]);
  }
  std::printf("| %s | %.0e | %d | %zu | %d | %llu | %.0f | %.0f | %s | %.2f |\n", how,
              static_cast<double>(rows), size, levels, bits,
              static_cast<unsigned long long>(cost.traffic.collectives), payload / 1024,
              moved / 1024, candidates.empty() ? "–" : candidates.c_str(), cost.distance);
}

}  // namespace
}  // namespace fcp

int main() {
  using fcp::Level;
  const std::vector<Level> one = {Level(0.1)};
  const std::vector<Level> four = {Level(0.01), Level(0.05), Level(0.1), Level(0.2)};
  std::printf(
      "| how | rows | ranks | levels | bits | rounds | payload KiB | moved per rank KiB | "
      "candidates "
      "after rounds 1, 2, 3 | distance |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const int size : {1, 10, 100, 1000}) {
    fcp::print_row("run", 1'000'000, size, 1, 11, fcp::run(1'000'000, size, one, 11));
  }
  fcp::print_row("run", 1'000'000, 1000, 4, 11, fcp::run(1'000'000, 1000, four, 11));
  for (const uint64_t rows : {1'000'000ULL, 30'000'000ULL, 1'000'000'000ULL}) {
    fcp::print_row("sampled", rows, 1000, 1, 11, fcp::sampled(rows, one, 11, 1));
  }
  for (const int bits : {8, 11, 16}) {
    fcp::print_row("sampled", 1'000'000'000, 1000, 4, bits,
                   fcp::sampled(1'000'000'000, four, bits, 2));
  }
}

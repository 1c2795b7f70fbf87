// Whether the promise holds on this machine: every Score with every calibration, through many
// replications on three synthetic worlds, held against the law.
//
// A world is a population of rows and networks that predict them well, badly or not at all; what is
// promised does not depend on that. A replication draws n calibration rows and m new ones from the
// population, calibrates, and counts the new rows that are covered: by the printed regions where
// the Score obeys the law, by its detection where it does not. What it counts against:
//
//   split      Drawn without replacement, the rows are exchangeable. Where no two scores are equal,
//              the count has Pólya's law exactly, P(c) = C(c+k−1, c) C(m−c+n−k, m−c) / C(n+m, m)
//              with k the rank; where some are equal it can only be larger. Counts become uniform
//              numbers by the randomised probability integral, and those are held against the
//              uniform law by Kolmogorov and Smirnov's distance D of T numbers:
//              P(D > d) ≤ 2 exp(−2 T d²), one-sided half of it (Massart 1990).
//   grouped    The same in each group, with its own n, m and k; so many more numbers.
//   localized  The mean coverage C is at least 1 − α. A gambler who starts with 1 and bets in each
//   weighted   replication on 1 − α − C being positive has a wealth W whose mean never grows, so
//              P(W ≥ 1/δ) ≤ δ (Ville). For weighted also the other side: C exceeds 1 − α by no more
//              than the largest share of the weight that one row of the population has.
//   venn-abers Of each class in turn, the sum of Y − p_Y over the new rows whose p_Y is below one
//              half, and over the others, has the mean 0: gamblers bet on either side of both.
//
// Rows unlike others by their features are a Score like the others, whose p-values are judged.
//
// Each check thus has a chance: an upper bound of the probability to see what was seen, or worse,
// if the law holds. A check fails below 1e-6 divided by the number of checks: all together they
// raise a false alarm at most once in a million runs.
//
// Tested by tests/experiments/selftest_test.cc and selftest_slow_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace fcp {

struct SelftestOptions {
  uint64_t replications = 500;
  size_t rows = 150;         // n: of a calibration
  size_t fresh = 100;        // m: new rows of a replication
  size_t population = 2000;  // rows of a world
  uint64_t seed = 0;
  std::vector<std::string> scores{};  // empty: all
  // Called before each world and score, with their number so far and in all.
  std::function<void(size_t done, size_t all)> observe{};
  // To see that the checks can fail: so many scores of each calibration are taken for −∞.
  size_t spoil = 0;
};

struct SelftestCheck {
  std::string world;
  std::string score;
  std::string calibration;
  // Mean share of new rows that are covered; of probabilities how many hits there were for each one
  // foretold.
  double coverage = 0;
  double promised = 0.9;
  bool exact = false;  // held against an exact law; otherwise against bounds
  double chance = 1;   // of this or worse, at most, if the law holds
  bool passed = true;
};

inline constexpr double kSelftestFalseAlarm = 1e-6;  // of all checks together

// One check for each world, score and calibration, in this order; without named scores one more for
// the probabilities of each world.
std::vector<SelftestCheck> run_selftest(const SelftestOptions& options);

// What `selftest` finds, as JSON and as text.

nlohmann::ordered_json selftest_json(const std::vector<SelftestCheck>& checks,
                                     const SelftestOptions& options);

// A line per score and calibration, with the coverage in each world.
std::string selftest_text(const std::vector<SelftestCheck>& checks);

}  // namespace fcp

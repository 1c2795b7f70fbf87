// Where a calibrated predictor comes from: facts that a reader of a report wants to know, hashes
// that tell its rows again, and the scores that `auto` compared.
//
// Tested by tests/predictor/provenance_test.cc and context_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/rows.h"

namespace fcp {

// Keys of facts: SHA-256 of all rows' hash_rows and of the network, and which of several outputs
// were taken by their names.
inline constexpr char kDataHash[] = "calibration data sha256";
inline constexpr char kNetworkHash[] = "network sha256";
inline constexpr char kOutputsTaken[] = "outputs taken";

// SHA-256 of a batch's x and y, in hexadecimal digits; of a batch that is larger than a usual one,
// those of its usual ones one after the other, so that larger batches change no hash of all rows.
std::string hash_rows(const Rows& batch);

template <typename Candidate>
struct ChosenFrom {
  std::vector<Candidate> candidates;
  size_t chosen = 0;
};

struct ScoreTried {
  std::string name;
  std::string cut;            // empty: the network's input
  double length = 0;          // mean over rows and outputs; of labels the mean size of a set
  double interval_score = 0;  // mean over rows and outputs; of labels that of sets (halves.h)
  double volume = 0;          // of several outputs, to the power 1/K: mean over rows
  double standard_error = 0;  // of its difference to the best
  double coverage = 0;
  std::string skipped{};  // why it was not tried; empty: it was
};

// What they were compared by: intervals by one of the first two, sets of labels by the next two,
// several outputs by the last.
enum class ChosenBy { kIntervalScore, kLength, kSize, kSetScore, kVolume };

struct ScoresTried : ChosenFrom<ScoreTried> {
  ChosenBy by = ChosenBy::kIntervalScore;

  // The number of a candidate that was compared.
  double loss(const ScoreTried& one) const {
    if (by == ChosenBy::kVolume) return one.volume;
    return by == ChosenBy::kIntervalScore || by == ChosenBy::kSetScore ? one.interval_score
                                                                       : one.length;
  }
};

// As a file keeps them: docs/formats.md. Reading throws an Error, or one of nlohmann's, where the
// text is none of these.
std::string scores_json(const ScoresTried& scores);
ScoresTried read_scores_json(const std::string& text);

// For people, in one line, without those that were skipped:
//   residual 18.49, nested 16.93, spread 13.36 (chosen)
std::string scores_text(const ScoresTried& scores);

}  // namespace fcp

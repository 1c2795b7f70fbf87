#include "fcp/pipeline/overlap_check.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fcp/base/sha256.h"
#include "fcp/pipeline/score_collector.h"

namespace fcp {
namespace {

// A number of the provenance; 0 where it is not there.
size_t provenance_count(const CalibrationArtifact& artifact, const std::string& name) {
  const auto found = artifact.provenance.find(name);
  size_t count = 0;
  if (found == artifact.provenance.end()) return count;
  const std::string& text = found->second;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

}  // namespace

OverlapCheck::OverlapCheck(const CalibrationArtifact& artifact, const RowSource& source) {
  const auto found = artifact.provenance.find(kDataHash);
  if (found == artifact.provenance.end()) return;
  const size_t rows = provenance_count(artifact, "calibration rows") +
                      provenance_count(artifact, "rows left out for choices");
  if (source.size().value_or(rows) == rows) expected_ = found->second;
}

void OverlapCheck::measure(const Rows& rows, Packer& packer) const {
  packer.add(expected_.empty() ? std::string() : hash_rows(rows));
}

void OverlapCheck::take(Unpacker& unpacker) { hashes_ += unpacker.text(); }

std::optional<std::string> OverlapCheck::warning() const {
  Sha256 hash;
  hash.add(hashes_);
  if (expected_.empty() || hash.hex() != expected_) return std::nullopt;
  return "these are the calibration rows: their SHA-256 is that of the rows this predictor was "
         "calibrated on, so coverage here says nothing about new rows";
}

bool more_than_chance(double found, double repeated, size_t rows, size_t trained) {
  constexpr double kUnknownTimes = 4, kLeastExcess = 0.3;
  const auto count = static_cast<double>(std::max<size_t>(rows, 2));
  const double times = trained == 0 ? kUnknownTimes : static_cast<double>(trained) / (count - 1);
  const double chance = std::min(1.0, std::max(1.0, times) * repeated);
  return found - chance > std::max(kLeastExcess, 2 / std::sqrt(count));
}

bool more_than_chance(const RowOverlap& overlap) {
  constexpr double kFalseAlarm = 1e-6;  // of rows that a filter holds by its false hits alone
  if (overlap.rows == 0 || overlap.chance() > kFalseAlarm) return false;
  const double repeated = 1 - static_cast<double>(overlap.once) / static_cast<double>(overlap.rows);
  return more_than_chance(overlap.filter_share(), repeated, overlap.rows,
                          static_cast<size_t>(overlap.filter_rows));
}

}  // namespace fcp

#include "fcp/pipeline/overlap_check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "fcp/base/row_hash.h"
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

void RowRepeats::add(const Array& x) {
  constexpr size_t kKept = 4096;
  std::vector<float> values;
  for (size_t row = 0; row < x.rows(); ++row) {
    const std::span<const float> numbers = x.row(row);
    values.assign(numbers.begin(), numbers.end());
    for (float& value : values) {  // zeros and missing values have several bit patterns each
      value = std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value == 0 ? 0 : value;
    }
    // The order of a product's high bits is good enough for a sample.
    const uint64_t hash = row_hash(values.data(), values.size(), 0) * 0x9e3779b97f4a7c15ull;
    const bool full = counts_.size() >= kKept;
    if (full && hash > counts_.rbegin()->first) continue;
    const bool fresh = ++counts_[hash] == 1;
    if (full && fresh) counts_.erase(std::prev(counts_.end()));
  }
}

double RowRepeats::share() const {
  double rows = 0, repeated = 0;
  for (const auto& [hash, count] : counts_) {
    rows += static_cast<double>(count);
    if (count > 1) repeated += static_cast<double>(count);
  }
  return rows > 0 ? repeated / rows : 0;
}

bool more_than_chance(double found, double repeated, size_t rows, size_t trained) {
  constexpr double kUnknownTimes = 4, kLeastExcess = 0.3;
  const auto count = static_cast<double>(std::max<size_t>(rows, 2));
  const double times = trained == 0 ? kUnknownTimes : static_cast<double>(trained) / (count - 1);
  const double chance = std::min(1.0, std::max(1.0, times) * repeated);
  return found - chance > std::max(kLeastExcess, 2 / std::sqrt(count));
}

}  // namespace fcp

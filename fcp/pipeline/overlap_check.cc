#include "fcp/pipeline/overlap_check.h"

#include <charconv>

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

}  // namespace fcp

#include "fcp/data/row_digest.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "fcp/base/error.h"
#include "fcp/base/row_hash.h"

namespace fcp {
namespace {

constexpr size_t kSketchSize = 64;

// Zeros and missing values have several bit patterns each.
std::vector<float> plain_row(const Array& x, const Array& y, size_t row) {
  std::vector<float> values(x.row(row).begin(), x.row(row).end());
  values.insert(values.end(), y.row(row).begin(), y.row(row).end());
  for (float& value : values) {
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
    if (value == 0) value = 0;
  }
  return values;
}

std::string_view bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// FNV's low bits are good and its order is not: mixed once more (splitmix64).
uint64_t sketch_hash(const std::vector<float>& values) {
  uint64_t hash = row_hash(values.data(), values.size(), 0);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ull;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebull;
  return hash ^ (hash >> 31);
}

std::string hexadecimal(uint64_t number) {
  char digits[16];
  const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), number, 16);
  return std::string(digits, end);
}

}  // namespace

void RowDigest::add(const Array& x, const Array& y) {
  for (size_t i = 0; i < x.rows(); ++i) {
    const std::vector<float> values = plain_row(x, y, i);
    all_.add(bytes_of(values));
    smallest_.insert(sketch_hash(values));
    if (smallest_.size() > kSketchSize) smallest_.erase(std::prev(smallest_.end()));
  }
}

std::string RowDigest::sha256() { return all_.hex(); }

std::string RowDigest::sketch() const {
  std::string text;
  for (const uint64_t hash : smallest_) text += (text.empty() ? "" : " ") + hexadecimal(hash);
  return text;
}

SketchSearch::SketchSearch(const std::string& sketch) {
  const char* at = sketch.data();
  const char* const end = at + sketch.size();
  while (at < end) {
    uint64_t hash = 0;
    const auto [next, error] = std::from_chars(at, end, hash, 16);
    if (error != std::errc() || (next < end && *next != ' ')) {
      fail("the sketch of training rows is damaged at position ", at - sketch.data(),
           ", expected hexadecimal numbers with spaces between");
    }
    wanted_.insert(hash);
    at = next + 1;
  }
}

std::vector<uint64_t> SketchSearch::find(const Array& x, const Array& y) const {
  std::vector<uint64_t> found;
  for (size_t i = 0; i < x.rows() && !wanted_.empty(); ++i) {
    const uint64_t hash = sketch_hash(plain_row(x, y, i));
    if (wanted_.contains(hash)) found.push_back(hash);
  }
  return found;
}

void SketchSearch::add(const Array& x, const Array& y) { add(find(x, y)); }

void SketchSearch::add(std::span<const uint64_t> found) {
  found_.insert(found.begin(), found.end());
}

double SketchSearch::share() const {
  if (wanted_.empty()) return 0;
  return static_cast<double>(found_.size()) / static_cast<double>(wanted_.size());
}

}  // namespace fcp

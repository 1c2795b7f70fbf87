#include "fcp/data/row_digest.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <mutex>
#include <string_view>

#include "fcp/base/error.h"
#include "fcp/base/parallel.h"
#include "fcp/base/row_hash.h"

namespace fcp {
namespace {

constexpr size_t kSketchSize = 64;
constexpr size_t kHashedRows = 16;                  // at a time
constexpr size_t kThreadNumbers = size_t{1} << 16;  // below, a thread costs more than it does

// Of some rows, x and y side by side. Zeros and missing values have several bit patterns each.
void plain_rows(const Array& x, const Array& y, size_t first, size_t count,
                std::vector<float>& values) {
  values.clear();
  for (size_t row = first; row < first + count; ++row) {
    values.insert(values.end(), x.row(row).begin(), x.row(row).end());
    values.insert(values.end(), y.row(row).begin(), y.row(row).end());
  }
  for (float& value : values) {
    value = std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value == 0 ? 0 : value;
  }
}

std::string_view bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// FNV's low bits are good and its order is not: mixed once more (splitmix64).
uint64_t sketch_hash(uint64_t hash) {
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
  std::vector<float> values;
  for (size_t i = 0; i < x.rows(); i += kHashedRows) {
    const size_t count = std::min(kHashedRows, x.rows() - i);
    plain_rows(x, y, i, count, values);
    all_.add(bytes_of(values));
    uint64_t hashes[kHashedRows];
    row_hashes(values.data(), count, values.size() / count, 0, hashes);
    for (size_t k = 0; k < count; ++k) {
      smallest_.insert(sketch_hash(hashes[k]));
      if (smallest_.size() > kSketchSize) smallest_.erase(std::prev(smallest_.end()));
    }
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

std::vector<uint64_t> SketchSearch::find(const Array& x, const Array& y, size_t threads) const {
  std::vector<uint64_t> found;
  if (wanted_.empty() || x.rows() == 0) return found;
  const uint64_t largest = *wanted_.rbegin();  // few hashes are as small
  const size_t width = x.row_size() + (y.rows() == 0 ? 0 : y.row_size());
  std::mutex mutex;
  parallel_rows(x.rows(), kThreadNumbers / (width + 1) + 1, threads, [&](size_t begin, size_t end) {
    std::vector<float> values;
    for (size_t i = begin; i < end; i += kHashedRows) {
      const size_t count = std::min(kHashedRows, end - i);
      plain_rows(x, y, i, count, values);
      uint64_t hashes[kHashedRows];
      row_hashes(values.data(), count, values.size() / count, 0, hashes);
      for (size_t k = 0; k < count; ++k) {
        const uint64_t hash = sketch_hash(hashes[k]);
        if (hash > largest || !wanted_.contains(hash)) continue;
        const std::lock_guard lock(mutex);
        found.push_back(hash);
      }
    }
  });
  std::sort(found.begin(), found.end());  // whatever thread was first
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

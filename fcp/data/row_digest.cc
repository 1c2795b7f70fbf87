#include "fcp/data/row_digest.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"
#include "fcp/base/parallel.h"

namespace fcp {
namespace {

constexpr size_t kHashedRows = 16;                  // at a time
constexpr size_t kThreadNumbers = size_t{1} << 16;  // below, a thread costs more than it does
constexpr size_t kMostDistinct = size_t{1} << 16;
constexpr size_t kCodeBits = 32;
constexpr double kMostRowsPerBit = 0.8;
constexpr size_t kLeastBits = 4;  // those of a hexadecimal digit
constexpr size_t kMostBits = 2 * kMostDistinct;

// Of some rows, x and y side by side. Zeros and missing values have several bit patterns each.
void plain_rows(const Array& x, const Array& y, size_t first, size_t count,
                std::vector<float>& values) {
  values.clear();
  for (size_t row = first; row < first + count; ++row) {
    values.insert(values.end(), x.row(row).begin(), x.row(row).end());
    if (!y.empty()) values.insert(values.end(), y.row(row).begin(), y.row(row).end());
  }
  for (float& value : values) {
    value = std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value == 0 ? 0 : value;
  }
}

std::string_view bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// FNV's low bits are good and its order is not: mixed once more (splitmix64).
uint64_t mixed_hash(uint64_t hash) {
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ull;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebull;
  return hash ^ (hash >> 31);
}

// A 64-bit hash of each row of x, with y beside it where y is not empty.
std::vector<uint64_t> full_hashes(const Array& x, const Array& y, size_t threads) {
  std::vector<uint64_t> hashes(x.rows());
  if (hashes.empty()) return hashes;
  const size_t width = x.row_size() + (y.empty() ? 0 : y.row_size());
  parallel_rows(x.rows(), kThreadNumbers / (width + 1) + 1, threads, [&](size_t begin, size_t end) {
    std::vector<float> values;
    for (size_t i = begin; i < end; i += kHashedRows) {
      const size_t count = std::min(kHashedRows, end - i);
      plain_rows(x, y, i, count, values);
      row_hashes(values.data(), count, values.size() / count, 0, &hashes[i]);
    }
  });
  for (uint64_t& hash : hashes) hash = mixed_hash(hash);
  return hashes;
}

bool is_kept(uint64_t code, size_t halvings) {
  return (code & ((uint64_t{1} << halvings) - 1)) == 0;
}

// The first bits of a code name its place; the last ones thin.
size_t place_of(uint64_t code, size_t bits) {
  return code >> (kCodeBits - static_cast<size_t>(std::countr_zero(bits)));
}

[[noreturn]] void damaged_filter(const std::string& found) {
  fail("the filter of training rows is damaged: found ", found,
       ", expected three counts and hexadecimal digits");
}

uint64_t take_number(const char*& at, const char* end) {
  uint64_t number = 0;
  const auto [next, error] = std::from_chars(at, end, number);
  if (error != std::errc() || next == end || *next != ' ') damaged_filter("no count");
  at = next + 1;
  return number;
}

std::vector<uint64_t> read_sketch(const std::string& sketch) {
  std::vector<uint64_t> hashes;
  const char* at = sketch.data();
  const char* const end = at + sketch.size();
  while (at < end) {
    uint64_t hash = 0;
    const auto [next, error] = std::from_chars(at, end, hash, 16);
    if (error != std::errc() || (next < end && *next != ' ')) {
      fail("the sketch of training rows is damaged at position ", at - sketch.data(),
           ", expected hexadecimal numbers with spaces between");
    }
    hashes.push_back(hash);
    at = next + 1;
  }
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

}  // namespace

void RowDigest::add(const Array& x, const Array& y) {
  std::vector<float> values;
  for (size_t i = 0; i < x.rows(); i += kHashedRows) {
    plain_rows(x, y, i, std::min(kHashedRows, x.rows() - i), values);
    all_.add(bytes_of(values));
  }
}

std::string RowDigest::sha256() { return all_.hex(); }

std::vector<uint64_t> row_codes(const Array& x, size_t threads) {
  std::vector<uint64_t> codes = full_hashes(x, {}, threads);
  for (uint64_t& code : codes) code >>= 64 - kCodeBits;
  std::sort(codes.begin(), codes.end());
  return codes;
}

void RowSample::add(std::span<const uint64_t> codes) {
  rows_ += codes.size();
  for (const uint64_t code : codes) {
    if (!is_kept(code, halvings_)) continue;
    ++counts_[code];
    if (counts_.size() > kMostDistinct) thin(halvings_ + 1);
  }
}

void RowSample::thin(size_t halvings) {
  if (halvings <= halvings_) return;
  halvings_ = halvings;
  std::erase_if(counts_, [&](const auto& entry) { return !is_kept(entry.first, halvings_); });
}

std::string RowSample::filter() const {
  size_t bits = kLeastBits;
  while (static_cast<double>(counts_.size()) > kMostRowsPerBit * static_cast<double>(bits)) {
    bits *= 2;
  }
  std::vector<unsigned> digits(bits / 4, 0);
  for (const auto& [code, count] : counts_) {
    const size_t place = place_of(code, bits);
    digits[place / 4] |= 1U << (place % 4);
  }
  std::string text = concat(rows_, " ", counts_.size(), " ", halvings_, " ");
  for (const unsigned digit : digits) text += "0123456789abcdef"[digit];
  return text;
}

double RowOverlap::share() const {
  if (distinct == 0 || false_hits >= 1) return 0;
  const double hit = static_cast<double>(distinct_hits) / static_cast<double>(distinct);
  return (hit - false_hits) / (1 - false_hits);
}

double RowOverlap::filter_share() const {
  if (filter_distinct == 0) return 0;
  return std::clamp(share() * static_cast<double>(distinct) / filter_distinct, 0.0, 1.0);
}

double RowOverlap::chance() const {
  if (distinct_hits == 0 || false_hits >= 1) return 1;
  if (false_hits <= 0) return 0;
  const auto n = static_cast<double>(distinct);
  double sum = 0;
  for (uint64_t hits = distinct_hits; hits <= distinct; ++hits) {
    const auto k = static_cast<double>(hits);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                    k * std::log(false_hits) + (n - k) * std::log1p(-false_hits));
  }
  return std::min(sum, 1.0);
}

RowFilter::RowFilter(const std::string& text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  rows_ = take_number(at, end);
  distinct_ = take_number(at, end);
  halvings_ = take_number(at, end);
  const auto bits = static_cast<size_t>(end - at) * 4;
  if (!std::has_single_bit(bits) || bits > kMostBits || distinct_ > rows_ ||
      halvings_ > kCodeBits) {
    damaged_filter(concat(bits, " bits for ", distinct_, " of ", rows_, " rows"));
  }
  for (; at < end; ++at) {
    unsigned digit = 0;
    if (std::from_chars(at, at + 1, digit, 16).ec != std::errc()) damaged_filter("another letter");
    for (unsigned bit = 0; bit < 4; ++bit) bits_.push_back((digit >> bit & 1) != 0);
  }
}

double RowFilter::false_hits() const {
  if (bits_.empty()) return 0;
  return static_cast<double>(std::count(bits_.begin(), bits_.end(), true)) /
         static_cast<double>(bits_.size());
}

bool RowFilter::holds(uint64_t code) const { return bits_[place_of(code, bits_.size())]; }

RowOverlap RowFilter::overlap(RowSample sample) const {
  RowOverlap found;
  if (bits_.empty()) return found;
  sample.thin(halvings_);
  for (const auto& [code, count] : sample.counts()) {
    const uint64_t hit = holds(code) ? 1 : 0;
    found.rows += count;
    found.row_hits += hit * count;
    found.distinct += 1;
    found.distinct_hits += hit;
    if (count > 1) continue;
    found.once += 1;
    found.once_hits += hit;
  }
  const auto at_sample = [&](double number, size_t halvings) {
    return std::ldexp(number, static_cast<int>(halvings) - static_cast<int>(sample.halvings()));
  };
  found.filter_rows = at_sample(static_cast<double>(rows_), 0);
  found.filter_distinct = at_sample(static_cast<double>(distinct_), halvings_);
  found.false_hits = false_hits();
  return found;
}

TrainingRows::TrainingRows(const std::map<std::string, std::string>& metadata) {
  const auto filter = metadata.find(kTrainingFilterKey);
  const auto sketch = metadata.find(kTrainingSketchKey);
  if (filter != metadata.end()) {
    filter_ = RowFilter(filter->second);
  } else if (sketch != metadata.end()) {
    sketch_ = read_sketch(sketch->second);
  }
}

std::vector<uint64_t> TrainingRows::codes(const Array& x, const Array& y, size_t threads) const {
  if (!filter_.empty()) return row_codes(x, threads);
  if (sketch_.empty()) return {};
  std::vector<uint64_t> found = full_hashes(x, y, threads);
  std::erase_if(found, [&](uint64_t hash) {
    return !std::binary_search(sketch_.begin(), sketch_.end(), hash);
  });
  std::sort(found.begin(), found.end());
  return found;
}

void TrainingRows::add(std::span<const uint64_t> codes) { sample_.add(codes); }

RowOverlap TrainingRows::overlap() const {
  if (sketch_.empty()) return filter_.overlap(sample_);
  // The hashes of a sketch are a sample of the training rows, and those found are all that is
  // known of the others.
  RowOverlap found;
  for (const auto& [hash, count] : sample_.counts()) {
    found.rows += count;
    found.once += count == 1 ? 1 : 0;
  }
  found.distinct = sample_.counts().size();
  found.row_hits = found.rows;
  found.distinct_hits = found.distinct;
  found.once_hits = found.once;
  found.filter_rows = found.filter_distinct = static_cast<double>(sketch_.size());
  return found;
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

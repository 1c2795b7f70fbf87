#include "fcp/monitoring/drift.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr size_t kMostColumns = 64;
constexpr size_t kProjections = 32;
constexpr size_t kMostValues = 20'000;  // of a column, to compare with

}  // namespace

Drift::Drift(size_t row_size, std::vector<size_t> columns, std::vector<std::string> names,
             uint64_t seed)
    : row_size_(row_size), columns_(std::move(columns)), names_(std::move(names)), seed_(seed) {
  for (const size_t column : columns_) {
    if (column >= row_size) fail("there is no column ", column, " in rows of ", row_size);
  }
  if (names_.size() != columns_.size()) {
    names_.clear();
    for (const size_t column : columns_) names_.push_back(concat("column ", column));
  }
  size_t watched = columns_.size();
  if (watched > kMostColumns) {
    watched = kProjections;
    Random random(seed);
    signs_.resize(watched * columns_.size());
    for (float& sign : signs_) sign = random.below(2) == 0 ? -1.0f : 1.0f;
    names_.clear();
    for (size_t i = 0; i < watched; ++i) names_.push_back(concat("random sum ", i));
  }
  values_.resize(watched);
  reference_.resize(watched);
  martingales_.resize(watched);
}

void Drift::look_at(std::span<const float> row) {
  if (row.size() != row_size_) fail("found a row of ", row.size(), ", expected ", row_size_);
  for (size_t i = 0; i < values_.size(); ++i) {
    values_[i] = 0;
    if (signs_.empty()) {
      values_[i] = row[columns_[i]];
      continue;
    }
    for (size_t j = 0; j < columns_.size(); ++j) {
      values_[i] += static_cast<double>(signs_[i * columns_.size() + j] * row[columns_[j]]);
    }
  }
}

void Drift::add_reference(std::span<const float> row) {
  look_at(row);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!std::isnan(values_[i])) reference_[i].push_back(values_[i]);
  }
}

void Drift::begin() {
  for (size_t i = 0; i < reference_.size(); ++i) {
    transducers_.emplace_back(std::move(reference_[i]), seed_ + 1 + i, kMostValues);
  }
  reference_.clear();
}

void Drift::step(std::span<const float> row) {
  if (!reference_.empty()) begin();
  look_at(row);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!std::isnan(values_[i])) martingales_[i].step(transducers_[i].next(values_[i]));
  }
}

void Drift::exchange(SavedState& state) {
  if (!reference_.empty()) begin();
  state.expect(transducers_.size(), "columns");
  for (Transducer& transducer : transducers_) transducer.exchange(state);
  for (Martingale& martingale : martingales_) martingale.exchange(state);
}

double Drift::log_capital() const {
  if (martingales_.empty()) return 0;
  std::vector<double> logs;
  for (const Martingale& one : martingales_) logs.push_back(one.log_capital());
  return log_mean_exp(logs);
}

std::string Drift::strangest() const {
  const auto less = [](const Martingale& a, const Martingale& b) {
    return a.log_capital() < b.log_capital();
  };
  const auto found = std::max_element(martingales_.begin(), martingales_.end(), less);
  return found == martingales_.end() ? ""
                                     : names_[static_cast<size_t>(found - martingales_.begin())];
}

}  // namespace fcp

// Rows in memory, and an observer that remembers what it hears, for the tests of the pipeline.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fcp/calibrate/choices.h"
#include "fcp/data/rows.h"
#include "fcp/predictor/context.h"

namespace fcp {

class MemoryRows : public RowSource {
 public:
  MemoryRows(Array x, Array y)
      : x_(std::move(x)), y_(std::move(y)), row_shape_(x_.shape.begin() + 1, x_.shape.end()) {}

  bool next(size_t count, Rows& out) override {
    const size_t some = std::min(count, x_.rows() - next_);
    std::vector<size_t> indices(some);
    for (size_t i = 0; i < some; ++i) indices[i] = next_ + i;
    static const std::string kName = "memory";
    out = {take_rows(x_, indices), y_.empty() ? Array() : take_rows(y_, indices), next_};
    out.stand_in(kName, next_);
    next_ += some;
    return some > 0;
  }
  void rewind() override { next_ = 0; }
  std::optional<size_t> size() const override { return x_.rows(); }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }
  size_t target_count() const override { return y_.empty() ? 0 : y_.row_size(); }

  const Array& x() const { return x_; }
  const Array& y() const { return y_; }

 private:
  Array x_, y_;
  std::vector<int64_t> row_shape_;
  size_t next_ = 0;
};

class Listener : public Observer {
 public:
  void begin(std::string_view stage, size_t total) override {
    stages.emplace_back(stage, total);
    open = true;
  }
  void advance(size_t count, const std::function<std::string()>&) override { advanced += count; }
  void end() override { open = false; }
  void chosen(const Choices& choices) override { heard.push_back(choices); }

  std::vector<std::pair<std::string, size_t>> stages;
  std::vector<Choices> heard;
  size_t advanced = 0;
  bool open = false;
};

}  // namespace fcp

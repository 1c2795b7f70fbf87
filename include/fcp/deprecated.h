// The names of fcp 0.2, for programs that are still to be moved: Predictor, predict and Answer
// replace them. Each call below encodes its rows and runs the network anew.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fcp/calibrate.h"
#include "fcp/predictor.h"

namespace fcp {

using Settings [[deprecated("use fcp::CalibrateOptions")]] = CalibrateOptions;

class [[deprecated("use fcp::Predictor")]] ConformalPredictor;
class ConformalPredictor : public Predictor {
 public:
  ConformalPredictor(Predictor predictor) : Predictor(std::move(predictor)) {}

  static ConformalPredictor load(const std::string& path, const std::string& device = "cpu") {
    return Predictor::load(path, device);
  }

  // Rows: a span of floats, or of Records.
  template <typename Rows>
  std::vector<Interval> intervals(const Rows& rows, const Level& level,
                                  const RowInfo& info = {}) const {
    const Answer answer = predict(schema().encode(rows, info), {level});
    const auto lower = answer.lower(), upper = answer.upper();
    std::vector<Interval> found;
    for (size_t i = 0; i < lower.size(); ++i) found.push_back({lower[i], upper[i]});
    return found;
  }

  template <typename Rows>
  std::vector<std::vector<size_t>> label_sets(const Rows& rows, const Level& level,
                                              const RowInfo& info = {}) const {
    const Answer answer = predict(schema().encode(rows, info), {level});
    std::vector<std::vector<size_t>> found;
    for (size_t i = 0; i < answer.rows(); ++i) found.push_back(answer.labels(i));
    return found;
  }

  template <typename Rows>
  std::vector<double> predictions(const Rows& rows) const {
    const Answer answer = predict(schema().encode(rows), {});
    return {answer.points().begin(), answer.points().end()};
  }

  std::vector<double> p_values(std::span<const float> x, std::span<const float> y,
                               const RowInfo& info = {}) const {
    return Predictor::p_values(schema().encode(x, info), y);
  }

  size_t row_size() const { return schema().row_size(); }
  const std::vector<std::string>& column_names() const { return schema().columns(); }
  const std::vector<std::string>& class_names() const { return classes(); }
  std::string score() const { return method("score"); }
  std::string cut() const { return method("cut"); }
  std::string group() const { return method("group"); }
};

}  // namespace fcp

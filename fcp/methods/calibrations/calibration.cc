#include <algorithm>
#include <deque>
#include <limits>
#include <optional>

#include "fcp/base/error.h"
#include "fcp/conformal/p_value.h"
#include "fcp/conformal/quantile.h"
#include "fcp/conformal/score_order.h"
#include "fcp/methods/calibrations/calibration_table.h"
#include "fcp/methods/calibrations/kept_levels.h"

namespace fcp {
namespace {

class Split : public Calibration {
 public:
  Split(bool paper, const CalibrationScores& rows)
      : ranked_{rows.count(), rows.sides, paper, rows.targets}, kept_(rows.levels) {
    for (int64_t side = 0; side < rows.sides; ++side) {
      scores_.emplace_back(side_scores(rows, side));
    }
    const size_t found = scores_[0].size();
    const size_t needed = kept_.empty() ? ranked_.rows : ranked_.ranks(kept_).size();
    if (found != needed) {
      fail("split calibration found ", found, " scores, its levels need ", needed);
    }
  }

  torch::Tensor radii(const TestInputs& rows, const Level& level) const override {
    const std::optional<size_t> place = radius_place(ranked_, kept_, level);
    torch::Tensor radius = torch::empty({1, ranked_.sides}, torch::kDouble);
    double* const radii = radius.data_ptr<double>();
    for (size_t side = 0; side < scores_.size(); ++side) {
      radii[side] = place ? scores_[side].at(*place) : std::numeric_limits<double>::infinity();
    }
    return radius.expand({rows.features.size(0), ranked_.sides});
  }

  std::vector<double> p_values(const TestInputs&, std::span<const double> scores) const override {
    if (const auto missing = missing_scores(kept_)) {
      fail("the calibration ", *missing, "; a p-value needs all scores");
    }
    const auto targets = static_cast<size_t>(ranked_.targets);
    std::vector<double> each(scores_.size());
    std::vector<double> result(scores.size() / each.size() * targets);
    double* joined = result.data();
    std::vector<std::span<const double>> sorted;
    for (const ScoreOrder& side : scores_) sorted.push_back(side.sorted());
    for (size_t at = 0; at < scores.size(); at += each.size()) {
      for (size_t side = 0; side < each.size(); ++side) {
        each[side] = conformal_p_value(sorted[side], scores[at + side]).value();
      }
      join_targets(each, ranked_.sharing(), ranked_.paper, joined);
      joined += targets;
    }
    return result;
  }

 private:
  SideRanks ranked_;
  std::vector<Level> kept_;
  std::deque<ScoreOrder> scores_;  // one per side
};

// The scores of n rows among themselves are the ranks 1, …, n.
void check_crossed(const CrossFoldOptions& options, const CalibrationScores& rows) {
  if (options.folds < 2 || rows.count() == 0 || rows.count() % options.folds != 0) {
    fail("cross calibration has ", rows.count(), " rows in ", options.folds,
         " folds, expected at least 2 of equal size");
  }
  for (size_t i = 0; i < rows.scores.size(); ++i) {
    if (rows.sides == 1 && rows.scores[i] == static_cast<double>(i + 1)) continue;
    fail("the scores of cross calibration are not the ranks of its rows");
  }
}

}  // namespace

void sort_sides(CalibrationScores& rows, size_t threads) {
  const auto sides = static_cast<size_t>(rows.sides);
  if (sides == 1) {
    check_scores(rows.scores);
    return sort_scores(rows.scores, threads);
  }
  for (size_t side = 0; side < sides; ++side) {
    const std::vector<double> scores = sorted_scores(side_scores(rows, static_cast<int64_t>(side)));
    for (size_t i = 0; i < scores.size(); ++i) rows.scores[i * sides + side] = scores[i];
  }
}

std::vector<double> side_scores(const CalibrationScores& rows, int64_t side) {
  if (rows.sides == 1) return rows.scores;
  std::vector<double> scores;
  scores.reserve(rows.scores.size() / static_cast<size_t>(rows.sides));
  const auto sides = static_cast<size_t>(rows.sides);
  for (size_t at = static_cast<size_t>(side); at < rows.scores.size(); at += sides) {
    scores.push_back(rows.scores[at]);
  }
  return scores;
}

Level side_level(const Level& level, int64_t sharing, bool paper) {
  return sharing == 1 || paper ? level : level.divided_by(static_cast<uint64_t>(sharing));
}

double join_sides(std::span<const double> p_values, bool paper) {
  const double least = *std::min_element(p_values.begin(), p_values.end());
  return paper ? least : std::min(1.0, least * static_cast<double>(p_values.size()));
}

void join_targets(std::span<const double> p_values, int64_t sharing, bool paper, double* joined) {
  const auto count = static_cast<size_t>(sharing);
  for (size_t at = 0; at < p_values.size(); at += count) {
    *joined++ = join_sides(p_values.subspan(at, count), paper);
  }
}

std::unique_ptr<Calibration> make_calibration(const SplitOptions& /*options*/,
                                              const SharedCalibrationOptions& shared,
                                              const CalibrationScores& rows, int64_t /*classes*/) {
  return std::make_unique<Split>(shared.paper, rows);
}

std::unique_ptr<Calibration> make_calibration(const CrossFoldOptions& options,
                                              const SharedCalibrationOptions& shared,
                                              const CalibrationScores& rows, int64_t /*classes*/) {
  check_crossed(options, rows);
  return std::make_unique<Split>(shared.paper, rows);
}

CalibrationOptions::CalibrationOptions(const std::string& calibration,
                                       SharedCalibrationOptions shared)
    : OptionsOf{shared} {
  const auto found = named_options<AnyCalibration>(calibration);
  if (!found) {
    fail("there is no calibration '", calibration,
         "'; there are split, grouped, localized and weighted");
  }
  own = *found;
}

bool CalibrationOptions::by_column() const {
  const auto* grouped = as<GroupedOptions>();
  return grouped != nullptr && grouped->by_column();
}

std::vector<std::string> calibration_names() {
  return names_with_traits<AnyCalibration>([](const auto& traits) { return !traits.made_by_fit; });
}

std::unique_ptr<Calibration> make_calibration(const CalibrationOptions& options,
                                              const CalibrationScores& rows, int64_t classes) {
  if (!rows.levels.empty() && !options.traits().one_radius) {
    fail("levels are kept by split calibration alone");
  }
  return std::visit([&](const auto& own) { return make_calibration(own, options, rows, classes); },
                    options.own);
}

}  // namespace fcp

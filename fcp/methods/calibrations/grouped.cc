#include "fcp/methods/calibrations/grouped.h"

#include <limits>

#include "fcp/base/error.h"
#include "fcp/conformal/p_value.h"
#include "fcp/conformal/quantile.h"
#include "fcp/methods/method.h"

namespace fcp {
namespace {

void check_groups(const CalibrationScores& rows) {
  if (rows.groups.size() != rows.count()) {
    fail("grouped calibration found ", rows.groups.size(), " groups for ", rows.count(), " rows");
  }
  const auto names = static_cast<int64_t>(rows.group_names.size());
  for (const int64_t group : rows.groups) {
    if (group < 0 || group >= names) {
      fail("group ", group, " is not one of the ", names, " groups");
    }
  }
}

class Grouped : public Calibration {
 public:
  Grouped(bool by_label, bool paper, const CalibrationScores& rows, int64_t classes)
      : by_label_(by_label),
        paper_(paper),
        sides_(rows.sides),
        targets_(rows.targets),
        classes_(classes) {
    check_groups(rows);
    const size_t groups = rows.group_names.size();
    for (int64_t side = 0; side < sides_; ++side) {
      std::vector<std::vector<double>> parts(groups);
      const std::vector<double> scores = side_scores(rows, side);
      for (size_t i = 0; i < scores.size(); ++i) {
        parts[static_cast<size_t>(rows.groups[i])].push_back(scores[i]);
      }
      for (std::vector<double>& part : parts) part = sorted_scores(part);
      sorted_.push_back(std::move(parts));
    }
  }

  torch::Tensor radii(const TestInputs& rows, const Level& level) const override {
    const torch::Tensor table = group_radii(level);  // [G + 1, S]
    const int64_t count = rows.features.size(0);
    if (by_label_) return label_radii(table).expand({count, classes_});
    check_count(rows, static_cast<size_t>(count));
    const torch::Tensor ids = torch::tensor(rows.groups, torch::kLong);
    const int64_t unseen = table.size(0) - 1;
    const torch::Tensor known =
        torch::where((ids < 0).logical_or(ids > unseen), torch::full_like(ids, unseen), ids);
    return table.index_select(0, known);
  }

  std::vector<double> p_values(const TestInputs& rows,
                               std::span<const double> scores) const override {
    const auto sides = static_cast<size_t>(sides_);
    check_count(rows, scores.size() / sides);
    const auto targets = static_cast<size_t>(targets_);
    std::vector<double> result(rows.groups.size() * targets);
    std::vector<double> each(sides);
    for (size_t i = 0; i < rows.groups.size(); ++i) {
      for (size_t side = 0; side < sides; ++side) {
        const auto group = static_cast<size_t>(rows.groups[i]);  // −1 becomes the largest
        each[side] =
            group >= sorted_[side].size()
                ? 1.0
                : conformal_p_value(sorted_[side][group], scores[i * sides + side]).value();
      }
      join_targets(each, sides_ / targets_, paper_, result.data() + i * targets);
    }
    return result;
  }

 private:
  // One row per group and a last one, +∞, for groups that calibration has not seen.
  torch::Tensor group_radii(const Level& level) const {
    const auto groups = static_cast<int64_t>(sorted_[0].size());
    torch::Tensor table =
        torch::full({groups + 1, sides_}, std::numeric_limits<double>::infinity(), torch::kDouble);
    const Level each = side_level(level, sides_ / targets_, paper_);
    auto at = table.accessor<double, 2>();
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t side = 0; side < sides_; ++side) {
        at[group][side] = conformal_quantile_sorted(
            sorted_[static_cast<size_t>(side)][static_cast<size_t>(group)], each);
      }
    }
    return table;
  }

  // Groups are the classes, in their order.
  torch::Tensor label_radii(const torch::Tensor& table) const {
    if (table.size(0) - 1 != classes_) {
      fail("calibration by label has ", table.size(0) - 1, " groups for ", classes_, " classes");
    }
    return table.narrow(0, 0, classes_).t();
  }

  static void check_count(const TestInputs& rows, size_t count) {
    if (rows.groups.size() != count) {
      fail("grouped calibration needs the group of each row; found ", rows.groups.size(), " for ",
           count, " rows");
    }
  }

  bool by_label_;
  bool paper_;
  int64_t sides_, targets_;
  int64_t classes_;
  std::vector<std::vector<std::vector<double>>> sorted_;  // by side and group
};

}  // namespace

std::vector<Option> GroupedOptions::rows() {
  return {calibration_option(
      field::group, {.name = "group",
                     .help = "Groups: a CSV column, an .npy file of group numbers, or for labels "
                             "'predicted' (by predicted label) or 'label' (class by class)",
                     .after = "calibration"})};
}

std::unique_ptr<Calibration> make_calibration(const GroupedOptions& options,
                                              const SharedCalibrationOptions& shared,
                                              const CalibrationScores& rows, int64_t classes) {
  return std::make_unique<Grouped>(options.group == kByLabel, shared.paper, rows, classes);
}

std::optional<std::string> small_groups_warning(const CalibrationScores& rows, bool paper,
                                                const Level& level, size_t most) {
  std::vector<size_t> counts(rows.group_names.size(), 0);
  for (const int64_t group : rows.groups) ++counts[static_cast<size_t>(group)];
  const uint64_t needed = least_calibration_rows(side_level(level, rows.sharing(), paper));
  std::string named;
  size_t small = 0;
  for (size_t group = 0; group < counts.size(); ++group) {
    if (counts[group] >= needed) continue;
    if (small++ >= most) continue;
    named += concat(small == 1 ? "'" : ", '", rows.group_names[group], "' (", counts[group], ")");
  }
  if (small == 0) return std::nullopt;
  if (small > most) named += concat(" and ", small - most, " more");
  return concat(small, small == 1 ? " group has" : " groups have",
                " an infinite radius, because alpha ", level.text(), " needs ", needed,
                " calibration rows in each: ", named);
}

}  // namespace fcp

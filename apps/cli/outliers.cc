#include "apps/cli/outliers.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/number_text.h"
#include "fcp/calibrate/outliers.h"
#include "fcp/data/csv_writer.h"
#include "fcp/predictor/device_choice.h"
#include "fcp/predictor/region_writer.h"
#include "fcp/predictor/row_facts.h"
#include "fcp/predictor/shared_batches.h"

namespace fcp::cli {
namespace {

const char* rule_of(Dependence dependence) {
  return dependence == Dependence::kPositive ? "benjamini-hochberg" : "benjamini-yekutieli";
}

DataOptions rows_without_target(const DataFlags& flags, const std::string& data) {
  DataOptions options = data_options(flags);
  options.data = data;
  options.target.clear();
  options.needs_target = false;
  return options;
}

std::vector<double> weights_in(const DataOptions& data, const std::string& weights) {
  return read_facts(data, {.group = "", .weights = weights}).weights;
}

// Of usual rows and of new ones.
struct BothWeights {
  std::vector<double> usual, fresh;
};

BothWeights read_both_weights(const FeatureCheck& asked, const DataOptions& usual,
                              const DataOptions& fresh) {
  const std::string& of_usual = asked.reference.weights;
  if (asked.weights.empty()) {
    if (!of_usual.empty()) throw UsageError("--reference-weights: applies only to --weights");
    return {};
  }
  if (of_usual.empty() && asked.weights.ends_with(".npy")) {
    throw UsageError("--weights: an .npy file is of --data alone; give --reference-weights too");
  }
  return {weights_in(usual, of_usual.empty() ? asked.weights : of_usual),
          weights_in(fresh, asked.weights)};
}

std::vector<double> weights_of(const std::vector<double>& all, size_t first, size_t count) {
  if (all.empty()) return {};
  if (all.size() < first + count) fail("weights: names ", all.size(), " rows, the data has more");
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

FeatureOutliers learn_usual(const FeatureCheck& asked, const CalibrationArtifact& artifact,
                            RowSource& usual, std::vector<double> weights, const Context& context) {
  const ReferenceFlags& flags = asked.reference;
  OutlierOptions options{
      .cut = flags.cut, .seed = asked.common.seed, .weights = std::move(weights)};
  if (!flags.score.empty()) options.score = flags.score;
  if (flags.neighbours > 0) options.neighbours = flags.neighbours;
  OutlierFeatures source(artifact, options.cut, context.device);
  std::vector<torch::Tensor> features;
  each_batch(usual, context, "reference", [&](const Rows& rows) {
    features.push_back(source.of(view(rows.x), rows.first_row));
  });
  if (features.empty()) fail(flags.rows, ": has no rows");
  return {std::move(source), torch::cat(features), options};
}

void write_checked(const FeatureCheck& asked, const KeptColumns& kept,
                   const std::vector<FlaggedRow>& rows, const std::vector<bool>& outlier) {
  std::vector<std::string> columns = kept.names;
  columns.insert(columns.end(), {"score", "p_value", "outlier"});
  CsvWriter writer(asked.out, columns);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const auto& column : kept.cells) writer.cell(std::string_view(column.at(i)));
    writer.cell(static_cast<float>(rows[i].scores[0]));
    writer.cell(static_cast<float>(rows[i].p_value));
    writer.cell(int64_t{outlier[i]});
    writer.end_row();
  }
  writer.close();
}

}  // namespace

void add_outliers(nlohmann::ordered_json& json, const OutlierRate& rate,
                  const std::vector<FlaggedRow>& flagged) {
  json["fdr"] = rate.rate.value();
  json["rule"] = rule_of(rate.dependence);
  json["outliers"] = nlohmann::ordered_json::array();
  json["flagged"] = nlohmann::ordered_json::array();
  for (const FlaggedRow& one : flagged) {
    json["outliers"].push_back(one.row);
    nlohmann::ordered_json row = {{"row", one.row}, {"p_value", one.p_value}};
    row["score"] = one.scores.size() == 1 ? nlohmann::ordered_json(one.scores[0])
                                          : nlohmann::ordered_json(one.scores);
    json["flagged"].push_back(std::move(row));
  }
}

void say_outliers(const CommonOptions& common, const OutlierRate& rate,
                  std::vector<FlaggedRow> flagged, size_t rows) {
  constexpr size_t kMostSaid = 10;
  say(common, concat(flagged.size(), " of ", rows, " rows are outliers at a false discovery rate ",
                     "of ", rate.rate.text(), ", by the rule of ",
                     rate.dependence == Dependence::kPositive ? "Benjamini and Hochberg"
                                                              : "Benjamini and Yekutieli"));
  std::stable_sort(flagged.begin(), flagged.end(), [](const FlaggedRow& a, const FlaggedRow& b) {
    return a.p_value != b.p_value ? a.p_value < b.p_value : a.scores > b.scores;
  });
  for (size_t i = 0; i < std::min(kMostSaid, flagged.size()); ++i) {
    std::string scores;
    for (const double score : flagged[i].scores) scores += " " + format_number(score);
    say(common, concat("row ", flagged[i].row, " (from 0): score", scores, ", p-value ",
                       format_number(flagged[i].p_value)));
  }
  if (flagged.size() > kMostSaid) say(common, concat("and ", flagged.size() - kMostSaid, " more"));
}

void add_reference(CLI::App& verb, ReferenceFlags& flags) {
  verb.add_option("--reference", flags.rows,
                  "Outliers among rows without answers: usual rows, which did not train the "
                  "network, to compare features with");
  verb.add_option("--outlier-score", flags.score,
                  "With --reference: the mean distance to the nearest rows, or minus the logarithm "
                  "of a kernel density [neighbours]")
      ->check(CLI::IsMember({kByNeighbours, kByDensity}));
  verb.add_option("--neighbours", flags.neighbours,
                  "With --reference: number of nearest rows; for density, the distance to "
                  "the last of them is the kernel's width [10]")
      ->check(CLI::Range(size_t{1}, size_t{2000}));
  verb.add_option(
      "--cut", flags.cut,
      "With --reference: where features are, as for fcp calibrate; by default where the "
      "predictor has them, or where the network is cut by default");
  verb.add_option("--reference-weights", flags.weights,
                  "With --reference: the likelihood ratios of its rows, where --weights is an .npy "
                  "file");
}

void check_features(const FeatureCheck& asked) {
  Context context = start(asked.common);
  context.batch = asked.data.batch;
  const DataOptions fresh = rows_without_target(asked.data, data_options(asked.data).data);
  const DataOptions usual = rows_without_target(asked.data, asked.reference.rows);
  const CalibrationArtifact artifact = read_artifact(asked.model);
  const auto usual_rows = open_data(usual, &artifact.network, *context.observer);
  const auto fresh_rows = open_data(fresh, &artifact.network, *context.observer);
  choose_device(artifact.network, *fresh_rows, context);
  BothWeights weights = read_both_weights(asked, usual, fresh);
  const KeptColumns kept = read_kept_columns(fresh, asked.keep);
  const FeatureOutliers detector =
      learn_usual(asked, artifact, *usual_rows, std::move(weights.usual), context);
  std::vector<FlaggedRow> rows;
  std::vector<double> p_values;
  each_batch(*fresh_rows, context, "check", [&](const Rows& batch) {
    const auto scores = detector.scores(detector.source().of(view(batch.x), batch.first_row));
    const auto found =
        detector.p_values(scores, weights_of(weights.fresh, rows.size(), scores.size()));
    for (size_t i = 0; i < scores.size(); ++i) rows.push_back({rows.size(), {scores[i]}, found[i]});
    p_values.insert(p_values.end(), found.begin(), found.end());
  });
  if (rows.empty()) fail("the data has no rows to check");
  const OutlierRate rate{asked.rate, detector.dependence()};
  const std::vector<bool> outlier = discoveries(p_values, rate.rate, rate.dependence);
  write_checked(asked, kept, rows, outlier);
  const size_t count = rows.size();
  std::erase_if(rows, [&](const FlaggedRow& one) { return !outlier[one.row]; });
  if (!asked.common.json) {
    say(asked.common, concat(detector.reference_rows(), " usual rows to compare with, ",
                             detector.calibration_rows(), " more for p-values"));
    return say_outliers(asked.common, rate, std::move(rows), count);
  }
  nlohmann::ordered_json json = {{"rows", count},
                                 {"reference_rows", detector.reference_rows()},
                                 {"calibration_rows", detector.calibration_rows()},
                                 {"cut", detector.source().cut()}};
  add_outliers(json, rate, rows);
  std::cout << json.dump(2) << '\n';
}

}  // namespace fcp::cli

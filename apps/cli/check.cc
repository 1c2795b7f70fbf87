// fcp check: for rows with answers the score, its p-value, and whether it is in; and which rows are
// outliers, with answers or without.
#include "apps/cli/check.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/calibrate/outliers.h"
#include "fcp/data/csv_writer.h"
#include "fcp/discoveries.h"
#include "fcp/evaluate/judge.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/predict.h"
#include "fcp/predictor/region_writer.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"

namespace fcp::cli {
namespace {

struct CheckFlags {
  CommonOptions common;
  DataFlags data;
  FactOptions facts;
  std::string model;
  std::string alpha = "0.1";
  bool outliers = false;
  std::string rate;
  ReferenceFlags reference;
  std::string keep;
  std::string out = "-";
};

// The names of the targets, where each has a radius of its own; else empty.
std::vector<std::string> checked_targets(const CalibrationArtifact& artifact) {
  if (artifact.rows.targets == 1) return {};
  return target_names_of(artifact.network, static_cast<size_t>(artifact.rows.targets));
}

std::vector<std::string> check_columns(const CalibrationArtifact& artifact, bool outliers) {
  std::vector<std::string> columns, endings = checked_targets(artifact);
  for (std::string& name : endings) name.insert(name.begin(), '_');
  if (endings.empty()) endings = {""};
  for (const std::string& name : endings) {
    if (artifact.rows.sharing() > 1) {
      columns.insert(columns.end(), {"score_low" + name, "score_high" + name});
    } else {
      columns.push_back("score" + name);
    }
    columns.insert(columns.end(), {"p_value" + name, "in" + name});
  }
  if (outliers) columns.emplace_back("outlier");
  return columns;
}

// The share of false ones among the outliers that may be; none where they are not asked for.
std::optional<Level> outlier_rate(const CheckFlags& flags) {
  if (!flags.outliers) {
    if (!flags.rate.empty()) throw UsageError("--fdr: applies only to --outliers");
    return std::nullopt;
  }
  if (flags.rate.empty()) return Level(0.1);
  try {
    return Level::parse(flags.rate);
  } catch (const Error&) {
    throw UsageError(
        concat("--fdr: found ", flags.rate, ", expected a number between 0 and 1, such as 0.1"));
  }
}

// What is of use to rows without answers alone, and the other way round.
void check_usage(const CheckFlags& flags) {
  const bool unlabelled = !flags.reference.rows.empty();
  if (flags.common.json && flags.out == "-") {
    throw UsageError("--json needs --out FILE, because the rows themselves go to stdout");
  }
  if (!unlabelled && flags.reference.any()) {
    throw UsageError(
        "--outlier-score, --neighbours, --cut and --reference-weights: apply only to --reference");
  }
  if (!unlabelled && flags.common.seed != 0)
    throw UsageError("--seed: applies only to --reference");
  if (!unlabelled && !flags.keep.empty()) throw UsageError("--keep: applies only to --reference");
  if (!unlabelled) return;
  if (!flags.outliers) throw UsageError("--reference: applies only to --outliers");
  if (!flags.data.target.empty()) {
    throw UsageError("--target: rows with answers are judged by them; leave out --reference");
  }
  if (flags.alpha != "0.1") throw UsageError("--alpha: does not apply to --reference; --fdr does");
  if (!flags.facts.group.empty()) throw UsageError("--group: does not apply to --reference");
}

// Which rows are outliers is known when all are: they are kept until then.
class CheckedRows {
 public:
  CheckedRows(const std::string& out, const CalibrationArtifact& artifact,
              std::optional<OutlierRate> rate)
      : writer_(out, check_columns(artifact, rate.has_value())), rate_(std::move(rate)) {}

  void take(const CheckedRow& row) {
    if (!rate_) return write(row);
    rows_.push_back({row.row, {row.scores.begin(), row.scores.end()}, row.p_values[0]});
    p_values_.push_back(row.p_values[0]);
    in_.push_back(row.in[0]);
  }

  // The rows that are outliers.
  std::vector<FlaggedRow> close() {
    std::vector<FlaggedRow> flagged;
    if (rate_) {
      const std::vector<bool> found = discoveries(p_values_, rate_->rate, rate_->dependence);
      for (size_t i = 0; i < found.size(); ++i) {
        if (found[i]) flagged.push_back(rows_[i]);
        write({i, rows_[i].scores, std::span(&p_values_[i], 1), {in_[i]}}, found[i]);
      }
    }
    writer_.close();
    return flagged;
  }

 private:
  void write(const CheckedRow& row, bool outlier = false) {
    const size_t sides = row.scores.size() / row.in.size();
    for (size_t k = 0; k < row.in.size(); ++k) {
      for (const double score : row.scores.subspan(k * sides, sides)) {
        writer_.cell(static_cast<float>(score));
      }
      writer_.cell(static_cast<float>(row.p_values[k]));
      writer_.cell(int64_t{row.in[k]});
    }
    if (rate_) writer_.cell(int64_t{outlier});
    writer_.end_row();
  }

  CsvWriter writer_;
  std::optional<OutlierRate> rate_;
  std::vector<FlaggedRow> rows_;
  std::vector<double> p_values_;
  std::vector<bool> in_;
};

void print_checked(const CheckFlags& flags, const CheckResult& result, const Level& level,
                   const std::vector<std::string>& targets, const std::optional<OutlierRate>& rate,
                   std::vector<FlaggedRow> flagged) {
  if (flags.common.json) {
    nlohmann::ordered_json json = {
        {"rows", result.rows}, {"in", result.in}, {"alpha", level.value()}};
    if (!result.targets_in.empty()) json["in_by_target"] = result.targets_in;
    if (rate) add_outliers(json, *rate, flagged);
    std::cout << json.dump(2) << '\n';
    return;
  }
  const bool each = !result.targets_in.empty();
  say(flags.common, concat(result.in, " of ", result.rows, " true answers lie in their regions",
                           each ? " with all targets" : "", " at alpha ", level.text()));
  for (size_t k = 0; k < result.targets_in.size(); ++k) {
    say(flags.common, concat("  ", targets[k], ": ", result.targets_in[k], " rows"));
  }
  if (rate) say_outliers(flags.common, *rate, std::move(flagged), result.rows);
}

void run_check(const CheckFlags& flags) {
  check_usage(flags);
  const std::optional<Level> asked = outlier_rate(flags);
  if (!flags.reference.rows.empty()) {
    return check_features({.common = flags.common,
                           .data = flags.data,
                           .reference = flags.reference,
                           .model = flags.model,
                           .weights = flags.facts.weights,
                           .keep = flags.keep,
                           .out = flags.out,
                           .rate = *asked});
  }
  Context context = start(flags.common);
  context.batch = flags.data.batch;
  DataOptions data = data_options(flags.data);
  const Level level = parse_level(flags.alpha);
  say_lax_level(flags.common, level);
  CalibrationArtifact artifact = read_artifact_for_p_values(flags.model, level);
  take_target(artifact, data);
  const auto source = open_data(data, &artifact.network, *context.observer);
  choose_device(artifact.network, *source, context);
  const CheckOptions options{
      .level = level, .facts = read_facts_for(artifact, data, flags.facts, *context.observer)};
  std::optional<OutlierRate> rate;
  if (asked) rate = {*asked, p_value_dependence(artifact)};
  if (const auto why = rate ? no_discoveries(artifact) : std::nullopt) {
    fail(flags.model, ": ", *why);
  }
  CheckedRows rows(flags.out, artifact, rate);
  const std::vector<std::string> targets = checked_targets(artifact);
  const internal::PredictorCore predictor(std::move(artifact), context.device);
  const CheckResult result =
      check(predictor, *source, options, context, [&](const CheckedRow& row) { rows.take(row); });
  print_checked(flags, result, level, targets, rate, rows.close());
}

}  // namespace

void add_check(CLI::App& app) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* verb =
      app.add_subcommand("check", "Score, p-value and membership of each row; outliers");
  verb->footer(
      "Examples:\n"
      "  fcp check calibrated.onnx --data rows.csv --target y --out checked.csv\n"
      "  fcp check calibrated.onnx --data rows.csv --target y --outliers --fdr 0.1 --out o.csv\n"
      "  fcp check calibrated.onnx --data new.csv --outliers --reference usual.csv --keep all "
      "--out "
      "o.csv\n"
      "The last one needs no answers: rows are compared with usual rows that did not train the "
      "network.");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  verb->add_option("--data", flags->data.data, "Rows: CSV, .npy or .npz:entry")->required();
  verb->add_option("--alpha", flags->alpha, "Level of the regions")->capture_default_str();
  verb->add_flag("--outliers", flags->outliers,
                 "Mark outliers, all rows considered together: by their answers, or with "
                 "--reference by their features");
  verb->add_option("--fdr", flags->rate, "Expected share of false ones among them; by default 0.1");
  add_reference(*verb, flags->reference);
  verb->add_option("--keep", flags->keep,
                   "With --reference: CSV columns to write before the score, as id,name; 'all'");
  verb->add_option("--out", flags->out, "CSV file; - is standard output")->capture_default_str();
  add_facts(*verb, flags->facts);
  add_data(*verb, flags->data, /*needs_target=*/true);
  add_common(*verb, flags->common, kTakesAll);
  verb->callback([flags] { run_check(*flags); });
}

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
    say(asked.common, concat(detector.reference_rows(), " reference rows to compare with, ",
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

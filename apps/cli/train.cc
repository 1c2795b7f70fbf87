// fcp train: a network from a table.
#include "fcp/fit/train.h"

#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "fcp/base/text_table.h"
#include "fcp/fit/table_split.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/training/tabular.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/report/json.h"
#include "apps/report/results.h"

namespace fcp::cli {
namespace {

constexpr char kTabular[] = "tabular";
constexpr char kPaper[] = "paper";

// What was asked for; what was not is the recipe's own default.
struct TrainVerbOptions {
  CommonOptions common;
  DataFlags data;
  std::string recipe = kTabular;
  std::string loss;  // empty: by the target
  std::string out;
  std::vector<double> weights;
  std::string row_weights;
  int64_t classes = 0;
  double low = 0.05;
  double high = 0.95;
  bool two_networks = false;
  bool curve = false;
  bool no_heads = false;
  bool trees = false;
  std::optional<std::vector<int64_t>> layers;
  std::optional<int64_t> epochs, batch, members, patience;
  std::optional<double> rate, dropout, holdout, weight_decay;
  std::optional<std::string> centre;
};

template <typename T, typename U>
void apply(const std::optional<T>& asked, U& option) {
  if (asked) option = *asked;
}

template <typename Options>
void apply_shared(const TrainVerbOptions& asked, Options& options) {
  apply(asked.layers, options.layers);
  apply(asked.epochs, options.epochs);
  apply(asked.batch, options.batch);
  apply(asked.rate, options.rate);
  apply(asked.dropout, options.dropout);
  apply(asked.holdout, options.holdout);
  options.loss = parse_loss(asked.loss);
  options.low = asked.low;
  options.high = asked.high;
  options.classes = asked.classes;
  options.weights = asked.weights;
  options.seed = asked.common.seed;
}

TrainOptions paper_options(const TrainVerbOptions& asked) {
  TrainOptions options;
  apply_shared(asked, options);
  apply(asked.weight_decay, options.weight_decay);
  options.two_networks = asked.two_networks;
  return options;
}

Centre parse_centre(const std::string& name) {
  if (name == "mean") return Centre::kMean;
  return name == "median" ? Centre::kMedian : Centre::kAuto;
}

TabularOptions tabular_options(const TrainVerbOptions& asked, torch::Device device) {
  TabularOptions options;
  apply_shared(asked, options);
  apply(asked.members, options.members);
  apply(asked.patience, options.patience);
  if (asked.centre) options.centre = parse_centre(*asked.centre);
  options.trees = asked.trees;
  options.device = device;
  return options;
}

void refuse(bool given, const char* flag, const char* recipe) {
  if (given) throw UsageError(concat(flag, " applies only to --recipe ", recipe));
}

// Each recipe has options that mean nothing to the other one.
void check_recipe(const TrainVerbOptions& asked) {
  if (asked.recipe == kPaper) {
    refuse(asked.members.has_value(), "--members", kTabular);
    refuse(asked.patience.has_value(), "--patience", kTabular);
    refuse(asked.centre.has_value(), "--centre", kTabular);
    refuse(asked.curve, "--curve", kTabular);
    refuse(asked.no_heads, "--no-heads", kTabular);
    refuse(asked.trees, "--trees", kTabular);
    refuse(!asked.row_weights.empty(), "--row-weights", kTabular);
    if (asked.common.device != "cpu") {
      throw UsageError("--recipe paper trains on the CPU; --device applies to --recipe tabular");
    }
    return;
  }
  if (asked.trees && asked.loss == "quantile") {
    throw UsageError("--trees applies to --loss mse and cross-entropy, not to quantile");
  }
  refuse(asked.weight_decay.has_value(), "--weight-decay", kPaper);
  refuse(asked.two_networks, "--two-networks", kPaper);
  if (asked.holdout && asked.members != 1) {
    throw UsageError(
        "--holdout applies to --members 1 or --recipe paper; members of an ensemble "
        "hold out a fold each");
  }
}

nlohmann::ordered_json losses_json(const std::vector<double>& losses) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const double loss : losses) json.push_back(json_number(loss));
  return json;
}

void print_paper(const TrainVerbOptions& options, const TrainResult& result) {
  if (options.common.json) {
    nlohmann::ordered_json json = {{"out", options.out}, {"seconds", result.seconds}};
    for (const FitHistory& history : result.histories) {
      json["networks"].push_back({{"best_epoch", history.best_epoch},
                                  {"steps", history.steps},
                                  {"holdout_loss", losses_json(history.holdout_loss)}});
    }
    std::cout << json.dump(2) << '\n';
    return;
  }
  std::cout << "trained in " << format_number(result.seconds, 3) << " s";
  for (const FitHistory& history : result.histories) {
    std::cout << ", best epoch " << history.best_epoch;
    if (!history.holdout_loss.empty() && history.best_epoch > 0) {
      const auto best = static_cast<size_t>(history.best_epoch - 1);
      std::cout << " (hold-out loss " << format_number(history.holdout_loss[best]) << ")";
    }
  }
  std::cout << ": " << options.out << '\n';
}

nlohmann::ordered_json holdout_json(const HoldoutError& error, Loss loss) {
  nlohmann::ordered_json json = {{"rows", error.rows}};
  if (loss == Loss::kCrossEntropy) {
    json["accuracy"] = error.accuracy;
    json["majority"] = error.majority;
  } else if (loss == Loss::kQuantile) {
    json["coverage"] = error.coverage;
    json["length"] = json_number(error.length);
  } else {
    json["rmse"] = losses_json(error.rmse);
    json["mae"] = losses_json(error.mae);
    json["deviation"] = losses_json(error.deviation);
  }
  return json;
}

std::string holdout_text(const HoldoutError& error, Loss loss) {
  if (loss == Loss::kCrossEntropy) return concat("accuracy ", format_percent(error.accuracy));
  if (loss == Loss::kQuantile) {
    return concat(format_percent(error.coverage), " of truths between the quantiles, mean length ",
                  format_number(error.length));
  }
  std::string text;
  for (size_t k = 0; k < error.rmse.size(); ++k) {
    text += concat(k == 0 ? "" : "; ", "RMSE ", format_number(error.rmse[k]), ", MAE ",
                   format_number(error.mae[k]), ", deviation of the target ",
                   format_number(error.deviation[k]));
  }
  return text;
}

// The hold-out loss of every member, epoch by epoch.
void print_curve(const TabularResult& result) {
  std::vector<std::string> head{"epoch"};
  for (size_t e = 0; e < result.curves.size(); ++e) head.push_back(concat("member ", e));
  Table table(head);
  for (size_t epoch = 0; epoch < static_cast<size_t>(result.epochs); ++epoch) {
    std::vector<std::string> row{concat(epoch + 1)};
    bool any = false;
    for (const FitCurve& curve : result.curves) {
      const bool took_part = epoch < curve.holdout_loss.size();
      any = any || took_part;
      row.push_back(took_part ? format_number(curve.holdout_loss[epoch]) : "");
    }
    if (!any) break;
    table.add_row(row);
  }
  std::cout << table.text(2);
}

void print_tabular(const TrainVerbOptions& options, const TabularResult& result) {
  const Loss loss = parse_loss(options.loss);
  if (options.common.json) {
    nlohmann::ordered_json json = {{"out", options.out},
                                   {"seconds", result.seconds},
                                   {"holdout", holdout_json(result.error, loss)},
                                   {"warnings", result.warnings}};
    if (loss == Loss::kMse) {
      json["centre"] = result.centre == Centre::kMedian ? "median" : "mean";
    }
    if (options.trees) json["tree_share"] = result.tree_share;
    for (const FitCurve& curve : result.curves) {
      json["networks"].push_back({{"best_epoch", curve.best_epoch},
                                  {"training_loss", losses_json(curve.training_loss)},
                                  {"holdout_loss", losses_json(curve.holdout_loss)}});
    }
    std::cout << json.dump(2) << '\n';
    return;
  }
  if (options.curve) print_curve(result);
  std::cout << "hold-out, " << result.error.rows << " rows: " << holdout_text(result.error, loss)
            << '\n';
  std::cout << "trained in " << format_number(result.seconds, 3) << " s, "
            << ensemble_text(static_cast<int64_t>(result.curves.size()), result.tree_share,
                             result.log_target);
  if (result.centre == Centre::kMedian) std::cout << ", predicting the median";
  std::cout << ": " << options.out << '\n';
}

// Text in the target is a class, unless numbers are what the loss is for.
CsvLabels labels_for(const TrainVerbOptions& options) {
  const bool numbers = !options.loss.empty() && options.loss != "cross-entropy";
  return numbers ? CsvLabels::kNumbers : CsvLabels::kText;
}

void settle_loss(TrainVerbOptions& options, const RowSource& source) {
  const bool classes = !source.class_names().empty();
  if (options.loss.empty()) options.loss = classes ? "cross-entropy" : "mse";
}

void run_train(TrainVerbOptions& options) {
  check_recipe(options);
  const Context context = start(options.common);
  DataOptions data = data_options(options.data);
  data.csv.labels = labels_for(options);
  leave_out(options.row_weights, data.csv);
  if (show_schema(options.data, data, options.common.json)) return;
  if (options.out.empty()) fail_option("out", "is required");
  if (options.recipe == kPaper) {
    const auto source = open_data(data, nullptr, *context.observer);
    settle_loss(options, *source);
    const TrainResult result = train_rows(*source, paper_options(options), context);
    write_onnx(result.graph, options.out);
    return print_paper(options, result);
  }
  data.csv.keep_missing = !data.csv.impute;
  data.csv.find_types = true;
  data.csv.exact = true;  // of targets (training_data.h)
  const auto source = open_data(data, nullptr, *context.observer);
  settle_loss(options, *source);
  TabularOptions recipe = tabular_options(options, context.device);
  recipe.row_weights = read_row_weights(data, options.row_weights);
  const TabularResult result = train_table(*source, recipe, !options.no_heads, context);
  write_onnx(result.graph, options.out);
  print_tabular(options, result);
}

void add_network_options(CLI::App& verb, TrainVerbOptions& options) {
  verb.add_option("--members", options.members,
                  "tabular: networks of the ensemble [5]; 1: a single one with a hold-out");
  verb.add_option("--layers", options.layers,
                  "Widths of the hidden layers [tabular 256,256,128; paper 64,64,64]")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--epochs", options.epochs,
                  "Maximum number of epochs; the best on a hold-out is kept [tabular 80 to "
                  "400, by the number of rows; paper 10]");
  verb.add_option("--patience", options.patience,
                  "tabular: epochs without improvement after which a member stops [30 % of all]");
  verb.add_option("--rate", options.rate,
                  "Learning rate of Adam [tabular 0.003 or 0.0015 at its peak; "
                  "paper 0.0005]");
  verb.add_option("--weight-decay", options.weight_decay, "paper: weight decay [1e-06]");
  verb.add_option("--dropout", options.dropout, "Dropout [0.1]");
  verb.add_option("--train-batch", options.batch,
                  "Rows of one training step [tabular 32 to 256, by the number of rows; paper 64]");
  verb.add_option("--holdout", options.holdout,
                  "Share of rows that chooses the epoch [--members 1: 0.2; paper 0.05]");
}

void add_target_options(CLI::App& verb, TrainVerbOptions& options) {
  verb.add_option("--centre", options.centre,
                  "tabular, mse: what is predicted; auto takes the median where the target has a "
                  "heavy tail and the interval becomes shorter [auto]")
      ->check(CLI::IsMember({"auto", "mean", "median"}));
  verb.add_option("--low", options.low, "Lower quantile of --loss quantile")->capture_default_str();
  verb.add_option("--high", options.high, "Upper quantile of --loss quantile")
      ->capture_default_str();
  verb.add_flag("--two-networks", options.two_networks,
                "paper: one network per quantile instead of one for both");
  verb.add_option("--classes", options.classes,
                  "Classes of cross-entropy; 0: the largest label + 1");
  verb.add_option("--weights", options.weights, "Weights of the loss, one per target or class")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option(
      "--row-weights", options.row_weights,
      "tabular: CSV column or .npy file of numbers above 0, how much each row counts in "
      "the loss and in the hold-out error; it is no feature");
  verb.add_flag("--curve", options.curve, "tabular: print the hold-out loss of every epoch");
  verb.add_flag("--trees", options.trees,
                "tabular: boosted trees beside the networks, as fcp fit has them; the tensor "
                "features is then the one layer that separates the graph");
  verb.add_flag("--no-heads", options.no_heads,
                "tabular: no heads on the features, which tell the spread and the quantiles of the "
                "error");
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<TrainVerbOptions>();
  CLI::App* verb = app.add_subcommand("train", "Train a network on a table and write it as ONNX");
  verb->footer(
      "Examples:\n"
      "  fcp train data.csv --target y --out model.onnx\n"
      "  fcp train data.csv --target y --loss quantile --out quantiles.onnx\n"
      "  fcp train data.csv --target y --schema show\n"
      "The network takes the raw columns and answers in the target's unit. Column types are "
      "inferred:\n"
      "numbers, categories, dates, true and false; --schema shows and overrides\n"
      "it. An empty cell is a missing value, which the network learns to read.");
  verb->add_option("data", options->data.data, "Rows: CSV, .npy or .npz:entry")->required();
  verb->add_option("--out", options->out, "ONNX file to write");
  verb->add_option("--recipe", options->recipe,
                   "tabular: a cross-fitted ensemble; paper: the paper's perceptron")
      ->check(CLI::IsMember({kTabular, kPaper}))
      ->capture_default_str();
  verb->add_option("--loss", options->loss,
                   "Loss to minimise: mse, quantile or cross-entropy [cross-entropy where the "
                   "target is text, otherwise mse]")
      ->check(CLI::IsMember({"mse", "quantile", "cross-entropy"}));
  add_network_options(*verb, *options);
  add_target_options(*verb, *options);
  options->data.may_show = true;
  add_data(*verb, options->data, /*needs_target=*/true);
  add_common(*verb, options->common);
  verb->callback([options] { run_train(*options); });
}

}  // namespace fcp::cli

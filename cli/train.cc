// fcp train: a network from a table.
#include "fcp/pipeline/train.h"

#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/network/onnx_writer.h"
#include "fcp/report/format.h"
#include "fcp/report/json.h"

#include "cli/common.h"
#include "cli/data_flags.h"
#include "cli/verbs.h"

namespace fcp {
namespace {

struct TrainVerbOptions {
  CommonOptions common;
  DataFlags data;
  TrainOptions train;
  std::string loss = "mse";
  std::string out;
};

void run_train(TrainVerbOptions& options) {
  const Context context = start(options.common);
  options.train.loss = parse_loss(options.loss);
  options.train.seed = options.common.seed;
  const auto source = open_data(data_options(options.data), nullptr);
  const TrainResult result = train_rows(*source, options.train, context);
  write_onnx(result.graph, options.out);

  if (options.common.json) {
    nlohmann::ordered_json json = {{"out", options.out}, {"seconds", result.seconds}};
    for (const FitHistory& history : result.histories) {
      nlohmann::ordered_json losses = nlohmann::ordered_json::array();
      for (const double loss : history.holdout_loss) losses.push_back(json_number(loss));
      json["networks"].push_back(
          {{"best_epoch", history.best_epoch}, {"steps", history.steps}, {"holdout_loss", losses}});
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

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<TrainVerbOptions>();
  CLI::App* verb = app.add_subcommand("train", "Train a network on a table and write it as ONNX");
  verb->footer(
      "Examples:\n"
      "  fcp train data.csv --target y --out model.onnx\n"
      "  fcp train data.csv --target y --loss quantile --out quantiles.onnx\n"
      "The network takes the raw columns and answers in the target's unit.");
  verb->add_option("data", options->data.data, "Rows: CSV, .npy or .npz:entry")->required();
  verb->add_option("--out", options->out, "ONNX file to write")->required();
  TrainOptions& train = options->train;
  verb->add_option("--loss", options->loss, "What is made small: mse, quantile or cross-entropy")
      ->check(CLI::IsMember({"mse", "quantile", "cross-entropy"}))
      ->capture_default_str();
  verb->add_option("--layers", train.layers, "Widths of the hidden layers")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  verb->add_option("--epochs", train.epochs, "Epochs at most; the best on a hold-out is kept")
      ->capture_default_str();
  verb->add_option("--rate", train.rate, "Learning rate of Adam")->capture_default_str();
  verb->add_option("--weight-decay", train.weight_decay, "Weight decay")->capture_default_str();
  verb->add_option("--dropout", train.dropout, "Dropout after the 1st, 3rd, … hidden layer")
      ->capture_default_str();
  verb->add_option("--train-batch", train.batch, "Rows of one training step")
      ->capture_default_str();
  verb->add_option("--holdout", train.holdout, "Share of rows that chooses the epoch")
      ->capture_default_str();
  verb->add_option("--low", train.low, "Lower quantile of --loss quantile")->capture_default_str();
  verb->add_option("--high", train.high, "Upper quantile of --loss quantile")
      ->capture_default_str();
  verb->add_flag("--two-networks", train.two_networks,
                 "One network a quantile instead of one for both");
  verb->add_option("--classes", train.classes,
                   "Classes of cross-entropy; 0: the largest label + 1");
  verb->add_option("--weights", train.weights, "Weights of the loss, one a target or class")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_data(*verb, options->data, /*needs_target=*/true);
  add_common(*verb, options->common);
  verb->callback([options] { run_train(*options); });
}

}  // namespace fcp

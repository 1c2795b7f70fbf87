#include "apps/cli/truths.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/calibrate/tensor_rows.h"
#include "fcp/data/csv_writer.h"
#include "fcp/evaluate/replay.h"
#include "fcp/predictor/artifact_settings.h"
#include "fcp/predictor/predictor_core.h"

#include "apps/cli/common.h"
#include "apps/report/results.h"
#include "apps/server/feedback_store.h"

namespace fcp::cli {
namespace {

// Where a database is, it does not say.
std::string state_name(const std::string& state) {
  return state.find("://") == std::string::npos ? file_name_of(state) : "postgresql";
}

// Groups of a column, as the server knew them; what it did not know comes after them.
RowGroups groups_of(const CalibrationArtifact& artifact, std::vector<int64_t> ids) {
  const auto& calibration = artifact.method.calibration;
  if (!calibration.traits().by_group || calibration.value(field::group) == kByLabel) return {};
  RowGroups groups{std::move(ids), artifact.rows.group_names};
  const auto unknown = static_cast<int64_t>(groups.names.size());
  groups.names.emplace_back("unknown");
  for (int64_t& id : groups.ids) {
    if (id < 0 || id > unknown) id = unknown;
  }
  return groups;
}

Truths state_truths(const std::string& state, const std::string& model,
                    const CalibrationArtifact& artifact) {
  Truths truths{.rows = {}, .facts = {}, .times = {}, .name = state_name(state)};
  const auto store = read_feedback_store(state);
  const std::string sha256 = file_sha256(model);
  std::vector<float> x, y;
  std::vector<int64_t> groups;
  double last = 0;  // the clocks of several servers differ, the order of the store does not
  for (const std::string& name : store->models_of(sha256)) {
    store->each_truth(name, sha256, 0, [&](const StoredTruth& one) {
      x.insert(x.end(), one.prediction.x.begin(), one.prediction.x.end());
      y.insert(y.end(), one.truth.begin(), one.truth.end());
      groups.push_back(one.prediction.group);
      last = std::max(last, one.time);
      truths.times.push_back(time_text(last));
    });
  }
  if (truths.times.empty()) {
    fail(truths.name, ": has no truths of predictions of ", model, " (SHA-256 ",
         sha256.substr(0, 12), "…)");
  }
  const internal::PredictorCore core(artifact, torch::kCPU);
  const torch::Tensor rows = core.schema().encode(std::span<const float>(x), {}).x;
  truths.rows = std::make_unique<internal::TensorRows>(
      rows, internal::answers_over(y, rows.size(0)).clone(), internal::TensorRowsOptions{"state"});
  truths.facts.groups = groups_of(artifact, std::move(groups));
  truths.facts.shown = truths.facts.groups;
  return truths;
}

}  // namespace

std::string time_text(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char date[32], text[48];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  const int thousandths = static_cast<int>((seconds - static_cast<double>(whole)) * 1000);
  std::snprintf(text, sizeof text, "%s.%03d", date, thousandths);
  return text;
}

void add_truths(CLI::App& verb, DataFlags& flags, const std::string& help) {
  auto* data = verb.add_option("--data", flags.data, help);
  auto* state = verb.add_option("--state", flags.state,
                                "Folder, or postgresql://…, of fcp serve: the truths of what this "
                                "very file predicted, instead of --data");
  data->excludes(state);
}

Truths open_truths(const DataFlags& flags, const DataOptions& data, const FactOptions& facts,
                   const std::string& time, const std::string& model,
                   const CalibrationArtifact& artifact, const Context& context) {
  if (flags.data.empty() == flags.state.empty()) {
    throw UsageError("expected either --data or --state");
  }
  if (flags.state.empty()) {
    Truths truths{.rows = open_data(data, &artifact.network, *context.observer),
                  .facts = read_facts_for(artifact, data, facts, *context.observer),
                  .times = {},
                  .name = data_file_names(data)};
    if (!time.empty()) truths.times = read_times(data, time);
    return truths;
  }
  if (!flags.target.empty() || !facts.group.empty() || !facts.weights.empty() || !time.empty()) {
    throw UsageError("--state has targets, groups and times of its own");
  }
  return state_truths(flags.state, model, artifact);
}

// fcp state: what a server has stored.

namespace {

struct StateFlags {
  std::string state;
  std::string model;
  std::string sha256;
  std::string out;
  bool json = false;
};

// The columns follow from the first row.
class TruthTable {
 public:
  explicit TruthTable(const std::string& path) : path_(path) {}

  void add(const StoredTruth& one) {
    const WaitingPrediction& asked = one.prediction;
    if (writer_ == nullptr) begin(asked.x.size(), one.truth.size());
    if (asked.x.size() != inputs_ || one.truth.size() != outputs_) {
      fail(asked.model, ": row ", rows_, " (from 0) has ", asked.x.size(), " inputs and ",
           one.truth.size(), " truths, the first has ", inputs_, " and ", outputs_,
           "; export one model by --model, or the predictions of one file by --sha256");
    }
    for (const std::string& text : {asked.model, asked.sha256, asked.id}) writer_->cell(text);
    writer_->cell(asked.row);
    writer_->cell(time_text(asked.time));
    writer_->cell(time_text(one.time));
    for (const float number : asked.x) writer_->cell(number);
    for (const float number : one.truth) writer_->cell(number);
    writer_->cell(int64_t{one.covered});
    writer_->cell(one.alpha);
    writer_->cell(one.size);
    if (one.scores.empty()) {
      writer_->cell(std::string_view());
    } else {
      writer_->cell(one.p_value);
    }
    writer_->end_row();
    ++rows_;
  }

  size_t close() {
    if (writer_ != nullptr) writer_->close();
    return rows_;
  }

 private:
  void begin(size_t inputs, size_t outputs) {
    inputs_ = inputs;
    outputs_ = outputs;
    std::vector<std::string> columns = {"model", "sha256", "id", "row", "asked", "told"};
    for (size_t k = 0; k < inputs; ++k) columns.push_back(concat("x_", k));
    for (size_t k = 0; k < outputs; ++k) {
      columns.push_back(outputs == 1 ? "truth" : concat("truth_", k));
    }
    columns.insert(columns.end(), {"covered", "alpha", "size", "p_value"});
    writer_ = std::make_unique<CsvWriter>(path_, columns);
  }

  std::string path_;
  std::unique_ptr<CsvWriter> writer_;
  size_t inputs_ = 0, outputs_ = 0, rows_ = 0;
};

void run_export_state(const StateFlags& flags) {
  const auto store = read_feedback_store(flags.state);
  TruthTable table(check_csv_path(flags.out));
  for (const auto& [model, sha256] : store->files()) {
    const bool wanted =
        (flags.model.empty() || model == flags.model) && sha256.starts_with(flags.sha256);
    if (!wanted) continue;
    store->each_truth(model, sha256, 0, [&](const StoredTruth& one) { table.add(one); });
  }
  const size_t rows = table.close();
  if (rows == 0) fail("the state has no such truths");
  if (flags.out == "-") return;
  if (flags.json) {
    std::cout << nlohmann::ordered_json{{"rows", rows}, {"out", flags.out}}.dump(2) << '\n';
  } else {
    std::cout << format_count(rows) << " truths: " << flags.out << '\n';
  }
}

}  // namespace

void add_state(CLI::App& app) {
  auto flags = std::make_shared<StateFlags>();
  CLI::App* state = app.add_subcommand("state", "Read what fcp serve --state has stored");
  state->require_subcommand(1);
  CLI::App* verb = state->add_subcommand("export", "The truths, with their rows, as CSV");
  verb->footer(
      "Examples:\n"
      "  fcp state export state/ --out truths.csv\n"
      "  fcp state export postgresql:///fcp --model price --out truths.csv\n"
      "The columns x_0, x_1, … are the numbers that went into the network.");
  verb->add_option("state", flags->state, "Folder, or postgresql://…")->required();
  verb->add_option("--model", flags->model, "Truths of one model; without it all");
  verb->add_option("--sha256", flags->sha256,
                   "Truths of what one file predicted, by the beginning of its hash");
  verb->add_option("--out", flags->out, "CSV to write; -: standard output")->required();
  verb->add_flag("--json", flags->json, "Print the number of rows as JSON");
  verb->callback([flags] { run_export_state(*flags); });
}

}  // namespace fcp::cli

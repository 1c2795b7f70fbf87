// fcp state: what a server has stored.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/data/csv_writer.h"

#include "apps/cli/truths.h"
#include "apps/cli/verbs.h"
#include "apps/report/format.h"
#include "apps/server/feedback_store.h"

namespace fcp::cli {
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

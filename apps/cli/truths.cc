#include "apps/cli/truths.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/calibrate/tensor_rows.h"
#include "fcp/evaluate/replay.h"
#include "fcp/predictor/artifact_facts.h"
#include "fcp/predictor/predictor_core.h"

#include "apps/cli/common.h"
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

}  // namespace fcp::cli

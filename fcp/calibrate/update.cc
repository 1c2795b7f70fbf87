#include "fcp/calibrate/update.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/base/text_table.h"
#include "fcp/calibrate/collect_scores.h"
#include "fcp/conformal/score_order.h"
#include "fcp/methods/options.h"
#include "fcp/predictor/levels.h"

namespace fcp {
namespace {

constexpr char kHistory[] = "history";
constexpr char kVersion[] = "version";

// The new rows that are not calibrated on.
RowMask old_rows(RowSource& source, const UpdateOptions& options, size_t batch) {
  if (options.window == 0 && options.since.empty()) return {};
  const size_t rows = count_rows(source, batch);
  RowMask mask(rows, false);
  if (options.window > 0) {
    for (size_t i = 0; i + options.window < rows; ++i) mask[i] = true;
    return mask;
  }
  if (options.times.size() != rows) {
    fail("time: names ", options.times.size(), " rows, the data has ", rows);
  }
  check_times({options.since});
  check_times(options.times);
  for (size_t i = 0; i < rows; ++i) mask[i] = is_earlier(options.times[i], options.since);
  if (std::find(mask.begin(), mask.end(), false) == mask.end()) {
    fail_option("since", "no row is at or after ", options.since, "; the last is at ",
                rows == 0 ? "no time" : options.times.back());
  }
  return mask;
}

CalibrationPlan plan_of(const CalibrationArtifact& artifact) {
  CalibrationPlan plan;
  plan.network = artifact.network;
  plan.method = artifact.method;
  plan.ratio = artifact.ratio;
  return plan;
}

// Which of the old rows stay, ascending.
std::vector<size_t> kept_rows(const CalibrationArtifact& old, const UpdateOptions& options,
                              size_t fresh, uint64_t seed) {
  if (!options.since.empty()) return {};
  const size_t rows = old.rows.count();
  std::vector<size_t> kept(rows);
  std::iota(kept.begin(), kept.end(), size_t{0});
  if (options.window == 0) return kept;
  kept = Random(seed).permutation(rows);
  kept.resize(std::min(rows, options.window - std::min(options.window, fresh)));
  std::sort(kept.begin(), kept.end());
  return kept;
}

// log E exp(λ min(X, t − X)), X the number of new ones among t rows of N, M of which are new.
double log_mean_exponential(double lambda, size_t tied, size_t rows, size_t fresh) {
  const auto log_choose = [](size_t n, size_t k) {
    const auto log_factorial = [](size_t i) { return std::lgamma(static_cast<double>(i) + 1); };
    return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
  };
  const size_t kept = rows - fresh, least = tied > kept ? tied - kept : 0;
  const double all = log_choose(rows, tied);
  std::vector<double> exponents;
  for (size_t x = least; x <= std::min(tied, fresh); ++x) {
    const auto shared = static_cast<double>(std::min(x, tied - x));
    exponents.push_back(log_choose(fresh, x) + log_choose(kept, tied - x) - all + lambda * shared);
  }
  const double largest = *std::max_element(exponents.begin(), exponents.end());
  double sum = 0;  // relative to the largest, so that neither end of the range is left
  for (const double exponent : exponents) sum += std::exp(exponent - largest);
  return largest + std::log(sum);
}

// An Error where new rows are among the old ones that stay.
void check_apart(const CalibrationArtifact& old, const std::vector<size_t>& kept,
                 const CalibrationScores& fresh, const UpdateOptions& options) {
  constexpr double kFalseAlarm = 1e-6;
  if (kept.empty()) return;
  const std::vector<double> known = side_scores(old.rows, 0);
  std::vector<double> staying;
  for (const size_t row : kept) staying.push_back(known[row]);
  const Overlap found = overlap_chance(staying, side_scores(fresh, 0));
  if (found.chance > kFalseAlarm) return;
  fail(options.data_name, ": the predictor is calibrated on these rows already, or on ", found.rows,
       " of them: their scores are among its own; give only rows that are new, or replace the old ",
       "ones with since");
}

void add_old_rows(const CalibrationArtifact& old, const std::vector<size_t>& kept,
                  CalibrationArtifact& made) {
  if (kept.empty()) return;
  const auto sides = static_cast<size_t>(old.rows.sides);
  std::vector<int64_t> indices;
  for (const size_t row : kept) {
    const auto first = old.rows.scores.begin() + static_cast<std::ptrdiff_t>(row * sides);
    made.rows.scores.insert(made.rows.scores.end(), first,
                            first + static_cast<std::ptrdiff_t>(sides));
    if (!old.rows.groups.empty()) made.rows.groups.push_back(old.rows.groups[row]);
    if (!old.rows.weights.empty()) made.rows.weights.push_back(old.rows.weights[row]);
    if (row < old.baseline.size()) made.baseline.push_back(old.baseline[row]);
    indices.push_back(static_cast<int64_t>(row));
  }
  if (old.rows.features.defined()) {
    made.rows.features =
        torch::cat({made.rows.features, old.rows.features.index_select(0, torch::tensor(indices))});
  }
  sort_scores(made.baseline);
  if (old.method.calibration.traits().one_radius) sort_sides(made.rows);
}

std::string fact(const CalibrationArtifact& artifact, const std::string& key,
                 const std::string& otherwise) {
  const auto found = artifact.provenance.find(key);
  return found == artifact.provenance.end() ? otherwise : found->second;
}

std::string first_version(const CalibrationArtifact& old) {
  return concat("1: ", old.rows.count(), " rows of ", fact(old, "calibration data", "unknown"),
                " (", fact(old, kDataHash, "no hash"), ")");
}

void check_new(const CalibrationArtifact& old, const std::string& history, const std::string& fresh,
               const UpdateOptions& options) {
  if (fresh != fact(old, kDataHash, "") && history.find(fresh) == std::string::npos) return;
  fail(options.data_name, ": the predictor is calibrated on these rows already");
}

void chain_provenance(const CalibrationArtifact& old, const UpdateOptions& options, size_t fresh,
                      size_t kept, CalibrationArtifact& made) {
  auto& facts = made.provenance;
  const std::string history = fact(old, kHistory, first_version(old));
  check_new(old, history, facts[kDataHash], options);
  size_t version = 1;
  const std::string text = fact(old, kVersion, "1");
  std::from_chars(text.data(), text.data() + text.size(), version);
  ++version;
  const std::string how = options.window > 0       ? concat("window of ", options.window)
                          : !options.since.empty() ? concat("since ", options.since)
                                                   : "merged";
  facts[kVersion] = std::to_string(version);
  facts[kHistory] = concat(history, "; ", version, ": ", how, ", ", fresh, " rows of ",
                           options.data_name, " (", facts[kDataHash], ") and ", kept, " before");
  facts["calibration rows"] = std::to_string(made.rows.count());
  facts.erase("rows left out for choices");
  if (!options.file_sha256.empty()) facts["updated from sha256"] = options.file_sha256;
  facts.insert(old.provenance.begin(), old.provenance.end());  // what is not said anew
  made.tried = old.tried;
}

}  // namespace

Overlap overlap_chance(std::span<const double> old_scores, std::span<const double> new_scores) {
  struct Counts {
    size_t before = 0, now = 0;
  };
  std::map<float, Counts> counts;
  for (const double score : old_scores) ++counts[static_cast<float>(score)].before;
  for (const double score : new_scores) ++counts[static_cast<float>(score)].now;
  Overlap found;
  std::map<size_t, size_t> tied;  // how many scores occur so often
  for (const auto& [score, count] : counts) {
    found.rows += std::min(count.before, count.now);
    if (count.before + count.now > 1) ++tied[count.before + count.now];
  }
  const size_t rows = old_scores.size() + new_scores.size();
  for (double lambda = 1.0 / 64; lambda <= 64; lambda *= 2) {
    double exponent = -lambda * static_cast<double>(found.rows);
    for (const auto& [times, scores] : tied) {
      exponent += static_cast<double>(scores) *
                  log_mean_exponential(lambda, times, rows, new_scores.size());
    }
    found.chance = std::min(found.chance, std::exp(exponent));
  }
  return found;
}

CalibrateResult update(const CalibrationArtifact& artifact, RowSource& source,
                       const UpdateOptions& options, const Context& context) {
  if (options.window > 0 && !options.since.empty()) {
    fail_option("window", "and since exclude each other");
  }
  if (artifact.method.calibration.traits().made_by_fit) {
    fail(
        "the predictor is calibrated by its training rows (cross), which new rows cannot join; "
        "run ",
        "fcp calibrate on it with the score auto and rows of their own");
  }
  const bool keeps = options.since.empty();
  if (!artifact.rows.levels.empty() && keeps) {
    fail_option("since", "the file keeps the scores of some levels alone, with which new ones ",
                "cannot be merged; only since replaces them");
  }
  if (!artifact.chances.empty() && keeps) {
    fail_option("since",
                "the file keeps of its calibrated probabilities the steps alone, which new ",
                "rows cannot join; only since replaces them, or run fcp calibrate on all rows");
  }
  CalibrationPlan plan = plan_of(artifact);
  plan.left_out = old_rows(source, options, context.batch_for(source));
  CalibrateSettings settings;
  settings.data_name = options.data_name;
  settings.facts = options.facts;
  settings.levels = artifact.rows.levels;
  settings.provenance["calibration data"] = options.data_name;
  CalibrateResult result =
      std::move(*begin_calibration(plan, source, settings, context, {}).result);
  const size_t fresh = result.artifact.rows.count();
  const std::vector<size_t> kept = kept_rows(artifact, options, fresh, context.seed);
  check_apart(artifact, kept, result.artifact.rows, options);
  add_old_rows(artifact, kept, result.artifact);
  result.artifact.rounding = joined(artifact.rounding, result.artifact.rounding);
  chain_provenance(artifact, options, fresh, kept.size(), result.artifact);
  make_calibration(result.artifact.method.calibration,
                   result.artifact.rows);  // complains of misfits
  return result;
}

MethodRequest recalibration_request(const CalibrationArtifact& artifact, const MethodRequest& asked,
                                    const std::set<std::string>& told) {
  Method method = artifact.method;
  // Other rows than those that train a network cannot calibrate it by cross-fitting.
  if (method.calibration.traits().made_by_fit) method.calibration = {};
  const MethodRequest kept = request_of(method);
  const bool other_score = told.contains("score") && asked.score != kept.score;
  const bool other_calibration =
      told.contains("calibration") && asked.calibration != kept.calibration;
  MethodRequest request;
  for (const Option& option : option_table()) {
    if (!option.get) continue;  // of what is asked for alone
    const bool dropped =
        option.name != "cut" && (option.of_calibration ? other_calibration : other_score);
    if (!dropped && applies(option, kept)) request.put(option.name, kept.value(option.name));
  }
  for (const Option& option : option_table()) {
    if (told.contains(option.name)) request.put(option.name, asked.value(option.name));
  }
  const bool at_a_cut = request.score != kAutoScore && uses_features(request.score);
  if (!at_a_cut && !told.contains("cut")) request.cut = DefaultCut{};
  // Kept beside the table; it fits the features of this cut alone.
  if (!other_score && !told.contains("cut")) request.scale = kept.scale;
  request.memory = asked.memory;
  for (const char* name : {"seed", "selection", "objective"}) {
    request.put(name, asked.value(name));
  }
  return request;
}

}  // namespace fcp

#include "fcp/predictor/provenance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"
#include "fcp/base/parallel.h"
#include "fcp/base/special_numbers.h"
#include "fcp/base/text_table.h"
#include "fcp/methods/options.h"
#include "fcp/predictor/context.h"

namespace fcp {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kComparedBy = {kByIntervalScore, kByLength, "size", "set-score",
                                    kJointVolume};  // as in ChosenBy

// The numbers of `count` rows from `first` on.
std::string_view bytes_of(const Array& rows, size_t first, size_t count) {
  const size_t width = rows.empty() ? 0 : rows.row_size();
  return {reinterpret_cast<const char*>(rows.values.data() + first * width),
          count * width * sizeof(float)};
}

// A candidate is never −∞ or NaN.
Json number_json(double value) { return std::isinf(value) ? Json("inf") : Json(value); }

double json_number(const Json& value) { return value == "inf" ? kInfinity : value.get<double>(); }

}  // namespace

std::string hash_rows(const Rows& batch) {
  const size_t rows = batch.x.rows();
  const size_t block = usual_batch(batch.x.empty() ? 1 : batch.x.row_size());
  std::vector<std::string> hashes(std::max<size_t>(1, (rows + block - 1) / block));
  parallel_rows(hashes.size(), 1, static_cast<size_t>(at::get_num_threads()),
                [&](size_t begin, size_t end) {
                  for (size_t i = begin; i < end; ++i) {
                    const size_t count = std::min(block, rows - i * block);
                    Sha256 hash;
                    hash.add(bytes_of(batch.x, i * block, count));
                    hash.add(bytes_of(batch.y, i * block, count));
                    hashes[i] = hash.hex();
                  }
                });
  std::string all;
  for (const std::string& hash : hashes) all += hash;
  return all;
}

std::string scores_json(const ScoresTried& scores) {
  Json json{{"by", kComparedBy[static_cast<size_t>(scores.by)]}, {"chosen", scores.chosen}};
  for (const ScoreTried& one : scores.candidates) {
    Json& entry = json["scores"].emplace_back(Json{{"score", one.name}});
    if (!one.skipped.empty()) {
      entry["skipped"] = one.skipped;
      continue;
    }
    if (!one.cut.empty()) entry["cut"] = one.cut;
    entry["length"] = number_json(one.length);
    entry["interval_score"] = number_json(one.interval_score);
    if (scores.by == ChosenBy::kVolume) entry["volume"] = number_json(one.volume);
    entry["standard_error"] = number_json(one.standard_error);
    entry["coverage"] = one.coverage;
  }
  return json.dump();
}

ScoresTried read_scores_json(const std::string& text) {
  const Json json = Json::parse(text);
  ScoresTried scores;
  const auto by = std::find(kComparedBy.begin(), kComparedBy.end(), json.at("by"));
  if (by == kComparedBy.end()) fail("its candidates were compared by ", json.at("by").dump());
  scores.by = static_cast<ChosenBy>(by - kComparedBy.begin());
  scores.chosen = json.at("chosen");
  for (const Json& entry : json.at("scores")) {
    ScoreTried& one = scores.candidates.emplace_back();
    one.name = entry.at("score");
    one.skipped = entry.value("skipped", "");
    if (!one.skipped.empty()) continue;
    one.cut = entry.value("cut", "");
    one.length = json_number(entry.at("length"));
    one.interval_score = json_number(entry.at("interval_score"));
    if (scores.by == ChosenBy::kVolume) one.volume = json_number(entry.at("volume"));
    one.standard_error = json_number(entry.at("standard_error"));
    one.coverage = entry.at("coverage");
  }
  if (scores.chosen >= scores.candidates.size()) {
    fail("candidate ", scores.chosen, " was chosen of ", scores.candidates.size());
  }
  return scores;
}

std::string scores_text(const ScoresTried& scores) {
  std::string text;
  for (size_t i = 0; i < scores.candidates.size(); ++i) {
    const ScoreTried& one = scores.candidates[i];
    if (!one.skipped.empty()) continue;
    text += concat(text.empty() ? "" : ", ", one.name, ' ', format_number(scores.loss(one)),
                   i == scores.chosen ? " (chosen)" : "");
  }
  return text;
}

}  // namespace fcp

#include "apps/server/feedback_message.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

#include "apps/server/tensor_message.h"

namespace fcp {
namespace {

using FeedbackJson = nlohmann::json;

constexpr uint64_t kLargestRow = std::numeric_limits<int32_t>::max();

float truth_number(const FeedbackJson& value, const std::vector<std::string>& class_names,
                   const std::string& where) {
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    const auto found = std::find(class_names.begin(), class_names.end(), text);
    if (found == class_names.end()) {
      fail(where, ": found '", text.substr(0, 40), "', expected ",
           class_names.empty() ? "a number" : "a number or the name of a class");
    }
    return static_cast<float>(found - class_names.begin());
  }
  if (!value.is_number()) fail(where, ": its truth is not a number");
  const auto number = value.get<float>();
  if (!std::isfinite(number)) fail(where, ": its truth is not a finite number");
  return number;
}

TruthReport read_truth(const FeedbackJson& json, const std::vector<std::string>& class_names,
                       size_t place) {
  const std::string where = concat("feedback ", place, " (from 0)");
  if (!json.is_object()) fail(where, ": is not an object");
  TruthReport told;
  const auto id = json.find("id"), row = json.find("row"), truth = json.find("truth");
  if (id == json.end() || !id->is_string()) fail(where, ": has no text 'id'");
  told.id = id->get<std::string>();
  check_id(told.id);
  if (row != json.end()) {
    if (!row->is_number_unsigned()) fail(where, ": its row is not a number from 0 on");
    const auto number = row->get<uint64_t>();
    if (number > kLargestRow) {
      fail(where, ": its row is ", number, ", expected at most ", kLargestRow);
    }
    told.row = static_cast<int64_t>(number);
  }
  if (truth == json.end()) fail(where, ": has no 'truth'");
  if (!truth->is_array()) {
    told.truth.push_back(truth_number(*truth, class_names, where));
    return told;
  }
  for (const FeedbackJson& value : *truth) {
    told.truth.push_back(truth_number(value, class_names, where));
  }
  return told;
}

}  // namespace

std::vector<TruthReport> parse_feedback(std::string_view body,
                                        const std::vector<std::string>& class_names, size_t most) {
  // Depth: an object, a list, an object, a list.
  const auto shallow = [](int depth, FeedbackJson::parse_event_t, FeedbackJson&) {
    if (depth > 8) fail("the JSON is nested too deep");
    return true;
  };
  const FeedbackJson json = FeedbackJson::parse(body, shallow, false);
  if (json.is_discarded() || !json.is_object()) fail("the body is not a JSON object");
  const auto list = json.find("feedback");
  if (list == json.end() || !list->is_array() || list->empty()) fail("there is no list 'feedback'");
  if (list->size() > most) fail("found ", list->size(), " truths, at most ", most, " are taken");
  std::vector<TruthReport> told;
  for (const FeedbackJson& one : *list) told.push_back(read_truth(one, class_names, told.size()));
  return told;
}

std::string feedback_text(const std::vector<TruthReport>& told,
                          const std::vector<TruthResult>& results) {
  nlohmann::ordered_json json = {{"accepted", 0}, {"results", nlohmann::ordered_json::array()}};
  size_t accepted = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const TruthResult& result = results[i];
    nlohmann::ordered_json one = {
        {"id", told[i].id}, {"row", told[i].row}, {"status", result.status}};
    if (!result.error.empty()) one["error"] = result.error;
    if (result.status == "accepted") {
      ++accepted;
      if (!std::isnan(result.p_value)) one["p_value"] = result.p_value;
      one["covered"] = result.covered;
    }
    json["results"].push_back(std::move(one));
  }
  json["accepted"] = accepted;
  return json.dump(-1, ' ', false, FeedbackJson::error_handler_t::replace);
}

}  // namespace fcp

#include "apps/server/json_messages.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

#include "apps/server/tensor_message.h"

namespace fcp {
namespace {

using Json = nlohmann::json;

constexpr size_t kDeepest = 32;      // of all
constexpr size_t kDeepestData = 16;  // lists in lists of numbers

std::string shortened(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 40);
}

// Hears of each value as it is read. The library calls these functions by their names.
class RequestListener : public nlohmann::json_sax<Json> {
 public:
  explicit RequestListener(const TensorLimits& limits)
      : limits_(limits), most_values_(10'000 + 40 * limits.inputs) {}

  RequestJson take() { return std::move(found_); }

  bool null() override { return leaf(nullptr); }
  bool boolean(bool value) override { return leaf(value); }
  bool number_integer(number_integer_t value) override { return leaf(value); }
  bool number_unsigned(number_unsigned_t value) override { return leaf(value); }
  bool number_float(number_float_t value, const string_t&) override { return leaf(value); }
  bool string(string_t& value) override { return leaf(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override {
    if (data_ != nullptr) fail(where(), ": found an object among its data, expected a number");
    return open(Json::object());
  }
  bool start_array(size_t) override {
    if (data_ != nullptr) {
      if (++depth_ > kDeepestData) fail(where(), ": its data is nested too deep");
      return true;
    }
    const bool is_data = open_.size() == 3 && open_[1] == inputs_ && key_ == "data";
    if (is_data) return begin_data();
    const bool is_inputs = open_.size() == 1 && key_ == "inputs";
    open(Json::array());
    if (is_inputs) inputs_ = open_.back();
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override {
    if (data_ == nullptr) return close();
    if (depth_ == 0) {
      data_ = nullptr;
    } else {
      --depth_;
    }
    return true;
  }
  bool key(string_t& name) override {
    key_ = std::move(name);
    if (open_.back()->contains(key_)) {
      fail("the JSON has the key '", key_.substr(0, 40), "' twice in one object");
    }
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool begin_data() {
    const size_t input = inputs_->size() - 1;
    const auto [entry, fresh] = found_.data.try_emplace(input);
    if (!fresh) fail(where(), ": has 'data' twice");
    data_ = &entry->second;
    depth_ = 0;
    const auto type = open_[2]->find("datatype");
    const bool known = type != open_[2]->end() && type->is_string();
    const bool text = known && type->get_ref<const std::string&>() == "BYTES";
    keep_numbers_ = !text;
    keep_texts_ = !known || text;
    return true;
  }

  // As messages name the input whose data this is.
  std::string where() const {
    const auto name = open_[2]->find("name");
    if (name == open_[2]->end() || !name->is_string()) return "an input";
    return concat("input '", name->get_ref<const std::string&>().substr(0, 80), "'");
  }

  template <typename Value>
  bool leaf(Value&& value) {
    if (data_ != nullptr) return data_leaf(Json(std::forward<Value>(value)));
    put(Json(std::forward<Value>(value)));
    return true;
  }

  bool data_leaf(const Json& value) {
    if (++data_->count > limits_.values) {
      fail(where(), ": found more than ", limits_.values, " values");
    }
    const bool number = value.is_number() || value.is_boolean() || value.is_null();
    const bool text = !value.is_boolean();
    if (!number && data_->no_number.empty()) data_->no_number = shortened(value);
    if (!text && data_->no_text.empty()) data_->no_text = shortened(value);
    if (keep_numbers_) data_->numbers.push_back(number_of(value));
    if (keep_texts_) data_->texts.push_back(text_of(value));
    return true;
  }

  static double number_of(const Json& value) {
    if (value.is_number()) return value.get<double>();
    if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
    return std::numeric_limits<double>::quiet_NaN();
  }
  static std::string text_of(const Json& value) {
    if (value.is_string()) return value.get_ref<const std::string&>();
    return value.is_null() ? "" : value.dump();
  }

  // The value in the object or list that is open; its place stays while it is open itself.
  Json* put(Json value) {
    if (++values_ > most_values_) fail("the JSON has too many values besides data");
    if (open_.empty()) return &(found_.json = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool open(Json value) {
    if (open_.size() >= kDeepest) fail("the JSON is nested too deep");
    open_.push_back(put(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const TensorLimits& limits_;
  size_t most_values_;
  RequestJson found_;
  std::vector<Json*> open_;       // objects and lists, the outermost first
  const Json* inputs_ = nullptr;  // the list of inputs, once it has begun
  std::string key_;
  size_t values_ = 0;
  JsonData* data_ = nullptr;  // that is being read
  size_t depth_ = 0;          // of lists in it
  bool keep_numbers_ = false, keep_texts_ = false;
};

}  // namespace

RequestJson parse_request_json(std::string_view text, const TensorLimits& limits) {
  RequestListener listener(limits);
  const bool whole = Json::sax_parse(text.begin(), text.end(), &listener);
  RequestJson found = listener.take();
  if (!whole || !found.json.is_object()) fail("the body is not a JSON object");
  return found;
}

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

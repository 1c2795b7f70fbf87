// Answers of the C++ API to questions on stdin, for the test that compares all interfaces. A JSON
// list of questions in, a list of answers out; numbers as hexadecimal text, which keeps their bits.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <fcp/fcp.h>
#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;

Json texts(std::span<const double> numbers) {
  Json list = Json::array();
  for (const double number : numbers) {
    char text[64];
    std::snprintf(text, sizeof text, "%a", number);
    list.push_back(text);
  }
  return list;
}

fcp::Batch batch_of(const fcp::Predictor& predictor, const Json& question) {
  const fcp::RowInfo info{.groups = question.at("groups"), .weights = question.at("weights")};
  const Json& columns = question.at("columns");
  if (!columns.empty()) {
    std::vector<fcp::Record> rows;
    for (const Json& cells : question.at("cells")) {
      fcp::Record& row = rows.emplace_back();
      for (size_t i = 0; i < columns.size(); ++i) row[columns[i]] = cells[i];
    }
    return predictor.schema().encode(rows, info);
  }
  std::vector<fcp::NamedValues> values;
  for (const auto& [name, tensor] : question.at("inputs").items()) {
    std::vector<double> numbers;
    for (const Json& number : tensor.at("data")) {
      numbers.push_back(std::stod(number.get<std::string>()));
    }
    values.push_back({name, numbers, tensor.at("shape")});
  }
  return predictor.schema().encode(values, info);
}

// Of each row and output the ends of all parts.
Json parts_of(const fcp::Answer& answer, size_t level) {
  Json regions = Json::array();
  for (size_t i = 0; i < answer.rows() * answer.outputs(); ++i) {
    std::vector<double> ends;
    for (const fcp::Interval& part :
         answer.parts(i / answer.outputs(), i % answer.outputs(), level)) {
      ends.insert(ends.end(), {part.lower, part.upper});
    }
    regions.push_back(texts(ends));
  }
  return regions;
}

Json answer_of(const Json& question) {
  const auto predictor = fcp::Predictor::load(question.at("model"));
  std::vector<fcp::Level> levels;
  for (const std::string text : question.at("levels")) levels.push_back(fcp::Level::parse(text));
  const fcp::Batch batch = batch_of(predictor, question);
  const fcp::Answer answer = predictor.predict(batch, levels);
  Json told = {
      {"prediction", texts(answer.points())}, {"regions", Json::array()}, {"flags", batch.flags()}};
  for (size_t level = 0; level < levels.size(); ++level) {
    if (!predictor.predicts_labels()) {
      told["regions"].push_back({texts(answer.lower(level)), texts(answer.upper(level))});
      told["parts"].push_back(parts_of(answer, level));
      continue;
    }
    Json members = Json::array();
    for (size_t row = 0; row < answer.rows(); ++row) {
      for (size_t label = 0; label < answer.classes(); ++label) {
        members.push_back(answer.in_set(row, label, level));
      }
    }
    told["regions"].push_back(members);
  }
  return told;
}

}  // namespace

int main() {
  Json answers = Json::array();
  for (const Json& question : Json::parse(std::cin)) {
    try {
      answers.push_back(answer_of(question));
    } catch (const fcp::Error& error) {
      answers.push_back({{"error", error.what()}});
    }
  }
  std::cout << answers << '\n';
}

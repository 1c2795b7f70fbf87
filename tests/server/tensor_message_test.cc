#include "apps/server/tensor_message.h"

#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

#include "apps/server/json_messages.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Work>
std::string complaint_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string request_complaint(const std::string& body, std::optional<size_t> head = {}) {
  return complaint_of([&] { parse_tensor_request(body, head, {.rows = 4, .inputs = 2}); });
}

TEST(TensorRequest, ReadsJson) {
  const TensorRequest request = parse_tensor_request(
      R"({"id": "7", "parameters": {"alpha": 0.05}, "inputs": [
            {"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [[1, 2], [3, null]]},
            {"name": "c", "shape": [2], "datatype": "BYTES", "data": ["a", 5]}],
          "outputs": [{"name": "lower", "parameters": {"binary_data": true}}, {"name": "upper"}]})",
      {});
  EXPECT_EQ(request.id, "7");
  EXPECT_EQ(request.alpha, "0.05");
  const auto& numbers = std::get<std::vector<double>>(request.inputs[0].values);
  EXPECT_EQ(numbers[2], 3);
  EXPECT_TRUE(std::isnan(numbers[3]));
  EXPECT_THAT(std::get<std::vector<std::string>>(request.inputs[1].values), ElementsAre("a", "5"));
  ASSERT_EQ(request.outputs->size(), 2u);
  EXPECT_TRUE((*request.outputs)[0].binary);
  EXPECT_FALSE((*request.outputs)[1].binary);
}

TEST(TensorRequest, ReadsWhatIsAskedBesideRegions) {
  const auto with = [](const std::string& parameters) {
    return R"({"parameters": )" + parameters +
           R"(, "inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}]})";
  };
  const TensorRequest request = parse_tensor_request(
      with(R"({"quantiles": "0.05,0.5", "above": 30, "between": "10:30", "probabilities": true})"),
      {});
  EXPECT_THAT(request.quantiles, ElementsAre("0.05", "0.5"));
  EXPECT_THAT(request.above, ElementsAre("30"));
  EXPECT_THAT(request.between, ElementsAre("10:30"));
  EXPECT_TRUE(request.below.empty());
  EXPECT_TRUE(request.probabilities);
  EXPECT_THAT(request_complaint(with(R"({"quantiles": [0.5]})")),
              HasSubstr("the parameter 'quantiles' is [0.5], expected a number, or text"));
  EXPECT_THAT(request_complaint(with(R"({"probabilities": "yes"})")),
              HasSubstr("'probabilities' is not true or false"));
  EXPECT_THAT(request_complaint(with("{\"above\": \"" + std::string(200, ',') + "\"}")),
              HasSubstr("more than 100 numbers"));
}

TEST(TensorRequest, ReadsBytes) {
  const std::string head =
      R"({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": )"
      R"({"binary_data_size": 8}}, {"name": "c", "shape": [2], "datatype": "BYTES", )"
      R"("parameters": {"binary_data_size": 11}}], "parameters": {"binary_data_output": true}})";
  const float x[] = {1.5f, -2};
  std::string body = head;
  body.append(reinterpret_cast<const char*>(x), sizeof x);
  body += std::string("\x03\0\0\0cat", 7) + std::string(4, '\0');
  const TensorRequest request = parse_tensor_request(body, head.size());
  EXPECT_THAT(std::get<std::vector<double>>(request.inputs[0].values), ElementsAre(1.5, -2));
  EXPECT_THAT(std::get<std::vector<std::string>>(request.inputs[1].values), ElementsAre("cat", ""));
  EXPECT_TRUE(request.binary_outputs);
  EXPECT_THAT(request_complaint(body + "x", head.size()), HasSubstr("1 bytes after the last"));
  EXPECT_THAT(request_complaint(body.substr(0, head.size() + 3), head.size()),
              HasSubstr("ends before its 8 bytes"));
  EXPECT_THAT(request_complaint(body, body.size() + 1), HasSubstr("the body has"));
}

TEST(TensorRequest, SaysWhatIsWrong) {
  const auto input = [](const std::string& more) {
    return R"({"inputs": [{"name": "x", )" + more + "}]}";
  };
  EXPECT_THAT(request_complaint("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(request_complaint("{"), HasSubstr("not a JSON object"));
  EXPECT_THAT(request_complaint(std::string(100, '[')), HasSubstr("nested too deep"));
  EXPECT_THAT(request_complaint("{}"), HasSubstr("no 'inputs'"));
  EXPECT_THAT(request_complaint(input(R"("datatype": "FP8")")), HasSubstr("'FP8'"));
  EXPECT_THAT(request_complaint(input(R"("datatype": "FP32")")), HasSubstr("no 'shape'"));
  EXPECT_THAT(request_complaint(input(R"("datatype": "FP32", "shape": [1, 2], "data": [1])")),
              HasSubstr("found 1 values, its shape has 2"));
  EXPECT_THAT(request_complaint(input(R"("datatype": "FP32", "shape": [-1], "data": [])")),
              HasSubstr("shape is not one"));
  EXPECT_THAT(
      request_complaint(input(R"("datatype": "FP32", "shape": [99999, 99999, 9], "data": [])")),
      HasSubstr("too large"));
  EXPECT_THAT(request_complaint(input(R"("datatype": "FP32", "shape": [5], "data": [1,1,1,1,1])")),
              HasSubstr("at most 4"));
  EXPECT_THAT(request_complaint(input(R"("datatype": "FP32", "shape": [1], "data": ["a"])")),
              HasSubstr("expected a number"));
  // A thousand names of one output would be a thousand copies of it.
  EXPECT_THAT(request_complaint(
                  R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}],
                      "outputs": [{"name": "lower"}, {"name": "upper"}, {"name": "lower"}]})"),
              HasSubstr("output 'lower' is named twice"));
  EXPECT_THAT(request_complaint(
                  R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]},
                                 {"name": "x", "datatype": "FP32", "shape": [1], "data": [2]}]})"),
              HasSubstr("input 'x' is given twice"));
}

// The order of keys is free; a number is text where the datatype says so, as the client wrote it.
TEST(TensorRequest, ReadsDataBeforeItsType) {
  const TensorRequest request = parse_tensor_request(
      R"({"inputs": [{"data": [1, null, true, -2.5], "name": "x", "shape": [4], "datatype": "FP32"},
                     {"data": [7, "a", 0.1, null], "name": "c", "datatype": "BYTES",
                      "shape": [4]}]})",
      {});
  const auto& numbers = std::get<std::vector<double>>(request.inputs[0].values);
  EXPECT_EQ(numbers[0], 1);
  EXPECT_TRUE(std::isnan(numbers[1]));
  EXPECT_EQ(numbers[2], 1);
  EXPECT_EQ(numbers[3], -2.5);
  EXPECT_THAT(std::get<std::vector<std::string>>(request.inputs[1].values),
              ElementsAre("7", "a", "0.1", ""));
}

TEST(TensorRequest, RefusesParametersThatNobodyKnows) {
  const auto with = [](const std::string& parameters, const std::string& of_input = "{}") {
    return concat(R"({"parameters": )", parameters, R"(, "inputs": [{"name": "x", "shape": [1], )",
                  R"("datatype": "FP32", "data": [1], "parameters": )", of_input, "}]}");
  };
  EXPECT_EQ(request_complaint(with("{}")), "");
  EXPECT_THAT(
      request_complaint(with(R"({"alfa": 0.1})")),
      HasSubstr("the parameter 'alfa' is not known; here there are 'alpha', "
                "'binary_data_output', 'timeout', 'quantiles', 'above', 'below', 'between', "
                "'probabilities', 'flags'"));
  EXPECT_THAT(request_complaint(with("{}", R"({"binary_data_size": 4})")),
              HasSubstr("has 'data' and binary_data_size"));
  EXPECT_THAT(request_complaint(with("{}", R"({"shared_memory_region": "a"})")),
              HasSubstr("'shared_memory_region' is not known"));
  EXPECT_THAT(request_complaint(with("[]")), HasSubstr("'parameters' is not an object"));
  EXPECT_EQ(parse_tensor_request(with(R"({"timeout": 500000})"), {}).timeout, 0.5);
  for (const char* timeout : {"0", "-1", "0.5", "\"1\""}) {
    EXPECT_THAT(request_complaint(with(concat(R"({"timeout": )", timeout, "}"))),
                HasSubstr("whole number of microseconds above 0"));
  }
}

// What is refused is refused before it takes memory.
TEST(TensorRequest, KeepsToItsLimits) {
  const auto complaint = [](const std::string& body) {
    return complaint_of([&] { parse_tensor_request(body, {}, {.inputs = 2, .values = 3}); });
  };
  const auto input = [](const std::string& data) {
    return concat(R"({"inputs": [{"name": "x", "shape": [4], "datatype": "FP32", "data": )", data);
  };
  EXPECT_THAT(complaint(input("[[1, 2], [3, 4")), HasSubstr("input 'x': found more than 3 values"));
  EXPECT_THAT(complaint(input("[{")), HasSubstr("found an object among its data"));
  EXPECT_THAT(complaint(input(std::string(20, '['))), HasSubstr("its data is nested too deep"));
  EXPECT_THAT(complaint(R"({"id": "a", "id": "b"})"), HasSubstr("has the key 'id' twice"));
  EXPECT_THAT(complaint(input("[1], \"data\": [2]")), HasSubstr("has 'data' twice"));
  std::string many = R"({"x": [0)";
  for (int i = 0; i < 20'000; ++i) many += ",0";
  EXPECT_THAT(complaint(many + "]}"), HasSubstr("too many values besides data"));
}

// Ids are keys of a database.
TEST(TensorRequest, RefusesIdsThatCannotBeKept) {
  const auto with = [](const std::string& id) {
    return concat(R"({"id": ")", id, R"(", "inputs": [{"name": "x", "shape": [1], "datatype": )",
                  R"("FP32", "data": [1]}]})");
  };
  EXPECT_EQ(request_complaint(with(std::string(512, 'a'))), "");
  EXPECT_THAT(request_complaint(with(std::string(513, 'a'))), HasSubstr("513 bytes"));
  EXPECT_THAT(request_complaint(with("a\\u0000b")), HasSubstr("NUL"));
  EXPECT_THAT(complaint_of(
                  [] { parse_feedback(R"({"feedback": [{"id": "\u0000", "truth": 1}]})", {}, 9); }),
              HasSubstr("NUL"));
}

TEST(TensorResponse, WritesJsonAndBytes) {
  const float far = std::numeric_limits<float>::infinity();
  TensorResponse response{"m",
                          "2",
                          "7",
                          {{"lower", {2, 1}, std::vector<float>{-far, 0.1f}},
                           {"in_set", {1, 2}, std::vector<uint8_t>{1, 0}, true}}};
  const TensorText text = tensor_response_text(response);
  ASSERT_TRUE(text.header_size);
  const auto json = nlohmann::json::parse(text.body.substr(0, *text.header_size));
  EXPECT_EQ(json["model_version"], "2");
  EXPECT_EQ(json["outputs"][0]["data"][0], "-inf");
  EXPECT_EQ(json["outputs"][0]["data"][1].get<float>(), 0.1f);
  EXPECT_EQ(json["outputs"][1]["datatype"], "BOOL");
  EXPECT_EQ(json["outputs"][1]["parameters"]["binary_data_size"], 2);
  EXPECT_EQ(text.body.substr(*text.header_size), std::string("\x01\0", 2));
  response.outputs.pop_back();
  EXPECT_FALSE(tensor_response_text(response).header_size);
}

TEST(Feedback, ReadsTruths) {
  const auto told = parse_feedback(
      R"({"feedback": [{"id": "a", "truth": 2.5}, {"id": "b", "row": 3, "truth": [1, 2]},
                       {"id": "c", "truth": "dog"}]})",
      {"cat", "dog"}, 10);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_THAT(told[0].truth, ElementsAre(2.5f));
  EXPECT_EQ(told[1].row, 3);
  EXPECT_THAT(told[1].truth, ElementsAre(1, 2));
  EXPECT_THAT(told[2].truth, ElementsAre(1));
  const std::string text =
      feedback_text(told, {{.status = "accepted", .p_value = 0.5, .covered = true},
                           {.status = "duplicate"},
                           {.status = "wrong", .error = "why"}});
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["accepted"], 1);
  EXPECT_EQ(json["results"][1]["status"], "duplicate");
  EXPECT_EQ(json["results"][2]["error"], "why");
}

TEST(Feedback, SaysWhatIsWrong) {
  const auto complaint = [](const std::string& body) {
    return complaint_of([&] { parse_feedback(body, {}, 1); });
  };
  EXPECT_THAT(complaint("x"), HasSubstr("not a JSON object"));
  EXPECT_THAT(complaint("{\"a\":" + std::string(50, '[')), HasSubstr("nested too deep"));
  EXPECT_THAT(complaint("{}"), HasSubstr("no list 'feedback'"));
  EXPECT_THAT(complaint(R"({"feedback": [{"truth": 1}]})"), HasSubstr("no text 'id'"));
  EXPECT_THAT(complaint(R"({"feedback": [{"id": "a"}]})"), HasSubstr("no 'truth'"));
  EXPECT_THAT(complaint(R"({"feedback": [{"id": "a", "truth": "b"}]})"), HasSubstr("a number"));
  EXPECT_THAT(complaint(R"({"feedback": [{"id": "a", "truth": 1e99}]})"), HasSubstr("finite"));
  // 2^32 is not row 0.
  for (const char* row : {"4294967296", "2147483648", "18446744073709551615"}) {
    EXPECT_THAT(
        complaint(concat(R"({"feedback": [{"id": "a", "row": )", row, R"(, "truth": 1}]})")),
        HasSubstr(concat("its row is ", row, ", expected at most 2147483647")));
  }
  EXPECT_THAT(complaint(R"({"feedback": [1, 2]})"), HasSubstr("at most 1"));
}

}  // namespace
}  // namespace fcp

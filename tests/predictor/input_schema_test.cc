// Rows as records, numbers, named values and tensors: the same batch, or a refusal in one line.
#include "fcp/predictor/input_schema.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/data/columns.h"
#include "fcp/nn/graph/input_layout.h"

#include "tests/nn/graphs.h"

namespace fcp::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Two numbers, of which the second may be missing, and a city of two.
SchemaData table_schema() {
  Graph network = make_mlp({4, 3, 1});
  CsvEncoding encoding{.columns = {"km", "age", "city"}, .categories = {{}, {}, {"Ulm", "Bonn"}}};
  encoding.positions = {0, 1, 2};
  encoding.width = 4;
  encoding.means = {1, static_cast<float>(kNaN), 0};
  network.metadata[kEncodingKey] = encoding_text(encoding);
  return SchemaData(network);
}

// ids [N, 3] int64, scale [N, 2], flag [N] bool.
SchemaData several_schema() {
  const Graph network = make_several_inputs();
  return SchemaData(pack_inputs(network, layout_of(network.inputs, {{3}, {2}, {}})));
}

std::vector<NamedValues> several_values() {
  return {{"scale", std::vector<double>{0.5, 1, 2, 3}, {2, 2}},
          {"ids", std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3}},
          {"flag", std::vector<double>{0, 1}, {2}}};
}

TEST(InputSchema, RecordsAndColumnsAreOne) {
  const SchemaData schema = table_schema();
  EXPECT_THAT(schema.columns(), ElementsAre("km", "age", "city"));
  EXPECT_EQ(schema.row_size(), 4u);
  const std::vector<Record> records = {{{"km", "0.1"}, {"age", "7"}, {"city", "Bonn"}},
                                       {{"km", ""}, {"city", "Rome"}, {"more", "x"}}};
  const torch::Tensor wanted =
      torch::tensor({{0.1f, 7.f, 0.f, 1.f}, {1.f, static_cast<float>(kNaN), 0.f, 0.f}});
  const auto expect_wanted = [&](const BatchData& batch) {
    EXPECT_TRUE(torch::allclose(batch.x, wanted, 0, 0, /*equal_nan=*/true)) << batch.x;
  };
  expect_wanted(schema.encode(records, {}));
  expect_wanted(
      schema.encode(std::vector<NamedValues>{{"city", std::vector<std::string>{"Bonn", "Rome"}},
                                             {"age", std::vector<double>{7, kNaN}, {2, 1}},
                                             {"km", std::vector<double>{0.1, kNaN}, {2}}},
                    {}));
}

// As `fcp predict --flags` has them; numbers without a table have none.
TEST(InputSchema, CellsAreFlagged) {
  const SchemaData schema = table_schema();
  const BatchData batch =
      schema.encode(std::vector<NamedValues>{{"city", std::vector<std::string>{"Bonn", "Rome"}},
                                             {"age", std::vector<double>{7, kNaN}},
                                             {"km", std::vector<double>{0.1, 2}}},
                    {});
  ASSERT_NE(batch.cells, nullptr);
  EXPECT_THAT(batch.cells->missing, ElementsAre(0, 1, 0));
  EXPECT_THAT(batch.cells->unknown, ElementsAre(0, 0, 1));
  EXPECT_THAT(Access::batch(batch).flags(), ElementsAre("", "unseen:city"));
  const std::vector<float> numbers = {1, 2, 0, 1};
  EXPECT_TRUE(Access::batch(schema.encode(numbers, {})).flags().empty());
}

// An empty cell is a missing value; a column that is not there is a mistake, as in a file.
TEST(InputSchema, WholeColumnsAreAllThere) {
  const SchemaData schema = table_schema();
  const auto encode = [&](const std::vector<std::string>& names) {
    std::vector<NamedValues> values;
    for (const std::string& name : names) values.push_back({name, std::vector<double>{1, 2}});
    return [&schema, values] { (void)schema.encode(values, {}); };
  };
  encode({"km", "age", "city"})();
  EXPECT_THAT(encode({"age"}), ThrowsMessage<Error>("no column 'km', 'city'; the columns are 'km', "
                                                    "'age', 'city'"));
  EXPECT_THAT(
      encode({"km", "age", "town", "city"}),
      ThrowsMessage<Error>("there is no column 'town'; the columns are 'km', 'age', 'city'"));
}

TEST(InputSchema, ColumnsThatAreNotAreNamed) {
  const SchemaData schema = table_schema();
  const auto encode = [&](const Record& record) {
    const std::vector<Record> records = {{{"km", "1"}, {"age", "1"}, {"city", "Ulm"}}, record};
    return [&schema, records] { (void)schema.encode(records, {}); };
  };
  EXPECT_THAT(encode({{"km", "x"}}),
              ThrowsMessage<Error>("row 1 (from 0), column 'km': expected a number, found 'x'"));
  EXPECT_THAT([&] { (void)schema.encode(std::vector<Record>{}, {}); },
              ThrowsMessage<Error>("there are no rows"));
  const SchemaData nameless(make_mlp({2, 1}));
  EXPECT_THAT(
      [&] {
        (void)nameless.encode(std::vector<Record>{{{"a", "1"}}}, {});
      },
      ThrowsMessage<Error>(
          "the network does not say how its columns are called; pass numbers instead"));
}

TEST(InputSchema, InputsStandSideBySide) {
  const SchemaData schema = several_schema();
  ASSERT_EQ(schema.inputs().size(), 3u);
  EXPECT_EQ(schema.inputs()[0].type, "int64");
  EXPECT_EQ(schema.inputs()[2].type, "bool");
  EXPECT_THAT(schema.inputs()[1].shape, ElementsAre(2));
  EXPECT_EQ(schema.row_size(), 6u);
  const torch::Tensor wanted =
      torch::tensor({{1., 2., 3., 0.5, 1., 0.}, {4., 5., 6., 2., 3., 1.}}, torch::kDouble);
  const BatchData named = schema.encode(several_values(), {});
  EXPECT_TRUE(named.x.equal(wanted)) << named.x;
  const std::vector<float> flat = {1, 2, 3, 0.5, 1, 0, 4, 5, 6, 2, 3, 1};
  EXPECT_TRUE(schema.encode(flat, {}).x.equal(wanted));
  EXPECT_TRUE(schema.encode(wanted, {}).x.equal(wanted));
}

// Integers of more digits than float32 has reach their input whole.
TEST(InputSchema, LargeIntegersKeepTheirDigits) {
  const SchemaData schema = several_schema();
  std::vector<NamedValues> values = several_values();
  std::get<std::vector<double>>(values[1].values)[4] = 16777217;
  EXPECT_EQ(schema.encode(values, {}).x[1][1].item<double>(), 16777217);
}

TEST(InputSchema, NumbersThatDoNotFitAreNamed) {
  const SchemaData schema = several_schema();
  const auto with = [&](size_t input, size_t place, double value) {
    std::vector<NamedValues> values = several_values();
    std::get<std::vector<double>>(values[input].values)[place] = value;
    return [&schema, values] { (void)schema.encode(values, {}); };
  };
  EXPECT_THAT(with(1, 4, 0.5), ThrowsMessage<Error>("input 'ids': row 1, column 1 (both from 0): "
                                                    "found 0.5, expected a whole number"));
  EXPECT_THAT(with(0, 3, kNaN), ThrowsMessage<Error>("input 'scale': row 1, column 1 (both from "
                                                     "0): found NaN, expected a number"));
  EXPECT_THAT(with(0, 0, 1e300), ThrowsMessage<Error>(HasSubstr("beyond what single precision")));
  EXPECT_THAT(with(1, 0, 1e19), ThrowsMessage<Error>(HasSubstr("beyond what int64 holds")));
  EXPECT_THAT(with(1, 0, 0x1p53), ThrowsMessage<Error>(HasSubstr("more than the 53 bits")));
  EXPECT_THAT(with(2, 0, 2), ThrowsMessage<Error>(HasSubstr("beyond what bool holds")));
  const std::vector<float> flat = {1, 2, 3.5, 0.5, 1, 0};
  EXPECT_THAT([&] { (void)schema.encode(flat, {}); },
              ThrowsMessage<Error>("x: row 0 (from 0), ids[2]: found 3.5, expected a whole number "
                                   "of type int64 for the input 'ids'"));
}

TEST(InputSchema, InputsThatAreNotThereAreNamed) {
  const SchemaData schema = several_schema();
  const auto changed = [&](const std::function<void(std::vector<NamedValues>&)>& change) {
    std::vector<NamedValues> values = several_values();
    change(values);
    return [&schema, values] { (void)schema.encode(values, {}); };
  };
  EXPECT_THAT(changed([](auto& values) { values.pop_back(); }),
              ThrowsMessage<Error>("input 'flag' is missing"));
  EXPECT_THAT(changed([](auto& values) {
                values.push_back({"x", std::vector<double>{1, 2}});
              }),
              ThrowsMessage<Error>("found 4 inputs, expected 3"));
  EXPECT_THAT(changed([](auto& values) {
                values[1].shape = {3, 2};
              }),
              ThrowsMessage<Error>("input 'ids': found the shape [3, 2], expected [-1, 3] with "
                                   "at least one row"));
  EXPECT_THAT(changed([](auto& values) {
                values[1].shape = {2, 2};
              }),
              ThrowsMessage<Error>("input 'ids': found 6 values for the shape [2, 2]"));
  EXPECT_THAT(changed([](auto& values) { values[1].values = std::vector<std::string>(6, "1"); }),
              ThrowsMessage<Error>("input 'ids': found BYTES, expected numbers"));
  EXPECT_THAT(changed([](auto& values) { values.clear(); }),
              ThrowsMessage<Error>("there are no inputs"));
}

TEST(InputSchema, FlatNumbersAreWholeRows) {
  const SchemaData schema(make_mlp({3, 1}));
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  EXPECT_TRUE(schema.encode(x, {}).x.equal(torch::tensor(x).reshape({2, 3})));
  x[4] = static_cast<float>(kNaN);
  EXPECT_THAT([&] { (void)schema.encode(x, {}); },
              ThrowsMessage<Error>("x: row 1 (from 0) has NaN in column 1, expected a number"));
  x.pop_back();
  EXPECT_THAT([&] { (void)schema.encode(x, {}); },
              ThrowsMessage<Error>("x: found 5 numbers, expected rows of 3"));
}

// Sizes that the network leaves open are those of a tensor; spans cannot tell them.
TEST(InputSchema, OpenSizesNeedATensor) {
  Graph network = make_mlp({3, 1});
  network.inputs[0].shape[1] = kDynamic;
  const SchemaData schema(network);
  EXPECT_THAT(schema.inputs()[0].shape, ElementsAre(-1));
  EXPECT_EQ(schema.encode(torch::ones({2, 3}), {}).rows(), 2u);
  EXPECT_THAT([&] { (void)schema.row_size(); },
              ThrowsMessage<Error>("input 'x' has an open dimension besides the batch"));
  const std::vector<float> x = {1, 2, 3};
  EXPECT_THAT([&] { (void)schema.encode(x, {}); }, ThrowsMessage<Error>(HasSubstr("open")));
  EXPECT_THAT([&] { (void)schema.encode(torch::tensor(1.0f), {}); },
              ThrowsMessage<Error>("x: is a single number, expected rows"));
}

TEST(InputSchema, RecordsBringTheirGroups) {
  CalibrationArtifact artifact;
  artifact.network = make_mlp({1, 1});
  CsvEncoding encoding{.columns = {"km"}, .categories = {{}}};
  encoding.positions = {0};
  encoding.width = 2;
  artifact.network.metadata[kEncodingKey] = encoding_text(encoding);
  artifact.method.calibration = GroupedOptions{.group = "city"};
  artifact.rows.group_names = {"Ulm", "Bonn"};
  const SchemaData schema(artifact);
  std::vector<Record> records = {{{"km", "1"}, {"city", "Bonn"}}, {{"km", "2"}, {"city", "Rome"}}};
  EXPECT_THAT(schema.encode(records, {}).known.groups, ElementsAre(1, -1));
  EXPECT_THAT(schema.encode(records, {.groups = {"Ulm", "Ulm"}}).known.groups, ElementsAre(0, 0));
  records[1].erase("city");
  const BatchData without = schema.encode(records, {});
  EXPECT_THAT([&] { schema.check_known(without); },
              ThrowsMessage<Error>("row 1 (from 0): has no column 'city'; the predictor was "
                                   "calibrated by group: give the group of each row"));
  const std::vector<NamedValues> columns = {{"km", std::vector<double>{1, 2}},
                                            {"city", std::vector<std::string>{"Ulm", "Bonn"}}};
  EXPECT_THAT(schema.encode(columns, {}).known.groups, ElementsAre(0, 1));
}

TEST(SchemaData, GroupsAndWeightsComeAsValuesToo) {
  CalibrationArtifact artifact;
  artifact.network = make_mlp({2, 3, 1});
  artifact.method.calibration = GroupedOptions{.group = "sides.npy"};
  artifact.rows.group_names = {"0", "1"};
  const std::string x = artifact.network.inputs[0].name;
  const NamedValues rows{x, std::vector<double>{1, 2, 3, 4}, {2, 2}};
  const auto groups_of = [&](NamedValues groups) {
    const std::vector<NamedValues> values = {rows, std::move(groups)};
    return SchemaData(artifact).encode(values, {}).known.groups;
  };
  EXPECT_THAT(groups_of({"groups", std::vector<double>{1, 7}}), ElementsAre(1, -1));
  EXPECT_THAT(groups_of({"sides.npy", std::vector<std::string>{"0", "1"}}), ElementsAre(0, 1));
  EXPECT_THAT(
      [&] {
        groups_of({"groups", std::vector<double>{1}});
      },
      ThrowsMessage<Error>("groups: found 1 for 2 rows; the calibration needs one per row"));
  artifact.method.calibration = WeightedOptions{};
  const std::vector<NamedValues> weighted = {rows, {"weights", std::vector<double>{1, 0.5}}};
  EXPECT_THAT(SchemaData(artifact).encode(weighted, {}).known.weights, ElementsAre(1, 0.5));
  const std::vector<NamedValues> texts = {rows, {"weights", std::vector<std::string>{"1", "2"}}};
  EXPECT_THAT([&] { SchemaData(artifact).encode(texts, {}); },
              ThrowsMessage<Error>("weights: found BYTES, expected numbers"));
  artifact.method.calibration = SplitOptions{};  // asks for none, so that this is an input too many
  EXPECT_THAT([&] { SchemaData(artifact).encode(weighted, {}); },
              ThrowsMessage<Error>("found 2 inputs, expected 1"));
}

}  // namespace
}  // namespace fcp::internal

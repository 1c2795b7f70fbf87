#include "fcp/data/columns.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CsvEncoding encoding_of(std::vector<float> means) {
  CsvEncoding encoding;
  encoding.columns = {"age", "region"};
  encoding.positions = {0, 1};
  encoding.categories = {{}, {"north", "south"}};
  encoding.means = std::move(means);
  return encoding;
}

struct Encoded {
  std::vector<float> features;
  CellNotes notes;
};

Encoded encoded(const CsvEncoding& encoding, const std::vector<ColumnCells>& cells, size_t rows) {
  Encoded found;
  found.features.resize(rows * encoding.feature_count());
  const auto name = [](size_t row) { return concat("row ", row); };
  found.notes = encode_columns(encoding, cells, rows, name, found.features.data());
  return found;
}

// One row of texts by column.
using Cells = std::map<std::string, std::string>;

Encoded encoded(const CsvEncoding& encoding, const Cells& row) {
  std::vector<ColumnCells> cells;
  for (const std::string& name : encoding.columns) {
    const auto found = row.find(name);
    const std::string* const text = found == row.end() ? nullptr : &found->second;
    cells.push_back({.text = [text](size_t) { return text; }});
  }
  return encoded(encoding, cells, 1);
}

std::string complaint_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string complaint_of(const CsvEncoding& encoding, const Cells& row) {
  return complaint_of([&] { encoded(encoding, row); });
}

TEST(Columns, AreEncodedLikeARowOfTheFile) {
  const CsvEncoding encoding = encoding_of({});
  EXPECT_THAT(encoded(encoding, {{"region", " south "}, {"age", "41.5"}}).features,
              ElementsAre(41.5f, 0, 1));
  EXPECT_FALSE(accepts_missing(encoding));
}

TEST(Columns, FreeTextIsReadByItsWords) {
  CsvEncoding encoding = encoding_of({0, 0});
  encoding.formats = {{}, {.kind = ColumnKind::kText}};
  const auto words = [&](const std::string& text) {
    return encoded(encoding, Cells{{"age", "1"}, {"region", text}}).features;
  };
  EXPECT_THAT(words("from the SOUTH to the north"), ElementsAre(1, 1, 1));
  EXPECT_THAT(words("south-west"), ElementsAre(1, 0, 1));
  EXPECT_THAT(words("southwest"), ElementsAre(1, 0, 0));
  EXPECT_THAT(words(""), ElementsAre(1, 0, 0));
}

TEST(Columns, MissingValuesAreRefusedImputedOrKept) {
  EXPECT_EQ(complaint_of(encoding_of({}), {{"region", "north"}}),
            "row 0, column 'age': is not there; the network was trained without missing values");
  EXPECT_EQ(complaint_of(encoding_of({}), {{"age", "NA"}, {"region", "north"}}),
            "row 0, column 'age': is missing; the network was trained without missing values");
  EXPECT_THAT(encoded(encoding_of({7, 0}), {{"age", ""}}).features, ElementsAre(7, 0, 0));
  const CsvEncoding kept = encoding_of({std::numeric_limits<float>::quiet_NaN(), 0});
  EXPECT_TRUE(accepts_missing(kept));
  EXPECT_TRUE(std::isnan(encoded(kept, {}).features[0]));
}

TEST(Columns, FlagsWhatNoTrainingRowHad) {
  CsvEncoding encoding = encoding_of({7, 0});
  encoding.facts = {{.missing = false, .low = 0, .high = 100}, {.missing = true}};
  encoding.missing = {"-"};
  const auto flags = [&](const Cells& row) { return encoded(encoding, row).notes.flags.at(0); };
  EXPECT_EQ(flags({{"age", "100"}, {"region", "north"}}), "");
  EXPECT_EQ(flags({{"age", "-"}, {"region", "-"}}), "missing:age");
  EXPECT_EQ(flags({{"age", "900"}, {"region", "west"}}), "range:age|unseen:region");
}

// Numbers are what their texts are, row by row, and cells are counted by column.
TEST(Columns, NumbersAreReadLikeTheirTexts) {
  CsvEncoding encoding = encoding_of({7, 0});
  encoding.categories[1] = {"1", "2.5"};
  encoding.facts = {{.missing = true, .low = 0, .high = 100}, {.missing = true}};
  encoding.missing = {"-999"};
  const double missing = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> ages = {0.1, missing, -999, 1e-3, 1e6},
                            regions = {1, 2.5, missing, 3, 1};
  const Encoded numbers = encoded(encoding, {{.numbers = ages}, {.numbers = regions}}, 5);
  std::vector<float> each;
  for (size_t i = 0; i < ages.size(); ++i) {
    const Encoded one =
        encoded(encoding, {{"age", cell_text(ages[i])}, {"region", cell_text(regions[i])}});
    each.insert(each.end(), one.features.begin(), one.features.end());
    EXPECT_EQ(numbers.notes.flags[i], one.notes.flags[0]) << i;
  }
  EXPECT_EQ(numbers.features, each);
  EXPECT_THAT(numbers.features, ElementsAre(0.1f, 1, 0, 7, 0, 1, 7, 0, 0, 1e-3f, 0, 0, 1e6f, 1, 0));
  EXPECT_THAT(numbers.notes.flags, ElementsAre("", "", "", "unseen:region", "range:age"));
  EXPECT_THAT(numbers.notes.missing, ElementsAre(2, 1));
  EXPECT_THAT(numbers.notes.unknown, ElementsAre(0, 1));
}

// 1.234 is not the 1.234 of a file that separates thousands by points.
TEST(Columns, NumbersDoNotFollowTheStyleOfTheFile) {
  CsvEncoding encoding = encoding_of({});
  encoding.formats = {{ColumnKind::kNumber, NumberStyle::kComma}, {ColumnKind::kCategory}};
  const std::vector<double> ages = {1.234}, none = {0};
  EXPECT_THAT(encoded(encoding, {{.numbers = ages}, {.numbers = none}}, 1).features,
              ElementsAre(1.234f, 0, 0));
  EXPECT_THAT(encoded(encoding, {{"age", "1.234"}, {"region", "0"}}).features,
              ElementsAre(1234, 0, 0));
}

TEST(Columns, NameWhatIsWrong) {
  const CsvEncoding encoding = encoding_of({});
  EXPECT_EQ(complaint_of(encoding, {{"age", "old"}, {"region", "north"}}),
            "row 0, column 'age': expected a number, found 'old'");
  EXPECT_THAT(complaint_of(encoding, {{"age", "1e300"}, {"region", "north"}}),
              HasSubstr("found '1e300', expected a finite float32"));
  const std::vector<double> large = {1, 1e300}, none = {0, 0};
  EXPECT_EQ(complaint_of([&] {
              encoded(encoding, {{.numbers = large}, {.numbers = none}}, 2);
            }),
            "row 1, column 'age': found '1e+300', expected a finite float32");
  EXPECT_THAT(encoded(encoding, {{"age", "1"}, {"region", "west"}}).features, ElementsAre(1, 0, 0))
      << "a category of which nothing is known is none of the known ones";
  EXPECT_THAT(encoded(encoding, std::vector<ColumnCells>(2), 0).features, IsEmpty());
}

}  // namespace
namespace {

TEST(EncodingText, ReadsBackWhatItWrote) {
  CsvEncoding encoding;
  encoding.header = false;
  encoding.width = 4;
  encoding.columns = {"0", "größe \"x\""};
  encoding.positions = {0, 3};
  encoding.categories = {{}, {"a", "b,c"}};
  encoding.means = {0.1f, 0};
  encoding.facts = {{.missing = true, .low = -0.5, .high = 2},
                    {.rare = {3, 1ull << 47}, .more = true}};
  encoding.missing = {"-", "."};
  encoding.typical = {0.5f, 0.25f, 0.75f};
  const CsvEncoding again = parse_encoding(encoding_text(encoding));
  EXPECT_EQ(again.header, encoding.header);
  EXPECT_EQ(again.width, encoding.width);
  EXPECT_EQ(again.columns, encoding.columns);
  EXPECT_EQ(again.positions, encoding.positions);
  EXPECT_EQ(again.categories, encoding.categories);
  EXPECT_EQ(again.means, encoding.means);
  EXPECT_EQ(again.facts, encoding.facts);
  EXPECT_EQ(again.missing, encoding.missing);
  EXPECT_EQ(again.typical, encoding.typical);
}

TEST(EncodingText, MissingValuesThatStayMissing) {
  CsvEncoding encoding;
  encoding.width = 1;
  encoding.columns = {"a"};
  encoding.positions = {0};
  encoding.categories = {{}};
  encoding.means = {std::numeric_limits<float>::quiet_NaN()};
  const CsvEncoding again = parse_encoding(encoding_text(encoding));
  ASSERT_EQ(again.means.size(), 1u);
  EXPECT_TRUE(std::isnan(again.means[0]));
}

TEST(EncodingText, DamageIsAnError) {
  EXPECT_THROW(parse_encoding("no json"), Error);
  EXPECT_THROW(parse_encoding("{}"), Error);
  EXPECT_THROW(parse_encoding(R"({"header":true,"width":2,"columns":["a"],"positions":[],)"
                              R"("categories":[[]],"means":[]})"),
               Error);
}

// What a reader would use as an index into a row, from a file that may be hostile.
TEST(EncodingText, ContradictionsAreErrors) {
  const auto text = [](const std::string& width, const std::string& position,
                       const std::string& categories) {
    return R"({"header":false,"width":)" + width + R"(,"columns":["a"],"positions":[)" + position +
           R"(],"categories":[)" + categories + R"(],"means":[]})";
  };
  EXPECT_NO_THROW(parse_encoding(text("2", "1", R"(["x","y"])")));
  EXPECT_THROW(parse_encoding(text("2", "2", "[]")), Error);
  EXPECT_THROW(parse_encoding(text("2", "-1", "[]")), Error);
  EXPECT_THROW(parse_encoding(text("2e125", "1", "[]")), Error);  // undefined behaviour once
  EXPECT_THROW(parse_encoding(text("2", "1.5", "[]")), Error);
  EXPECT_THROW(parse_encoding(text("2", "1", R"(["x","x"])")), Error);
}

}  // namespace
}  // namespace fcp

#include "fcp/data/table_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file of 40 rows whose column has these cells over and over.
class Schema : public ::testing::Test {
 protected:
  std::string type(const std::vector<std::string>& cells, char separator = '|') {
    std::string text = std::string("c") + separator + "z\n";
    for (size_t i = 0; i < 40; ++i) {
      text += cells[i % cells.size()] + separator + std::to_string(i % 7) + "\n";
    }
    return format_text(schema(text, {.separator = separator}).columns[0].format);
  }
  TableSchema schema(const std::string& text, const SchemaOptions& options = {},
                     const std::string& target = "") {
    return find_schema(folder_.write("t.csv", text), target, options);
  }

  Folder folder_;
};

TEST_F(Schema, FindsTheKindOfAColumn) {
  EXPECT_EQ(type({"1", "2.5", "", "-3e2"}), "number");
  EXPECT_EQ(type({"$1,200", "$3"}), "number:point");
  EXPECT_EQ(type({"1,5", "2"}), "number:comma");
  EXPECT_EQ(type({"1,500", "2"}), "number:point");
  EXPECT_EQ(type({"1,500", "2"}, ';'), "number:comma") << "; separates where commas are decimal";
  EXPECT_EQ(type({"True", "false", "NA"}), "boolean");
  EXPECT_EQ(type({"2024-01-31", "2024-02-01 10:00"}), "date");
  EXPECT_EQ(type({"31/01/2024", "01/02/2024"}), "date:dmy");
  EXPECT_EQ(type({"01/31/2024", "01/02/2024"}), "date");
  EXPECT_EQ(type({"red", "blue"}), "category");
  EXPECT_EQ(type({"red", ""}), "category") << "a value or none";
  EXPECT_EQ(type({"7"}), "constant");
  EXPECT_EQ(type({""}), "constant");
}

TEST_F(Schema, FindsDatesAndTimesOfOtherKinds) {
  EXPECT_EQ(type({"Mar-2018", "Apr-2018"}), "date");
  EXPECT_EQ(type({"1979 Q3", "1979Q4", "Q1 1980"}), "date");
  EXPECT_EQ(type({"20200131", "20200201"}), "date");
  EXPECT_EQ(type({"20200131", "20209901"}), "number") << "no such day";
  EXPECT_EQ(type({"11:38:36", "23:59:59"}), "date");
}

// Whole numbers that stand for something else.
TEST_F(Schema, FindsCodes) {
  EXPECT_EQ(type({"02139", "98115", "10001"}), "category");
  EXPECT_EQ(type({"98115-4820", "98115"}), "category");
  EXPECT_EQ(type({"0", "10", "0.5"}), "number");
  const auto named = [&](const std::string& name, int values) {
    std::string text = name + ",z\n";
    for (int i = 0; i < 60; ++i) text += concat(98000 + 7 * (i * 37 % values), ",", i % 7, "\n");
    return format_text(schema(text).columns[0].format);
  };
  EXPECT_EQ(named("zipcode", 5), "category");
  EXPECT_EQ(named("ZipCode", 5), "category");
  EXPECT_EQ(named("postal_code", 5), "category");
  EXPECT_EQ(named("zip", 50), "identifier") << "too many to learn from";
  EXPECT_EQ(named("zipper", 5), "number");
  EXPECT_EQ(named("encoded", 5), "number");
}

TEST_F(Schema, CountersMayHaveGaps) {
  const auto rising = [&](const std::string& name, int step) {
    std::string text = name + ",z\n";
    for (int i = 0; i < 60; ++i) text += concat(1 + i * step + i / 7, ",", i % 7, "\n");
    return format_text(schema(text).columns[0].format);
  };
  EXPECT_EQ(rising("n", 1), "identifier");
  EXPECT_EQ(rising("n", 5), "number");
  EXPECT_EQ(rising("rownames", 5), "identifier");
}

TEST_F(Schema, MistakesDoNotMakeAColumnText) {
  std::vector<std::string> cells(40, "1.5");
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = std::to_string(i * i);
  cells[7] = "oops";
  EXPECT_EQ(type(cells), "number");
  for (size_t i = 0; i < 10; ++i) cells[3 * i] = i % 2 == 0 ? "oops" : "hm";
  EXPECT_EQ(type(cells), "identifier") << "too many different texts";
}

TEST_F(Schema, LeavesOutWhatTellsRowsApart) {
  std::string text = ",user_id,code,note,v\n";
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(i) + "," + std::to_string(1000 + (i * 7919) % 4001) + ",k" +
            std::to_string(i) + ",a note of many words " + std::to_string(i) + "," +
            std::to_string(i % 5) + "\n";
  }
  const TableSchema found = schema(text);
  std::vector<std::string> types;
  for (const TableColumn& column : found.columns) types.push_back(format_text(column.format));
  EXPECT_THAT(types, ElementsAre("identifier", "identifier", "identifier", "text", "number"));
  ASSERT_EQ(found.notes.size(), 4u);
  EXPECT_EQ(found.notes[0],
            "column 'column 0' has no name and counts the rows: left out (identifier)");
  EXPECT_EQ(found.notes[3], "column 'note' is free text: read by its most frequent words (text)");
}

TEST_F(Schema, WishesOverride) {
  const std::string text = "a,b,y\n1,x,1\n2,y,2\n3,x,3\n";
  const TableSchema found = schema(text, {.drop = {"b"}, .types = {{"a", "category"}}}, "y");
  EXPECT_EQ(format_text(found.columns[0].format), "category");
  EXPECT_TRUE(found.columns[1].dropped);
  EXPECT_TRUE(found.columns[2].target);
  EXPECT_EQ(message_of(folder_,
                       [&] {
                         schema(text, {.types = {{"q", "date"}}});
                       }),
            "t.csv: no column 'q' (schema); the columns are 'a', 'b', 'y'");
  EXPECT_EQ(message_of(folder_,
                       [&] {
                         schema(text, {.types = {{"y", "drop"}}}, "y");
                       }),
            "t.csv: column 'y' is the target and cannot be dropped");
  EXPECT_EQ(parse_types("a=date:dmy, b=drop").at("b"), "drop");
  EXPECT_THAT(message_of(folder_, [] { parse_types("a=dates"); }),
              HasSubstr("'dates' is not a type"));
  EXPECT_THAT(message_of(folder_, [] { parse_types("a"); }), HasSubstr("'a' is not COLUMN=TYPE"));
}

TEST_F(Schema, NamesThatComeTwiceAreRefused) {
  EXPECT_EQ(message_of(folder_, [&] { schema("a,a,b\n1,2,3\n4,5,6\n"); }),
            "t.csv: two columns are called 'a', columns 0 and 1 (from 0); rename one of them");
}

TEST_F(Schema, ShowsHowMuchItCounted) {
  EXPECT_THAT(schema_text(schema("a,b\n1,2\n3,4\n", {}, "b"), "target: regression"),
              testing::AllOf(HasSubstr("target: regression"), testing::EndsWith("\n2 rows\n")));
  std::string text = "a,b\n";
  for (int i = 0; i < 20001; ++i) text += concat(i * 2 % 20001, ",1.5\n");
  EXPECT_THAT(
      schema_text(schema(text)),
      testing::AllOf(HasSubstr("20000+"),
                     testing::EndsWith("20001 rows; values are counted among the first 20000\n")));
}

}  // namespace
namespace {

TEST(ColumnFacts, FarIsAQuarterOfTheRangeBeyondIt) {
  ColumnFacts facts{.low = 10, .high = 20};
  EXPECT_FALSE(facts.is_far(7.5));
  EXPECT_TRUE(facts.is_far(7.4));
  EXPECT_FALSE(facts.is_far(22.5));
  EXPECT_TRUE(facts.is_far(22.6));
  facts.low = facts.high = 3;
  EXPECT_FALSE(facts.is_far(3));
  EXPECT_TRUE(facts.is_far(4)) << "training rows had one value";
  EXPECT_FALSE(ColumnFacts{}.is_far(1e300)) << "nothing is known";
}

TEST(ColumnFacts, RareIsNotUnseen) {
  const ColumnFacts facts{.rare = {category_hash("gray")}};
  EXPECT_TRUE(facts.has_rare("gray"));
  EXPECT_FALSE(facts.has_rare("pink"));
  EXPECT_TRUE(ColumnFacts{.more = true}.has_rare("pink")) << "too many to tell";
}

TEST(ColumnFacts, RowsAreCountedOnce) {
  NoveltyCounts counts, more;
  EXPECT_TRUE(counts.none());
  std::string flags;
  add_flag(novelty_flag(Novelty::kMissing, "carat"), flags);
  add_flag(novelty_flag(Novelty::kRange, "x"), flags);
  EXPECT_EQ(flags, "missing:carat|range:x");
  counts.add(flags);
  counts.add("");
  more.add("missing:carat");
  more.add("unseen:cut");
  counts.add(more);
  EXPECT_EQ(
      counts.text(50),
      "3 of 50 rows have what no training row had (missing: carat in 2; unseen: cut in 1; far "
      "outside the training range: x in 1): the coverage guarantee does not extend to them");
}

}  // namespace
}  // namespace fcp

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

TEST_F(Schema, MistakesDoNotMakeAColumnText) {
  std::vector<std::string> cells(40, "1.5");
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = std::to_string(i * i);
  cells[7] = "oops";
  EXPECT_EQ(type(cells), "number");
  for (size_t i = 0; i < 10; ++i) cells[3 * i] = i % 2 == 0 ? "oops" : "hm";
  EXPECT_EQ(type(cells), "text");
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
  EXPECT_THAT(schema_text(found), HasSubstr("left out: is free text"));
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

TEST_F(Schema, NamesThatComeTwiceAreNumbered) {
  const TableSchema found = schema("a,a,b\n1,2,3\n4,5,6\n");
  EXPECT_THAT(found.head.names, ElementsAre("a", "a (2)", "b"));
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("becomes 'a (2)'")));
}

}  // namespace
}  // namespace fcp

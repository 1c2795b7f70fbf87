#include "fcp/data/encoding_text.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
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

#include "fcp/data/encoding_text.h"

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
  const CsvEncoding again = parse_encoding(encoding_text(encoding));
  EXPECT_EQ(again.header, encoding.header);
  EXPECT_EQ(again.width, encoding.width);
  EXPECT_EQ(again.columns, encoding.columns);
  EXPECT_EQ(again.positions, encoding.positions);
  EXPECT_EQ(again.categories, encoding.categories);
  EXPECT_EQ(again.means, encoding.means);
}

TEST(EncodingText, DamageIsAnError) {
  EXPECT_THROW(parse_encoding("no json"), Error);
  EXPECT_THROW(parse_encoding("{}"), Error);
  EXPECT_THROW(parse_encoding(R"({"header":true,"width":2,"columns":["a"],"positions":[],)"
                              R"("categories":[[]],"means":[]})"),
               Error);
}

}  // namespace
}  // namespace fcp

#include "fcp/data/record.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CsvEncoding encoding_of(std::vector<float> means) {
  CsvEncoding encoding;
  encoding.columns = {"age", "region"};
  encoding.positions = {0, 1};
  encoding.categories = {{}, {"north", "south"}};
  encoding.means = std::move(means);
  return encoding;
}

std::string message_of(const CsvEncoding& encoding, const std::map<std::string, std::string>& row) {
  try {
    encode_record(encoding, row, "row 3");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Record, IsEncodedLikeARowOfTheFile) {
  const CsvEncoding encoding = encoding_of({});
  EXPECT_THAT(encode_record(encoding, {{"region", " south "}, {"age", "41.5"}, {"id", "x"}}, ""),
              ElementsAre(41.5f, 0, 1));
  EXPECT_FALSE(accepts_missing(encoding));
}

TEST(Record, MissingValuesAreRefusedImputedOrKept) {
  EXPECT_EQ(message_of(encoding_of({}), {{"region", "north"}}),
            "row 3, column 'age': is not there; the network was trained without missing values");
  EXPECT_EQ(message_of(encoding_of({}), {{"age", "NA"}, {"region", "north"}}),
            "row 3, column 'age': is missing; the network was trained without missing values");
  EXPECT_THAT(encode_record(encoding_of({7, 0}), {{"age", ""}}, ""), ElementsAre(7, 0, 0));
  const CsvEncoding kept = encoding_of({std::numeric_limits<float>::quiet_NaN(), 0});
  EXPECT_TRUE(accepts_missing(kept));
  EXPECT_TRUE(std::isnan(encode_record(kept, {}, "")[0]));
}

TEST(Record, FlagsWhatNoTrainingRowHad) {
  CsvEncoding encoding = encoding_of({7, 0});
  encoding.facts = {{.missing = false, .low = 0, .high = 100}, {.missing = true}};
  encoding.missing = {"-"};
  const auto flags = [&](const std::map<std::string, std::string>& row) {
    std::string found;
    encode_record(encoding, row, "", &found);
    return found;
  };
  EXPECT_EQ(flags({{"age", "100"}, {"region", "north"}}), "");
  EXPECT_EQ(flags({{"age", "-"}, {"region", "-"}}), "missing:age");
  EXPECT_EQ(flags({{"age", "900"}, {"region", "west"}}), "range:age|unseen:region");
}

TEST(Record, NamesWhatIsWrong) {
  const CsvEncoding encoding = encoding_of({});
  EXPECT_EQ(message_of(encoding, {{"age", "old"}, {"region", "north"}}),
            "row 3, column 'age': expected a number, found 'old'");
  EXPECT_THAT(message_of(encoding, {{"age", "1e300"}, {"region", "north"}}),
              HasSubstr("expected a finite float32"));
  EXPECT_THAT(encode_record(encoding, {{"age", "1"}, {"region", "west"}}, ""), ElementsAre(1, 0, 0))
      << "a category of which nothing is known is none of the known ones";
}

}  // namespace
}  // namespace fcp

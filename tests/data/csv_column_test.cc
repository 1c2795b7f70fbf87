#include "fcp/data/csv_column.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;

TEST(CsvColumn, ByNameAndByIndex) {
  const Folder folder;
  const std::string path = folder.write("g.csv", "a,region,y\n1,north,2\n3,\"so,uth\",4\n");
  EXPECT_THAT(read_csv_column(path, "region"), ElementsAre("north", "so,uth"));
  EXPECT_THAT(read_csv_column(path, "0"), ElementsAre("1", "3"));
  EXPECT_THAT(read_csv_column(path, "-1"), ElementsAre("2", "4"));
}

TEST(CsvColumn, WithoutHeader) {
  const Folder folder;
  const std::string path = folder.write("g.csv", "1;x\n2;y\n");
  CsvOptions options;
  options.header = CsvHeader::kNo;
  EXPECT_THAT(read_csv_column(path, "1", options), ElementsAre("x", "y"));
}

TEST(CsvColumn, MayBeTheOnlyOne) {
  const Folder folder;
  const std::string path = folder.write("g.csv", "a\nx\ny\n");
  for (const char* column : {"a", "0", "-1"}) {
    EXPECT_THAT(read_csv_column(path, column), ElementsAre("x", "y"));
  }
  EXPECT_THAT(message_of(folder, [&] { read_csv_column(path, "b"); }), testing::HasSubstr("'b'"));
}

TEST(CsvColumn, FaultsAreNamed) {
  const Folder folder;
  const std::string path = folder.write("g.csv", "a,b\n1,2\n3\n");
  EXPECT_THAT(message_of(folder, [&] { read_csv_column(path, "c"); }), testing::HasSubstr("'c'"));
  EXPECT_EQ(message_of(folder, [&] { read_csv_column(path, "a"); }),
            "g.csv: line 3 has 1 cells, expected 2");
}

}  // namespace
}  // namespace fcp

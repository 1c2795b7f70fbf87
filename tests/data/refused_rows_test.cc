#include "fcp/data/refused_rows.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/data/csv_column.h"
#include "fcp/data/rows.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(RefusedRows, AreLeftOutOfRowsAndColumnsAlike) {
  const Folder folder;
  const std::string path =
      folder.write("t.csv", "a,g,y\n1,0,5\nx,1,6\n3,2,\n4,3\n5,4,7\n6,5,8,9\n");
  const std::string out = std::filesystem::path(path).parent_path() / "refused.csv";
  const Refusals found =
      find_refusals({path}, "y", {}, {.problems = true, .without_target = true}, out);
  EXPECT_THAT(found.rows.at(path), ElementsAre(1, 2, 3, 5));
  EXPECT_EQ(found.kept, 2u);
  EXPECT_EQ(found.problems, 3u);
  EXPECT_EQ(found.without_target, 1u);
  EXPECT_EQ(content(out),
            "a,g,y,fcp_line,fcp_problem\n"
            "x,1,6,3,\"line 3, column 'a': expected a number, found 'x'\"\n"
            "4,3,,5,\"line 5: found 2 cells, expected 3\"\n"
            "6,5,\"8,9\",7,\"line 7: found 4 cells, expected 3\"\n");

  CsvOptions options;
  options.refused = std::make_shared<RefusedRows>(found.rows);
  const auto rows = open_rows(path, "y", options);
  EXPECT_THAT(read_all(*rows).y.values, ElementsAre(5, 7));
  EXPECT_EQ(rows->size(), 2u);
  rows->rewind();
  EXPECT_EQ(rows->skip(5), 2u);
  EXPECT_THAT(read_csv_column(path, "g", options), ElementsAre("0", "4"));
}

TEST(RefusedRows, NoneMeansNoFile) {
  const Folder folder;
  const std::string path = folder.write("t.csv", "a,y\n1,2\n3,\n");
  const std::string out = std::filesystem::path(path).parent_path() / "refused.csv";
  const Refusals found = find_refusals({path}, "y", {}, {.without_target = true}, out);
  EXPECT_EQ(found.kept, 1u);
  EXPECT_EQ(found.problems, 0u);
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace fcp

// Rows of a CSV file on several threads: the same numbers and the same complaints as one thread
// that reads row by row, wherever the text in memory ends and the shares of threads begin.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fcp/base/random.h"
#include "fcp/data/csv.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

constexpr size_t kRows = 20000;  // 2 MB of text: more than is in memory at a time

// A number, a category whose quoted text may hold separators, quotes and line ends, a number that
// may be missing, and a target. Rows are of many lengths, so that blocks end anywhere in them.
std::string line_of(size_t row, const std::string& end, Random& random) {
  const std::string kinds[] = {"plain", "\"a,b\"", "\"two" + end + "lines\"", "\"say \"\"x\"\"\""};
  const std::string filler(random.below(140), ' ');
  return std::to_string(row) + ".25" + filler + "," + kinds[row % 4] + "," +
         (row % 11 == 0 ? "NA" : "-3.5e2") + "," + std::to_string(row % 5) + end;
}

using Change = std::function<void(size_t row, std::string& line)>;

std::string table_text(const Change& change = {}, const std::string& end = "\n") {
  Random random(1);
  std::string text = "a,kind,b,y" + end;
  for (size_t row = 0; row < kRows; ++row) {
    std::string line = line_of(row, end, random);
    if (change) change(row, line);
    text += line;
  }
  return text;
}

struct Found {
  std::vector<float> x, y;
  std::vector<double> exact;
  std::vector<std::string> warnings;
  std::optional<size_t> size;
  friend bool operator==(const Found&, const Found&) = default;
};

class CsvThreads : public testing::Test {
 protected:
  // What the training file taught: category "plain" alone, no missing values.
  CsvEncoding encoding() const {
    CsvOptions options;
    options.categorical = {"kind"};
    options.impute = true;
    CsvReader reader(folder_.write("train.csv", "a,kind,b,y\n1,plain,2,3\n4,plain,5,6\n"), "y",
                     options);
    CsvEncoding found = reader.encoding();
    std::vector<CellFormat> formats;
    for (size_t i = 0; i < found.columns.size(); ++i) formats.push_back(found.format(i));
    found.formats = formats;
    return found;
  }

  Found read(const std::string& path, size_t threads, size_t count, CsvOptions options) const {
    options.threads = threads;
    options.exact = true;
    CsvReader reader(path, "y", options);
    Found all;
    Array x, y;
    while (reader.next(count, x, y)) {
      all.x.insert(all.x.end(), x.values.begin(), x.values.end());
      all.y.insert(all.y.end(), y.values.begin(), y.values.end());
      all.exact.insert(all.exact.end(), x.exact.begin(), x.exact.end());
    }
    all.warnings = reader.warnings();
    all.size = reader.size();
    return all;
  }

  void expect_same(const std::string& text, CsvOptions options = {}) const {
    options.encoding = encoding();
    const std::string path = folder_.write("t.csv", text);
    const Found expected = read(path, 1, 1, options);
    EXPECT_GT(expected.y.size(), kRows - 100);
    EXPECT_EQ(expected.warnings.size(), 1) << "rows with what no training row had";
    for (const size_t threads : {1, 2, 5}) {
      for (const size_t count : {size_t{4096}, 3 * kRows}) {
        EXPECT_TRUE(read(path, threads, count, options) == expected) << threads << ", " << count;
      }
    }
  }

  // What is said of the file, the same for any number of threads.
  std::string complaint(const std::string& text) const {
    CsvOptions options;
    options.encoding = encoding();
    const std::string path = folder_.write("t.csv", text);
    const auto with = [&](size_t threads, size_t count) {
      return message_of(folder_, [&] { read(path, threads, count, options); });
    };
    const std::string expected = with(1, 1);
    EXPECT_EQ(with(1, 3 * kRows), expected);
    EXPECT_EQ(with(2, 4096), expected);
    EXPECT_EQ(with(5, 3 * kRows), expected);
    return expected;
  }

  Folder folder_;
};

// Puts something in place of whole rows.
Change put(std::map<size_t, std::string> lines) {
  return [lines = std::move(lines)](size_t row, std::string& line) {
    const auto found = lines.find(row);
    if (found != lines.end()) line = found->second;
  };
}

TEST_F(CsvThreads, ReadTheSameNumbers) {
  expect_same(table_text());
  expect_same(table_text({}, "\r\n"));
  const std::string text = table_text();
  expect_same(text.substr(0, text.size() - 1));  // the last line without its end
  expect_same(table_text(put({{7, "\n\n1,plain,2,3\n"}, {19000, "\r\n4,plain,5,6\n"}})));
}

TEST_F(CsvThreads, PassOverTheSameRows) {
  CsvOptions options;
  options.refused = std::make_shared<const RefusedRows>(
      RefusedRows{{folder_.path("t.csv"), {0, 5, 10000, 10001, kRows - 1}}});
  expect_same(table_text(put({{5, "x\n"}, {10001, "x,y,z,u,v\n"}})), options);
}

TEST_F(CsvThreads, NameTheSameRow) {
  const std::string late = complaint(table_text(put({{17500, "1,plain,cold,2\n"}})));
  EXPECT_NE(late.find("column 'b': expected a number, found 'cold'"), std::string::npos) << late;
  const std::string two = complaint(table_text(
      put({{15000, "1,plain,2\n"}, {17500, "1,plain,cold,2\n"}, {18000, "inf,,1,2\n"}})));
  EXPECT_NE(two.find("problems in 3 rows"), std::string::npos) << two;
}

TEST_F(CsvThreads, ComplainAsOneThreadOfBrokenText) {
  using namespace std::string_literals;
  const std::string nul = complaint(table_text(put({{15000, "1,pla\0in,2,3\n"s}})));
  EXPECT_NE(nul.find("holds a NUL byte"), std::string::npos) << nul;
  const std::string open = complaint(table_text(put({{19990, "1,\"plain,2,3\n"}})) + "\"x");
  EXPECT_NE(open.find("quote"), std::string::npos) << open;
  // Of several the first; where cells are wrong before it, it stops the search for more of them.
  complaint(table_text(put({{10000, "1,\"plain\"x,2,3\n"}, {10001, "1,pla\0in,2,3\n"s}})));
  complaint(table_text(put({{10000, "1,pla\0in,2,3\n"s}, {10001, "1,\"plain\"x,2,3\n"}})));
  complaint(table_text(put({{10000, "1,plain,cold,3\n"}, {19000, "1,\"plain\"x,2,3\n"}})));
  complaint(table_text(put({{100, "1,\"plain\"x,2,3\n"}})) + "1,\"never closed");
}

TEST_F(CsvThreads, SayThatThereAreNoRows) {
  EXPECT_EQ(complaint("a,kind,b,y\n"), "t.csv: there are no rows below the header");
}

}  // namespace
}  // namespace fcp

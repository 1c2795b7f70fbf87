#include "fcp/data/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"
#include "fcp/data/number.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsNan;

struct Content {
  Array x, y;
  std::vector<std::string> names, targets;
};

class Csv : public testing::Test {
 protected:
  Content read(const std::string& text, const std::string& target, const CsvOptions& options = {}) {
    CsvReader reader(folder_.write("t.csv", text), target, options);
    Content content{{}, {}, reader.feature_names(), reader.target_names()};
    reader.next(1000, content.x, content.y);
    encoding_ = reader.encoding();
    return content;
  }
  std::string error(const std::string& text, const std::string& target = "",
                    const CsvOptions& options = {}) {
    return message_of(folder_, [&] { read(text, target, options); });
  }

  Folder folder_;
  CsvEncoding encoding_;
};

TEST_F(Csv, SeparatesFeaturesFromTargets) {
  const Content all = read("a,y,b\n1,2,3\n4,5,6\n", "y");
  EXPECT_THAT(all.names, ElementsAre("a", "b"));
  EXPECT_THAT(all.targets, ElementsAre("y"));
  EXPECT_THAT(all.x.shape, ElementsAre(2, 2));
  EXPECT_THAT(all.x.values, ElementsAre(1, 3, 4, 6));
  EXPECT_THAT(all.y.shape, ElementsAre(2, 1));
  EXPECT_THAT(all.y.values, ElementsAre(2, 5));
}

TEST_F(Csv, FindsTargetsByNameOrIndex) {
  const std::string text = "a,\"b, c\",d\n1,2,3\n";
  EXPECT_THAT(read(text, "d,0").y.values, ElementsAre(3, 1));
  EXPECT_THAT(read(text, "d, 0").x.values, ElementsAre(2));
  EXPECT_THAT(read(text, "-1").y.values, ElementsAre(3));
  EXPECT_THAT(read(text, "b, c").y.values, ElementsAre(2));
  EXPECT_THAT(read("1,0\n5,6\n", "0", {.header = CsvHeader::kYes}).y.values, ElementsAre(6))
      << "a header wins over an index";
  EXPECT_THAT(read(text, "").y.shape, IsEmpty());
}

TEST_F(Csv, GuessesWhetherThereIsAHeader) {
  const auto rows = [&](const std::string& text, CsvOptions options = {}) {
    return read(text, "", options).x.rows();
  };
  EXPECT_EQ(rows("a,b\n1,2\n"), 1u);
  EXPECT_EQ(rows("1,2\n3,4\n"), 2u);
  EXPECT_EQ(rows("year,2011\n1,2\n"), 1u) << "text above a number";
  EXPECT_EQ(rows("year,2011\n?,2\n", {.drop = {"0"}}), 1u) << "text above a missing value";
  EXPECT_EQ(rows("1,red\n2,blue\n", {.categorical = {"1"}}), 2u) << "text above text, and a number";
  EXPECT_EQ(rows("n,c\nx,red\ny,blue\n", {.categorical = {"n", "c"}}), 2u) << "no number at all";
  EXPECT_EQ(rows("1,2\n3,4\n", {.header = CsvHeader::kYes}), 1u);
  EXPECT_THAT(read("1,2\n3,4\n", "").names, ElementsAre("0", "1"));
}

TEST_F(Csv, ReadsSeparatorsLineEndsMarksAndQuotes) {
  for (const std::string text : {"a;b\n1.5;2\n", "a\tb\r\n1.5\t2\r\n", "a|b\n\"1.5\"|\"2\"",
                                 "\xef\xbb\xbf"
                                 "a,b\n 1.5 , 2 \n"}) {
    const Content all = read(text, "b");
    EXPECT_THAT(all.names, ElementsAre("a"));
    EXPECT_THAT(all.x.values, ElementsAre(1.5f)) << text;
    EXPECT_THAT(all.y.values, ElementsAre(2));
  }
  EXPECT_THAT(read(gzipped("a,b\n1,2\n"), "b").y.values, ElementsAre(2));
  EXPECT_THAT(read("a;b,c\n1;2,3\n", "", {.separator = ';', .drop = {"b,c"}}).x.values,
              ElementsAre(1));
}

TEST_F(Csv, DropsColumns) {
  EXPECT_THAT(read("a,b,c,y\n1,x,3,4\n", "y", {.drop = {"b", "0"}}).x.values, ElementsAre(3));
}

TEST_F(Csv, OneHotInOrderOfAppearance) {
  const Content all = read("c,a\nred,1\nblue,2\nred,3\n", "", {.categorical = {"c"}});
  EXPECT_THAT(all.names, ElementsAre("c=red", "c=blue", "a"));
  EXPECT_THAT(all.x.values, ElementsAre(1, 0, 1, 0, 1, 2, 1, 0, 3));
  EXPECT_EQ(encoding_.feature_count(), 3u);
}

TEST_F(Csv, ImputesTheMean) {
  const Content all =
      read("a,c\n1,u\n?,v\n4,NA\nnull,u\n", "", {.categorical = {"c"}, .impute = true});
  EXPECT_THAT(all.x.values, ElementsAre(1, 1, 0, 2.5f, 0, 1, 4, 0, 0, 2.5f, 1, 0));
  EXPECT_THAT(encoding_.means, ElementsAre(2.5f, 0));
}

TEST_F(Csv, KeepsMissingValuesWhereTheFileHasSome) {
  const CsvOptions keep{.categorical = {"c"}, .keep_missing = true};
  const Content all = read("a,c,b\n1,u,?\n?,v,NA\n4,NA,\n", "", keep);
  EXPECT_THAT(all.x.values,
              ElementsAre(1, 1, 0, IsNan(), IsNan(), 0, 1, IsNan(), 4, 0, 0, IsNan()));
  const CsvOptions later{.encoding = encoding_};
  EXPECT_THAT(read("a,c,b\n,u,7\n", "", later).x.values, ElementsAre(IsNan(), 1, 0, 7));
  read("a,c,b\n1,u,2\n", "", keep);
  EXPECT_THAT(encoding_.means, IsEmpty()) << "nothing is missing: later files must be whole";
}

TEST_F(Csv, EncodingMakesTheSameFeaturesOfAnotherFile) {
  const std::string training = "a,skip,c,y\n1,9,red,0\n3,9,blue,0\n";
  read(training, "y", {.drop = {"skip"}, .categorical = {"c"}, .impute = true});
  const CsvOptions options{.encoding = encoding_};
  // Other order, other columns, values missing; a text that looks like a header or not.
  EXPECT_THAT(read("c,other,a\nblue,x,7\nred,x,?\n", "", options).x.values,
              ElementsAre(7, 0, 1, 2, 1, 0));
  EXPECT_THAT(read("y,c,a\n8,blue,7\n", "y", options).y.values, ElementsAre(8));
  EXPECT_EQ(error("c,b\nred,1\n", "", options), "t.csv: no column 'a'; the columns are 'c', 'b'");
  EXPECT_THAT(read("a,c\n1,red\n2,pink\n", "", options).x.values, ElementsAre(1, 1, 0, 2, 0, 0))
      << "a category of which nothing is known is none of the known ones";
}

TEST_F(Csv, EncodingWithoutHeaderGoesByPosition) {
  read("1,2,3\n4,5,6\n", "1");
  const CsvOptions options{.encoding = encoding_};
  EXPECT_THAT(read("7,8,9\n", "", options).x.values, ElementsAre(7, 9));
  EXPECT_THAT(read("7,9\n", "", options).x.values, ElementsAre(7, 9));
  EXPECT_EQ(error("7\n", "", options),
            "t.csv: rows of 1 cells, expected 3 as in the training file or its 2 feature columns "
            "alone");
}

TEST_F(Csv, NamesFileLineAndColumnOfABadCell) {
  EXPECT_EQ(error("a,b\n1,2\n\n3,red\n"),
            "t.csv: line 4, column 'b': expected a number, found 'red'");
  EXPECT_EQ(error("1,2\n3,1.5.2\n"), "t.csv: line 2, column 1: expected a number, found '1.5.2'");
  EXPECT_EQ(error("a,b\n1,\n"), "t.csv: line 2, column 'b': missing value '', expected a number");
  EXPECT_EQ(error("a,b\n1,NA\n", "b", {.impute = true}),
            "t.csv: line 2, column 'b': missing value 'NA', expected a number")
      << "targets are never imputed";
  EXPECT_EQ(error("a,c\n1,\n", "", {.categorical = {"c"}}),
            "t.csv: line 2, column 'c': missing value '', expected a category");
  EXPECT_EQ(error("a,b\n1,1e39\n"), "t.csv: line 2, column 'b': '1e39' is too large for a float32");
  EXPECT_EQ(error("a,b\n1,-Inf\n"),
            "t.csv: line 2, column 'b': found '-Inf', expected a finite number");
  EXPECT_EQ(
      error("a\n\"x\ny" + std::string(50, 'z') + "\"\n5\n", "", {.header = CsvHeader::kYes}),
      "t.csv: line 2, column 'a': expected a number, found 'x y" + std::string(37, 'z') + "…'");
  EXPECT_EQ(error("a,b\n?,1\nNA,2\n", "", {.impute = true}),
            "t.csv: column 'a' has no values at all");
}

TEST_F(Csv, RefusesOddShapes) {
  EXPECT_EQ(error(""), "t.csv: the file is empty");
  EXPECT_EQ(error("\n\n"), "t.csv: the file is empty");
  EXPECT_EQ(error("a,b\n"), "t.csv: there are no rows below the header");
  EXPECT_EQ(error("a,b\n1,2\n1,2,3\n"), "t.csv: line 3: found 3 cells, expected 2");
  EXPECT_EQ(error("a,b\n1\n"), "t.csv: line 2: found 1 cells, expected 2");
}

TEST_F(Csv, RefusesColumnsThatAreNotThere) {
  EXPECT_EQ(error("a,b\n1,2\n", "z"), "t.csv: no column 'z' (target); the columns are 'a', 'b'");
  EXPECT_EQ(error("1,2\n", "2"),
            "t.csv: no column '2' (target); there is no header, columns are 0 to 1; the "
            "first row has that name: is it a header (--header yes)?");
  EXPECT_EQ(error("a,b\n1,2\n", "-3"), "t.csv: no column '-3' (target); the columns are 'a', 'b'");
  EXPECT_EQ(error("a,b\n1,2\n", "a", {.drop = {"q"}}),
            "t.csv: no column 'q' (to drop); the columns are 'a', 'b'");
  EXPECT_EQ(error("a,b\n1,2\n", "a", {.drop = {"a"}}),
            "t.csv: column 'a' is the target and cannot be dropped");
  EXPECT_EQ(error("a,b\n1,2\n", "a", {.categorical = {"a"}}),
            "t.csv: categorical column 'a' is the target");
  EXPECT_EQ(error("a,b\n1,2\n", "a,0"), "t.csv: target column 'a' is named twice");
  EXPECT_EQ(error("a,a\n1,2\n"), "t.csv: two columns are called 'a'");
  EXPECT_EQ(error("a\n1\n", "a"), "t.csv: no column is left for the features");
}

TEST_F(Csv, RefusesColumnsWithTooManyCategories) {
  std::string text = "name,b\n";
  for (int i = 0; i < 1001; ++i) text += "n" + std::to_string(i) + ",1\n";
  EXPECT_EQ(error(text, "", {.categorical = {"name"}}),
            "t.csv: line 1002, column 'name': more than 1000 categories so far");
}

// Found by fuzz_csv: such names could not be written into the network's metadata.
TEST_F(Csv, NamesThatAreKeptMustBeUtf8) {
  EXPECT_EQ(error("gr\xf6\xdf"
                  "e,b\n1,2\n"),
            "t.csv: the name of column 0 is not UTF-8 text, expected UTF-8");
  EXPECT_EQ(error("a,gr\xf6\xdf"
                  "e\n1,2\n",
                  "1"),
            "t.csv: the name of column 1 is not UTF-8 text, expected UTF-8");
  EXPECT_EQ(error("a,b\nx,1\nr\xfct,2\n", "", {.categorical = {"a"}}),
            "t.csv: line 3, column 'a': category is not UTF-8 text, expected UTF-8");
  EXPECT_EQ(error("gr\xf6\xdf"
                  "e,b\n1,2\n",
                  "", {.drop = {"0"}}),
            "");
}

TEST_F(Csv, StreamsTheSameRowsWhateverTheBatch) {
  Random random(5);
  std::string text = "a,b,y\n";
  std::vector<float> expected;
  for (int i = 0; i < 1000; ++i) {
    for (int j = 0; j < 3; ++j) {
      const float value = static_cast<float>(random.normal());
      if (j < 2) expected.push_back(value);
      text += number_text(value) + (j < 2 ? "," : "\n");
    }
  }
  CsvReader reader(folder_.write("t.csv", text), "y");
  EXPECT_EQ(reader.size(), std::nullopt);
  for (const size_t batch : {1, 7, 1000, 5000}) {
    reader.rewind();
    std::vector<float> all;
    Array x, y;
    while (reader.next(batch, x, y)) all.insert(all.end(), x.values.begin(), x.values.end());
    EXPECT_EQ(all, expected);
  }
  EXPECT_EQ(reader.size(), 1000u);
}

}  // namespace
}  // namespace fcp

// Tables as they are: csv.h with find_types, and what another file becomes through the encoding.
#include <limits>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/data/columns.h"
#include "fcp/data/csv.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;

class CsvTypes : public ::testing::Test {
 protected:
  Array learn(const std::string& text, const std::string& target, CsvOptions options = {}) {
    options.find_types = true;
    options.keep_missing = true;
    return read(text, target, options);
  }
  // Through the encoding that was learned, as a network would carry it.
  Array again(const std::string& text, const std::string& target = "") {
    return read(text, target, {.encoding = parse_encoding(encoding_text(encoding_))});
  }
  Array read(const std::string& text, const std::string& target, const CsvOptions& options) {
    CsvReader reader(folder_.write("t.csv", text), target, options);
    Array x;
    reader.next(1000, x, y_);
    encoding_ = reader.encoding();
    warnings_ = reader.warnings();
    notes_ = reader.row_notes();
    return x;
  }
  std::string error(const std::function<void()>& work) { return message_of(folder_, work); }

  Folder folder_;
  CsvEncoding encoding_;
  Array y_;
  std::vector<std::string> warnings_;
  RowNotes notes_;
};

// Free text becomes its frequent words, which other files are read by.
TEST_F(CsvTypes, ReadsFreeTextByItsWords) {
  std::string text = "note,y\n";
  for (int i = 0; i < 12; ++i) {
    text += concat("\"Item ", i, i % 2 == 0 ? ": Fine" : ": worn", i < 4 ? ", RARE" : "", "\",", i,
                   "\n");
  }
  const Array x = learn(text, "y", {.types = {{"note", "text"}}});
  EXPECT_THAT(encoding_.feature_names(), ElementsAre("note=item", "note=fine", "note=worn"))
      << "of 5 rows at least, the most frequent first";
  EXPECT_EQ(x.shape, (std::vector<int64_t>{12, 3}));
  EXPECT_THAT(x.row(0), ElementsAre(1, 1, 0));
  EXPECT_THAT(x.row(1), ElementsAre(1, 0, 1));
  EXPECT_THAT(encoding_.typical, ElementsAre(1, 0.5, 0.5));
  const Array other = again("note\nworn but fine; FINE\nnew words\n\"\"\n?\n");
  ASSERT_EQ(other.rows(), 4u);
  EXPECT_THAT(other.row(0), ElementsAre(0, 1, 1));
  for (size_t i = 1; i < 4; ++i) EXPECT_THAT(other.row(i), ElementsAre(0, 0, 0));
  EXPECT_THAT(notes_.flags, ElementsAre("", "", "missing:note", "missing:note"));
}

TEST_F(CsvTypes, TextWithoutFrequentWordsIsOneFeature) {
  const Array x = learn("note,y\na,1\nb,2\n,3\n", "y", {.types = {{"note", "text"}}});
  EXPECT_THAT(encoding_.feature_names(), ElementsAre("note (other)"));
  EXPECT_THAT(x.values, ElementsAre(1, 1, 0));
}

constexpr char kMixed[] =
    "when;color;ok;price;name;y\n"
    "11.01.2000;red;yes;1,5;k1;10\n"
    "12.01.2000;blue;no;2,5;k2;20\n"
    "13.01.2000;red;yes;1.000,0;k3;30\n"
    "14.01.2000;blue;no;4,0;k4;40\n"
    "15.01.2000;red;yes;5,0;k5;50\n"
    "16.01.2000;gray;yes;5,0;k6;50\n"
    "17.01.2000;red;yes;5,0;k7;50\n"
    "18.01.2000;red;yes;5,0;k8;50\n"
    "19.01.2000;red;yes;5,0;k9;50\n"
    "20.01.2000;red;yes;5,0;k10;50\n";

TEST_F(CsvTypes, EveryKindBecomesFeatures) {
  const Array x = learn(kMixed, "y");
  EXPECT_THAT(encoding_.feature_names(),
              ElementsAre("when", "color=red", "color=blue", "color (other)", "ok", "price"));
  EXPECT_EQ(x.shape[1], 6);
  EXPECT_THAT(encoding_.typical,
              ElementsAre(14.5f, 0.7f, 0.2f, testing::FloatNear(0.1f, 1e-6f), 0.8f, _));
  EXPECT_THAT(std::vector<float>(x.values.begin(), x.values.begin() + 18),
              ElementsAre(10, 1, 0, 0, 1, 1.5f, 11, 0, 1, 0, 0, 2.5f, 12, 1, 0, 0, 1, 1000));
  EXPECT_EQ(x.values[5 * 6 + 3], 1) << "gray comes once: it is rare";
  EXPECT_EQ(y_.values[1], 20);
  EXPECT_THAT(warnings_, IsEmpty()) << "rare is not unknown";
}

TEST_F(CsvTypes, AnotherFileIsReadTheSameWay) {
  learn(kMixed, "y");
  const Array x = again("ok;price;when;color\nno;7,25;11.01.2000;pink\n;;;blue\n");
  EXPECT_THAT(std::vector<float>(x.values.begin(), x.values.begin() + 6),
              ElementsAre(10, 0, 0, 1, 0, 7.25f));
  EXPECT_THAT(notes_.flags, ElementsAre("unseen:color", "missing:when|missing:ok|missing:price"));
  EXPECT_THAT(notes_.lines, ElementsAre(2, 3));
  EXPECT_THAT(
      warnings_,
      ElementsAre(HasSubstr("2 of 2 rows have what no training row had (missing: ok in 1, price in "
                            "1, when in 1; unseen: color in 1): the coverage guarantee does not")));
  EXPECT_FLOAT_EQ(x.values[6], 14.5f) << "the mean, because nothing was missing in training";
}

TEST_F(CsvTypes, MissingIsLearnedWhereTrainingHadSome) {
  const Array x = learn("a,b,y\n1,u,1\n,v,2\n3,u,3\n4,v,4\n", "y");
  EXPECT_THAT(x.values, ElementsAre(1, 1, 0, IsNan(), 0, 1, 3, 1, 0, 4, 0, 1));
  again("a,b\n,u\n");
  EXPECT_THAT(warnings_, IsEmpty());
  again("a,b\n,\n");
  EXPECT_THAT(notes_.flags, ElementsAre("missing:b")) << "b was never missing";
}

// The network has not learned to read missing numbers from missing categories.
TEST_F(CsvTypes, MissingCategoriesTeachNothingOfNumbers) {
  learn("a,b,y\n1,u,1\n2,,2\n3,u,3\n6,v,4\n", "y");
  EXPECT_EQ(again("a,b\n,u\n").values[0], 3);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("(missing: a in 1)")));
}

// What no training row had; rare categories are of the training rows, and so is what is a little
// beyond their range.
TEST_F(CsvTypes, RowsUnlikeTheTrainingRowsAreFlagged) {
  learn(kMixed, "y");
  again(
      "ok;price;when;color\nno;1200;22.01.2000;gray\nno;1300;23.01.2000;red\nyes;-900;1.1.1999;"
      "red\n"
      "yes;3,5;1.1.1999;\n");
  EXPECT_THAT(notes_.flags, ElementsAre("", "range:when|range:price", "range:when|range:price",
                                        "range:when|missing:color"));
  learn(kMixed, "y");
  EXPECT_THAT(notes_.flags, IsEmpty()) << "a file is not unlike itself";
}

TEST_F(CsvTypes, MarksOfMissingValuesAreRemembered) {
  const Array x = learn("a,b,y\n1,u,1\n -,unknown,2\n3,u,3\n4,v,.\n", "y",
                        {.refused = std::make_shared<const RefusedRows>(
                             RefusedRows{{folder_.write("t.csv", ""), {3}}}),
                         .missing = {"-", "unknown", "."}});
  EXPECT_THAT(encoding_.categories[1], ElementsAre("u"));
  EXPECT_THAT(x.values[2], IsNan());
  EXPECT_THAT(again("a,b\n-,unknown\n").values[0], IsNan());
  EXPECT_THAT(notes_.flags, ElementsAre(""));
}

TEST_F(CsvTypes, OtherEncodingsOfText) {
  learn(
      "gr\xf6\xdf"
      "e,y\nklein,1\ngro\xdf,2\nklein,3\ngro\xdf,4\n",
      "y", {.text_encoding = TextEncoding::kCp1252});
  EXPECT_THAT(encoding_.feature_names(), ElementsAre("größe=klein", "größe=groß"));
}

TEST_F(CsvTypes, TextTargetsAreClasses) {
  const std::string text = "a,kind\n1,oak\n2,elm\n3,oak\n5,elm\n";
  learn(text, "kind", {.labels = CsvLabels::kText});
  EXPECT_THAT(encoding_.classes, ElementsAre("elm", "oak"));
  EXPECT_THAT(y_.values, ElementsAre(1, 0, 1, 0));
  again("kind,a\noak,7\n", "kind");
  EXPECT_THAT(y_.values, ElementsAre(1));
  again("a,kind\n1,fir\n2,oak\n3,ash\n", "kind");
  EXPECT_THAT(y_.values, ElementsAre(std::numeric_limits<float>::infinity(), 1,
                                     std::numeric_limits<float>::infinity()));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("column 'kind': 2 labels, as 'fir', are none of the "
                                               "2 classes of the training rows")));
  EXPECT_THAT(
      error([&] { learn(text, "kind"); }),
      HasSubstr("line 2, column 'kind': expected a number, found 'oak' (and 3 more such rows)"));
}

// What only rows beside those of the training have is no class of the network.
TEST_F(CsvTypes, ClassesAreThoseOfTheRowsThatAreLearnedFrom) {
  const std::string text = "a,kind\n1,oak\n2,elm\n3,fir\n5,elm\n";
  const float infinity = std::numeric_limits<float>::infinity();
  const auto learned = [](std::vector<bool> rows) {
    return CsvOptions{.labels = CsvLabels::kText,
                      .learn_rows = std::make_shared<const std::vector<bool>>(std::move(rows))};
  };
  learn(text, "kind", learned({true, true, false, false}));
  EXPECT_THAT(encoding_.classes, ElementsAre("elm", "oak"));
  EXPECT_THAT(y_.values, ElementsAre(1, 0, infinity, 0));
  learn(text, "kind", learned({false, true, false, true}));
  EXPECT_THAT(encoding_.classes, ElementsAre("elm", "(other)")) << "two answers at least";
  EXPECT_THAT(y_.values, ElementsAre(infinity, 0, infinity, 0));
}

// Codes that are numbers but for one are categories; a text among many numbers stays a mistake.
TEST_F(CsvTypes, ATextAmongFewCodesIsACode) {
  std::string text = "cylinders,weight,y\n";
  for (int i = 0; i < 30; ++i) {
    text += (i == 4 ? "rotary" : std::to_string(4 + 2 * (i % 3))) + "," + std::to_string(i * i) +
            "," + std::to_string(i) + "\n";
  }
  learn(text, "y");
  EXPECT_THAT(encoding_.feature_names(), ElementsAre("cylinders=4", "cylinders=6", "cylinders=8",
                                                     "cylinders (other)", "weight"));
  EXPECT_THAT(error([&] { learn(text + "4,heavy,1\n", "y"); }),
              HasSubstr("column 'weight': expected a number, found 'heavy'"));
}

TEST_F(CsvTypes, FewWholeNumbersMayBeClasses) {
  std::string text = "a,n\n";
  for (int i = 0; i < 40; ++i)
    text += std::to_string(i * i) + "," + std::to_string(3 * (i % 4)) + "\n";
  learn(text, "n", {.labels = CsvLabels::kText});
  EXPECT_THAT(encoding_.classes, IsEmpty());
  learn(text, "n", {.labels = CsvLabels::kFewValues});
  EXPECT_THAT(encoding_.classes, ElementsAre("0", "3", "6", "9"));
  EXPECT_EQ(y_.values[2], 2);
}

TEST_F(CsvTypes, AllProblemsComeAtOnce) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 40; ++i) text += std::to_string(i * i) + "," + std::to_string(i % 7) + ",1\n";
  text += "x,1,2\nz,1,2\n5,inf,2\n1,2\n3,4,\n";
  EXPECT_EQ(error([&] { learn(text, "y"); }),
            "t.csv: 4 problems in 5 rows: line 42, column 'a': expected a number, found 'x' (and 1 "
            "more such rows); line 44, column 'b': found 'inf', expected a finite number; line 45: "
            "found 2 cells, expected 3; line 46, column 'y': missing value '', expected a number");
  try {
    learn(text, "y");
    FAIL();
  } catch (const TableError& found) {
    EXPECT_THAT(found.text_columns(), ElementsAre("a"));
  }
}

TEST_F(CsvTypes, LearnsFromSomeRowsAlone) {
  auto mask = std::make_shared<std::vector<bool>>(std::vector<bool>{true, true, true, true, false});
  learn("a,c,y\n1,u,1\n2,u,1\n4,v,2\n5,v,2\n900,w,3\n", "y", {.learn_rows = mask});
  EXPECT_THAT(encoding_.categories[1], ElementsAre("u", "v"));
  EXPECT_EQ(encoding_.means[0], 3);
}

TEST_F(CsvTypes, TwoColumnsOfOneNameAreRefused) {
  EXPECT_EQ(error([&] { learn("a,b,a,y\n1,2,3,3\n4,6,6,6\n", "y"); }),
            "t.csv: two columns are called 'a', columns 0 and 2 (from 0); rename one of them");
}

// As networks of earlier versions were trained on such files.
TEST_F(CsvTypes, NumberedNamesOfEarlierVersionsAreFound) {
  learn("a,a (2),y\n1,2,3\n4,6,6\n", "y");
  EXPECT_THAT(again("a,b,a\n7,8,9\n").values, ElementsAre(7, 9));
}

TEST_F(CsvTypes, ColumnsThatAreNotThereAreGuessed) {
  const std::string text = "price,size\n1,2\n3,4\n";
  EXPECT_EQ(error([&] { learn(text, "prcie"); }),
            "t.csv: no column 'prcie' (target); the columns are 'price', 'size'; did you mean "
            "'price'?");
  EXPECT_THAT(error([&] { learn("a b\n1 2\n", "b", {.separator = ','}); }),
              HasSubstr("between ',' there is one column: is it another --separator?"));
  EXPECT_THAT(error([&] { learn("2019,2020\n1,2\n3,4\n", "2020"); }),
              HasSubstr("is it a header (--header yes)?"));
  learn("a,price\n1,2\n3,5\n", "price");
  EXPECT_THAT(error([&] { again("A,c\n1,2\n"); }), HasSubstr("no column 'a'; the columns are"));
}

}  // namespace
}  // namespace fcp

#include "apps/experiments/paper_sets.h"

#include <cmath>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Sums of the set as pandas prepares it (in float32): of x, of x weighted by the column's number
// from 1, of x and of y weighted by the row's number modulo 97, so that an exchange of columns or
// rows shows; and of y.
struct Sums {
  const char* name;
  const char* shown;
  double x, columns, rows, y, y_rows;
};

class RealPaperSet : public testing::TestWithParam<Sums> {};

TEST_P(RealPaperSet, HasTheSumsThatPandasFinds) {
  const char* data_dir = std::getenv("FCP_DATA_DIR");
  if (!data_dir) GTEST_SKIP() << "FCP_DATA_DIR is not set";
  const Sums& expected = GetParam();
  const DataSet set = load_paper_set(expected.name, data_dir);
  EXPECT_EQ(set.name, expected.shown);
  double x = 0, columns = 0, rows = 0, y = 0, y_rows = 0;
  const size_t width = set.x.row_size();
  for (size_t i = 0; i < set.x.rows(); ++i) {
    const double row_weight = static_cast<double>(i % 97);
    for (size_t j = 0; j < width; ++j) {
      const double value = set.x.values[i * width + j];
      x += value;
      columns += value * static_cast<double>(j + 1);
      rows += value * row_weight;
    }
    y += set.y.values[i];
    y_rows += set.y.values[i] * row_weight;
  }
  const auto near = [](double found, double wanted) {
    EXPECT_NEAR(found, wanted, 1e-10 * std::fabs(wanted));
  };
  near(x, expected.x);
  near(columns, expected.columns);
  near(rows, expected.rows);
  near(y, expected.y);
  near(y_rows, expected.y_rows);
}

INSTANTIATE_TEST_SUITE_P(
    All, RealPaperSet,
    testing::Values(
        Sums{"community", "community", 72576.4546547, 3598234.17879, 3442867.05256, 474.529999476,
             22390.3199798},
        Sums{"star", "star", 205938446.75, 241542221, 9853172736, 9688012, 461023745},
        Sums{"bio", "bio", 63360363207, 314964868604, 3.03379518439e+12, 354340.205022,
             17005559.8841},
        Sums{"bike", "bike", 1555176.60211, 9842083.70711, 74605271.7949, 2085476, 99925125},
        Sums{"facebook1", "facebook1", 55926626325, 61583896861.4, 2.59308052906e+12, 299865,
             14101756},
        Sums{"blog", "blog", 237981913.363, 10759923471.7, 11447337008, 354451, 17232753},
        Sums{"meps21", "meps21 (rebuilt)", 148866092.146, 779568221.1, 7180893763.17, 125592,
             6123332}),
    [](const auto& set) { return std::string(set.param.name); });

constexpr PaperSetOptions kAnyRows{.check_rows = false};

TEST(PaperSets, NamesAll) {
  EXPECT_THAT(paper_set_names(), ElementsAre("community", "star", "bio", "bike", "facebook1",
                                             "facebook2", "blog", "meps19", "meps20", "meps21"));
}

TEST(PaperSets, SaysWhichFileIsMissingAndWhereItComesFrom) {
  const Folder folder;
  const auto loading = [&](const std::string& name) {
    const std::string text =
        message_of(folder, [&] { load_paper_set(name, folder.path(), kAnyRows); });
    return text.substr(0, text.find(" expected in")) + text.substr(text.find("; it comes"));
  };
  EXPECT_EQ(loading("community"),
            "community: communities.data or communities.data.gz; it comes from the UCI Machine "
            "Learning Repository, Communities and Crime");
  EXPECT_EQ(loading("meps19"),
            "meps19: meps_19_reg.csv or meps_19_reg.csv.gz; it comes from AHRQ's Medical "
            "Expenditure Panel Survey, prepared as for CQR, panel 19");
  EXPECT_EQ(message_of(folder, [&] { load_paper_set("iris", folder.path()); }),
            "no data set 'iris' in the paper");
}

TEST(PaperSets, ChecksTheRows) {
  const Folder folder;
  std::string line;
  for (int j = 0; j < 280; ++j) line += std::to_string(j) + ",";
  folder.write("blogData_train.csv", line + "7\n" + line + "8\n");
  EXPECT_EQ(message_of(folder, [&] { load_paper_set("blog", folder.path()); }),
            "blogData_train.csv: 2 rows × 280 features, expected 52397 × 280");
  EXPECT_THAT(load_paper_set("blog", folder.path(), kAnyRows).y.values, ElementsAre(7, 8));
}

TEST(PaperSets, Facebook2LosesItsFirstLineAndIsFoundInTabularAndPacked) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 54; ++j) text += std::to_string(100 * i + j) + (j < 53 ? "," : "\r\n");
  }
  std::filesystem::create_directory(folder.path("tabular"));
  folder.write("tabular/Features_Variant_2.csv.gz", gzipped(text));
  const DataSet set = load_paper_set("facebook2", folder.path(), kAnyRows);
  EXPECT_THAT(set.x.shape, ElementsAre(2, 53));
  EXPECT_EQ(set.x.values[0], 100);
  EXPECT_EQ(set.x.values[52], 152);
  EXPECT_THAT(set.y.values, ElementsAre(153, 253));
  EXPECT_EQ(message_of(folder, [&] { load_paper_set("facebook2", folder.path()); }),
            "tabular/Features_Variant_2.csv.gz: 2 rows × 53 features, expected 81311 × 53");
}

// As the original files are: an index column first, the target somewhere, columns in another order.
TEST(PaperSets, MepsFindsItsColumnsByName) {
  const Folder folder;
  const std::vector<std::pair<std::string, std::vector<int>>> questions = {
      {"REGION", {1, 2, 3, 4}},
      {"SEX", {1, 2}},
      {"MARRY", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
      {"FTSTU", {-1, 1, 2, 3}},
      {"ACTDTY", {1, 2, 3, 4}},
      {"HONRDC", {1, 2, 3, 4}},
      {"RTHLTH", {-1, 1, 2, 3, 4, 5}},
      {"MNHLTH", {-1, 1, 2, 3, 4, 5}},
      {"HIBPDX", {-1, 1, 2}},
      {"CHDDX", {-1, 1, 2}},
      {"ANGIDX", {-1, 1, 2}},
      {"MIDX", {-1, 1, 2}},
      {"OHRTDX", {-1, 1, 2}},
      {"STRKDX", {-1, 1, 2}},
      {"EMPHDX", {-1, 1, 2}},
      {"CHBRON", {-1, 1, 2}},
      {"CHOLDX", {-1, 1, 2}},
      {"CANCERDX", {-1, 1, 2}},
      {"DIABDX", {-1, 1, 2}},
      {"JTPAIN", {-1, 1, 2}},
      {"ARTHDX", {-1, 1, 2}},
      {"ARTHTYPE", {-1, 1, 2, 3}},
      {"ASTHDX", {1, 2}},
      {"ADHDADDX", {-1, 1, 2}},
      {"PREGNT", {-1, 1, 2}},
      {"WLKLIM", {-1, 1, 2}},
      {"ACTLIM", {-1, 1, 2}},
      {"SOCLIM", {-1, 1, 2}},
      {"COGLIM", {-1, 1, 2}},
      {"DFHEAR42", {-1, 1, 2}},
      {"DFSEE42", {-1, 1, 2}},
      {"ADSMOK42", {-1, 1, 2}},
      {"PHQ242", {-1, 0, 1, 2, 3, 4, 5, 6}},
      {"EMPST", {-1, 1, 2, 3, 4}},
      {"POVCAT", {1, 2, 3, 4, 5}},
      {"INSCOV", {1, 2, 3}}};
  std::string header = ",UTILIZATION_reg,RACE,PERWT15F,K6SUM42,MCS42,PCS42,AGE";
  std::string cells = "0,99,139,5,4,3,2,1";
  int number = 6;
  for (const auto& [question, codes] : questions) {
    for (const int code : codes) {
      header += concat(",", question, "=", code);
      cells += concat(",", number++);
    }
  }
  for (const std::string panel : {"19", "20"}) {
    folder.write("meps_" + panel + "_reg.csv", header + "\n" + cells + "\n" + cells + "\n");
    const DataSet set = load_paper_set("meps" + panel, folder.path(), kAnyRows);
    EXPECT_EQ(set.name, "meps" + panel);
    ASSERT_THAT(set.x.shape, ElementsAre(2, 139));
    for (size_t j = 0; j < 139; ++j) EXPECT_EQ(set.x.values[j], static_cast<float>(j + 1));
    EXPECT_THAT(set.y.values, ElementsAre(99, 99));
  }
  folder.write("meps_21_reg.csv", header + "\n" + cells + "\n");
  EXPECT_THAT(message_of(folder, [&] { load_paper_set("meps21", folder.path(), kAnyRows); }),
              HasSubstr("meps_21_reg.csv: no column 'PERWT16F'; the columns are '', "));
}

TEST(PaperSets, AreThereWhereTheirFileIs) {
  const Folder folder;
  EXPECT_FALSE(has_paper_set("bio", folder.path()));
  folder.write("CASP.csv.gz", "");
  EXPECT_TRUE(has_paper_set("bio", folder.path()));
  EXPECT_FALSE(has_paper_set("star", folder.path()));
}

TEST(PaperSets, BikeMakesTheCalendar) {
  const Folder folder;
  folder.write("bike_train.csv",
               "datetime,season,holiday,workingday,weather,temp,atemp,humidity,windspeed,casual,"
               "registered,count\n"
               "2011-01-01 05:00:00,1,0,1,4,9.5,14.25,81,2,3,13,16\n"
               "2012-02-29 23:00:00,4,1,0,2,9.5,14.25,81,2,3,13,17\n");
  const DataSet set = load_paper_set("bike", folder.path(), kAnyRows);
  EXPECT_THAT(set.x.row(0),
              ElementsAre(0, 1, 9.5f, 14.25f, 81, 2, 1, 0, 0, 0, 0, 0, 0, 1, 5, 5, 1, 0));
  EXPECT_THAT(set.x.row(1),
              ElementsAre(1, 0, 9.5f, 14.25f, 81, 2, 0, 0, 0, 1, 0, 1, 0, 0, 23, 2, 2, 1));
  EXPECT_THAT(set.y.values, ElementsAre(16, 17));
}

}  // namespace
}  // namespace fcp

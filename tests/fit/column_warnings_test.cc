#include "fcp/fit/column_warnings.h"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"
#include "fcp/data/number.h"
#include "fcp/data/rows.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string cell(double value) { return number_text(static_cast<float>(value)); }

std::vector<std::string> warnings_of(const std::string& text, ColumnCheck check = {}) {
  const Folder folder;
  DataOptions data{.data = folder.write("t.csv", text), .target = "y"};
  data.csv.find_types = true;
  data.csv.labels = check.classes ? CsvLabels::kAlways : CsvLabels::kNumbers;
  const auto source = open_rows(data.data, data.target, data.csv);
  return column_warnings(data, source->schema(), read_all(*source).y, check);
}

// An age, a measurement, a category of four values: none of them is odd, however well they predict.
TEST(ColumnWarnings, AreSilentOnHonestColumns) {
  Random random(1);
  std::string text = "age,size,kind,y\n";
  for (int i = 0; i < 1000; ++i) {
    const auto age = static_cast<double>(20 + random.below(60));
    const double size = random.normal();
    const auto kind = random.below(4);
    text += cell(age) + "," + cell(size) + ",k" + std::to_string(kind) + "," +
            cell(0.2 * age + size + static_cast<double>(kind) + random.normal()) + "\n";
  }
  EXPECT_THAT(warnings_of(text), IsEmpty());
}

TEST(ColumnWarnings, NameALeakOfNumbers) {
  Random random(2);
  std::string text = "a,my leak,wave,y\n";
  for (int i = 0; i < 500; ++i) {
    const double a = random.normal(), y = a + std::exp(2 * random.normal());
    text += cell(a) + "," + cell(2 * y + 1) + "," + cell(random.normal()) + "," + cell(y) + "\n";
  }
  EXPECT_THAT(warnings_of(text), ElementsAre(::testing::AllOf(HasSubstr("column 'my leak' alone"),
                                                              HasSubstr("--drop 'my leak'"))));
}

// A column that names the class in other words, and a number that grows with it.
TEST(ColumnWarnings, NameLeaksOfClasses) {
  Random random(3);
  std::string text = "a,code,serial,y\n";
  for (int i = 0; i < 600; ++i) {
    const int label = i / 200;
    text += cell(random.normal()) + ",c" + std::to_string(label * 7) + "," +
            cell(10.5 * i + random.uniform()) + "," +
            std::string(1, static_cast<char>('p' + label)) + "\n";
  }
  const auto warnings = warnings_of(text, {.classes = true});
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("column 'code' alone"), HasSubstr("'serial' alone")));
}

// The number of a patient, and a height that all rows of a patient share: one warning, by the
// column of text.
TEST(ColumnWarnings, NameTheGroupWhoseRowsAreAlike) {
  Random random(4);
  std::string text = "height,patient,dose,y\n", numbers = "patient,dose,y\n";
  for (int patient = 0; patient < 100; ++patient) {
    const double height = 1.7 + 0.1 * random.normal(), effect = 5 * random.normal();
    for (int row = 0; row < 10; ++row) {
      const double dose = random.uniform(), y = effect + dose + random.normal();
      text +=
          cell(height) + ",p" + std::to_string(patient) + "," + cell(dose) + "," + cell(y) + "\n";
      numbers += std::to_string(patient * 37 % 100) + "," + cell(dose) + "," + cell(y) + "\n";
    }
  }
  EXPECT_THAT(warnings_of(text), ElementsAre(HasSubstr("rows of one 'patient' look alike")));
  EXPECT_THAT(warnings_of(numbers), ElementsAre(HasSubstr("--keep-together patient")));
  EXPECT_THAT(warnings_of(text, {.groups = false}), IsEmpty());
}

TEST(ColumnWarnings, SeeRowsInOrderOfTime) {
  Random random(5);
  std::string ordered = "when,a,y\n", mixed = ordered;
  for (int i = 0; i < 300; ++i) {
    const int day = i, other = static_cast<int>(random.below(300));
    const auto date = [](int n) {
      const auto two = [](int v) { return (v < 10 ? "0" : "") + std::to_string(v); };
      return std::to_string(2020 + n / 336) + "-" + two(1 + n % 336 / 28) + "-" + two(1 + n % 28);
    };
    const std::string rest = "," + cell(random.normal()) + "," + cell(random.normal()) + "\n";
    ordered += date(day) + rest;
    mixed += date(other) + rest;
  }
  EXPECT_THAT(warnings_of(ordered), ElementsAre(HasSubstr("--time when")));
  EXPECT_THAT(warnings_of(ordered, {.time = false}), IsEmpty());
  EXPECT_THAT(warnings_of(mixed), IsEmpty());
}

}  // namespace
}  // namespace fcp

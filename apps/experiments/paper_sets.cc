#include "apps/experiments/paper_sets.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>

#include "fcp/base/error.h"
#include "fcp/data/csv_records.h"
#include "fcp/data/number.h"
#include "fcp/data/rows.h"

namespace fcp {

namespace {

struct Source {
  std::string name;
  std::vector<std::string> files;  // any of them; the first is the one the paper used
  std::vector<size_t> rows;        // of the set made from each of these files
  size_t columns;                  // of x
  std::string origin;
};

const std::vector<Source>& sources() {
  const std::string uci = "the UCI Machine Learning Repository, ";
  const std::string meps = "AHRQ's Medical Expenditure Panel Survey, prepared as for CQR";
  static const std::vector<Source> kSources = {
      {"community", {"communities.data"}, {1994}, 100, uci + "Communities and Crime"},
      {"star", {"STAR.csv"}, {2161}, 39, "the R package AER, data set STAR"},
      {"bio", {"CASP.csv"}, {45730}, 9, uci + "Properties of Protein Tertiary Structure"},
      {"bike", {"bike_train.csv"}, {10886}, 18, "Kaggle, Bike Sharing Demand (its train.csv)"},
      {"facebook1", {"Features_Variant_1.csv"}, {40948}, 53, uci + "Facebook Comment Volume"},
      {"facebook2", {"Features_Variant_2.csv"}, {81311}, 53, uci + "Facebook Comment Volume"},
      {"blog", {"blogData_train.csv"}, {52397}, 280, uci + "BlogFeedback"},
      {"meps19", {"meps_19_reg.csv"}, {15785}, 139, meps + ", panel 19"},
      {"meps20", {"meps_20_reg.csv"}, {17541}, 139, meps + ", panel 20"},
      {"meps21",
       {"meps_21_reg.csv", "meps_21_reg_rebuilt.csv"},
       {15656, 15670},
       139,
       meps + ", panel 21"}};
  return kSources;
}

// Which of the source's files there is, and where.
struct Found {
  std::string path;
  size_t file;
};

std::optional<Found> find_file(const Source& source, const std::string& data_dir) {
  for (size_t i = 0; i < source.files.size(); ++i) {
    for (const std::string& folder : {data_dir, data_dir + "/tabular"}) {
      for (const char* ending : {"", ".gz"}) {
        const std::string path = folder + "/" + source.files[i] + ending;
        if (std::filesystem::is_regular_file(path)) return Found{path, i};
      }
    }
  }
  return std::nullopt;
}

const Source& source_of(const std::string& name) {
  const auto source = std::find_if(sources().begin(), sources().end(),
                                   [&](const Source& s) { return s.name == name; });
  if (source == sources().end()) fail("no data set '", name, "' in the paper");
  return *source;
}

// A file whose cells are all numbers.
DataSet read_numbers(const std::string& path, const std::string& target,
                     const CsvOptions& options) {
  const auto source = open_rows(path, target, options);
  Rows rows = read_all(*source);
  DataSet set{"", {}, source->target_names(), std::move(rows.x), std::move(rows.y)};
  if (options.header == CsvHeader::kYes) set.columns = source->column_names();
  return set;
}

DataSet load_bio(const std::string& path) {
  return read_numbers(path, "0", {.header = CsvHeader::kYes});
}

DataSet load_blog(const std::string& path) {
  return read_numbers(path, "-1", {.header = CsvHeader::kNo});
}

// The official code takes the first line for a header, so that row is lost.
DataSet load_facebook(const std::string& path) {
  DataSet set = read_numbers(path, "53", {.header = CsvHeader::kNo});
  std::vector<size_t> rest(set.x.rows() - 1);
  std::iota(rest.begin(), rest.end(), size_t{1});
  set.x = take_rows(set.x, rest);
  set.y = take_rows(set.y, rest);
  return set;
}

// The 139 columns: five numbers, the one-hot codes of 43 questions, and RACE.
std::vector<std::string> meps_columns(const std::string& weight) {
  std::vector<std::string> columns = {"AGE", "PCS42", "MCS42", "K6SUM42", weight};
  std::istringstream questions(
      "REGION:1,2,3,4 SEX:1,2 MARRY:1,2,3,4,5,6,7,8,9,10 FTSTU:-1,1,2,3 ACTDTY:1,2,3,4 "
      "HONRDC:1,2,3,4 RTHLTH:-1,1,2,3,4,5 MNHLTH:-1,1,2,3,4,5 HIBPDX:-1,1,2 CHDDX:-1,1,2 "
      "ANGIDX:-1,1,2 MIDX:-1,1,2 OHRTDX:-1,1,2 STRKDX:-1,1,2 EMPHDX:-1,1,2 CHBRON:-1,1,2 "
      "CHOLDX:-1,1,2 CANCERDX:-1,1,2 DIABDX:-1,1,2 JTPAIN:-1,1,2 ARTHDX:-1,1,2 "
      "ARTHTYPE:-1,1,2,3 ASTHDX:1,2 ADHDADDX:-1,1,2 PREGNT:-1,1,2 WLKLIM:-1,1,2 ACTLIM:-1,1,2 "
      "SOCLIM:-1,1,2 COGLIM:-1,1,2 DFHEAR42:-1,1,2 DFSEE42:-1,1,2 ADSMOK42:-1,1,2 "
      "PHQ242:-1,0,1,2,3,4,5,6 EMPST:-1,1,2,3,4 POVCAT:1,2,3,4,5 INSCOV:1,2,3");
  std::string question;
  while (questions >> question) {
    const size_t colon = question.find(':');
    std::istringstream codes(question.substr(colon + 1));
    std::string code;
    while (std::getline(codes, code, ',')) {
      columns.push_back(question.substr(0, colon) + "=" + code);
    }
  }
  columns.push_back("RACE");
  return columns;
}

DataSet load_meps(const std::string& path, const std::string& weight) {
  CsvEncoding encoding{.header = true, .width = 0, .columns = meps_columns(weight)};
  encoding.positions.resize(encoding.columns.size());
  encoding.categories.resize(encoding.columns.size());
  return read_numbers(path, "UTILIZATION_reg", {.header = CsvHeader::kYes, .encoding = encoding});
}

// A small file as text.
struct PaperTable {
  std::string path;
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;

  size_t column(const std::string& name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail(path, ": no column '", name, "'");
    return static_cast<size_t>(found - names.begin());
  }
  double number(size_t row, size_t column) const {
    double value;
    if (!parse_number(rows[row][column], value)) {
      fail(path, ": row ", row + 1, ", column ", column, ": expected a number, found '",
           rows[row][column], "'");
    }
    return value;
  }
};

PaperTable read_table(const std::string& path, bool header, size_t width) {
  PaperTable table{path, {}, {}};
  CsvRecords records(open_bytes(path), ',');
  while (records.next()) {
    if (records.cells().size() != width) {
      fail(path, ": line ", records.line(), ": found ", records.cells().size(), " cells, expected ",
           width);
    }
    std::vector<std::string> cells(records.cells().begin(), records.cells().end());
    if (header && table.names.empty()) {
      table.names = std::move(cells);
    } else {
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

DataSet empty_set(size_t rows, size_t columns) {
  return {"",
          {},
          {},
          zeros({static_cast<int64_t>(rows), static_cast<int64_t>(columns)}),
          zeros({static_cast<int64_t>(rows), 1})};
}

DataSet load_community(const std::string& path) {
  constexpr size_t kNotPredictive = 5;  // state, county, community, communityname, fold
  constexpr size_t kOtherPerCap = 30;   // the one column whose gap is filled
  constexpr size_t kFeatures = 100;
  PaperTable table = read_table(path, false, 128);
  double sum = 0, found = 0;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (is_missing(table.rows[i][kOtherPerCap])) continue;
    sum += table.number(i, kOtherPerCap);
    ++found;
  }
  std::vector<size_t> complete;
  for (size_t j = kNotPredictive; j < 128; ++j) {
    const bool gaps = std::any_of(table.rows.begin(), table.rows.end(),
                                  [j](const auto& row) { return is_missing(row[j]); });
    if (!gaps || j == kOtherPerCap) complete.push_back(j);
  }
  if (complete.size() <= kFeatures) {
    fail(path, ": ", complete.size(), " columns without missing values, expected 101");
  }
  DataSet set = empty_set(table.rows.size(), kFeatures);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    for (size_t j = 0; j < kFeatures; ++j) {
      const bool gap = is_missing(table.rows[i][complete[j]]);
      const double value = gap ? sum / found : table.number(i, complete[j]);
      set.x.values[i * kFeatures + j] = static_cast<float>(value);
    }
    set.y.values[i] = static_cast<float>(table.number(i, complete[kFeatures]));
  }
  set.targets = {"ViolentCrimesPerPop"};
  return set;
}

// Texts of STAR's columns; a text's code is its place in the list.
std::map<std::string, std::vector<std::string>> star_codes() {
  std::map<std::string, std::vector<std::string>> codes;
  codes["gender"] = {"female", "male"};
  codes["ethnicity"] = {"cauc", "afam", "asian", "hispanic", "amindian", "other"};
  for (const std::string grade : {"k", "1", "2", "3"}) {
    const bool kindergarten = grade == "k";
    codes["star" + grade] = {"regular", "small", "regular+aide"};
    codes["lunch" + grade] = {"free", "non-free"};
    codes["school" + grade] = {"inner-city", "suburban", "rural", "urban"};
    codes["degree" + grade] = {"bachelor", "master", "specialist",
                               kindergarten ? "master+" : "phd"};
    codes["ladder" + grade] = {"level1",     "level2",    "level3",
                               "apprentice", "probation", kindergarten ? "pending" : "noladder",
                               "notladder"};
    codes["tethnicity" + grade] = {"cauc", "afam"};
  }
  codes["tethnicity3"].push_back("asian");
  return codes;
}

// x is the row's name, the columns up to the scores, and those from the second lunch column on (the
// official code skips the first); y is the sum of the eight scores.
DataSet load_star(const std::string& path) {
  constexpr size_t kFirstScore = 8, kScores = 8, kFirstBehind = 17, kWidth = 48;
  PaperTable table = read_table(path, true, kWidth);
  std::erase_if(table.rows, [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](const auto& cell) { return is_missing(cell); });
  });
  const auto codes = star_codes();
  DataSet set = empty_set(table.rows.size(), kWidth - kScores - 1);
  size_t out = 0;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    double scores = 0;
    for (size_t j = 0; j < kWidth; ++j) {
      const auto coded = codes.find(table.names[j]);
      double value = 0;
      if (coded == codes.end()) {
        value = table.number(i, j);
      } else {
        const auto& texts = coded->second;
        const auto place = std::find(texts.begin(), texts.end(), table.rows[i][j]);
        if (place == texts.end()) {
          fail(path, ": column '", table.names[j], "': unknown text '", table.rows[i][j], "'");
        }
        value = static_cast<double>(place - texts.begin());
      }
      if (j >= kFirstScore && j < kFirstScore + kScores) scores += value;
      if (j < kFirstScore || j >= kFirstBehind) set.x.values[out++] = static_cast<float>(value);
    }
    set.y.values[i] = static_cast<float>(scores);
  }
  set.columns.assign(table.names.begin(), table.names.begin() + kFirstScore);
  set.columns.insert(set.columns.end(), table.names.begin() + kFirstBehind, table.names.end());
  set.targets = {"score"};
  return set;
}

// 0 for Monday … 6 for Sunday (Zeller's congruence).
int weekday(int year, int month, int day) {
  if (month < 3) {
    month += 12;
    --year;
  }
  const int from_saturday =
      (day + 13 * (month + 1) / 5 + year + year / 4 - year / 100 + year / 400) % 7;
  return (from_saturday + 5) % 7;
}

DataSet load_bike(const std::string& path) {
  const PaperTable table = read_table(path, true, 12);
  DataSet set = empty_set(table.rows.size(), 18);
  set.columns = {"holiday",   "workingday", "temp",     "atemp",    "humidity",  "windspeed",
                 "season_1",  "season_2",   "season_3", "season_4", "weather_1", "weather_2",
                 "weather_3", "weather_4",  "hour",     "day",      "month",     "year"};
  set.targets = {"count"};
  for (size_t i = 0; i < table.rows.size(); ++i) {
    float* out = set.x.values.data() + 18 * i;
    for (size_t j = 0; j < 6; ++j) {
      out[j] = static_cast<float>(table.number(i, table.column(set.columns[j])));
    }
    for (const auto& [name, first] : {std::pair{"season", 6}, std::pair{"weather", 10}}) {
      const double code = table.number(i, table.column(name));
      if (code != 1 && code != 2 && code != 3 && code != 4) {
        fail(path, ": ", name, " ", code, " in row ", i + 1, ", expected 1, 2, 3 or 4");
      }
      out[first + static_cast<int>(code) - 1] = 1;
    }
    int year = 0, month = 0, day = 0, hour = 0;
    const std::string& time = table.rows[i][table.column("datetime")];
    if (std::sscanf(time.c_str(), "%d-%d-%d %d:", &year, &month, &day, &hour) != 4) {
      fail(path, ": datetime '", time, "' in row ", i + 1, ", expected 2011-01-31 23:00:00");
    }
    const int calendar[] = {hour, weekday(year, month, day), month, year - 2011};
    std::copy(std::begin(calendar), std::end(calendar), out + 14);
    set.y.values[i] = static_cast<float>(table.number(i, table.column("count")));
  }
  return set;
}

DataSet load_file(const std::string& name, const std::string& path) {
  if (name == "community") return load_community(path);
  if (name == "star") return load_star(path);
  if (name == "bio") return load_bio(path);
  if (name == "bike") return load_bike(path);
  if (name == "blog") return load_blog(path);
  if (name.starts_with("facebook")) return load_facebook(path);
  return load_meps(path, name == "meps21" ? "PERWT16F" : "PERWT15F");
}

}  // namespace

const std::vector<std::string>& paper_set_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Source& source : sources()) names.push_back(source.name);
    return names;
  }();
  return kNames;
}

bool has_paper_set(const std::string& name, const std::string& data_dir) {
  return find_file(source_of(name), data_dir).has_value();
}

DataSet load_paper_set(const std::string& name, const std::string& data_dir,
                       const PaperSetOptions& options) {
  const Source& source = source_of(name);
  const std::optional<Found> found = find_file(source, data_dir);
  if (!found) {
    fail(name, ": ", source.files[0], " or ", source.files[0], ".gz expected in ", data_dir, " or ",
         data_dir, "/tabular, not found; it comes from ", source.origin);
  }
  DataSet set = load_file(name, found->path);
  set.name = found->file == 0 ? name : name + " (rebuilt)";
  const size_t rows = options.check_rows ? source.rows[found->file] : set.x.rows();
  if (set.x.rows() != rows || set.x.row_size() != source.columns) {
    fail(found->path, ": ", set.x.rows(), " rows × ", set.x.row_size(), " features, expected ",
         rows, " × ", source.columns);
  }
  return set;
}

}  // namespace fcp

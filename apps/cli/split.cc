// fcp split: the rows of a table in several files.
#include "fcp/data/split.h"

#include <filesystem>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/data/csv_column.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/report/results.h"

namespace fcp::cli {
namespace {

struct SplitFlags {
  CommonOptions common;
  std::string data;
  std::string shares = "3:1:1";
  std::vector<std::string> out;
  std::string stratify, together, group, time;
  std::string separator;
};

// STEM.train.csv, STEM.calibration.csv and STEM.test.csv; other numbers of parts are counted.
std::vector<std::string> usual_names(const std::string& data, size_t parts) {
  const std::filesystem::path path(data);
  const std::string stem = (path.parent_path() / path.stem()).string();
  if (parts == 3) return {stem + ".train.csv", stem + ".calibration.csv", stem + ".test.csv"};
  std::vector<std::string> names;
  for (size_t i = 1; i <= parts; ++i) names.push_back(concat(stem, ".part", i, ".csv"));
  return names;
}

void check_flags(const SplitFlags& flags, size_t parts) {
  if (!flags.stratify.empty() && !(flags.together.empty() && flags.time.empty())) {
    throw UsageError("--stratify excludes --keep-together and --time");
  }
  if (!flags.out.empty() && flags.out.size() != parts) {
    throw UsageError(concat("--out names ", flags.out.size(), " files for ", parts, " parts"));
  }
}

void run_split(const SplitFlags& flags) {
  const std::vector<double> shares = parse_shares(flags.shares);
  check_flags(flags, shares.size());
  CsvOptions csv;
  csv.separator = separator_of(flags.separator);
  SplitColumns columns;
  if (!flags.stratify.empty()) columns.strata = read_csv_column(flags.data, flags.stratify, csv);
  if (!flags.together.empty()) columns.groups = read_csv_column(flags.data, flags.together, csv);
  if (!flags.time.empty()) columns.times = read_time_column(flags.data, flags.time, csv);
  const size_t rows = read_csv_column(flags.data, "0", csv).size();
  const auto parts = split_rows(rows, shares, flags.common.seed, columns);
  const std::vector<std::string> names =
      flags.out.empty() ? usual_names(flags.data, parts.size()) : flags.out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) fail(flags.data, ": no row is left for ", names[i]);
  }
  write_parts(flags.data, parts, names, csv);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!flags.common.json) {
      std::cout << names[i] << ": " << format_count(parts[i].size()) << " rows\n";
    }
    json.push_back({{"file", names[i]}, {"rows", parts[i].size()}});
  }
  if (flags.common.json) std::cout << json.dump(2) << '\n';
}

}  // namespace

void add_split(CLI::App& app) {
  auto flags = std::make_shared<SplitFlags>();
  CLI::App* verb =
      app.add_subcommand("split", "Split a table into files for training, calibration and test");
  verb->footer(
      "Examples:\n"
      "  fcp split data.csv --shares 3:1:1\n"
      "  fcp split data.csv --shares 4:1 --stratify kind --out rest.csv,test.csv\n"
      "  fcp split visits.csv --keep-together patient\n"
      "  fcp split sales.csv --time date\n"
      "Without --out the files are DATA.train.csv, DATA.calibration.csv and DATA.test.csv.");
  verb->add_option("data", flags->data, "CSV file with a header")->required();
  verb->add_option("--shares", flags->shares, "Shares of the parts, such as 3:1:1")
      ->capture_default_str();
  verb->add_option("--out", flags->out, "Files to write, one per share")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--stratify", flags->stratify,
                   "Column whose values each part has in equal shares");
  CLI::Option* together = verb->add_option(
      "--keep-together", flags->together,
      "Column, such as a patient or a shop, whose rows of one value stay together");
  verb->add_option("--group", flags->group, "The old name of --keep-together")->excludes(together);
  verb->add_option("--time", flags->time,
                   "Column of dates or numbers: the oldest rows first; with --keep-together "
                   "the groups whose newest row is the oldest");
  verb->add_option("--separator", flags->separator,
                   "CSV separator: a character or 'tab'; inferred when absent");
  add_common(*verb, flags->common, kTakesJson | kTakesSeed);
  verb->callback([flags] {
    if (!flags->group.empty()) {
      say(flags->common, "note: --group is called --keep-together now");
      flags->together = flags->group;
    }
    run_split(*flags);
  });
}

}  // namespace fcp::cli

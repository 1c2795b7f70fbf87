#include "apps/experiments/publish.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "fcp/base/output_file.h"

#include "apps/experiments/result_rows.h"
#include "apps/report/format.h"
#include "apps/report/json.h"

namespace fcp {
namespace {

// The page is for other people and machines: a whole path of this one is not told.
std::string without_folder(std::string line, const std::string& folder) {
  constexpr std::string_view kInstead = "DATA-DIR";
  if (!folder.starts_with('/')) return line;
  for (size_t at = 0; (at = line.find(folder, at)) != std::string::npos; at += kInstead.size()) {
    line.replace(at, folder.size(), kInstead);
  }
  return line;
}

}  // namespace

std::vector<ExperimentResult> gather_results(std::span<const CellTask> tasks,
                                             std::span<const CellResult> results) {
  std::vector<ExperimentResult> gathered;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (gathered.empty() || gathered.back().experiment != tasks[i].experiment) {
      gathered.emplace_back();
      gathered.back().experiment = tasks[i].experiment;
    }
    ExperimentResult& result = gathered.back();
    if (!results[i].left_out.empty()) {
      const std::string line = concat(tasks[i].key.set, " is left out: ", results[i].left_out);
      const auto known = std::find(result.left_out.begin(), result.left_out.end(), line);
      if (known == result.left_out.end()) result.left_out.push_back(line);
      continue;
    }
    ++result.cells;
    result.seconds += results[i].seconds;
    for (const Json& row : results[i].rows) result.rows.push_back(row);
  }
  return gathered;
}

ResultPage page_of(std::span<const ExperimentResult> results, const ExperimentOptions& options) {
  ResultPage page;
  page.title = "Results";
  page.subtitle =
      "The tables and figures of “Predictive Inference with Feature Conformal Prediction” (the "
      "paper), measured again, with our own scores beside the paper's.";
  page.provenance = {{"α", options.level.text()},
                     {"seeds", options.quick ? "1" : std::to_string(options.seeds)},
                     {"first seed", std::to_string(options.seed)}};
  if (options.quick) page.provenance.push_back({"quick", "built-in sets, few rows"});
  for (const ExperimentResult& result : results) {
    page.sections.push_back(section_of(*result.experiment, options, result.rows));
    for (const std::string& line : result.left_out) {
      page.sections.back().notes.push_back(without_folder(line, options.data_dir));
    }
    page.provenance.push_back(
        {result.experiment->name, concat(format_count(result.cells, "cell"), ", ",
                                         format_number(result.seconds, 3), " s of cells")});
  }
  return page;
}

void publish(const std::string& folder, std::span<const ExperimentResult> results,
             const ResultPage& page) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(folder, ": the folder could not be made: ", error.message());
  for (const ExperimentResult& result : results) {
    const std::string stem = concat(folder, "/", result.experiment->name);
    write_file(stem + ".csv", rows_csv(result.rows));
    write_file(stem + ".json", json_text(result.rows) + "\n");
  }
  write_file(folder + "/results.md", results_markdown(page));
  write_file(folder + "/index.html", results_html(page));
}

}  // namespace fcp

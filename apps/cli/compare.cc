// fcp compare: two calibrated predictors on the same rows, pair by pair.
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/text_table.h"
#include "fcp/evaluate/judge.h"
#include "fcp/predictor/levels.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/report/json.h"
#include "apps/report/results.h"

namespace fcp::cli {
namespace {

struct CompareFlags {
  CommonOptions common;
  DataFlags data;
  FactOptions facts;
  std::string a, b;
  LevelFlags levels;
};

nlohmann::ordered_json difference_json(const PairedDifference& found) {
  return {{"a", found.mean_a},
          {"b", found.mean_b},
          {"difference", found.difference},
          {"low", found.low},
          {"high", found.high},
          {"rows", found.rows},
          {"infinite_a", found.infinite_a},
          {"infinite_b", found.infinite_b}};
}

void print_json(const Comparison& found) {
  nlohmann::ordered_json json = {{"rows", found.rows},
                                 {"alpha", found.level.value()},
                                 {"coverage", difference_json(found.coverage)},
                                 {"size", difference_json(found.size)}};
  if (found.score) json["interval_score"] = difference_json(*found.score);
  json["better"] = nullptr;
  if (!found.better.empty()) json["better"] = found.better;
  json["verdict"] = found.verdict;
  std::cout << json_text(json) << '\n';
}

void print_text(const Comparison& found) {
  Table table({"", "a", "b", "a − b", "95 % CI"});
  const auto add = [&](const char* name, const PairedDifference& one) {
    table.add_row({name, format_number(one.mean_a), format_number(one.mean_b),
                   format_number(one.difference, 3),
                   concat(format_number(one.low, 3), " to ", format_number(one.high, 3))});
  };
  add("coverage", found.coverage);
  add("size", found.size);
  if (found.score) add("interval score", *found.score);
  std::cout << format_count(found.rows, "row") << ", promised " << format_target(found.level)
            << "\n\n"
            << table << '\n';
  if (found.size.infinite_a + found.size.infinite_b > 0) {
    std::cout << "infinite, and left out of size and score: " << found.size.infinite_a << " of a, "
              << found.size.infinite_b << " of b\n";
  }
  std::cout << found.verdict << '\n';
}

void run_compare(const CompareFlags& flags) {
  Context context = start(flags.common);
  context.batch = flags.data.batch;
  const DataOptions data = data_options(flags.data);
  const Level level = levels_of(flags.levels)[0];
  say_lax_level(flags.common, level);
  const CalibrationArtifact artifacts[] = {read_artifact_for(flags.a, {&level, 1}),
                                           read_artifact_for(flags.b, {&level, 1})};
  std::unique_ptr<RowSource> sources[2];
  ComparedPredictor compared[2];
  for (size_t i = 0; i < 2; ++i) {
    sources[i] = open_data(data, &artifacts[i].network);
    compared[i] = {&artifacts[i], sources[i].get(),
                   read_facts_for(artifacts[i], data, flags.facts, *context.observer)};
  }
  const Comparison found = compare(compared[0], compared[1], level, context);
  flags.common.json ? print_json(found) : print_text(found);
}

}  // namespace

void add_compare(CLI::App& app) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* verb =
      app.add_subcommand("compare", "Compare two calibrated predictors on the same rows");
  verb->footer("Example:\n  fcp compare a.onnx b.onnx --data test.csv --target y");
  verb->add_option("a", flags->a, "Calibrated predictor")->required();
  verb->add_option("b", flags->b, "Another one")->required();
  verb->add_option("--data", flags->data.data, "Rows: CSV, .npy or .npz:entry")->required();
  add_levels(*verb, flags->levels);
  add_facts(*verb, flags->facts);
  add_data(*verb, flags->data, /*needs_target=*/true);
  add_common(*verb, flags->common, kTakesJson | kTakesThreads | kTakesDevice);
  verb->callback([flags] { run_compare(*flags); });
}

}  // namespace fcp::cli

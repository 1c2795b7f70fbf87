#include "apps/cli/evaluate_online.h"

#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/evaluate/replay.h"

#include "apps/report/format.h"
#include "apps/report/json.h"

namespace fcp::cli {
namespace {

// Gibbs and Candès: whatever the rows are, ACI's share of misses over T of them is as near as this.
double aci_bound(const Level& level, double step, size_t rows) {
  const double alpha = level.value();
  return (std::max(alpha, 1 - alpha) + step) / (step * static_cast<double>(rows));
}

std::string promise_of(const OnlineFlags& flags, const Level& level, size_t rows) {
  if (flags.adapt.method == "none") {
    return "the level stays, and nothing is promised where the rows are not exchangeable";
  }
  std::string text = concat("in the long run coverage tends to ", format_target(level),
                            ", whatever the rows are; nothing is promised for one row");
  if (flags.adapt.method == "aci") {
    text += concat("; over these ", format_count(rows), " rows it is within ",
                   format_percent(std::min(1.0, aci_bound(level, flags.adapt.step, rows))),
                   " of it for certain");
  }
  return text;
}

nlohmann::ordered_json side_json(const RateCount& covered, const SizeCount& size) {
  return {{"coverage", covered.rate()},
          {"size", json_number(size.mean())},
          {"infinite", size.infinite}};
}

std::vector<std::string> side_cells(const std::string& name, const RateCount& covered,
                                    const SizeCount& size) {
  return {name, format_percent(covered.rate()), format_number(size.mean()),
          format_count(size.infinite)};
}

}  // namespace

void add_online(CLI::App& verb, OnlineFlags& flags) {
  auto* online = verb.add_option("--calibration", flags.calibration,
                                 "online: rows are in the order of time, and the level of each "
                                 "follows the truths before it")
                     ->check(CLI::IsMember({"online"}));
  verb.add_option("--adapt", flags.adapt.method, "Online: how; dtaci needs no step size")
      ->check(CLI::IsMember({"aci", "dtaci", "none"}))
      ->needs(online)
      ->capture_default_str();
  verb.add_option("--step", flags.adapt.step, "Online by aci: how far each truth moves the level")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(online)
      ->capture_default_str();
  verb.add_option("--window", flags.window,
                  "Online: take radii from this many last scores; 0: from those of the file")
      ->needs(online)
      ->capture_default_str();
}

void evaluate_online(const CalibrationArtifact& artifact, RowSource& source, const Level& level,
                     RowFacts facts, const OnlineFlags& flags, const CommonOptions& common,
                     const Context& context) {
  ReplayOptions options;
  options.monitor.level = level;
  options.monitor.seed = common.seed;
  options.facts = std::move(facts);
  options.watch_inputs = false;
  options.adapt = flags.adapt;
  options.window = flags.window;
  const MonitorReport report = replay(artifact, source, options, context);
  const std::string promise = promise_of(flags, level, report.rows);
  if (common.json) {
    const nlohmann::ordered_json json = {
        {"alpha", level.value()},
        {"rows", report.rows},
        {"adapt", adapting_text(flags.adapt)},
        {"window", flags.window},
        {"online", side_json(report.adapted_covered, report.adapted_size)},
        {"as_filed", side_json(report.covered, report.size)},
        {"promise", promise}};
    std::cout << json_text(json) << '\n';
    return;
  }
  Table table({"calibration", "coverage", "mean size", "infinite"});
  table.add_row(side_cells("as filed", report.covered, report.size));
  table.add_row(side_cells("online", report.adapted_covered, report.adapted_size));
  std::cout << table << format_count(report.rows) << " rows; " << promise << '\n';
}

}  // namespace fcp::cli

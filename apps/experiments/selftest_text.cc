#include "apps/experiments/selftest_text.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "fcp/base/text_table.h"
#include "fcp/version.h"

#include "apps/report/format.h"

namespace fcp {

nlohmann::ordered_json selftest_json(const std::vector<SelftestCheck>& checks,
                                     const SelftestOptions& options) {
  nlohmann::ordered_json json = {
      {"version", FCP_VERSION},
      {"replications", options.replications},
      {"false_alarm", kSelftestFalseAlarm},
      {"passed", std::all_of(checks.begin(), checks.end(), [](const auto& c) { return c.passed; })},
      {"checks", nlohmann::ordered_json::array()}};
  for (const SelftestCheck& check : checks) {
    json["checks"].push_back({{"world", check.world},
                              {"score", check.score},
                              {"calibration", check.calibration},
                              {"coverage", check.coverage},
                              {"promised", check.promised},
                              {"exact", check.exact},
                              {"chance", check.chance},
                              {"passed", check.passed}});
  }
  return json;
}

std::string selftest_text(const std::vector<SelftestCheck>& checks) {
  std::vector<std::string> headers = {"score", "calibration"};
  std::map<std::string, std::vector<const SelftestCheck*>> lines;
  std::vector<std::string> order;
  for (const SelftestCheck& check : checks) {
    if (std::find(headers.begin(), headers.end(), check.world) == headers.end()) {
      headers.push_back(check.world);
    }
    const std::string line = check.score + " " + check.calibration;
    if (!lines.contains(line)) order.push_back(line);
    lines[line].push_back(&check);
  }
  headers.insert(headers.end(), {"least chance", ""});
  Table table(headers);
  for (const std::string& line : order) {
    std::vector<std::string> cells = {lines[line][0]->score, lines[line][0]->calibration};
    double chance = 1;
    bool passed = true;
    for (const SelftestCheck* check : lines[line]) {
      cells.push_back(format_percent(check->coverage));
      chance = std::min(chance, check->chance);
      passed = passed && check->passed;
    }
    cells.insert(cells.end(), {format_number(chance, 2), passed ? "" : "off"});
    table.add_row(cells);
  }
  return table.text();
}

}  // namespace fcp

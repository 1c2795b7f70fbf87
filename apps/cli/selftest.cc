// fcp selftest: whether the promise holds on this machine.
#include "apps/experiments/selftest.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/progress.h"
#include "fcp/methods/method.h"

#include "apps/cli/common.h"
#include "apps/report/results.h"

namespace fcp::cli {
namespace {

constexpr uint64_t kUsualReplications = 1000;
constexpr uint64_t kQuickReplications = 150;

std::vector<SelftestCheck> run_checks(const CommonOptions& common, SelftestOptions options) {
  std::optional<Progress> progress;
  options.observe = [&](size_t, size_t all) {
    if (!progress) {
      progress.emplace("selftest", all, !common.quiet);
    } else {
      progress->advance(1);
    }
  };
  return run_selftest(options);
}

void run_selftest_verb(const CommonOptions& common, SelftestOptions options) {
  start(common);
  options.seed = common.seed;
  const std::vector<SelftestCheck> checks = run_checks(common, options);
  if (common.json) {
    std::cout << selftest_json(checks, options).dump(2) << '\n';
  } else {
    std::cout
        << selftest_text(checks) << "\nCoverage of " << options.replications
        << " calibrations in each of three worlds; 90 % is promised, and of probabilities as many"
        << "\nhits as were foretold. The chance is that of this or worse where the promise holds. "
           "A check fails below "
        << format_number(kSelftestFalseAlarm / static_cast<double>(checks.size()), 2)
        << ": one false alarm in a million runs.\n";
  }
  const auto off = std::find_if(checks.begin(), checks.end(),
                                [](const SelftestCheck& check) { return !check.passed; });
  if (off == checks.end()) return;
  fail("selftest: ", off->score, " with ", off->calibration, " calibration covers ",
       format_percent(off->coverage), " in the world '", off->world, "', where ",
       format_percent(off->promised, 0), " is promised; the chance of that is at most ",
       format_number(off->chance, 2));
}

}  // namespace

void add_selftest(CLI::App& app) {
  auto common = std::make_shared<CommonOptions>();
  auto options = std::make_shared<SelftestOptions>();
  auto quick = std::make_shared<bool>(false);
  options->replications = 0;
  CLI::App* verb =
      app.add_subcommand("selftest", "Check the coverage of every score on this machine");
  verb->footer(
      "Example:\n  fcp selftest --quick\n"
      "Takes less than two minutes on two cores: 95 seconds of processor time.");
  verb->add_flag("--quick", *quick, "15 seconds instead of two minutes");
  verb->add_option("--replications", options->replications,
                   "Calibrations of each score and world; 0: 1000, or 150 where it is to be quick");
  verb->add_option("--scores", options->scores, "Scores; all by default")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(score_names()));
  add_common(*verb, *common, kTakesJson | kTakesSeed | kTakesThreads);
  verb->callback([=] {
    if (options->replications == 0) {
      options->replications = *quick ? kQuickReplications : kUsualReplications;
    }
    run_selftest_verb(*common, *options);
  });
}

}  // namespace fcp::cli

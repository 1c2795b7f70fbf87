#include "apps/cli/level_flags.h"

#include <algorithm>

#include "fcp/base/error.h"
#include "fcp/fit/fit.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/predictor/levels.h"

namespace fcp::cli {
namespace {

constexpr size_t kMostDigits = 15;

// The digits behind the point of a number in (0, 1): "0.90" is "90". Empty where it is none.
std::string decimals_of(const std::string& text) {
  const size_t point = text.find('.');
  if (point == std::string::npos || text.substr(0, point).find_first_not_of('0') < point) return "";
  const std::string digits = text.substr(point + 1);
  const bool plain = digits.find_first_not_of("0123456789") == std::string::npos;
  const bool zero = digits.find_first_not_of('0') == std::string::npos;
  return plain && !zero && digits.size() <= kMostDigits ? digits : "";
}

// "97.5%" as ".975".
std::string share_of_percent(std::string percent) {
  percent.pop_back();
  const size_t point = std::min(percent.find('.'), percent.size());
  std::string whole = percent.substr(0, point);
  while (whole.size() < 2) whole.insert(whole.begin(), '0');
  if (whole.size() > 2) return "";
  return "." + whole + (point < percent.size() ? percent.substr(point + 1) : "");
}

}  // namespace

std::string alpha_of_confidence(const std::string& confidence) {
  const std::string share = confidence.ends_with('%') ? share_of_percent(confidence) : confidence;
  std::string digits = decimals_of(share);
  if (digits.empty()) {
    throw UsageError(
        concat("--confidence: ", confidence, " is not a share between 0 and 1, as 0.9 or 90%"));
  }
  while (digits.back() == '0') digits.pop_back();
  for (char& digit : digits) digit = static_cast<char>('9' - (digit - '0'));
  ++digits.back();  // the complement to nines, and one: the last digit was not 0, so it fits
  return "0." + digits;
}

void add_levels(CLI::App& verb, LevelFlags& flags, bool several) {
  flags.several = several;
  CLI::Option* alpha = verb.add_option("--alpha", flags.alpha,
                                       several ? "Share of regions that may miss the truth; "
                                                 "several: 0.1,0.2, with columns for each. A file "
                                                 "of fcp fit brings its own"
                                               : "Share of regions that may miss the truth");
  alpha->delimiter(',')->allow_extra_args(false)->default_str("0.1");
  CLI::Option* confidence =
      verb.add_option("--confidence", flags.confidence,
                      "Share of regions that should hold the truth: 0.9 is --alpha 0.1");
  confidence->delimiter(',')->allow_extra_args(false)->excludes(alpha);
}

std::vector<Level> levels_of(const LevelFlags& flags) {
  std::vector<Level> levels;
  const bool confident = !flags.confidence.empty();
  const std::vector<std::string> usual = {"0.1"};
  const bool given = confident || !flags.alpha.empty();
  for (const std::string& text : confident ? flags.confidence : given ? flags.alpha : usual) {
    const Level level = parse_level(confident ? alpha_of_confidence(text) : text);
    if (std::find(levels.begin(), levels.end(), level) != levels.end()) {
      throw UsageError(concat(confident ? "--confidence: " : "--alpha: ", text, " is given twice"));
    }
    levels.push_back(level);
  }
  if (!flags.several && levels.size() != 1) {
    throw UsageError("--alpha: several levels apply only to predict");
  }
  return levels;
}

CalibrationArtifact read_artifact_at(const std::string& path, const LevelFlags& flags,
                                     std::vector<Level>& levels) {
  levels = levels_of(flags);
  if (!flags.alpha.empty() || !flags.confidence.empty()) return read_artifact_for(path, levels);
  CalibrationArtifact artifact = read_artifact(path);
  const auto made_for = artifact.provenance.find(kUsualLevel);
  if (made_for != artifact.provenance.end()) levels = {Level::parse(made_for->second)};
  if (const auto missing = missing_level(artifact.rows.levels, levels[0])) {
    fail(path, ": ", *missing);
  }
  return artifact;
}

void say_lax_level(const CommonOptions& common, const Level& level) {
  if (const auto warning = lax_level_warning(level)) say(common, "warning: " + *warning);
}

}  // namespace fcp::cli

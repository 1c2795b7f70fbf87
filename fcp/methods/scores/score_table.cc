#include "fcp/methods/scores/score_table.h"

#include <algorithm>

#include "fcp/base/error.h"
#include "fcp/methods/scores/each_output.h"
#include "fcp/methods/scores/rectified.h"
#include "fcp/methods/scores/score.h"
#include "fcp/methods/scores/support.h"

namespace fcp {
namespace {

[[noreturn]] void fail_name(const std::string& score) {
  std::string known;
  for (const std::string& other : score_names()) known += (known.empty() ? "" : ", ") + other;
  fail("there is no score '", score, "'; there are ", known);
}

// The search for the best score is done by then.
std::unique_ptr<Score> make_score(const AutoOptions& options, const SharedOptions& /*shared*/,
                                  const std::shared_ptr<const Network>& /*head*/) {
  fail_name(options.kName);
}

AnyScore named_score(const std::string& score) {
  auto found = named_options<AnyScore>(score);
  if (!found) fail_name(score);
  return *std::move(found);
}

}  // namespace

std::vector<std::string> score_names() {
  auto names =
      names_with_traits<AnyScore>([](const ScoreTraits& traits) { return !traits.made_by_fit; });
  std::erase(names, kAutoScore);
  std::sort(names.begin(), names.end());
  return names;
}

ScoreOptions::ScoreOptions(const std::string& score, SharedOptions shared)
    : OptionsOf{std::move(shared), named_score(score)} {}

bool ScoreOptions::searches() const {
  return std::visit(
      [](const auto& options) {
        if constexpr (requires { options.searches(); }) return options.searches();
        return false;
      },
      own);
}

bool ScoreOptions::has_signed_ends() const {
  if (as<DensityOptions>() != nullptr || !obeys_law()) return false;
  return side != BoundSide::kBoth || value(field::asymmetric);
}

bool ScoreOptions::may_be_negative() const { return traits().negative || has_signed_ends(); }

std::vector<std::string> ScoreOptions::learned_outputs() const {
  return std::visit(
      [](const auto& options) -> std::vector<std::string> {
        if constexpr (requires { options.learned_outputs(); }) return options.learned_outputs();
        return {};
      },
      own);
}

std::unique_ptr<Score> make_score(const ScoreOptions& options,
                                  std::shared_ptr<const Network> head) {
  if (options.pixels != 0 && options.pixels != 1 && !options.traits().counts_pixels) {
    fail(options.name(), ": a share of the pixels (", options.pixels,
         ") can be asked of residual, nested and lac alone");
  }
  const MakeScore plain = [&](const std::shared_ptr<const Network>& of) {
    return std::visit([&](const auto& own) { return make_score(own, options, of); }, options.own);
  };
  std::unique_ptr<Score> score;
  if (!options.rectifier.empty()) {
    score = make_rectified(options, head);
  } else {
    score = options.targets == 0
                ? plain(head)
                : make_each_output(static_cast<int64_t>(options.targets), head, plain);
  }
  score = with_support(std::move(score), parse_support(options.support, options.integer));
  // Images are few and large, a search of surrogates shares its rows itself, and scores of labels
  // are asked for more than a Score has.
  const bool shared = options.pixels == 0 && score->classes() == 0 && options.obeys_law();
  return shared ? share_rows(std::move(score), head) : std::move(score);
}

}  // namespace fcp

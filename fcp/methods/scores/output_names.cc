#include "fcp/methods/scores/output_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/output_kind.h"

namespace fcp {
namespace {

enum class OutputRole { kUnknown, kSpread, kLow, kHigh, kOther };

using Words = std::vector<std::string>;

// Lower case, without the path of modules before it and the ":0" of TensorFlow behind it.
std::string bare_name(const std::string& name) {
  std::string bare = name;
  const size_t slash = bare.find_last_of('/');
  if (slash != std::string::npos) bare = bare.substr(slash + 1);
  const size_t colon = bare.rfind(':');
  if (colon != std::string::npos && colon > 0 &&
      bare.find_first_not_of("0123456789", colon + 1) == std::string::npos) {
    bare = bare.substr(0, colon);
  }
  std::transform(bare.begin(), bare.end(), bare.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return bare;
}

// Its runs of letters, digits and points: "pred_low", "quantile_0.05".
Words words_of(const std::string& bare) {
  Words words;
  std::string word;
  for (const char c : bare + "_") {
    const bool inside = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
    if (inside) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(word);
      word.clear();
    }
  }
  return words;
}

// The level of "0.05", "05", "5", "025" (which is 0.025) or "97.5".
std::optional<double> level_of_digits(const std::string& digits) {
  if (digits.empty() || digits.find_first_not_of("0123456789.") != std::string::npos) return {};
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (*end != '\0') return {};
  const bool fraction = digits.find('.') != std::string::npos && value < 1;
  const double level = fraction ? value : value / (digits.size() == 3 ? 1000 : 100);
  return level > 0 && level < 1 ? std::optional(level) : std::nullopt;
}

// "q05", "p95", "quantile0.9", or a number beside the word "quantile".
std::optional<double> level_of_words(const Words& words) {
  const bool quantile = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "quantile" || word == "percentile" || word == "q";
  });
  for (const std::string& word : words) {
    for (const char* prefix : {"quantile", "percentile", "q", "p"}) {
      if (!word.starts_with(prefix)) continue;
      if (const auto level = level_of_digits(word.substr(std::string(prefix).size()))) return level;
    }
    if (!quantile) continue;
    if (const auto level = level_of_digits(word)) return level;
  }
  return std::nullopt;
}

bool any_word(const Words& words, const std::set<std::string>& known) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return known.contains(word); });
}

OutputRole role_of(const TensorInfo& output) {
  static const std::set<std::string> kSpreads = {
      "sigma",  "std",       "stddev", "stdev",       "sd",       "scale",
      "var",    "logvar",    "logstd", "logsigma",    "variance", "covariance",
      "spread", "deviation", "stderr", "uncertainty", "covstd"};
  static const std::set<std::string> kFeatures = {"hidden",    "embedding", "embeddings", "feature",
                                                  "features",  "attention", "attentions", "aux",
                                                  "auxiliary", "past",      "present"};
  static const std::set<std::string> kLabels = {"label",   "labels",  "output_label",
                                                "class",   "index",   "output_class",
                                                "classes", "indices", "mask"};
  static const std::set<std::string> kLows = {"low", "lower", "lo"};
  static const std::set<std::string> kHighs = {"high", "upper", "hi"};
  const bool whole = output.type != ElementType::kUndefined && !is_floating(output.type);
  if (whole) return OutputRole::kOther;
  const std::string bare = bare_name(output.name);
  if (kLabels.contains(bare)) return OutputRole::kOther;
  const Words words = words_of(bare);
  for (const char* end : {"sigma", "std", "variance", "logvar"}) {
    if (bare.ends_with(end)) return OutputRole::kSpread;  // "GPcovstd"
  }
  if (any_word(words, kSpreads)) return OutputRole::kSpread;
  if (any_word(words, kFeatures)) return OutputRole::kOther;
  const std::optional<double> level = level_of_words(words);
  const bool low = any_word(words, kLows) || (level && *level < 0.5);
  const bool high = any_word(words, kHighs) || (level && *level > 0.5);
  if (low != high) return low ? OutputRole::kLow : OutputRole::kHigh;
  return OutputRole::kUnknown;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += concat(text.empty() ? "'" : ", '", name, "'");
  return text;
}

// The outputs of a network by their roles.
struct OutputRoles {
  std::vector<std::string> own, predictions, lows, highs, others;
};

OutputRoles roles_of(const Graph& network, const ScoreOptions& score) {
  OutputRoles roles;
  const std::set<std::string> taken = {score.value(field::normalize), score.value(field::spread),
                                       score.value(field::quantiles), score.value(field::low),
                                       score.value(field::high)};
  for (const TensorInfo& output : network.outputs) {
    const std::string& name = output.name;
    if (is_head_output(name)) continue;
    roles.own.push_back(name);
    const OutputRole role = role_of(output);
    if (taken.contains(name) || role == OutputRole::kSpread || role == OutputRole::kOther) {
      roles.others.push_back(name);
    } else if (role == OutputRole::kLow) {
      roles.lows.push_back(name);
    } else if (role == OutputRole::kHigh) {
      roles.highs.push_back(name);
    } else {
      roles.predictions.push_back(name);
    }
  }
  // A pair alone is a pair of quantiles; a low output without a high one may be anything.
  if (roles.lows.size() != 1 || roles.highs.size() != 1) {
    for (auto* side : {&roles.lows, &roles.highs}) {
      roles.predictions.insert(roles.predictions.end(), side->begin(), side->end());
      side->clear();
    }
  }
  // Logits beside the probabilities that are made of them are the same answer.
  for (const std::string& name : std::vector<std::string>(roles.predictions)) {
    const std::string logits = output_meaning(network, name).logits;
    if (!logits.empty() && logits != name) std::erase(roles.predictions, logits);
  }
  return roles;
}

// Of a score of two quantiles that is asked for: by name, or the only two outputs, unless a name
// says that one of them is something else.
std::string name_quantiles(const OutputRoles& roles, ScoreOptions& score) {
  std::string &low = *score.find(field::low), &high = *score.find(field::high);
  if (!low.empty() || !high.empty()) return "";
  if (!roles.lows.empty()) {
    low = roles.lows[0];
    high = roles.highs[0];
  } else if (roles.own.size() == 2 && roles.predictions.size() == 2) {
    low = roles.own[0];
    high = roles.own[1];
  } else {
    fail(score.name(), " needs two quantiles, and the names of the network's outputs (",
         listed(roles.own), ") do not tell them: name two as low and high");
  }
  return concat("outputs: taking '", low, "' as the low and '", high, "' as the high quantile");
}

}  // namespace

std::string name_outputs(const Graph& network, ScoreOptions& score) {
  const bool any_score = score.as<AutoOptions>() != nullptr;
  const bool quantiles = score.find(field::low) != nullptr;
  const OutputRoles roles = roles_of(network, score);
  if (roles.own.size() < 2 || !score.output.empty()) return "";
  if (!any_score && quantiles) return name_quantiles(roles, score);
  std::string taken;
  if (any_score && !roles.lows.empty()) {
    taken = name_quantiles(roles, score);
  }
  if (roles.predictions.size() == 1) {
    score.output = roles.predictions[0];
    taken +=
        concat(taken.empty() ? "outputs: taking '" : " and '", score.output, "' as the prediction");
    if (!roles.others.empty()) taken += concat(", not ", listed(roles.others));
    return taken;
  }
  if (any_score && !score.value(field::low).empty() && !score.value(field::high).empty()) {
    return taken;
  }
  fail("the network has ", roles.own.size(), " outputs (", listed(roles.own),
       "), and their names do not tell which is the prediction; choose one",
       any_score ? " as output, or two quantiles as low and high" : " as output");
}

namespace {

struct OutputColumn {
  TensorInfo output;
  int64_t column = 0;
};

// What "output:column" names; nothing where there is no such output.
std::optional<OutputColumn> parse_column(const Graph& network, const std::string& name) {
  const size_t colon = name.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto output =
      std::find_if(network.outputs.begin(), network.outputs.end(),
                   [&](const TensorInfo& info) { return info.name == name.substr(0, colon); });
  OutputColumn found;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, found.column);
  if (output == network.outputs.end() || error != std::errc() || stop != end) return std::nullopt;
  found.output = *output;
  return found;
}

void add_column(Graph& network, const std::string& name, const OutputColumn& wanted) {
  const TensorInfo& output = wanted.output;
  const int64_t count = output.known_rank && output.shape.size() == 2 ? output.shape[1] : kDynamic;
  if ((output.known_rank && output.shape.size() != 2) || wanted.column < 0 ||
      (count != kDynamic && wanted.column >= count)) {
    fail("output '", output.name, "' has no column ", wanted.column, " (from 0)",
         count == kDynamic ? "" : concat("; it has ", count));
  }
  network.initializers[name + "/index"] = torch::tensor({wanted.column}, torch::kLong);
  Node node;
  node.op = "Gather";
  node.name = name + "/Gather";
  node.inputs = {output.name, name + "/index"};
  node.outputs = {name};
  node.attributes["axis"] = int64_t{1};
  network.nodes.push_back(node);
  TensorInfo info{
      .name = name, .type = output.type, .shape = {kDynamic, 1}, .dimension_names = {"", ""}};
  if (output.known_rank) info.shape[0] = output.shape[0];
  if (output.known_rank && !output.dimension_names.empty()) {
    info.dimension_names[0] = output.dimension_names[0];
  }
  network.outputs.push_back(info);
}

}  // namespace

Graph with_column_outputs(const Graph& network, const ScoreOptions& options) {
  Graph changed = network;
  for (const std::string& name :
       {options.output, options.value(field::normalize), options.value(field::low),
        options.value(field::high), options.value(field::spread)}) {
    if (has_output(changed, name)) continue;
    const std::optional<OutputColumn> wanted = parse_column(network, name);
    if (wanted) add_column(changed, name, *wanted);
  }
  return changed;
}

}  // namespace fcp

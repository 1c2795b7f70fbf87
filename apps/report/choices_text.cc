#include "apps/report/choices_text.h"

#include <set>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"

namespace fcp {
namespace {

constexpr char kLeftOut[] = ", which are left out of calibration";

std::string cut_text(const ChosenFrom<CutCandidate>& cut, size_t rows) {
  Table table({"cut", "floor", "length", "coverage", ""});
  std::set<std::string> said_already;  // a reason that holds for several cuts
  for (size_t i = 0; i < cut.candidates.size(); ++i) {
    const CutCandidate& one = cut.candidates[i];
    if (!one.skipped.empty()) {
      const bool said = !said_already.insert(one.skipped).second;
      table.add_row({one.cut, "", "", "", said ? "skipped as well" : "skipped: " + one.skipped});
      continue;
    }
    table.add_row({one.cut, format_number(one.floor), format_number(one.length),
                   format_percent(one.coverage), i == cut.chosen ? "chosen" : ""});
  }
  return concat("Cuts and floors on ", rows, " selection rows", kLeftOut, ":\n", table.text(2));
}

std::string scores_text(const Choices& choices) {
  const ScoresTried& scores = *choices.scores;
  const bool sets = scores.by == ChosenBy::kSize || scores.by == ChosenBy::kSetScore;
  const bool volumes = scores.by == ChosenBy::kVolume;
  const char* const measure = sets      ? "size + misses"
                              : volumes ? "volume per dimension"
                                        : "interval score";
  Table table({"score", "cut", sets ? "size" : "length", measure, "coverage", ""});
  for (size_t i = 0; i < scores.candidates.size(); ++i) {
    const ScoreTried& one = scores.candidates[i];
    if (!one.skipped.empty()) {
      std::vector<std::string> row(6);
      row.front() = one.name;
      row.back() = "skipped: " + one.skipped;
      table.add_row(row);
      continue;
    }
    table.add_row({one.name, one.cut, format_number(one.length),
                   format_number(volumes ? one.volume : one.interval_score),
                   format_percent(one.coverage), i == scores.chosen ? "chosen" : ""});
  }
  const bool by_size = scores.by == ChosenBy::kLength || scores.by == ChosenBy::kSize;
  const char* const objective = volumes ? "volume" : !by_size ? measure : sets ? "size" : "length";
  return concat("Scores by ", objective, " on ", choices.rows, " selection rows", kLeftOut, ":\n",
                table.text(2));
}

std::string bandwidth_text(const ChosenFrom<BandwidthTried>& bandwidth, size_t rows) {
  Table table({"bandwidth", "loss", "coverage", "effective rows", ""});
  for (size_t i = 0; i < bandwidth.candidates.size(); ++i) {
    const BandwidthTried& one = bandwidth.candidates[i];
    table.add_row({format_number(one.bandwidth), format_number(one.loss),
                   format_percent(one.coverage), format_number(one.effective_rows, 3),
                   i == bandwidth.chosen ? "chosen" : ""});
  }
  return concat("Bandwidths on ", rows, " selection rows", kLeftOut, ":\n", table.text(2));
}

// The options of a score of labels in one line; empty where none was chosen.
std::string label_text(const Choices& choices) {
  std::string chosen;
  if (choices.temperature) chosen += concat(", temperature ", format_number(*choices.temperature));
  if (choices.rank_term) {
    chosen += concat(", ranks beyond ", choices.rank_term->free, " cost ",
                     format_number(choices.rank_term->weight));
  }
  if (choices.sampled_steps) chosen += concat(", ", *choices.sampled_steps, " steps");
  if (chosen.empty()) return chosen;
  return concat(choices.score, chosen, ": chosen on ", choices.rows, " rows", kLeftOut);
}

}  // namespace

std::vector<std::string> choices_text(const Choices& choices) {
  std::vector<std::string> notes;
  if (const std::string labels = label_text(choices); !labels.empty()) notes.push_back(labels);
  if (choices.steps) {
    notes.push_back(concat(
        "surrogate: ", choices.steps->steps, " steps, bands cover ",
        format_percent(choices.steps->coverage), " of ", choices.rows, " validation rows",
        choices.left_out ? kLeftOut : " (the paper's habit: they are calibrated on as well)"));
  }
  if (choices.head_rows > 0) {
    notes.push_back(concat("heads on features: learned on ", choices.head_rows, " rows",
                           choices.own_head_rows ? " of their own" : kLeftOut));
  }
  if (choices.scores) notes.push_back(scores_text(choices));
  if (choices.rectified) {
    notes.push_back(concat("rectified by a quantile of the score, learned on ", choices.rows,
                           " rows", kLeftOut));
  }
  if (choices.cut) notes.push_back(cut_text(*choices.cut, choices.rows));
  if (choices.bandwidth) notes.push_back(bandwidth_text(*choices.bandwidth, choices.rows));
  if (choices.shifted_rows) {
    notes.push_back(concat("likelihood ratio: ", choices.rows, " selection rows", kLeftOut,
                           ", against ", *choices.shifted_rows, " shifted rows"));
  }
  return notes;
}

std::vector<std::string> findings_text(const CalibrationFindings& findings) {
  std::vector<std::string> notes;
  if (findings.reached) {
    notes.push_back(concat("surrogate: after ", findings.steps, " steps ",
                           format_percent(*findings.reached),
                           " of the rows predict the truth within 1 %"));
  }
  if (findings.effective_rows) {
    notes.push_back(concat("weights: ", findings.kept, " rows are worth ",
                           format_number(*findings.effective_rows), " unweighted ones"));
  }
  return notes;
}

}  // namespace fcp

// Flags made from the option table: --rank-weight for rank_weight, --not-randomized for a flag that
// is on by default.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fcp/level.h"
#include "fcp/methods/options.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/open_data.h"

#include "apps/cli/common.h"

namespace fcp::cli {

// The flag of an option by its name, which need not be in the table.
std::string flag_name(const std::string& option);

// Declares the flag of one option, which is put into the request when it is parsed. `option` is an
// entry of the table, or a copy with other choices, range or help.
CLI::Option* add_option_flag(CLI::App& verb, MethodRequest& request, const Option& option);

// Declares the flags of all options that can be asked of any data.
void add_option_flags(CLI::App& verb, MethodRequest& request);

// --alpha and --confidence: how often a region may miss, or is to hold, the truth.

struct LevelFlags {
  std::vector<std::string>
      alpha{};  // neither is given: 0.1, or the level that the file was made for
  std::vector<std::string> confidence{};
  bool several = false;  // the verb takes more than one
};

void add_levels(CLI::App& verb, LevelFlags& flags, bool several = false);

// The levels in the order given, none twice.
std::vector<Level> levels_of(const LevelFlags& flags);

// The predictor of a file, with the levels of the flags or else the one for which `fcp fit` made
// it.
CalibrationArtifact read_artifact_at(const std::string& path, const LevelFlags& flags,
                                     std::vector<Level>& levels);

// For verbs whose results carry no warnings: says where a level lets most regions miss.
void say_lax_level(const CommonOptions& common, const Level& level);

// 1 − confidence, exactly: "0.9" is "0.1", "97.5%" is "0.025". Bad usage where it is none.
std::string alpha_of_confidence(const std::string& confidence);

// The flags by which a verb is told how to read its data.

struct DataFlags {
  std::string data;
  std::string state;  // of a server, instead of data
  std::string target;
  bool needs_target = false;
  std::string separator;
  std::string header = "auto";
  std::vector<std::string> drop;
  std::vector<std::string> categorical;
  bool impute = false;
  std::vector<std::string> missing;
  std::string encoding = "utf-8";
  std::string schema;     // "show", COLUMN=TYPE, or both with commas between
  bool may_show = false;  // the verb can show it
  std::string on_error = "stop";
  std::string refused;  // file of the rows that were left out
  std::shared_ptr<RefusedRows> refused_rows = std::make_shared<RefusedRows>();
  size_t batch = 0;  // rows at a time; 0: chosen by the size of a row
  bool images = false;
  ImageTransform transform;
  bool transform_given = false;
  std::string class_names;
};

enum class TakesImages { kNo, kYes };
void add_data(CLI::App& verb, DataFlags& flags, bool needs_target,
              TakesImages images = TakesImages::kYes);

// --group and --weights.
void add_facts(CLI::App& verb, FactOptions& options);

// What --separator stands for: a character, or 0 where it is to be inferred.
char separator_of(const std::string& text);

// As typed, made ready for open_data.
DataOptions data_options(const DataFlags& flags);

// Where no target is named and the rows are a CSV file: the one of the calibration.
void take_target(const CalibrationArtifact& artifact, DataOptions& data);

// Where `--schema show` is asked for: prints what the columns are, as a table or JSON, with the
// target as the verb takes it (data.csv.labels), and returns true.
bool show_schema(const DataFlags& flags, const DataOptions& data, bool json);

}  // namespace fcp::cli

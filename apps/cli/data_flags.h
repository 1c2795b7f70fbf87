// The flags by which a verb is told how to read its data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fcp/predictor/artifact.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/row_facts.h"

namespace fcp::cli {

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

// The flags by which a verb is told how to read its data.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/row_facts.h"

namespace fcp::cli {

struct DataFlags {
  std::string data;
  std::string target;
  bool needs_target = false;
  std::string separator;
  std::string header = "auto";
  std::vector<std::string> drop;
  std::vector<std::string> categorical;
  bool impute = false;
  size_t batch = 0;  // rows at a time; 0: chosen by the size of a row
  bool images = false;
  ImageTransform transform;
  bool transform_given = false;
  std::string class_names;
};

void add_data(CLI::App& verb, DataFlags& flags, bool needs_target);

// --group and --weights.
void add_facts(CLI::App& verb, FactOptions& options);

// As typed, made ready for open_data.
DataOptions data_options(const DataFlags& flags);

}  // namespace fcp::cli

// Options that every verb takes, and small things that several verbs share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <torch/types.h>

#include "fcp/conformal/level.h"
#include "fcp/data/array.h"
#include "fcp/data/rows.h"
#include "fcp/distributed/communicator.h"
#include "fcp/images/image_transform.h"
#include "fcp/network/graph.h"

namespace fcp {

// One process, which is the whole job.
Communicator* serial_ranks();

struct CommonOptions {
  bool json = false;
  bool quiet = false;
  uint64_t seed = 0;
  int threads = 0;  // 0: all cores
  std::string device = "cpu";
  Communicator* ranks = serial_ranks();  // the processes that share the work
};

// Runs a verb that several processes share, as ranks of mpirun where that started them. All but
// rank 0 are quiet.
void run_shared(CommonOptions& options, const std::function<void()>& verb);

// Declares the common options on a verb.
void add_common(CLI::App& verb, CommonOptions& options);

// Sets the number of threads and returns the device; an Error where the device is not there.
torch::Device start(const CommonOptions& options);

// A line to stderr, unless --quiet.
void say(const CommonOptions& options, const std::string& line);

// How the data files are to be read; shared by all verbs that take data.
struct DataOptions {
  std::string data;
  std::string target;
  bool needs_target = false;
  std::string separator;
  std::string header = "auto";
  std::vector<std::string> drop;
  std::vector<std::string> categorical;
  bool impute = false;
  size_t batch = 0;  // rows at a time; 0: chosen by the size of a row

  bool images = false;  // a folder always is
  ImageTransform transform;
  bool transform_given = false;  // otherwise the network's own, where it carries one
  std::string class_names;       // file, one a line
};

// The level of --alpha; a number that is none is bad usage.
Level parse_level(const std::string& alpha);

void add_data(CLI::App& verb, DataOptions& options, bool needs_target);

// The options that concern CSV files.
CsvOptions csv_options(const DataOptions& options);

// Opens the data. `network` supplies the encoding of columns that training stored in it, if any.
std::unique_ptr<RowSource> open_data(const DataOptions& options, const Graph* network);

// Whether the data are images, and how they are read for this network.
bool are_images(const DataOptions& options);
ImageTransform transform_for(const DataOptions& options, const Graph* network);

// Keeps in the network how images were read and what the classes are called, for later verbs.
void remember_images(const DataOptions& options, const RowSource& source, Graph& network);

// The names of the classes that the network carries; numbers where it has none.
std::vector<std::string> class_names_of(const Graph& network, size_t classes);

// The names of the files of --data, without their folders.
std::string data_file_names(const DataOptions& options);

// Rows to run at a time.
size_t batch_rows(const DataOptions& options, const RowSource& source);

// "1.9k", "25.6M", "4.1G": for counts in tables.
std::string short_count(double value);

// The array without a copy; it must outlive the tensor.
torch::Tensor view(const Array& array);

}  // namespace fcp

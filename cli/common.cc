#include "cli/common.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>
#include <thread>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <torch/cuda.h>
#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/data/encoding_text.h"
#include "fcp/distributed/run_ranks.h"
#include "fcp/images/folder.h"
#include "fcp/images/image_rows.h"
#include "fcp/images/image_text.h"

namespace fcp {
namespace {

// OpenMP's threads wait for each other by spinning, which makes a busy machine crawl, and libgomp
// reads its environment before main() could change it. But it hardly spins where there are more
// threads than cores (its manual, at GOMP_SPINCOUNT): so there is one more team of them, asleep.
void keep_threads_from_spinning(int cores) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  std::promise<void> promise;
  std::future<void> asleep = promise.get_future();
  std::thread([cores, promise = std::move(promise)]() mutable {
    try {
      at::set_num_threads(cores);
      torch::ones({int64_t{cores} << 15});  // large enough for every core to get a share
      promise.set_value();
    } catch (...) {  // out of memory
      promise.set_exception(std::current_exception());
      return;
    }
    for (;;) pause();
  }).detach();
  asleep.get();
}

}  // namespace

void add_common(CLI::App& verb, CommonOptions& options) {
  verb.add_flag("--json", options.json, "Print the result as JSON");
  verb.add_flag("--quiet", options.quiet, "No messages and no progress on stderr");
  verb.add_option("--seed", options.seed, "Seed of everything random")->capture_default_str();
  verb.add_option("--threads", options.threads, "Threads; 0 means all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb.add_option("--device", options.device, "Where networks run: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
}

Communicator* serial_ranks() {
  static const std::unique_ptr<Communicator> serial = make_serial_communicator();
  return serial.get();
}

void run_shared(CommonOptions& options, const std::function<void()>& verb) {
  run_ranks([&](Communicator& ranks) {
    options.ranks = &ranks;
    options.quiet = options.quiet || ranks.rank() > 0;
    verb();
    options.ranks = serial_ranks();
    return 0;
  });
}

namespace {

// mpirun binds ranks to a few cores each. The number of threads must not follow that: it can change
// the last bits of a score, and those are to be the same for any number of ranks.
int cores_for(const CommonOptions& options) {
  if (options.ranks->size() == 1) {
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
  return static_cast<int>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));
}

void advise_threads(const CommonOptions& options, int threads, int cores) {
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const int ranks = local == nullptr ? 1 : std::atoi(local);
  if (threads == 1 || ranks * threads <= cores) return;
  say(options,
      concat("note: ", ranks, " ranks of ", threads, " threads share the ", cores,
             " cores of this machine; --threads ", std::max(1, cores / ranks), " is faster"));
}

// OpenBLAS keeps threads of its own, of which libtorch tells it nothing; they would take a second
// core for --threads 1, and wait for each other by yielding on a busy one.
void set_blas_threads(int threads) {
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set != nullptr) set(threads);
}

}  // namespace

torch::Device start(const CommonOptions& options) {
  const int cores = cores_for(options);
  const int threads = options.threads > 0 ? options.threads : cores;
  keep_freed_memory();
  keep_threads_from_spinning(cores);
  at::set_num_threads(threads);
  set_blas_threads(threads);
  if (options.ranks->size() > 1) advise_threads(options, threads, cores);
  if (options.device == "cuda" && !torch::cuda::is_available()) {
    fail("--device cuda: this machine, or this build of libtorch, has no CUDA device");
  }
  if (options.device != "cuda") return torch::kCPU;
  // Convolutions would drop 13 of the 23 bits of every product: bounds would not hold.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  return torch::kCUDA;
}

void say(const CommonOptions& options, const std::string& line) {
  if (!options.quiet) std::cerr << line << '\n';
}

namespace {

void add_images(CLI::App& verb, DataOptions& options) {
  verb.add_flag(
      "--images", options.images,
      "The data are images: a CSV of files and labels, or a uint8 .npy [N, height, width, "
      "3]; a folder always is");
  const auto given = [&options](const std::string&) { options.transform_given = true; };
  verb.add_option("--resize", options.transform.resize,
                  "Images: length of the shorter side; 0: as they are")
      ->capture_default_str()
      ->each(given);
  verb.add_option("--crop", options.transform.crop, "Images: side of the middle square; 0: none")
      ->capture_default_str()
      ->each(given);
  verb.add_option("--mean", options.transform.mean, "Images: mean of each channel, in [0, 1]")
      ->delimiter(',')
      ->each(given);
  verb.add_option("--deviation", options.transform.deviation,
                  "Images: deviation of each channel, in [0, 1]")
      ->delimiter(',')
      ->each(given);
  verb.add_option("--class-names", options.class_names, "File of class names, one a line");
}

}  // namespace

void add_data(CLI::App& verb, DataOptions& options, bool needs_target) {
  options.needs_target = needs_target;
  if (needs_target) {
    verb.add_option("--target", options.target,
                    "Target: a CSV column by name or 0-based index (several: a,b), or an .npy "
                    "file; folders of images name it themselves");
  }
  verb.add_option("--separator", options.separator,
                  "CSV separator: a character or 'tab'; found out when absent");
  verb.add_option("--header", options.header, "Whether the CSV has a header: auto, yes or no")
      ->check(CLI::IsMember({"auto", "yes", "no"}))
      ->capture_default_str();
  verb.add_option("--drop", options.drop, "CSV columns to leave out")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--categorical", options.categorical, "CSV columns of categories, to one-hot")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_flag("--impute", options.impute, "Replace missing CSV values by the column's mean");
  verb.add_option("--batch", options.batch, "Rows at a time; 0 chooses")->capture_default_str();
  add_images(verb, options);
}

namespace {

char separator_of(const std::string& text) {
  if (text.empty()) return 0;
  if (text == "tab" || text == "\\t") return '\t';
  if (text.size() != 1)
    throw UsageError(concat("--separator ", text, ": expected one character or 'tab'"));
  return text[0];
}

}  // namespace

Level parse_level(const std::string& alpha) {
  try {
    return Level::parse(alpha);
  } catch (const Error& error) {
    throw UsageError(concat("--alpha: ", error.what()));
  }
}

CsvOptions csv_options(const DataOptions& options) {
  CsvOptions rows;
  rows.separator = separator_of(options.separator);
  rows.header = options.header == "yes"  ? CsvHeader::kYes
                : options.header == "no" ? CsvHeader::kNo
                                         : CsvHeader::kAuto;
  rows.drop = options.drop;
  rows.categorical = options.categorical;
  rows.impute = options.impute;
  return rows;
}

bool are_images(const DataOptions& options) { return options.images || is_folder(options.data); }

ImageTransform transform_for(const DataOptions& options, const Graph* network) {
  if (options.transform_given || network == nullptr || !network->metadata.contains(kImagesKey)) {
    return options.transform;
  }
  return parse_transform(network->metadata.at(kImagesKey));
}

void remember_images(const DataOptions& options, const RowSource& source, Graph& network) {
  if (are_images(options)) {
    network.metadata[kImagesKey] = transform_text(transform_for(options, &network));
  }
  if (!source.class_names().empty()) {
    network.metadata[kClassesKey] = class_names_text(source.class_names());
  } else if (!options.class_names.empty()) {
    network.metadata[kClassesKey] = class_names_text(read_lines(options.class_names));
  }
}

std::vector<std::string> class_names_of(const Graph& network, size_t classes) {
  if (const auto found = network.metadata.find(kClassesKey); found != network.metadata.end()) {
    std::vector<std::string> names = parse_class_names(found->second);
    if (names.size() != classes) {
      fail("there are ", names.size(), " class names for ", classes, " classes");
    }
    return names;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

namespace {

std::unique_ptr<RowSource> open_image_data(const DataOptions& options, const Graph* network) {
  ImageOptions images;
  images.transform = transform_for(options, network);
  images.list.class_file = options.class_names;
  if (options.data.ends_with(".npy")) {
    images.labels = options.target;
  } else if (!is_folder(options.data)) {
    images.list.label_column = options.target;
  }
  auto source = open_images(options.data, images);
  if (options.needs_target && source->target_count() == 0) {
    fail(options.data,
         ": has no labels; a folder needs one folder a class, a CSV --target COLUMN, "
         "an .npy --target FILE.npy");
  }
  return source;
}

}  // namespace

std::unique_ptr<RowSource> open_data(const DataOptions& options, const Graph* network) {
  if (are_images(options)) return open_image_data(options, network);
  if (options.needs_target && options.target.empty()) throw UsageError("--target is required");
  CsvOptions rows = csv_options(options);
  if (network != nullptr && network->metadata.contains(kEncodingKey)) {
    if (!options.drop.empty() || !options.categorical.empty() || options.impute) {
      throw UsageError(
          "--drop, --categorical and --impute were settled when this network was trained; leave "
          "them out");
    }
    rows.encoding = parse_encoding(network->metadata.at(kEncodingKey));
  }
  return open_rows(options.data, options.target, rows);
}

std::string data_file_names(const DataOptions& options) {
  std::string names;
  for (const std::string& file : file_list(options.data)) {
    names += (names.empty() ? "" : ",") + std::filesystem::path(file).filename().string();
  }
  return names;
}

size_t batch_rows(const DataOptions& options, const RowSource& source) {
  if (options.batch > 0) return options.batch;
  constexpr size_t kNumbers = size_t{1} << 22;
  return std::clamp<size_t>(kNumbers / std::max<size_t>(1, element_count(source.row_shape())), 1,
                            4096);
}

std::string short_count(double value) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value >= 100 ? "%.0f%s" : "%.1f%s", value,
                kUnits[unit]);
  return text;
}

torch::Tensor view(const Array& array) {
  return torch::from_blob(const_cast<float*>(array.values.data()), array.shape, torch::kFloat);
}

}  // namespace fcp

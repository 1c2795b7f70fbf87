// fcp doctor: what this machine and this build offer. It reports and never judges: exit code 0.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <torch/cuda.h>
#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/base/output_file.h"
#include "fcp/base/text_table.h"
#include "fcp/distributed/communicator.h"
#include "fcp/training/boosting.h"
#include "fcp/version.h"

#include "apps/cli/common.h"
#include "apps/experiments/paper_sets.h"
#include "build_facts.h"

namespace fcp::cli {
namespace {

using Findings = nlohmann::ordered_json;

std::string gigabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", bytes / 1e9);
  return text;
}

std::string yes_or_no(bool yes) { return yes ? "yes" : "no"; }

// libtorch and OpenBLAS take this much address space before any row is read; with less, OpenBLAS
// may wait for a buffer for ever instead of failing.
constexpr uint64_t kLeastAddressSpace = uint64_t{2} << 30;

Findings memory_findings() {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return {{"total_bytes", sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)},
          {"available_bytes", available_memory()},
          {"address_space_bytes", limited ? Findings(limit.rlim_cur) : Findings(nullptr)}};
}

std::string address_space_line(const Findings& bytes) {
  if (bytes.is_null()) return "unlimited";
  const std::string line = "limited to " + gigabytes(bytes.get<double>()) + " (ulimit -v)";
  if (bytes.get<uint64_t>() >= kLeastAddressSpace) return line;
  return line + ": too little, commands may hang; allow " +
         gigabytes(static_cast<double>(kLeastAddressSpace));
}

// Looks for a program on PATH.
bool on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

Findings mpi_findings() {
  return {{"built", built_with_mpi()},
          {"library", mpi_library()},
          {"mpirun", on_path("mpirun")},
          {"started_by_mpirun", started_by_mpirun()}};
}

// Whether a file can be made in a folder: the only test that file systems mounted read-only, full
// ones and quotas cannot fool.
Findings folder_findings(const std::filesystem::path& folder) {
  Findings found = {{"folder", folder.string()}, {"writable", false}};
  try {
    OutputFile probe((folder / concat("fcp-doctor-", getpid())).string());
    probe.write("fcp");
    found["writable"] = true;  // gone again: it is never committed
  } catch (const Error& error) {
    found["reason"] = error.what();
  }
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (!error) found["free_bytes"] = space.available;
  return found;
}

Findings data_findings() {
  const char* folder = std::getenv("FCP_DATA_DIR");
  if (folder == nullptr) return {{"folder", nullptr}};
  Findings sets = Findings::array();
  for (const std::string& name : paper_set_names()) {
    if (has_paper_set(name, folder)) sets.push_back(name);
  }
  return {{"folder", folder}, {"exists", std::filesystem::is_directory(folder)}, {"sets", sets}};
}

Findings examine() {
  std::error_code error;
  std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  if (error) temporary = "/tmp";
  return {{"fcp", FCP_VERSION},
          {"threads", std::max(1u, std::thread::hardware_concurrency())},
          {"memory", memory_findings()},
          {"cuda",
           {{"available", torch::cuda::is_available()}, {"devices", torch::cuda::device_count()}}},
          {"mpi", mpi_findings()},
          {"trees", can_boost()},
          {"images", {{"jpeg", JPEG_FOUND == 1}, {"png", PNG_FOUND == 1}}},
          {"temporary", folder_findings(temporary)},
          {"data", data_findings()}};
}

std::string mpi_line(const Findings& mpi) {
  if (!mpi["built"].get<bool>()) return "no: built without it";
  return concat(mpi["library"].get<std::string>(),
                mpi["mpirun"].get<bool>() ? "; mpirun is there" : "; mpirun is not on the PATH");
}

std::string folder_line(const Findings& folder) {
  std::string line = folder["folder"].get<std::string>();
  if (!folder["writable"].get<bool>()) return line + ": " + folder["reason"].get<std::string>();
  line += ": writable";
  if (!folder.contains("free_bytes")) return line;
  return line + ", " + gigabytes(folder["free_bytes"].get<double>()) + " free";
}

std::string data_line(const Findings& data) {
  if (data["folder"].is_null()) return "FCP_DATA_DIR is not set; only `fcp reproduce` needs it";
  const std::string folder = data["folder"].get<std::string>();
  if (!data["exists"].get<bool>()) return folder + ": no such folder";
  std::string line = folder + ": ";
  if (data["sets"].empty()) return line + "none of the paper's tables";
  for (const Findings& name : data["sets"]) {
    line += (line.back() == ' ' ? "" : ", ") + name.get<std::string>();
  }
  return line;
}

void print_findings(const Findings& found) {
  const Findings& memory = found["memory"];
  const Findings& cuda = found["cuda"];
  Table table({"what", "here"});
  table.add_row({"fcp", found["fcp"].get<std::string>() + " (fcp --version --json: libraries)"});
  table.add_row({"threads", std::to_string(found["threads"].get<unsigned>())});
  table.add_row({"memory", gigabytes(memory["available_bytes"].get<double>()) + " available of " +
                               gigabytes(memory["total_bytes"].get<double>())});
  table.add_row({"address space", address_space_line(memory["address_space_bytes"])});
  table.add_row({"CUDA", cuda["available"].get<bool>()
                             ? concat("yes, devices: ", cuda["devices"].get<size_t>())
                             : "no: networks run on the processor (--device cpu)"});
  table.add_row({"MPI", mpi_line(found["mpi"])});
  table.add_row(
      {"boosted trees", found["trees"].get<bool>()
                            ? "yes: XGBoost, beside the networks of fcp fit"
                            : "no: built without XGBoost, fcp fit trains networks alone"});
  table.add_row({"JPEG images", yes_or_no(found["images"]["jpeg"].get<bool>())});
  table.add_row({"PNG images", yes_or_no(found["images"]["png"].get<bool>())});
  table.add_row({"temporary folder", folder_line(found["temporary"])});
  table.add_row({"data folder", data_line(found["data"])});
  std::cout << table;
}

}  // namespace

void add_doctor(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("doctor", "Show what this machine and this build offer");
  verb->footer("Examples:\n  fcp doctor\n  fcp doctor --json");
  verb->add_flag("--json", *json, "Print the findings as JSON");
  verb->callback([json] {
    const Findings found = examine();
    if (*json) {
      std::cout << found.dump(2) << '\n';
    } else {
      print_findings(found);
    }
  });
}

}  // namespace fcp::cli

// The command fcp. It answers what is known when it is built by itself: --version, --help of every
// verb, completions and the manual page, each as `fcp-core` printed it then. All else is handed to
// fcp-core, which takes a good part of a second to load libtorch and the libraries that libtorch
// stands on. It stands beside the launcher, in FCP_CORE_FOLDER from there (libexec/fcp), or, where
// pip installed both, in the Python package: in its folder for the torch that is there.
//
// Ranks of an MPI job are always handed on: one of them is to speak.
// Tested by tests/cli/test_start.py.
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <glob.h>
#include <unistd.h>

#include "fcp/distributed/declared_ranks.h"

namespace {

struct Answer {
  std::string_view words;  // of the command line, a newline between them
  size_t text;             // its place in kTexts
};

#include "answers.inc"

std::string own_folder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string_view whole(path, length > 0 ? static_cast<size_t>(length) : 0);
  return std::string(whole.substr(0, whole.rfind('/')));
}

int say(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      std::fputs("fcp: cannot write to standard output\n", stderr);
      return 1;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// The minor version of the torch of Python in `folder`, such as 2.15; empty: none is there.
std::string torch_in(const std::filesystem::path& folder) {
  constexpr std::string_view kAssigned = "__version__ = '";
  std::ifstream file(folder / "version.py");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kAssigned)) continue;
    const std::string version = line.substr(kAssigned.size());
    return version.substr(0, version.find('.', version.find('.') + 1));
  }
  return "";
}

// The one that fcp-core in `native` would load: beside its package, or the one it was linked with.
std::string torch_of(const std::filesystem::path& native, const std::string& minor) {
  const std::string beside = torch_in(native.parent_path().parent_path() / "torch");
  if (!beside.empty()) return beside;
  std::string library;
  std::ifstream file(native / "linked-with");
  if (!std::getline(file, library) || !std::filesystem::exists(library)) return "";
  const std::string linked = torch_in(std::filesystem::path(library).parent_path().parent_path());
  return linked.empty() ? minor : linked;  // Debian's library has its version in its name
}

// What pip has installed for programs in `folder`: fcp/torch-2.15 for each such torch.
std::vector<std::filesystem::path> packaged(const std::string& folder) {
  std::string pattern;
  for (const char c : folder) {
    if (std::strchr("*?[]{},\\", c)) pattern += '\\';
    pattern += c;
  }
  pattern += "/../{,lib*/python3*/{site,dist}-packages/}fcp/torch-*";
  std::vector<std::filesystem::path> found;
  glob_t matches = {};
  if (glob(pattern.c_str(), GLOB_BRACE, nullptr, &matches) == 0) {
    found.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  globfree(&matches);
  return found;
}

// The fcp-core for the torch that is there; without one, why.
std::filesystem::path packaged_core(const std::string& folder, std::string& complaint) {
  std::string known, found;
  for (const std::filesystem::path& native : packaged(folder)) {
    const std::string minor = native.filename().string().substr(std::strlen("torch-"));
    const std::string torch = torch_of(native, minor);
    if (torch == minor) return native / "fcp-core";
    known += (known.empty() ? "" : ", ") + minor;
    found = (torch.empty() ? "none in " : "torch " + torch + " in ") +
            std::filesystem::weakly_canonical(native.parent_path().parent_path()).string();
  }
  complaint = known.empty() ? "no fcp-core in " + folder +
                                  ", nor in " FCP_CORE_FOLDER
                                  " from there: fcp is two files, and needs both"
                            : "compiled for torch " + known + ", found " + found;
  return "";
}

int run_core(char** argv) {
  const std::string folder = own_folder();
  std::string complaint;
  for (std::filesystem::path core :
       {folder + "/fcp-core", folder + "/" FCP_CORE_FOLDER "/fcp-core", std::string()}) {
    if (core.empty()) core = packaged_core(folder, complaint);
    if (core.empty()) break;
    execv(core.c_str(), argv);
    complaint = core.string() + ": cannot run: " + std::strerror(errno);
    if (errno != ENOENT) break;
  }
  std::fprintf(stderr, "fcp: %s\n", complaint.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string words;
  for (int i = 1; i < argc; ++i) words += (i > 1 ? "\n" : "") + std::string(argv[i]);
  if (fcp::declared_ranks() == 0) {
    for (const Answer& answer : kAnswers) {
      if (answer.words == words) return say(kTexts[answer.text]);
    }
  }
  return run_core(argv);
}

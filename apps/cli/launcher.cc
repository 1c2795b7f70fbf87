// The command fcp. It answers what is known when it is built by itself: --version, --help of every
// verb, completions and the manual page, each as `fcp-core` printed it then. All else is handed to
// fcp-core, which stands beside it or in FCP_CORE_FOLDER from there (libexec/fcp), and which takes
// a good part of a second to load libtorch and the libraries that libtorch stands on.
//
// Ranks of an MPI job are always handed on: one of them is to speak.
// Tested by tests/cli/test_start.py.
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

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

}  // namespace

int main(int argc, char** argv) {
  std::string words;
  for (int i = 1; i < argc; ++i) words += (i > 1 ? "\n" : "") + std::string(argv[i]);
  if (fcp::declared_ranks() == 0) {
    for (const Answer& answer : kAnswers) {
      if (answer.words == words) return say(kTexts[answer.text]);
    }
  }
  const std::string folder = own_folder();
  for (const char* place : {"/fcp-core", "/" FCP_CORE_FOLDER "/fcp-core"}) {
    execv((folder + place).c_str(), argv);
    if (errno == ENOENT) continue;
    std::fprintf(stderr, "fcp: %s%s: cannot run: %s\n", folder.c_str(), place,
                 std::strerror(errno));
    return 1;
  }
  std::fprintf(stderr,
               "fcp: no fcp-core in %s, nor in " FCP_CORE_FOLDER
               " from there: fcp is two files, and needs both\n",
               folder.c_str());
  return 1;
}

#include "apps/cli/standard_input.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"

namespace fcp::cli {
namespace {

class StandardInput {
 public:
  StandardInput() {
    path_ = (std::filesystem::temp_directory_path() / "fcp-stdin-XXXXXX").string();
    const int file = mkstemp(path_.data());
    if (file < 0) fail(path_, ": cannot be written: ", std::strerror(errno));
    std::array<char, 1 << 16> block;
    for (ssize_t got; (got = ::read(STDIN_FILENO, block.data(), block.size())) != 0;) {
      check_interrupted();
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("standard input: cannot be read: ", std::strerror(errno));
      write_all(file, block.data(), got);
    }
    ::close(file);
  }
  ~StandardInput() { ::unlink(path_.c_str()); }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

  const std::string& path() const { return path_; }

 private:
  void write_all(int file, const char* bytes, ssize_t count) const {
    while (count > 0) {
      const ssize_t put = ::write(file, bytes, static_cast<size_t>(count));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail(path_, ": cannot be written: ", std::strerror(errno));
      bytes += put;
      count -= put;
    }
  }

  std::string path_;
};

}  // namespace

const std::string& standard_input_file() {
  static const StandardInput input;
  return input.path();
}

}  // namespace fcp::cli

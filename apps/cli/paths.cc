#include "apps/cli/paths.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"

namespace fcp::cli {
namespace {

namespace fs = std::filesystem;

// By their names, which mean the same in every verb.
constexpr std::array<std::string_view, 5> kWritten = {"--out", "--report", "--checkpoint",
                                                      "--scores", "--plots"};
constexpr std::array<std::string_view, 7> kRead = {
    "model", "models", "data", "--data", "--shifted", "--fit-data", "--class-names"};
constexpr std::array<std::string_view, 3> kColumnsOrFiles = {"--target", "--group", "--weights"};

struct UsedPath {
  std::string option;
  std::string text;  // as typed
  fs::path path;     // links resolved
};

// Where the path leads, also where nothing is there yet.
fs::path resolved(fs::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    const fs::path to = fs::read_symlink(path, error);
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : whole;
}

// A pipe or a device may be named twice; "-" is standard output.
bool is_file_name(const std::string& text) {
  std::error_code error;
  const fs::file_status status = fs::status(text, error);
  return !text.empty() && text != "-" &&
         (!fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status));
}

bool same_file(const UsedPath& a, const UsedPath& b) {
  std::error_code error;
  return a.path == b.path || (fs::equivalent(a.path, b.path, error) && !error);
}

// `a,b`, `name=file` and `archive.npz:entry` name files; what is there is compared.
std::vector<std::string> files_in(const std::string& text) {
  std::vector<std::string> files = {text};
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    files.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  for (size_t i = 0, count = files.size(); i < count; ++i) {
    const size_t name = files[i].find('='), entry = files[i].rfind(".npz:");
    if (name != std::string::npos) files.push_back(files[i].substr(name + 1));
    if (entry != std::string::npos) files.push_back(files[i].substr(0, entry + 4));
  }
  return files;
}

template <size_t kCount>
bool is_one_of(const std::string& name, const std::array<std::string_view, kCount>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_paths(const CLI::App& verb, bool force) {
  std::vector<UsedPath> written, read;
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    for (const std::string& text : option->results()) {
      if (is_one_of(name, kWritten)) {
        const size_t equals = text.find('=');  // fcp run: name=file
        const std::string file = equals == std::string::npos ? text : text.substr(equals + 1);
        if (is_file_name(file)) written.push_back({name, file, resolved(file)});
        continue;
      }
      const bool column = is_one_of(name, kColumnsOrFiles);
      if (!column && !is_one_of(name, kRead)) continue;
      for (const std::string& file : files_in(text)) {
        if (column && !file.ends_with(".npy") && !file.ends_with(".npz")) continue;
        if (fs::exists(file) && is_file_name(file)) read.push_back({name, file, resolved(file)});
      }
    }
  }
  for (size_t i = 0; i < written.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!same_file(written[i], written[j])) continue;
      throw CLI::ValidationError(concat(written[j].option, " ", written[j].text, " and ",
                                        written[i].option, " ", written[i].text,
                                        " are the same file"));
    }
    for (const UsedPath& input : read) {
      if (force || !same_file(written[i], input)) continue;
      throw CLI::ValidationError(concat(written[i].option, " ", written[i].text,
                                        " is what the command reads (", input.option,
                                        "); --force replaces it"));
    }
  }
}

}  // namespace

void guard_paths(CLI::App& verb) {
  const auto writes = [](const CLI::Option* option) {
    return is_one_of(option->get_name(), kWritten);
  };
  if (verb.get_options(writes).empty()) return;
  auto force = std::make_shared<bool>(false);
  verb.add_flag("--force", *force, "Replace a file that the command also reads");
  verb.parse_complete_callback([&verb, force] { check_paths(verb, *force); });
}

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

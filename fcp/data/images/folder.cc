#include "fcp/data/images/folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <dirent.h>
#include <sys/stat.h>

#include "fcp/base/error.h"
#include "fcp/data/bytes.h"

namespace fcp {

// POSIX and not std::filesystem's iterators: pip's libtorch exports its own copy of those, of
// another compiler, which the dynamic linker then picks.
bool is_folder(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

FolderEntries list_folder(const std::string& path) {
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(opendir(path.c_str()));
  if (!folder) {
    fail(path, ": ", errno == ENOENT ? "no such folder" : std::strerror(errno));
  }
  FolderEntries entries;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with('.')) continue;
    (is_folder(path_in(path, name)) ? entries.folders : entries.files).push_back(name);
  }
  std::sort(entries.files.begin(), entries.files.end());
  std::sort(entries.folders.begin(), entries.folders.end());
  return entries;
}

std::string path_in(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

std::string file_stem(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  return dot == 0 ? name : name.substr(0, dot);
}

std::vector<std::string> read_lines(const std::string& path) {
  const auto source = open_bytes(path);
  std::vector<std::string> lines(1);
  char piece[4096];
  for (size_t got; (got = source->read(piece, sizeof(piece))) > 0;) {
    for (size_t i = 0; i < got; ++i) {
      if (piece[i] == '\n') {
        lines.emplace_back();
      } else if (piece[i] != '\r') {
        lines.back() += piece[i];
      }
    }
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace fcp

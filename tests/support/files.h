// Small files for tests, in a folder of their own that goes away with the test.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <ftw.h>
#include <zlib.h>

#include "fcp/base/error.h"

namespace fcp {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fcp_data_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() {
    // Not std::filesystem::remove_all: pip's libtorch exports one of another compiler, which the
    // dynamic linker then picks.
    nftw(
        path_.c_str(), [](const char* name, const struct stat*, int, FTW*) { return remove(name); },
        16, FTW_DEPTH | FTW_PHYS);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The bytes packed by zlib: window_bits 15 + 16 makes gzip, -15 a raw deflated stream.
inline std::string packed(std::string_view bytes, int window_bits) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string gzipped(std::string_view bytes) { return packed(bytes, 15 + 16); }

// The message of the Error that `action` throws, with `folder`'s path taken out; "" for none.
template <typename Action>
std::string message_of(const Folder& folder, Action action) {
  try {
    action();
  } catch (const Error& error) {
    std::string text = error.what();
    const std::string prefix = folder.path() + "/";
    for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
    return text;
  }
  return "";
}

}  // namespace fcp

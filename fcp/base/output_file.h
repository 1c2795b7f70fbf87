// A file that appears under its name whole or not at all. Bytes go to a temporary file in the same
// folder; commit() flushes it to the disk and renames it over the target, whose permissions it
// takes over. A process that is killed
// before leaves what was there as it was; an OutputFile that is destroyed without commit() removes
// its temporary. What exists and is not a regular file (a pipe, a device) is written directly, and
// so is standard output, called "-". Every failed write is an Error that names the file.
// Tested by tests/base/output_file_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fcp {

class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  // Replaces bytes already written, from `offset` on.
  void overwrite(uint64_t offset, std::string_view bytes);
  void commit();

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail_write() const;
  void flush();

  std::string path_;
  std::string temporary_;  // empty where written directly
  std::string buffer_;
  int descriptor_ = -1;
};

// How many files this process has put in their places so far.
size_t files_written();

// A whole file at once.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace fcp

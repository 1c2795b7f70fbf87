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
#include <vector>

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

// A file of records that grows while work goes on, so that the same work can go on after a crash.
//
// The file begins with the hash of everything the work depends on; records follow, each with its
// length and its own hash. A record that was cut off by a kill, and whatever comes after a damaged
// one, is dropped when the file is opened again. A file of other work, or no checkpoint at all, is
// refused and left as it is; so is one that another process has open.
//
// Tested by tests/base/output_file_test.cc.

class Checkpoint {
 public:
  // `key` is a SHA-256 in hexadecimal digits.
  Checkpoint(const std::string& path, const std::string& key);

  const std::string& path() const { return path_; }
  // What was there when it was opened.
  const std::vector<std::string>& records() const { return records_; }
  void append(std::string_view record);

 private:
  struct Descriptor {  // closes itself, also where the constructor throws
    Descriptor() = default;
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number = -1;
  };

  std::string read() const;
  void write(std::string_view bytes);
  [[noreturn]] void fail_with(const char* what) const;

  std::string path_;
  std::vector<std::string> records_;
  Descriptor file_;
};

// The file that this process has kept records in last; empty: none.
std::string checkpoint_in_use();

}  // namespace fcp

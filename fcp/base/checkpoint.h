// A file of records that grows while work goes on, so that the same work can go on after a crash.
//
// The file begins with the hash of everything the work depends on; records follow, each with its
// length and its own hash. A record that was cut off by a kill, and whatever comes after a damaged
// one, is dropped when the file is opened again. A file of other work, or no checkpoint at all, is
// refused and left as it is; so is one that another process has open.
//
// Tested by tests/base/checkpoint_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fcp {

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

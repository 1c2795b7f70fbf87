// Remembers what was read of a file, so that whatever reads a part of it again gets the same bytes
// or an Error. Rows are read more than once: to learn columns, to choose, to calibrate, by several
// ranks. A result must be that of one state of the file.
//
// The idea: a file is read in blocks of 64 KiB, and each block's hash is kept (8 bytes for 64 KiB,
// at several GB a second). A block that is read again must have the same hash. Size and time of the
// last write are compared as well, at every block: they tell of changes where nothing is read
// twice, but not of all, because writers through mmap and `touch -d` leave them as they were.
//
// A source has a witness of its own, unless a OneReading says that all sources of the same path
// have one together.
//
// Tested by tests/data/file_witness_test.cc and tests/cli/test_changes.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

// 64 bits that any change of a single word changes, and any other change but for one in 2^64 by
// chance; never 0. Not against someone who looks for collisions.
uint64_t hash_bytes(std::string_view bytes);

// 16 hexadecimal digits.
std::string hash_text(uint64_t hash);

class FileWitness {
 public:
  static constexpr size_t kBlock = size_t{1} << 16;

  // Size, and when it was last written to.
  struct State {
    int64_t size = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  // A witness of `path`, which is open as `descriptor`. An Error where it is a common one, and the
  // file is not as the others found it.
  static std::shared_ptr<FileWitness> of(const std::string& path, int descriptor);
  // The common ones of all files that are open now, by path.
  static std::vector<std::shared_ptr<FileWitness>> all();

  FileWitness(std::string path, State state);
  ~FileWitness();
  FileWitness(const FileWitness&) = delete;
  FileWitness& operator=(const FileWitness&) = delete;

  const std::string& path() const { return path_; }
  const State& state() const { return state_; }

  // An Error where the open file was written to since it was first opened. `name` is what the
  // message calls it.
  void check_state(int descriptor, const std::string& name) const;

  // Block `number` holds these bytes now; an Error where it held others before.
  void see(uint64_t number, std::string_view bytes, const std::string& name);

  // The hash of each block; 0 where it was not read.
  std::vector<uint64_t> hashes() const;

 private:
  const std::string path_;
  const State state_;
  mutable std::mutex mutex_;  // of the hashes
  std::vector<uint64_t> hashes_;
};

// While one exists, all who have a file open, by the same path, have one witness. The program has
// one for each run of a verb; a service that reads one file today and another of that name tomorrow
// has none.
class OneReading {
 public:
  OneReading();
  ~OneReading();
  OneReading(const OneReading&) = delete;
  OneReading& operator=(const OneReading&) = delete;
};

}  // namespace fcp

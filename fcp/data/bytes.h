// A stream of bytes that can start again: a plain file, an unpacked gzip file, or one entry of a
// zip archive. Readers of CSV and npy sit on it and so need not know how the file is packed. A file
// that is written to between opening and the last read is an Error: half of it would be of before
// (fcp/data/file_witness.h).
//
// Tested by tests/data/bytes_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace fcp {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills `buffer` with up to `count` bytes and returns how many; fewer only at the end.
  virtual size_t read(char* buffer, size_t count) = 0;
  virtual void rewind() = 0;
  // Passes over the next `count` bytes, or to the end: a packed stream by unpacking them.
  virtual void skip(uint64_t count);

  // How many bytes there are in all, where that is known without reading them.
  virtual std::optional<uint64_t> size() const = 0;

  // What messages call it: the path, or path:entry.
  virtual const std::string& name() const = 0;
};

// How many threads may share one long read of a plain file; 1 unless said otherwise. The program
// says it where the rows go to another device and the threads would stand idle.
void set_reading_threads(size_t threads);

// The bytes of a file; a gzip file (known by its first bytes, not by its name) is unpacked.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

// `length` bytes of a plain file from `offset` on, raw.
std::unique_ptr<ByteSource> open_range(const std::string& path, const std::string& name,
                                       uint64_t offset, uint64_t length);

// A deflated stream of `packed` bytes from `offset` on, which must unpack to exactly `unpacked`
// bytes with the checksum `crc`.
std::unique_ptr<ByteSource> open_deflated(const std::string& path, const std::string& name,
                                          uint64_t offset, uint64_t packed, uint64_t unpacked,
                                          uint32_t crc);

}  // namespace fcp

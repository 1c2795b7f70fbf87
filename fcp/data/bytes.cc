#include "fcp/data/bytes.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include "fcp/base/error.h"
#include "fcp/base/parallel.h"
#include "fcp/data/file_witness.h"

namespace fcp {

namespace {

constexpr size_t kPackedBlock = size_t{1} << 16;
constexpr size_t kThreadBlocks = 16;  // below, a thread costs more than it does

std::atomic<size_t> reading_threads = 1;

class FileRange : public ByteSource {
 public:
  FileRange(const std::string& path, const std::string& name, uint64_t offset, uint64_t length)
      : name_(name), offset_(offset), length_(length), file_(path) {
    witness_ = FileWitness::of(path, file_.number);
  }

  size_t read(char* buffer, size_t count) override {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(count, length_ - position_));
    size_t done = 0;
    while (done < wanted) {
      const uint64_t place = offset_ + position_;
      if (const size_t whole = read_blocks(place, buffer + done, wanted - done); whole > 0) {
        done += whole;
        position_ += whole;
        continue;
      }
      if (!loaded_ || *loaded_ != place / FileWitness::kBlock) load(place / FileWitness::kBlock);
      const size_t within = place % FileWitness::kBlock;
      if (within >= block_.size()) break;  // the file ends before the range
      const size_t some = std::min(wanted - done, block_.size() - within);
      std::memcpy(buffer + done, block_.data() + within, some);
      done += some;
      position_ += some;
    }
    return done;
  }

  // Reads again what is read again: a change is to be seen.
  void rewind() override {
    position_ = 0;
    loaded_.reset();
  }

  void skip(uint64_t count) override { position_ += std::min(count, length_ - position_); }

  std::optional<uint64_t> size() const override { return length_; }
  const std::string& name() const override { return name_; }

  // Of the file.
  bool begins_with(std::string_view magic) {
    load(0);
    return std::string_view(block_.data(), block_.size()).starts_with(magic);
  }

 private:
  struct Descriptor {  // closes itself, also where the constructor throws
    explicit Descriptor(const std::string& path)
        : number(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
      if (number < 0) fail(path, ": cannot open: ", std::strerror(errno));
    }
    ~Descriptor() { close(number); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    const int number;
  };

  // Whole blocks of the file, wherever the range begins and ends, so that all who read it see the
  // same ones.
  void load(uint64_t number) {
    loaded_.reset();
    block_.resize(FileWitness::kBlock);
    block_.resize(read_block(number, block_.data()));
    loaded_ = number;
  }

  // How much of it there is; less than a block only at the end of the file.
  size_t read_block(uint64_t number, char* to) const {
    size_t filled = 0;
    while (filled < FileWitness::kBlock) {
      const auto place = static_cast<off_t>(number * FileWitness::kBlock + filled);
      const ssize_t got = pread(file_.number, to + filled, FileWitness::kBlock - filled, place);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(name_, ": cannot read: ", std::strerror(errno));
      if (got == 0) break;
      filled += static_cast<size_t>(got);
    }
    witness_->check_state(file_.number, name_);
    if (filled > 0) witness_->see(number, {to, filled}, name_);
    return filled;
  }

  // The blocks that begin at `place` and lie within `count` bytes, read to where they belong; 0
  // where there are none, or where the file ends among them.
  size_t read_blocks(uint64_t place, char* to, size_t count) const {
    const uint64_t first = place / FileWitness::kBlock;
    const size_t blocks = count / FileWitness::kBlock;
    if (place % FileWitness::kBlock != 0 || blocks == 0) return 0;
    std::atomic<bool> whole = true;
    parallel_rows(blocks, kThreadBlocks, reading_threads, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end && whole; ++i) {
        const size_t got = read_block(first + i, to + i * FileWitness::kBlock);
        if (got < FileWitness::kBlock) whole = false;
      }
    });
    return whole ? blocks * FileWitness::kBlock : 0;
  }

  std::string name_;
  uint64_t offset_;
  uint64_t length_;
  uint64_t position_ = 0;
  Descriptor file_;
  std::shared_ptr<FileWitness> witness_;
  std::vector<char> block_;
  std::optional<uint64_t> loaded_;  // the block's number
};

// What an archive's directory says about one entry.
struct Declared {
  uint64_t size;
  uint32_t crc;
};

// zlib on top of another source: gzip (several members one after the other are one stream), or a
// raw deflated stream held against what was declared.
class Inflated : public ByteSource {
 public:
  Inflated(std::unique_ptr<ByteSource> packed, std::optional<Declared> declared)
      : packed_(std::move(packed)), declared_(declared), input_(kPackedBlock) {
    const int raw_deflate = -15, gzip = 15 + 16;
    if (inflateInit2(&stream_, declared_ ? raw_deflate : gzip) != Z_OK) {
      fail(name(), ": zlib cannot start");
    }
  }
  ~Inflated() override { inflateEnd(&stream_); }
  Inflated(const Inflated&) = delete;
  Inflated& operator=(const Inflated&) = delete;

  size_t read(char* buffer, size_t count) override {
    size_t done = 0;
    while (done < count && !ended_) done += read_some(buffer + done, count - done);
    return done;
  }

  void rewind() override {
    packed_->rewind();
    inflateReset(&stream_);
    stream_.avail_in = 0;
    ended_ = false;
    produced_ = 0;
    crc_ = 0;
  }

  std::optional<uint64_t> size() const override {
    return declared_ ? std::optional(declared_->size) : std::nullopt;
  }
  const std::string& name() const override { return packed_->name(); }

 private:
  bool refill() {
    if (stream_.avail_in > 0) return true;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(packed_->read(input_.data(), input_.size()));
    return stream_.avail_in > 0;
  }

  size_t read_some(char* buffer, size_t count) {
    const uInt room = static_cast<uInt>(std::min<size_t>(count, size_t{1} << 30));
    if (!refill()) fail(name(), ": compressed data end too early; is the file cut off?");
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    const size_t got = room - stream_.avail_out;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      fail(name(), ": compressed data are damaged",
           stream_.msg ? concat(" (", stream_.msg, ")") : "");
    }
    account(buffer, got);
    if (status == Z_STREAM_END) finish_member();
    return got;
  }

  void account(const char* bytes, size_t count) {
    if (!declared_) return;
    produced_ += count;
    crc_ = static_cast<uint32_t>(
        crc32(crc_, reinterpret_cast<const Bytef*>(bytes), static_cast<uInt>(count)));
    if (produced_ > declared_->size) {
      fail(name(), ": unpacks to more than the ", declared_->size, " bytes the archive declares");
    }
  }

  void finish_member() {
    if (!declared_) {
      ended_ = !refill();
      if (!ended_) inflateReset(&stream_);
      return;
    }
    ended_ = true;
    if (produced_ != declared_->size) {
      fail(name(), ": unpacks to ", produced_, " bytes, the archive declares ", declared_->size);
    }
    if (crc_ != declared_->crc) fail(name(), ": checksum differs from the archive's; damaged file");
  }

  std::unique_ptr<ByteSource> packed_;
  std::optional<Declared> declared_;
  std::vector<char> input_;
  z_stream stream_{};
  bool ended_ = false;
  uint64_t produced_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace

void set_reading_threads(size_t threads) { reading_threads = std::max<size_t>(1, threads); }

void ByteSource::skip(uint64_t count) {
  std::vector<char> block(static_cast<size_t>(std::min<uint64_t>(count, kPackedBlock)));
  while (count > 0) {
    const size_t got =
        read(block.data(), static_cast<size_t>(std::min<uint64_t>(count, block.size())));
    if (got == 0) return;
    count -= got;
  }
}

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) fail(path, ": no such file");
  if (std::filesystem::is_directory(status)) fail(path, ": is a folder, expected a file");
  if (!std::filesystem::is_regular_file(status)) {
    fail(path, ": not a regular file; data may be read more than once, so a pipe will not do");
  }
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) fail(path, ": cannot open: ", error.message());
  auto file = std::make_unique<FileRange>(path, path, 0, size);
  if (!file->begins_with("\x1f\x8b")) return file;
  return std::make_unique<Inflated>(std::move(file), std::nullopt);
}

std::unique_ptr<ByteSource> open_range(const std::string& path, const std::string& name,
                                       uint64_t offset, uint64_t length) {
  return std::make_unique<FileRange>(path, name, offset, length);
}

std::unique_ptr<ByteSource> open_deflated(const std::string& path, const std::string& name,
                                          uint64_t offset, uint64_t packed, uint64_t unpacked,
                                          uint32_t crc) {
  return std::make_unique<Inflated>(open_range(path, name, offset, packed),
                                    Declared{unpacked, crc});
}

}  // namespace fcp

#include "fcp/data/bytes.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <sys/stat.h>
#include <zlib.h>

#include "fcp/base/error.h"

namespace fcp {

namespace {

constexpr size_t kPackedBlock = size_t{1} << 16;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// When a file was last written to, and its size then: what tells that it is still the same. Rows
// are read more than once (to learn columns, to choose, to calibrate), and must be the same each
// time.
struct FileState {
  explicit FileState(std::FILE* file) {
    struct stat found {};
    if (fstat(fileno(file), &found) != 0) return;
    size = found.st_size;
    seconds = found.st_mtim.tv_sec;
    nanoseconds = found.st_mtim.tv_nsec;
  }
  friend bool operator==(const FileState&, const FileState&) = default;

  int64_t size = 0;
  int64_t seconds = 0;
  int64_t nanoseconds = 0;
};

class FileRange : public ByteSource {
 public:
  FileRange(const std::string& path, const std::string& name, uint64_t offset, uint64_t length)
      : name_(name), offset_(offset), length_(length), file_(std::fopen(path.c_str(), "rb")) {
    if (!file_) fail(path, ": cannot open: ", std::strerror(errno));
    opened_ = FileState(file_.get());
    rewind();
  }

  size_t read(char* buffer, size_t count) override {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(count, length_ - position_));
    const size_t got = std::fread(buffer, 1, wanted, file_.get());
    if (got < wanted && std::ferror(file_.get()))
      fail(name_, ": cannot read: ", std::strerror(errno));
    check_unchanged();
    position_ += got;
    return got;
  }

  void rewind() override {
    position_ = 0;
    if (fseeko(file_.get(), static_cast<off_t>(offset_), SEEK_SET) != 0) {
      fail(name_, ": cannot seek: ", std::strerror(errno));
    }
  }

  void skip(uint64_t count) override {
    position_ += std::min(count, length_ - position_);
    if (fseeko(file_.get(), static_cast<off_t>(offset_ + position_), SEEK_SET) != 0) {
      fail(name_, ": cannot seek: ", std::strerror(errno));
    }
  }

  std::optional<uint64_t> size() const override { return length_; }
  const std::string& name() const override { return name_; }

 private:
  void check_unchanged() const {
    const FileState now(file_.get());
    if (now == *opened_) return;
    if (now.size == opened_->size) fail(name_, ": was written to while it was read");
    fail(name_, ": changed while it was read: ", opened_->size, " bytes at first, then ", now.size);
  }

  std::string name_;
  uint64_t offset_;
  uint64_t length_;
  uint64_t position_ = 0;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::optional<FileState> opened_;
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
  char magic[2] = {};
  const bool gzip = file->read(magic, 2) == 2 && magic[0] == '\x1f' && magic[1] == '\x8b';
  file->rewind();
  if (gzip) return std::make_unique<Inflated>(std::move(file), std::nullopt);
  return file;
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

#include "fcp/base/output_file.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"

namespace fcp {
namespace {

constexpr size_t kBufferSize = size_t{1} << 20;

std::atomic<size_t> whole_files = 0;

// Opens a new file `stem` + six letters and keeps its name. mkstemp would not do: its files belong
// to the user alone, and what the umask would leave cannot be asked without changing it for a
// moment.
int open_new(const std::string& stem, std::string& name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr int kTries = 100;
  std::random_device random;
  for (int i = 0; i < kTries; ++i) {
    name = stem;
    for (int k = 0; k < 6; ++k) name += kLetters[random() % kLetters.size()];
    const int handle = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (handle >= 0 || errno != EEXIST) return handle;
  }
  return -1;
}

// Takes over the permissions of the file that is to be replaced.
void keep_permissions(const std::string& path, int handle) {
  struct stat present {};
  if (stat(path.c_str(), &present) != 0 || !S_ISREG(present.st_mode)) return;
  fchmod(handle, present.st_mode & 0777);
}

// A rename is durable once the folder is; a file system that cannot sync folders did all it can.
void sync_folder(const std::filesystem::path& file) {
  const std::string folder = file.parent_path().empty() ? "." : file.parent_path().string();
  const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return;
  fsync(handle);
  close(handle);
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  namespace fs = std::filesystem;
  buffer_.reserve(kBufferSize);
  if (path == "-") {
    path_ = "standard output";
    descriptor_ = STDOUT_FILENO;
    return;
  }
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) fail(path, ": cannot write: is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    const fs::path target(path);
    descriptor_ = open_new(
        (target.parent_path() / concat(".", target.filename().string(), ".")).string(), temporary_);
    if (descriptor_ >= 0) keep_permissions(path, descriptor_);
  }
  if (descriptor_ < 0) fail_write();
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0 || descriptor_ == STDOUT_FILENO) return;
  close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::fail_write() const { fail(path_, ": cannot write: ", std::strerror(errno)); }

void OutputFile::flush() {
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t written = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_write();
    done += static_cast<size_t>(written);
  }
  buffer_.clear();
}

void OutputFile::write(std::string_view bytes) {
  // In parts, so that the buffer stays small however many bytes there are.
  for (size_t done = 0; done < bytes.size(); done += kBufferSize) {
    buffer_.append(bytes.substr(done, kBufferSize));
    if (buffer_.size() >= kBufferSize) flush();
  }
}

void OutputFile::overwrite(uint64_t offset, std::string_view bytes) {
  flush();
  const ssize_t written =
      pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (written != static_cast<ssize_t>(bytes.size())) fail_write();
}

void OutputFile::commit() {
  flush();
  if (temporary_.empty()) {
    if (descriptor_ != STDOUT_FILENO && close(std::exchange(descriptor_, -1)) != 0) fail_write();
    return;
  }
  if (fsync(descriptor_) != 0) fail_write();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_write();
  temporary_.clear();
  ++whole_files;
  if (close(std::exchange(descriptor_, -1)) != 0) fail_write();
  sync_folder(path_);
}

size_t files_written() { return whole_files; }

void write_file(const std::string& path, std::string_view bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.commit();
}

namespace {

constexpr std::string_view kMark = "fcp checkpoint 1\n";
constexpr size_t kHashDigits = 64;

std::string& in_use() {
  static std::string path;
  return path;
}

std::string hash_of(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

// Takes the next record off `rest`; false where it is not whole.
bool take_record(std::string_view& rest, std::string& record) {
  uint64_t length = 0;
  if (rest.size() < sizeof length + kHashDigits) return false;
  std::memcpy(&length, rest.data(), sizeof length);
  if (length > rest.size() - sizeof length - kHashDigits) return false;
  record = rest.substr(sizeof length, length);
  if (rest.substr(sizeof length + length, kHashDigits) != hash_of(record)) return false;
  rest.remove_prefix(sizeof length + length + kHashDigits);
  return true;
}

}  // namespace

void Checkpoint::fail_with(const char* what) const {
  fail(path_, ": cannot ", what, ": ", std::strerror(errno));
}

Checkpoint::Checkpoint(const std::string& path, const std::string& key) : path_(path) {
  file_.number = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_.number < 0) fail_with("open");
  if (flock(file_.number, LOCK_EX | LOCK_NB) != 0) fail(path_, ": another process is using it");
  const std::string bytes = read();
  const std::string head = concat(kMark, key, "\n");
  std::string_view rest = bytes;
  if (head.starts_with(rest)) {  // empty, or killed while it began
    if (ftruncate(file_.number, 0) != 0 || lseek(file_.number, 0, SEEK_SET) != 0)
      fail_with("write");
    write(head);
    return;
  }
  if (!rest.starts_with(kMark) || rest.size() < head.size()) {
    fail(path_, ": is not a checkpoint; a file that exists is not overwritten");
  }
  if (!rest.starts_with(head)) {
    fail(path_, ": is the checkpoint of other work, whose hash is ",
         rest.substr(kMark.size(), kHashDigits), "; that of these inputs and options is ", key);
  }
  rest.remove_prefix(head.size());
  for (std::string record; take_record(rest, record);) records_.push_back(std::move(record));
  const auto good = static_cast<off_t>(bytes.size() - rest.size());
  if (ftruncate(file_.number, good) != 0 || lseek(file_.number, good, SEEK_SET) != good) {
    fail_with("write");
  }
}

Checkpoint::Descriptor::~Descriptor() {
  if (number >= 0) close(number);
}

std::string Checkpoint::read() const {
  std::string bytes(static_cast<size_t>(lseek(file_.number, 0, SEEK_END)), ' ');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        pread(file_.number, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got <= 0) fail_with("read");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

void Checkpoint::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.number, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with("write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void Checkpoint::append(std::string_view record) {
  const uint64_t length = record.size();
  const std::string_view prefix(reinterpret_cast<const char*>(&length), sizeof length);
  write(concat(prefix, record, hash_of(record)));  // at once: a killed process leaves whole records
  in_use() = path_;
}

std::string checkpoint_in_use() { return in_use(); }

}  // namespace fcp

#include "fcp/base/output_file.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fcp/base/error.h"

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

}  // namespace fcp

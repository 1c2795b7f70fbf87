#include "fcp/base/checkpoint.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/base/sha256.h"

namespace fcp {
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

#include "fcp/data/file_witness.h"

#include <map>
#include <utility>

#include <sys/stat.h>
#ifdef FCP_HAS_XXHASH
#include <xxhash.h>
#endif

#include "fcp/base/error.h"
#include "fcp/base/hash.h"

namespace fcp {
namespace {

// Never destroyed: a source in a static variable may outlive whatever would be.
struct Witnesses {
  std::mutex mutex;
  int readings = 0;  // how many OneReading there are
  std::map<std::string, std::weak_ptr<FileWitness>> by_path;
};

Witnesses& witnesses() {
  static auto& all = *new Witnesses;
  return all;
}

FileWitness::State state_of(int descriptor) {
  struct stat found {};
  if (fstat(descriptor, &found) != 0) return {};
  return {found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

}  // namespace

uint64_t hash_bytes(std::string_view bytes) {
#ifdef FCP_HAS_XXHASH
  const uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
#else
  const uint64_t hash = std::stoull(sha256_hex(bytes).substr(0, 16), nullptr, 16);
#endif
  return hash == 0 ? 1 : hash;
}

std::string hash_text(uint64_t hash) {
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; hash >>= 4) text[i] = "0123456789abcdef"[hash & 15];
  return text;
}

std::shared_ptr<FileWitness> FileWitness::of(const std::string& path, int descriptor) {
  std::shared_ptr<FileWitness> witness;
  {
    const std::lock_guard lock(witnesses().mutex);
    if (witnesses().readings == 0) return std::make_shared<FileWitness>(path, state_of(descriptor));
    std::weak_ptr<FileWitness>& known = witnesses().by_path[path];
    witness = known.lock();
    if (!witness) {
      witness = std::make_shared<FileWitness>(path, state_of(descriptor));
      known = witness;
      return witness;
    }
  }
  witness->check_state(descriptor, path);
  return witness;
}

std::vector<std::shared_ptr<FileWitness>> FileWitness::all() {
  std::vector<std::shared_ptr<FileWitness>> all;  // before the lock, which their end asks for
  const std::lock_guard lock(witnesses().mutex);
  for (const auto& [path, known] : witnesses().by_path) {
    if (auto witness = known.lock()) all.push_back(std::move(witness));
  }
  return all;
}

FileWitness::FileWitness(std::string path, State state) : path_(std::move(path)), state_(state) {}

FileWitness::~FileWitness() {
  const std::lock_guard lock(witnesses().mutex);
  const auto known = witnesses().by_path.find(path_);
  // Another may have taken the place in the meantime.
  if (known != witnesses().by_path.end() && known->second.expired()) {
    witnesses().by_path.erase(known);
  }
}

void FileWitness::check_state(int descriptor, const std::string& name) const {
  const State now = state_of(descriptor);
  if (now == state_) return;
  if (now.size == state_.size) fail(name, ": was written to while it was read");
  fail(name, ": changed while it was read: ", state_.size, " bytes at first, then ", now.size);
}

void FileWitness::see(uint64_t number, std::string_view bytes, const std::string& name) {
  const uint64_t hash = hash_bytes(bytes);
  uint64_t before = 0;
  {
    const std::lock_guard lock(mutex_);
    if (hashes_.size() <= number) hashes_.resize(number + 1);
    before = std::exchange(hashes_[number], hash);
  }
  if (before == 0 || before == hash) return;
  const uint64_t first = number * kBlock;
  fail(name, ": changed while it was read: bytes ", first, " to ", first + bytes.size(),
       " had the hash ", hash_text(before), " at first, then ", hash_text(hash));
}

std::vector<uint64_t> FileWitness::hashes() const {
  const std::lock_guard lock(mutex_);
  return hashes_;
}

OneReading::OneReading() {
  const std::lock_guard lock(witnesses().mutex);
  ++witnesses().readings;
}

OneReading::~OneReading() {
  const std::lock_guard lock(witnesses().mutex);
  --witnesses().readings;
}

}  // namespace fcp

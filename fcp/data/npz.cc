#include "fcp/data/npz.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "fcp/base/error.h"
#include "fcp/data/npy.h"

namespace fcp {

namespace {

// Records of the zip format (APPNOTE.TXT); all numbers are little-endian.
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kDirectoryEnd = 0x06054b50;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr uint32_t kLocator64 = 0x07064b50;
constexpr size_t kDirectoryEndSize = 22;
constexpr size_t kLongestComment = 65535;
constexpr uint64_t kLongestDirectory = uint64_t{1} << 28;

struct Entry {
  std::string name;
  int method = 0;
  bool encrypted = false;
  uint32_t crc = 0;
  uint64_t packed = 0;
  uint64_t unpacked = 0;
  uint64_t local_header = 0;
};

// Little-endian numbers out of a block of the file; reading behind its end is an Error.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  uint64_t take(size_t count) {
    const std::string_view field = take_text(count);
    uint64_t number = 0;
    for (size_t i = count; i-- > 0;) number = number << 8 | static_cast<unsigned char>(field[i]);
    return number;
  }
  std::string_view take_text(size_t count) {
    if (count > bytes_.size()) fail(name_, ": the zip directory is damaged or cut off");
    const std::string_view text = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return text;
  }
  size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  const std::string& name_;
};

std::string read_block(const std::string& path, uint64_t offset, uint64_t length) {
  std::string block(length, '\0');
  block.resize(open_range(path, path, offset, length)->read(block.data(), length));
  return block;
}

struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Follows the zip64 locator that stands right before the end record.
Directory find_directory64(const std::string& path, const std::string& tail, size_t end_record) {
  Fields locator(std::string_view(tail).substr(end_record < 20 ? 0 : end_record - 20), path);
  if (end_record < 20 || locator.take(4) != kLocator64)
    fail(path, ": the zip64 locator is missing");
  locator.take(4);
  const std::string record = read_block(path, locator.take(8), 56);
  Fields fields(record, path);
  if (fields.take(4) != kDirectoryEnd64) fail(path, ": the zip64 directory end is missing");
  fields.take_text(36);
  const uint64_t size = fields.take(8);
  return {fields.take(8), size};
}

Directory find_directory(const std::string& path, uint64_t file_size) {
  const uint64_t tail_size =
      std::min<uint64_t>(file_size, kDirectoryEndSize + 20 + kLongestComment);
  const std::string tail = read_block(path, file_size - tail_size, tail_size);
  const size_t end = tail.rfind("PK\x05\x06");
  static_assert(kDirectoryEnd == 0x06054b50);  // the same as that text
  if (end == std::string::npos) fail(path, ": not an .npz file: no zip directory at its end");
  Fields fields(std::string_view(tail).substr(end), path);
  fields.take_text(10);
  const uint64_t count = fields.take(2), size = fields.take(4), offset = fields.take(4);
  const bool zip64 = count == 0xffff || size == 0xffffffff || offset == 0xffffffff;
  const Directory found = zip64 ? find_directory64(path, tail, end) : Directory{offset, size};
  if (found.offset > file_size || found.size > file_size - found.offset ||
      found.size > kLongestDirectory) {
    fail(path, ": the zip directory is damaged or cut off");
  }
  return found;
}

// Sizes that did not fit into 32 bits stand in the extra field 1, in this order.
void read_extra64(std::string_view extra, const std::string& path, Entry& entry) {
  Fields fields(extra, path);
  while (fields.left() >= 4) {
    const uint64_t id = fields.take(2);
    Fields body(fields.take_text(fields.take(2)), path);
    if (id != 1) continue;
    for (uint64_t* value : {&entry.unpacked, &entry.packed, &entry.local_header}) {
      if (*value == 0xffffffff) *value = body.take(8);
    }
  }
}

std::vector<Entry> read_directory(const std::string& path) {
  const uint64_t file_size = std::filesystem::file_size(path);
  const Directory directory = find_directory(path, file_size);
  const std::string block = read_block(path, directory.offset, directory.size);
  Fields fields(block, path);
  std::vector<Entry> entries;
  while (fields.left() > 0) {
    if (fields.take(4) != kDirectoryEntry) fail(path, ": the zip directory is damaged or cut off");
    Entry& entry = entries.emplace_back();
    fields.take_text(4);
    entry.encrypted = fields.take(2) & 1;
    entry.method = static_cast<int>(fields.take(2));
    fields.take_text(4);
    entry.crc = static_cast<uint32_t>(fields.take(4));
    entry.packed = fields.take(4);
    entry.unpacked = fields.take(4);
    const size_t name = fields.take(2), extra = fields.take(2), comment = fields.take(2);
    fields.take_text(8);
    entry.local_header = fields.take(4);
    entry.name = fields.take_text(name);
    read_extra64(fields.take_text(extra), path, entry);
    fields.take_text(comment);
  }
  return entries;
}

std::string short_name(const std::string& name) {
  return name.ends_with(".npy") ? name.substr(0, name.size() - 4) : name;
}

Entry find_entry(const std::string& path, const std::string& wanted) {
  const std::vector<Entry> entries = read_directory(path);
  if (wanted.empty() && entries.size() == 1) return entries[0];
  std::string names;
  for (const Entry& entry : entries) {
    if (!wanted.empty() && (entry.name == wanted || short_name(entry.name) == wanted)) return entry;
    names += (names.empty() ? "" : ", ") + short_name(entry.name);
  }
  if (wanted.empty()) fail(path, ": has ", entries.size(), " entries, name one of: ", names);
  fail(path, ": no entry '", wanted, "'; the entries are ", names);
}

}  // namespace

std::vector<std::string> npz_entries(const std::string& path) {
  std::vector<std::string> names;
  for (const Entry& entry : read_directory(path)) names.push_back(short_name(entry.name));
  return names;
}

std::unique_ptr<ByteSource> open_npz_entry(const std::string& path, const std::string& wanted) {
  const Entry entry = find_entry(path, wanted);
  const std::string name = path + ":" + short_name(entry.name);
  if (entry.encrypted) fail(name, ": the entry is encrypted");
  const std::string local = read_block(path, entry.local_header, 30);
  Fields fields(local, path);
  if (fields.take(4) != kLocalHeader) fail(name, ": the entry's local header is damaged");
  fields.take_text(22);
  const uint64_t name_size = fields.take(2), extra_size = fields.take(2);
  const uint64_t data = entry.local_header + 30 + name_size + extra_size;
  const uint64_t file_size = std::filesystem::file_size(path);
  if (data > file_size || entry.packed > file_size - data) {
    fail(name, ": truncated: the entry declares ", entry.packed, " bytes, found ",
         data > file_size ? 0 : file_size - data);
  }
  constexpr int kStored = 0, kDeflated = 8;
  if (entry.method == kDeflated) {
    return open_deflated(path, name, data, entry.packed, entry.unpacked, entry.crc);
  }
  if (entry.method != kStored) {
    fail(name, ": zip method ", entry.method, ", expected 0 (stored) or 8 (deflated)");
  }
  return open_range(path, name, data, entry.packed);
}

Array read_npz(const std::string& path, const std::string& entry) {
  return NpyReader(open_npz_entry(path, entry)).read_all();
}

bool is_npz(const std::string& path) {
  if (path.ends_with(".xlsx")) return false;  // a zip archive as well
  char start[4] = {};
  const size_t got = open_bytes(path)->read(start, 4);
  const std::string_view magic(start, got);
  return magic == "PK\x03\x04" || magic == "PK\x05\x06";
}

size_t entry_colon(const std::string& path) {
  if (std::filesystem::exists(path)) return std::string::npos;
  size_t colon = path.find(':');
  while (colon != std::string::npos && !std::filesystem::exists(path.substr(0, colon))) {
    colon = path.find(':', colon + 1);
  }
  return colon;
}

std::unique_ptr<ByteSource> open_array_bytes(const std::string& path) {
  const size_t colon = entry_colon(path);
  if (colon != std::string::npos) {
    const std::string archive = path.substr(0, colon);
    if (!is_npz(archive)) fail(archive, ": not an .npz archive, but an entry of it is asked for");
    return open_npz_entry(archive, path.substr(colon + 1));
  }
  return is_npz(path) ? open_npz_entry(path, "") : open_bytes(path);
}

}  // namespace fcp

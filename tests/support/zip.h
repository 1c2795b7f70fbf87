// Zip archives for tests, as NumPy writes them and as it never would.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <zlib.h>

#include "tests/support/files.h"

namespace fcp {

// A number as bytes, the least first.
inline std::string little(uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}

struct ZipOptions {
  bool deflate = false;
  bool zip64 = false;
  int method = -1;  // to lie about it
  uint64_t declared_size = 0;
};

// A zip archive written out by hand after the format's description.
inline std::string zip(const std::vector<std::pair<std::string, std::string>>& entries,
                       ZipOptions options) {
  using namespace std::string_literals;
  std::string file, directory;
  for (const auto& [name, data] : entries) {
    const std::string stored = options.deflate ? packed(data, -15) : data;
    const int method = options.method >= 0 ? options.method : options.deflate ? 8 : 0;
    const uint64_t size = options.declared_size ? options.declared_size : data.size();
    const std::string crc = little(
        crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())), 4);
    const std::string all_ones = "\xff\xff\xff\xff";
    const std::string sizes =
        options.zip64 ? all_ones + all_ones : little(stored.size(), 4) + little(size, 4);
    const std::string extra64 = little(1, 2) + little(24, 2) + little(size, 8) +
                                little(stored.size(), 8) + little(file.size(), 8);
    const std::string extra = options.zip64 ? extra64 : "";
    const std::string common = "\x14\0\0\0"s + little(static_cast<uint64_t>(method), 2) +
                               "\0\0\0\0"s + crc + sizes + little(name.size(), 2) +
                               little(extra.size(), 2);
    directory += "PK\x01\x02\x14\0"s + common + "\0\0\0\0\0\0\0\0\0\0"s +
                 (options.zip64 ? all_ones : little(file.size(), 4)) + name + extra;
    file += "PK\x03\x04" + common + name + extra + stored;
  }
  const uint64_t offset = file.size(), count = entries.size();
  file += directory;
  if (options.zip64) {
    const uint64_t end64 = file.size();
    file += "PK\x06\x06" + little(44, 8) + "\x2d\0\x2d\0"s + little(0, 8) + little(count, 8) +
            little(count, 8) + little(directory.size(), 8) + little(offset, 8);
    file += "PK\x06\x07" + little(0, 4) + little(end64, 8) + little(1, 4);
  }
  const std::string place = options.zip64 ? "\xff\xff\xff\xff" : little(offset, 4);
  return file + "PK\x05\x06\0\0\0\0"s + little(count, 2) + little(count, 2) +
         little(directory.size(), 4) + place + "\0\0"s;
}

}  // namespace fcp

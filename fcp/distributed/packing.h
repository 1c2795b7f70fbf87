// Lists of numbers as one string of bytes, and back: what ranks send each other and what a
// checkpoint keeps. A list is its number of bytes and then the bytes, in the order of this machine:
// ranks of one job run on machines alike.
//
// Tested by tests/distributed/relay_test.cc.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fcp/base/error.h"

namespace fcp {

class Packer {
 public:
  template <typename Number>
  void add(std::span<const Number> values) {
    static_assert(std::is_arithmetic_v<Number>);
    const uint64_t bytes = values.size_bytes();
    bytes_.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  template <typename Number>
  void add(const std::vector<Number>& values) {
    add(std::span<const Number>(values));
  }
  void add(uint64_t value) { add(std::span<const uint64_t>(&value, 1)); }
  void add(const std::string& text) { add(std::span<const char>(text)); }

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Takes the lists out in the order in which they were added. An Error where there are none left or
// they are of another size.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  template <typename Number>
  std::vector<Number> numbers() {
    uint64_t length = 0;
    const std::string_view head = bytes(sizeof length);
    std::memcpy(&length, head.data(), sizeof length);
    const std::string_view body = bytes(length);
    if (length % sizeof(Number) != 0) fail("packed numbers are damaged: ", length, " bytes");
    std::vector<Number> values(length / sizeof(Number));
    if (length > 0) std::memcpy(values.data(), body.data(), length);
    return values;
  }
  uint64_t number() {
    const std::vector<uint64_t> values = numbers<uint64_t>();
    if (values.size() != 1) fail("packed numbers are damaged: found ", values.size(), " for one");
    return values[0];
  }
  std::string text() {
    const std::vector<char> letters = numbers<char>();
    return {letters.begin(), letters.end()};
  }

 private:
  std::string_view bytes(uint64_t count) {
    if (count > bytes_.size()) fail("packed numbers are damaged: they end too early");
    const std::string_view first = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return first;
  }

  std::string_view bytes_;
};

}  // namespace fcp

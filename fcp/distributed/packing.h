// Lists of numbers as one string of bytes, and back: what ranks send each other and what a
// checkpoint keeps. A list is its number of bytes and then the bytes, in the order of this machine:
// ranks of one job run on machines alike.
//
// A struct goes both ways through one list of its members, which stands in its namespace:
//
//   template <typename Archive>
//   void visit_fields(Archive& archive, Example& example) {
//     archive(example.name, example.covered);  // an archive is a Packer or an Unpacker
//   }
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

  // Numbers, texts, structs with visit_fields(), and lists of these.
  template <typename... Items>
  void operator()(const Items&... items) {
    (put(items), ...);
  }

  std::string take() { return std::move(bytes_); }

 private:
  template <typename Item>
  void put(const Item& item) {
    if constexpr (std::is_arithmetic_v<Item>) {
      add(std::span<const Item>(&item, 1));
    } else if constexpr (std::is_same_v<Item, std::string>) {
      add(item);
    } else {
      visit_fields(*this, const_cast<Item&>(item));  // which only reads them
    }
  }
  template <typename Item>
  void put(const std::vector<Item>& items) {
    if constexpr (std::is_arithmetic_v<Item>) {
      add(items);
    } else {
      add(uint64_t{items.size()});
      for (const Item& item : items) put(item);
    }
  }

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

  // What the packer was given.
  template <typename... Items>
  void operator()(Items&... items) {
    (get(items), ...);
  }

 private:
  template <typename Item>
  void get(Item& item) {
    if constexpr (std::is_arithmetic_v<Item>) {
      const std::string_view head = bytes(sizeof(uint64_t)), body = bytes(sizeof item);
      uint64_t length = 0;
      std::memcpy(&length, head.data(), sizeof length);
      if (length != sizeof item) fail("packed numbers are damaged: ", length, " bytes for one");
      std::memcpy(&item, body.data(), sizeof item);
    } else if constexpr (std::is_same_v<Item, std::string>) {
      item = text();
    } else {
      visit_fields(*this, item);
    }
  }
  template <typename Item>
  void get(std::vector<Item>& items) {
    if constexpr (std::is_arithmetic_v<Item>) {
      items = numbers<Item>();
    } else {
      items.clear();
      for (uint64_t left = number(); left > 0; --left) get(items.emplace_back());
    }
  }

  std::string_view bytes(uint64_t count) {
    if (count > bytes_.size()) fail("packed numbers are damaged: they end too early");
    const std::string_view first = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return first;
  }

  std::string_view bytes_;
};

}  // namespace fcp

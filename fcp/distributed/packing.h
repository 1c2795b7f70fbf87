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
// Tested by tests/distributed/packing_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/distributed/communicator.h"

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

// Work in numbered batches, made by all ranks and taken by rank 0 in their order.
//
// Batch b is made by rank b mod R. In each round every rank makes one batch, and rank 0 then takes
// the round's R results, ascending: so what it sees is one list that does not depend on R, and
// whatever it adds up is bit-equal to one process. No rank need know how many batches there are,
// and none runs ahead of rank 0 by more than the messages that MPI keeps on the way.
//
// Batches are cut alike for any R. That matters because the last bits of a score depend on the rows
// that were computed together with it.
//
// Cost: the results of all batches reach rank 0; rounds = ⌈batches / R⌉ + 1.
// Tested by tests/distributed/packing_test.cc.

// `make` gives the result of a batch, which is not empty, or nothing where there are no more; it is
// called with ascending numbers and after nothing no more. `take` is called on rank 0 alone.
void relay_batches(Communicator& ranks,
                   const std::function<std::optional<std::string>(size_t batch)>& make,
                   const std::function<void(size_t batch, std::string_view result)>& take);

// The same of results that have pack and unpack, to bytes and back, which one rank does not need.
template <typename Result>
void relay_batches(Communicator& ranks,
                   const std::function<std::optional<Result>(size_t batch)>& make,
                   const std::function<void(size_t batch, Result result)>& take) {
  if (ranks.size() == 1) {
    for (size_t batch = 0; std::optional<Result> made = make(batch); ++batch) {
      take(batch, *std::move(made));
    }
    return;
  }
  relay_batches(
      ranks,
      [&](size_t batch) {
        const std::optional<Result> made = make(batch);
        return made ? std::optional(made->pack()) : std::nullopt;
      },
      [&](size_t batch, std::string_view bytes) { take(batch, Result::unpack(bytes)); });
}

}  // namespace fcp

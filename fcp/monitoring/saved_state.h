// What a monitor must know to go on after a restart as if nothing had happened, as bytes: numbers
// as this machine has them. One function per class names its members in their order, both to write
// and to read them, so that the two cannot differ:
//
//   void exchange(SavedState& state) { state.number(capital_); state.count(rows_); }
//
// Bytes that do not fit (another version, a part that is missing) are an Error; the object that
// was being read into must then be thrown away.
// Tested by tests/monitoring/saved_state_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

class SavedState {
 public:
  SavedState() : writes_(true) {}  // writes
  explicit SavedState(std::string_view bytes) : writes_(false), rest_(bytes) {}

  bool writes() const { return writes_; }

  void number(double& value) { raw(&value, sizeof value); }
  void count(size_t& value);
  void flag(bool& value);
  void text(std::string& value);
  void numbers(std::vector<double>& values);

  // For what follows from the options, as how many bets there are: an Error where it differs.
  void expect(size_t value, const char* what);

  // Elements are made by default before they are read.
  template <typename Element, typename Exchange>
  void list(std::vector<Element>& elements, const Exchange& exchange) {
    elements.resize(size_of_list(elements.size(), 1));
    for (Element& element : elements) exchange(element);
  }

  std::string take();  // what was written
  void end() const;    // an Error where bytes are left that nobody has read

 private:
  void raw(void* data, size_t size);
  // Checked against what is left, so that wrong bytes do not ask for all memory.
  size_t size_of_list(size_t size, size_t least_bytes_each);

  bool writes_;
  std::string written_;
  std::string_view rest_;
};

}  // namespace fcp

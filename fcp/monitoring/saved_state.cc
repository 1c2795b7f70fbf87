#include "fcp/monitoring/saved_state.h"

#include <cstring>
#include <utility>

#include "fcp/base/error.h"

namespace fcp {

void SavedState::raw(void* data, size_t size) {
  if (size == 0) return;
  if (writes_) {
    written_.append(static_cast<const char*>(data), size);
    return;
  }
  if (size > rest_.size()) {
    fail("a monitor's state ends too early: found ", rest_.size(), " bytes, expected ", size);
  }
  std::memcpy(data, rest_.data(), size);
  rest_.remove_prefix(size);
}

void SavedState::count(size_t& value) {
  uint64_t number = value;
  raw(&number, sizeof number);
  value = static_cast<size_t>(number);
}

void SavedState::flag(bool& value) {
  size_t number = value ? 1 : 0;
  count(number);
  value = number != 0;
}

size_t SavedState::size_of_list(size_t size, size_t least_bytes_each) {
  count(size);
  if (!writes_ && size > rest_.size() / least_bytes_each) {
    fail("a monitor's state names ", size, " parts and has ", rest_.size(), " bytes for them");
  }
  return size;
}

void SavedState::text(std::string& value) {
  value.resize(size_of_list(value.size(), 1));
  raw(value.data(), value.size());
}

void SavedState::numbers(std::vector<double>& values) {
  values.resize(size_of_list(values.size(), sizeof(double)));
  raw(values.data(), values.size() * sizeof(double));
}

void SavedState::expect(size_t value, const char* what) {
  size_t found = value;
  count(found);
  if (found != value) {
    fail("a monitor's state has ", found, " ", what, ", expected ", value);
  }
}

std::string SavedState::take() { return std::exchange(written_, {}); }

void SavedState::end() const {
  if (!rest_.empty()) fail("a monitor's state has ", rest_.size(), " bytes too many");
}

}  // namespace fcp

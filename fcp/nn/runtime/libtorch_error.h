// Errors of libtorch, told in fcp's words: too little memory is std::bad_alloc like any other, and
// everything else an Error that says where it happened, without libtorch's own call stack.
#pragma once

#include <new>
#include <string>
#include <string_view>

#include <c10/util/Exception.h>

#include "fcp/base/error.h"

namespace fcp {

inline bool is_out_of_memory(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  for (const std::string_view sign : {"allocate memory", "enough memory", "out of memory"}) {
    if (text.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

[[noreturn]] inline void fail_libtorch(const std::string& where, const c10::Error& error) {
  if (is_out_of_memory(error)) throw std::bad_alloc();
  fail(where, ": ", error.what_without_backtrace());
}

// The first line of the message: libtorch may add shapes and advice in more of them.
inline std::string libtorch_text(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

// Inside of a catch block: why something could not be computed, where it is left out for that
// reason. Whatever else was caught goes on.
inline std::string failure_reason() {
  try {
    throw;
  } catch (const Error& error) {
    return error.what();
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const c10::Error& error) {
    return is_out_of_memory(error) ? "out of memory"
                                   : "it cannot be computed: " + libtorch_text(error);
  }
}

}  // namespace fcp

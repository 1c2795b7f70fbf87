// Errors a user can cause. The program prints the message of an Error as one line and exits with
// code 1; an OptionError or a UsageError exits with code 2. Everything else that escapes is a bug
// in fcp.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include "fcp/error.h"

namespace fcp {

// An option has a value that does not fit. It is named as in the option table, in C++ and in
// Python; the program adds its dashes.
class OptionError : public Error {
 public:
  OptionError(const std::string& option, const std::string& complaint)
      : Error(option + ": " + complaint), option_(option), complaint_(complaint) {}

  const std::string& option() const { return option_; }
  const std::string& complaint() const { return complaint_; }

 private:
  std::string option_;
  std::string complaint_;
};

// The command line asks for something that does not exist or contradicts itself.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The text of all arguments, one after the other.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// Throws an Error whose message is the text of all arguments.
template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(concat(parts...));
}

// Throws an OptionError; its complaint is the text of all arguments but the first.
template <typename... Parts>
[[noreturn]] void fail_option(const std::string& option, const Parts&... parts) {
  throw OptionError(option, concat(parts...));
}

}  // namespace fcp

// What fcp throws where a file, a row or an option is wrong.
#pragma once

#include <stdexcept>

namespace fcp {

// The data, the model or a file is wrong. The message names the file, row or node, what was found
// and what was expected, in one line.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace fcp

// Options of the method as the public headers take them: text by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fcp/methods/options.h"

namespace fcp::internal {

// An OptionError names an option that does not exist, does not fit or contradicts another.
inline MethodRequest method_of(const std::map<std::string, std::string>& texts, uint64_t seed) {
  MethodRequest request;
  for (const auto& [name, text] : texts) {
    const Option& option = find_option(name);
    set_option(request, option, parse_option(option, text));
  }
  request.set("seed", seed);
  check_options(request);
  return request;
}

}  // namespace fcp::internal

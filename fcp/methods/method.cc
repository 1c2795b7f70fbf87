#include "fcp/methods/method.h"

#include <ostream>

#include "fcp/methods/options.h"

namespace fcp {

std::ostream& operator<<(std::ostream& out, const Method& method) {
  const auto changes = [&](bool of_calibration) {
    for (const Option& option : option_table()) {
      if (option.of_calibration != of_calibration || !option.get) continue;
      const OptionValue value = value_in(option, method);
      const bool name = option.name == "score" || option.name == "calibration";
      if (!name && value != option.usual) out << ' ' << option.name << '=' << option_text(value);
    }
  };
  out << method.score.name();
  changes(false);
  out << ", " << method.calibration.name();
  changes(true);
  return out;
}

}  // namespace fcp

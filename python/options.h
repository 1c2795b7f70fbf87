// The option table in Python's values: what there is, and requests made of an estimator's
// parameters.
#pragma once

#include <pybind11/pybind11.h>

#include "fcp/methods/options.h"

namespace fcp {

// The request of parameters by name; those that are not in the table are not looked at. None stands
// for no text. An OptionError says what was found and what is expected.
MethodRequest request_of(const pybind11::dict& parameters);

// Declares option_table, check_values (of request_of) and check_options (of the library).
void bind_options(pybind11::module_& module);

}  // namespace fcp

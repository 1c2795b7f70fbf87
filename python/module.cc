// The module fcp._fcp: what the Python package fcp is made of. It is private; the package gives it
// names, shapes and words that Python's users know. Long calls release Python's lock.
#include "python/module.h"

#include <string>

#include <c10/util/Exception.h>
#include <torch/version.h>

#include "fcp/base/error.h"
#include "fcp/version.h"

#include "python/arrays.h"
#include "python/options.h"

namespace py = pybind11;

PYBIND11_MODULE(_fcp, module) {
  module.doc() = "The library fcp; use the package fcp.";
  module.attr("version") = FCP_VERSION;
  module.attr("torch_version") = TORCH_VERSION;
  static const py::exception<fcp::Error> error(module, "Error", PyExc_ValueError);
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const fcp::Error& caught) {
      PyErr_SetString(error.ptr(), caught.what());
    } catch (const fcp::UsageError& caught) {
      PyErr_SetString(error.ptr(), caught.what());
    } catch (const c10::Error& caught) {
      const std::string text = caught.what_without_backtrace();
      PyErr_SetString(error.ptr(), text.substr(0, text.find('\n')).c_str());
    }
  });
  fcp::bind_arrays(module);
  fcp::bind_network(module);
  fcp::bind_names(module);
  fcp::bind_options(module);
  fcp::bind_calibrated(module);
  fcp::bind_fit(module);
  fcp::bind_outliers(module);
}

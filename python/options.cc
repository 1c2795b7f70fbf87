#include "python/options.h"

#include <optional>
#include <string>
#include <string_view>

#include <c10/util/Exception.h>
#include <pybind11/stl.h>
#include <torch/version.h>

#include "fcp/base/error.h"
#include "fcp/version.h"

#include "python/arrays.h"

namespace fcp {
namespace {

namespace py = pybind11;

const char* kind_name(OptionKind kind) {
  switch (kind) {
    case OptionKind::kFlag:
      return "flag";
    case OptionKind::kInteger:
      return "integer";
    case OptionKind::kNumber:
      return "number";
    case OptionKind::kChoice:
      return "choice";
    case OptionKind::kText:
      return "text";
    case OptionKind::kNumbers:
      break;
  }
  return "numbers";
}

const char* access_name(OptionAccess access) {
  switch (access) {
    case OptionAccess::kAsked:
      return "asked";
    case OptionAccess::kImages:
      return "images";
    case OptionAccess::kSeed:
      return "seed";
    case OptionAccess::kLearned:
      break;
  }
  return "learned";
}

struct PythonOfValue {
  py::object operator()(const AutoValue&) const { return py::str("auto"); }
  py::object operator()(const std::string& text) const {
    if (text.empty()) return py::none();
    return py::str(text);
  }
  py::object operator()(const std::vector<double>& numbers) const {
    return py::tuple(py::cast(numbers));
  }
  template <typename Value>
  py::object operator()(const Value& value) const {
    return py::cast(value);
  }
};

py::dict entry_of(const Option& option) {
  py::dict entry;
  entry["name"] = option.name;
  entry["kind"] = kind_name(option.kind);
  entry["default"] = std::visit(PythonOfValue{}, default_value(option));
  entry["expected"] = expected_value(option);
  entry["choices"] = option.choices;
  entry["scores"] = option.scope.scores;
  entry["calibrations"] = option.scope.calibrations;
  entry["help"] = option.help;
  entry["access"] = access_name(option.access);
  return entry;
}

bool is_flag(const py::handle& value) {
  return PyBool_Check(value.ptr()) ||
         std::string_view(Py_TYPE(value.ptr())->tp_name).starts_with("numpy.bool");
}

std::optional<OptionValue> whole_number(const py::handle& value) {
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  const unsigned long long number =
      index ? PyLong_AsUnsignedLongLong(index.ptr()) : static_cast<unsigned long long>(-1);
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return OptionValue(uint64_t{number});
}

std::optional<OptionValue> number(const py::handle& value) {
  const double found = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return OptionValue(found);
}

std::optional<OptionValue> list_of_numbers(const py::handle& value) {
  std::vector<double> numbers;
  if (py::isinstance<py::str>(value) || !py::hasattr(value, "__iter__")) return std::nullopt;
  for (const py::handle& each : py::iter(value)) {
    const std::optional<OptionValue> found = number(each);
    if (!found) return std::nullopt;
    numbers.push_back(std::get<double>(*found));
  }
  return OptionValue(numbers);
}

// The value where it is of the option's kind.
std::optional<OptionValue> given_value(const Option& option, const py::handle& value) {
  const bool text = py::isinstance<py::str>(value);
  if (option.may_be_auto && text && value.cast<std::string>() == "auto") return AutoValue{};
  const bool flag = is_flag(value);
  switch (option.kind) {
    case OptionKind::kFlag:
      if (!flag) return std::nullopt;
      return OptionValue(PyObject_IsTrue(value.ptr()) == 1);
    case OptionKind::kInteger:
      return flag ? std::nullopt : whole_number(value);
    case OptionKind::kNumber:
      return flag ? std::nullopt : number(value);
    case OptionKind::kNumbers:
      return list_of_numbers(value);
    case OptionKind::kChoice:
    case OptionKind::kText:
      break;
  }
  if (value.is_none() && option.kind == OptionKind::kText) return default_value(option);
  if (!text) return std::nullopt;
  return OptionValue(value.cast<std::string>());
}

}  // namespace

MethodRequest request_of(const py::dict& parameters) {
  MethodRequest request;
  for (const Option& option : option_table()) {
    if (option.access == OptionAccess::kLearned || !parameters.contains(option.name)) continue;
    const py::object given = parameters[option.name.c_str()];
    const std::optional<OptionValue> value = given_value(option, given);
    try {
      if (!value) fail_option(option.name, "");
      set_option(request, option, *value);
    } catch (const OptionError&) {
      fail_option(option.name, "found ", py::repr(given).cast<std::string>(), ", expected ",
                  expected_value(option));
    }
  }
  return request;
}

void bind_options(py::module_& module) {
  module.def("option_table", [] {
    py::list entries;
    for (const Option& option : option_table()) entries.append(entry_of(option));
    return entries;
  });
  module.def(
      "check_values", [](const py::dict& parameters) { request_of(parameters); },
      py::arg("parameters"));
  module.def(
      "check_options", [](const py::dict& parameters) { check_options(request_of(parameters)); },
      py::arg("parameters"));
}

}  // namespace fcp

// The module fcp._fcp: what the Python package fcp is made of. It is private; the package gives it
// names, shapes and words that Python's users know. Long calls release Python's lock.

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

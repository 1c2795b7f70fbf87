#include "fcp/nn/graph/onnx_tensor.h"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/types.h"

namespace fcp {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX stores little-endian bytes");

// Number of elements a shape declares; refused when it does not fit a signed 64-bit byte count.
int64_t declared_elements(const onnx::TensorProto& message, int64_t item_size,
                          const std::string& owner) {
  int64_t bytes = item_size;
  bool empty = false;
  for (const int64_t dimension : message.dims()) {
    if (dimension < 0) fail(owner, ": has a negative dimension ", dimension);
    if (dimension == 0) empty = true;
    if (dimension > 0 && __builtin_mul_overflow(bytes, dimension, &bytes)) {
      fail(owner, ": its shape overflows");
    }
  }
  return empty ? 0 : bytes / item_size;
}

struct ExternalRange {
  std::string path;
  uint64_t offset = 0;
};

// The file `location` names, links resolved. It must lie below `folder`.
std::string resolve_inside(const std::string& location, const std::string& folder,
                           const std::string& owner) {
  const auto resolved = [](const std::string& path) -> std::string {
    const std::unique_ptr<char, decltype(&std::free)> text(realpath(path.c_str(), nullptr),
                                                           &std::free);
    return text ? text.get() : "";
  };
  const std::string padded = "/" + location + "/";
  const bool inside = location[0] != '/' && padded.find("/../") == std::string::npos;
  std::string path = resolved(folder + "/" + location);
  if (inside && path.empty()) {
    fail(owner, ": cannot read external data '", location, "': ", std::strerror(errno));
  }
  const std::string root = resolved(folder) + "/";
  if (!inside || !path.starts_with(root)) {
    fail(owner, ": external data '", location, "' lies outside the model's folder");
  }
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    fail(owner, ": external data '", location, "' is not a plain file");
  }
  return path;
}

uint64_t parse_offset(const std::string& text, const std::string& owner) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos ||
      text.size() > 18) {
    fail(owner, ": external data has a bad number '", text, "'");
  }
  return std::stoull(text);
}

ExternalRange external_range(const onnx::TensorProto& message, uint64_t bytes,
                             const std::string& owner, const std::string& folder) {
  ExternalRange range;
  std::string location;
  for (const auto& entry : message.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") range.offset = parse_offset(entry.value(), owner);
    if (entry.key() == "length" && parse_offset(entry.value(), owner) != bytes) {
      fail(owner, ": external data declares ", entry.value(), " bytes, its shape needs ", bytes);
    }
  }
  if (folder.empty()) fail(owner, ": external data needs a model read from a file");
  if (location.empty()) fail(owner, ": external data has no location");
  range.path = resolve_inside(location, folder, owner);
  return range;
}

// The range of the file is checked before room is made for it.
std::shared_ptr<void> read_external(const onnx::TensorProto& message, size_t bytes,
                                    const std::string& owner, const std::string& folder) {
  const ExternalRange range = external_range(message, bytes, owner, folder);
  std::ifstream file(range.path, std::ios::binary | std::ios::ate);
  if (!file) fail(owner, ": cannot read external data ", range.path);
  const auto size = static_cast<uint64_t>(file.tellg());
  if (range.offset > size || bytes > size - range.offset) {
    fail(owner, ": needs bytes ", range.offset, " to ", range.offset + bytes, " of ", range.path,
         ", which has ", size);
  }
  std::shared_ptr<void> room = room_for_numbers(bytes);
  file.seekg(static_cast<std::streamoff>(range.offset));
  file.read(static_cast<char*>(room.get()), static_cast<std::streamsize>(bytes));
  if (!file) fail(owner, ": cannot read external data ", range.path);
  return room;
}

std::shared_ptr<void> read_raw(const std::string& raw, size_t bytes, const std::string& owner) {
  if (raw.size() != bytes) {
    fail(owner, ": has ", raw.size(), " bytes of data, its shape needs ", bytes);
  }
  std::shared_ptr<void> room = room_for_numbers(bytes);
  if (bytes > 0) std::memcpy(room.get(), raw.data(), bytes);
  return room;
}

// Typed fields hold one number per element; 16-bit floats stand as their bits in int32_data.
template <typename Item, typename Field>
std::shared_ptr<void> read_typed(const Field& field, int64_t elements, const std::string& owner) {
  if (field.size() != elements) {
    fail(owner, ": has ", field.size(), " values, its shape needs ", elements);
  }
  std::shared_ptr<void> room = room_for_numbers(static_cast<size_t>(elements) * sizeof(Item));
  Item* out = static_cast<Item*>(room.get());
  for (const auto value : field) *out++ = static_cast<Item>(value);
  return room;
}

std::shared_ptr<void> read_fields(const onnx::TensorProto& message, ElementType type,
                                  int64_t elements, const std::string& owner) {
  if (message.data_type() == kOnnxUint32) {
    return read_typed<int32_t>(message.uint64_data(), elements, owner);
  }
  const auto& ints = message.int32_data();
  switch (type) {
    case ElementType::kFloat:
      return read_typed<float>(message.float_data(), elements, owner);
    case ElementType::kDouble:
      return read_typed<double>(message.double_data(), elements, owner);
    case ElementType::kInt64:
      return read_typed<int64_t>(message.int64_data(), elements, owner);
    case ElementType::kInt32:
      return read_typed<int32_t>(ints, elements, owner);
    case ElementType::kHalf:
    case ElementType::kBFloat16:
    case ElementType::kInt16:
      return read_typed<uint16_t>(ints, elements, owner);
    case ElementType::kBool:
      return read_typed<bool>(ints, elements, owner);
    default:  // int8 and uint8
      return read_typed<uint8_t>(ints, elements, owner);
  }
}

}  // namespace

ConstantTensor tensor_from_onnx(const onnx::TensorProto& message, const std::string& owner,
                                const std::string& folder) {
  const int64_t number = message.data_type();
  const bool narrow = is_narrow(number);
  const std::optional<ElementType> type = narrow ? narrow_storage(number) : element_type(number);
  if (!type) {
    fail(owner, ": element type ", number,
         " is not supported (float, double, float16, bfloat16, int8 to int64, uint8 to uint32, "
         "bool and the types of 4 and 8 bits are)");
  }
  const auto item_size = static_cast<int64_t>(element_size(*type));
  const int64_t elements = declared_elements(message, item_size, owner);
  const int64_t stored = narrow ? narrow_stored_count(number, elements) : elements;
  const size_t bytes = static_cast<size_t>(stored * item_size);
  std::shared_ptr<void> numbers;
  if (message.data_location() == onnx::TensorProto::EXTERNAL) {
    numbers = read_external(message, bytes, owner, folder);
  } else if (message.has_raw_data()) {
    numbers = read_raw(message.raw_data(), bytes, owner);
  } else {
    numbers = read_fields(message, *type, stored, owner);
  }
  std::vector<int64_t> shape(message.dims().begin(), message.dims().end());
  if (narrow) return from_narrow_storage(numbers.get(), number, std::move(shape));
  return {*type, std::move(shape), std::move(numbers)};
}

void tensor_to_onnx(const std::string& name, const ConstantTensor& tensor,
                    onnx::TensorProto& message) {
  header_to_onnx(name, tensor, message);
  message.set_raw_data(tensor.data(), tensor.nbytes());
}

void header_to_onnx(const std::string& name, const ConstantTensor& tensor,
                    onnx::TensorProto& message) {
  if (!tensor.defined()) fail("tensor '", name, "' is not there");
  message.set_name(name);
  message.set_data_type(static_cast<int32_t>(tensor.type()));
  for (const int64_t dimension : tensor.shape()) message.add_dims(dimension);
}

}  // namespace fcp

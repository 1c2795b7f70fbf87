#include "fcp/data/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/npz.h"

namespace fcp {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLongestHeader = size_t{1} << 20;
constexpr int kLongestText = 1 << 16;          // characters of one cell
constexpr size_t kBlock = size_t{1} << 20;     // bytes converted at a time
constexpr size_t kLongRead = size_t{1} << 24;  // bytes read at a time to where they belong

std::string hexadecimal(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!text.empty()) text += ' ';
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

// What stands behind 'key': in the header's dictionary, up to the end of the header.
std::string_view value_of(std::string_view header, std::string_view key, const std::string& name) {
  const std::string quoted = concat("'", key, "'");
  size_t at = header.find(quoted);
  if (at != std::string_view::npos) at = header.find(':', at + quoted.size());
  if (at != std::string_view::npos) at = header.find_first_not_of(' ', at + 1);
  if (at == std::string_view::npos) fail(name, ": the .npy header has no '", key, "'");
  return header.substr(at);
}

// "U7" or "S7": so many characters.
std::optional<NpyType> parse_text_type(std::string_view text) {
  if (text.size() < 3 || (text[1] != 'U' && text[1] != 'S')) return std::nullopt;
  int length = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 2, end, length);
  if (error != std::errc() || stop != end || length < 1 || length > kLongestText) {
    return std::nullopt;
  }
  return NpyType{text[1], text[1] == 'U' ? 4 * length : length, text[0] == '>'};
}

NpyType parse_type(std::string_view value, const std::string& name, bool text_too) {
  const size_t end = value.size() > 1 ? value.find(value[0], 1) : std::string_view::npos;
  const bool is_string = value[0] == '\'' && end != std::string_view::npos;
  const std::string_view text = is_string ? value.substr(1, end - 1) : value.substr(0, 20);
  if (is_string && text.find('O') != std::string_view::npos) {
    fail(name, ": holds Python objects (type '", text, "'), expected numbers");
  }
  constexpr std::string_view kTypes[] = {"f2", "f4", "f8", "i1", "i2", "i4",
                                         "i8", "u1", "u2", "u4", "u8", "b1"};
  const bool known =
      is_string && text.size() == 3 &&
      std::string_view("<>|=").find(text[0]) != std::string_view::npos &&
      std::find(std::begin(kTypes), std::end(kTypes), text.substr(1)) != std::end(kTypes);
  if (is_string && text_too) {
    if (const std::optional<NpyType> type = parse_text_type(text)) return *type;
  }
  if (!known) {
    fail(name, ": unsupported type '", text, "', expected f2, f4, f8, i1 … i8, u1 … u8 or b1");
  }
  return {text[1], text[2] - '0', text[0] == '>'};
}

std::vector<int64_t> parse_shape(std::string_view value, const std::string& name) {
  const std::string_view text = value.substr(0, value.find(')') + 1);
  if (text.empty() || text[0] != '(') fail(name, ": the .npy header has no shape");
  std::vector<int64_t> shape;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  while (at != end) {
    if (*at == ' ' || *at == ',' || *at == 'L') {  // Python 2 wrote (3L, 4L)
      ++at;
      continue;
    }
    int64_t size = 0;
    const auto [stop, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0) fail(name, ": bad shape ", text, " in the .npy header");
    shape.push_back(size);
    at = stop;
  }
  return shape;
}

void read_exactly(ByteSource& bytes, char* buffer, size_t count, const char* what) {
  const size_t got = bytes.read(buffer, count);
  if (got < count) {
    fail(bytes.name(), ": truncated: ", what, " needs ", count, " bytes, found ", got);
  }
}

NpyHeader parse_header(ByteSource& bytes, bool text_too) {
  const std::string& name = bytes.name();
  char start[12] = {};
  const std::string_view magic(start, bytes.read(start, kMagic.size()));
  if (magic != kMagic) {
    fail(name, ": not an .npy file: begins with bytes ",
         magic.empty() ? "(none)" : hexadecimal(magic), ", expected ", hexadecimal(kMagic));
  }
  read_exactly(bytes, start + 6, 2, "the .npy version");
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) {
    fail(name, ": .npy format version ", version, ", expected 1, 2 or 3");
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  read_exactly(bytes, start + 8, length_bytes, "the .npy header's length");
  size_t length = 0;
  for (size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(start[8 + i]);
  }
  if (length > kLongestHeader) {
    fail(name, ": the .npy header declares ", length, " bytes, expected at most ", kLongestHeader);
  }
  std::string text(length, ' ');
  read_exactly(bytes, text.data(), length, "the .npy header");

  NpyHeader header;
  header.type = parse_type(value_of(text, "descr", name), name, text_too);
  header.fortran_order = value_of(text, "fortran_order", name).starts_with("True");
  header.shape = parse_shape(value_of(text, "shape", name), name);
  header.data_offset = 8 + length_bytes + length;
  return header;
}

std::string type_name(const NpyType& type) {
  if (type.kind == 'b') return "bool";
  if (type.kind == 'U' || type.kind == 'S') return "text";
  return concat(type.kind == 'f' ? "float" : type.kind == 'i' ? "int" : "uint", 8 * type.size);
}

// The declared array must fit into what the file holds; known before anything is allocated.
void check_size(const NpyHeader& header, const ByteSource& bytes) {
  size_t needed = 0;
  try {
    needed = element_count(header.shape) * static_cast<size_t>(header.type.size);
  } catch (const Error& error) {
    fail(bytes.name(), ": ", error.what());
  }
  const std::optional<uint64_t> size = bytes.size();
  if (size && needed > *size - header.data_offset) {
    fail(bytes.name(), ": truncated: shape ", shape_text(header.shape), " of ",
         type_name(header.type), " needs ", needed, " bytes, found ", *size - header.data_offset);
  }
}

float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  float magnitude = 0;
  if (exponent == 31) {
    magnitude = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }
  return bits >> 15 ? -magnitude : magnitude;
}

template <typename Word>
Word load_word(const char* bytes, bool big_endian) {
  Word word = 0;
  for (size_t i = 0; i < sizeof(Word); ++i) {
    const size_t from = big_endian ? i : sizeof(Word) - 1 - i;
    word = static_cast<Word>(static_cast<uint64_t>(word) << 8 |
                             static_cast<unsigned char>(bytes[from]));
  }
  return word;
}

// `count` numbers at `bytes` to floats or doubles; `to_float` turns one word of the file into its
// value.
template <typename Word, typename Out, typename ToFloat>
void convert(const char* bytes, size_t count, bool big_endian, Out* out, ToFloat to_float) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = to_float(load_word<Word>(bytes + i * sizeof(Word), big_endian));
  }
}

template <typename Word, typename Number, typename Out>
void convert_as(const char* bytes, size_t count, bool big_endian, Out* out) {
  convert<Word>(bytes, count, big_endian, out,
                [](Word word) { return static_cast<Out>(std::bit_cast<Number>(word)); });
}

template <typename Out>
void convert_numbers(const NpyType& type, const char* bytes, size_t count, Out* out) {
  const bool big = type.big_endian;
  switch (type.kind << 8 | type.size) {
    case 'f' << 8 | 2:
      return convert<uint16_t>(bytes, count, big, out, half_to_float);
    case 'f' << 8 | 4:
      return convert_as<uint32_t, float>(bytes, count, big, out);
    case 'f' << 8 | 8:
      return convert_as<uint64_t, double>(bytes, count, big, out);
    case 'i' << 8 | 1:
      return convert_as<uint8_t, int8_t>(bytes, count, big, out);
    case 'i' << 8 | 2:
      return convert_as<uint16_t, int16_t>(bytes, count, big, out);
    case 'i' << 8 | 4:
      return convert_as<uint32_t, int32_t>(bytes, count, big, out);
    case 'i' << 8 | 8:
      return convert_as<uint64_t, int64_t>(bytes, count, big, out);
    case 'u' << 8 | 1:
      return convert_as<uint8_t, uint8_t>(bytes, count, big, out);
    case 'u' << 8 | 2:
      return convert_as<uint16_t, uint16_t>(bytes, count, big, out);
    case 'u' << 8 | 4:
      return convert_as<uint32_t, uint32_t>(bytes, count, big, out);
    case 'u' << 8 | 8:
      return convert_as<uint64_t, uint64_t>(bytes, count, big, out);
    default:
      return convert<uint8_t>(bytes, count, big, out, [](uint8_t b) { return b ? 1.f : 0.f; });
  }
}

// Numbers that need no conversion, only to be read to where they belong.
bool is_float_of_machine(const NpyType& type) {
  return type.kind == 'f' && type.size == 4 &&
         type.big_endian == (std::endian::native == std::endian::big);
}

// Column-major to row-major: walks the output in order, counting its multi-index up like an
// odometer and keeping the place in the input beside it.
template <typename Number>
std::vector<Number> to_row_major(const std::vector<Number>& in, std::span<const int64_t> shape) {
  const size_t axes = shape.size();
  std::vector<size_t> stride(axes, 1), index(axes, 0);
  for (size_t a = 1; a < axes; ++a) stride[a] = stride[a - 1] * static_cast<size_t>(shape[a - 1]);
  std::vector<Number> out(in.size());
  size_t place = 0;
  for (Number& value : out) {
    value = in[place];
    for (size_t a = axes; a-- > 0;) {
      place += stride[a];
      if (++index[a] < static_cast<size_t>(shape[a])) break;
      place -= stride[a] * index[a];
      index[a] = 0;
    }
  }
  return out;
}

}  // namespace

NpyHeader read_npy_header(ByteSource& bytes, bool text) {
  NpyHeader header = parse_header(bytes, text);
  check_size(header, bytes);
  return header;
}

void check_npy_end(ByteSource& bytes) {
  char more = 0;
  if (bytes.read(&more, 1) > 0) {
    fail(bytes.name(), ": goes on behind its array; were two arrays saved into one file?");
  }
}

NpyReader::NpyReader(const std::string& path) : NpyReader(open_array_bytes(path)) {}

NpyReader::NpyReader(std::unique_ptr<ByteSource> bytes)
    : bytes_(std::move(bytes)), header_(read_npy_header(*bytes_)) {}

// A finite double beyond float32 would silently become infinite.
void NpyReader::check_range(const char* bytes, const float* converted, size_t count) const {
  if (header_.type.kind != 'f' || header_.type.size != 8) return;
  for (size_t i = 0; i < count; ++i) {
    if (!std::isinf(converted[i])) continue;
    const auto value =
        std::bit_cast<double>(load_word<uint64_t>(bytes + 8 * i, header_.type.big_endian));
    if (std::isinf(value)) continue;
    const size_t rows = header_.shape.empty() ? 1 : static_cast<size_t>(header_.shape[0]);
    const size_t all = element_count(header_.shape), number = next_number_ + i;
    fail(name(), ": row ", header_.fortran_order ? number % rows : number / (all / rows),
         " (from 0) holds ", value, ", beyond what single precision holds");
  }
}

// Fills `out` with the next `count` numbers. Memory grows with what the file really holds, so a
// header that promises too much of a packed file (whose size is not known beforehand) does no harm.
void NpyReader::read_numbers(size_t count, Array& array) {
  std::vector<float>& out = array.values;
  const size_t item = static_cast<size_t>(header_.type.size);
  const bool as_is = is_float_of_machine(header_.type);
  if (out.size() > count) out.resize(count);
  array.exact.clear();
  for (size_t done = 0, some = 0; done < count; done += some) {
    some = std::min(count - done, (as_is ? kLongRead : kBlock) / item);
    if (out.size() < done + some) out.resize(done + some);
    if (!as_is) buffer_.resize(some * item);
    char* const bytes = as_is ? reinterpret_cast<char*>(out.data() + done) : buffer_.data();
    if (bytes_->read(bytes, some * item) < some * item) {
      fail(name(), ": truncated: the data end before shape ", shape_text(header_.shape), " of ",
           type_name(header_.type), " is filled");
    }
    if (!as_is) convert_numbers(header_.type, bytes, some, out.data() + done);
    if (!as_is) check_range(bytes, out.data() + done, some);
    if (exact_) array.exact.resize(done + some);
    if (exact_) convert_numbers(header_.type, bytes, some, array.exact.data() + done);
    next_number_ += some;
  }
  if (next_number_ == element_count(header_.shape)) check_npy_end(*bytes_);
}

Array NpyReader::read_all() {
  rewind();
  Array array{header_.shape, {}};
  read_numbers(element_count(header_.shape), array);
  if (header_.fortran_order && header_.shape.size() > 1) {
    array.values = to_row_major(array.values, header_.shape);
    if (exact_) array.exact = to_row_major(array.exact, header_.shape);
  }
  return array;
}

bool NpyReader::next(size_t count, Array& out) {
  if (header_.shape.empty()) fail(name(), ": holds a single number, expected rows");
  if (header_.shape[0] > 0 && element_count(std::span(header_.shape).subspan(1)) == 0) {
    fail(name(), ": shape ", shape_text(header_.shape), " has rows without numbers");
  }
  if (header_.fortran_order && !loaded_) {
    whole_ = read_all();
    loaded_ = true;
  }
  const size_t some = std::min(count, static_cast<size_t>(header_.shape[0]) - next_row_);
  if (loaded_) {
    out = slice_rows(whole_, next_row_, some);
  } else {
    out.shape = header_.shape;
    out.shape[0] = static_cast<int64_t>(some);
    read_numbers(element_count(out.shape), out);
  }
  next_row_ += some;
  return some > 0;
}

void NpyReader::skip(size_t count) {
  if (header_.shape.empty()) fail(name(), ": holds a single number, expected rows");
  const size_t some = std::min(count, static_cast<size_t>(header_.shape[0]) - next_row_);
  next_row_ += some;
  if (header_.fortran_order) return;  // kept whole
  const std::span<const int64_t> row = std::span(header_.shape).subspan(1);
  next_number_ += some * element_count(row);
  bytes_->skip(uint64_t{some} * element_count(row) * static_cast<uint64_t>(header_.type.size));
}

void NpyReader::rewind() {
  next_row_ = 0;
  next_number_ = 0;
  bytes_->rewind();
  std::string head(header_.data_offset, ' ');
  read_exactly(*bytes_, head.data(), head.size(), "the .npy header");
}

Array read_npy(const std::string& path) { return NpyReader(path).read_all(); }

bool is_npy(const std::string& path) {
  char start[6] = {};
  return open_bytes(path)->read(start, 6) == 6 && std::string_view(start, 6) == kMagic;
}

}  // namespace fcp

// Any bytes as a table whose column types are found out, or said: a byte that chooses, a line of
// types as `--schema` takes them, and the file. The schema must have a column for every name, its
// types must be text that is read back as the same types, and reading through the encoding that
// was learned must give the same numbers again.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/data/columns.h"
#include "fcp/data/csv.h"

#include "fuzz/input_file.h"

namespace {

// Missing values are NaN, which equal themselves here.
struct Bits {
  std::vector<float> numbers;

  friend bool operator==(const Bits& a, const Bits& b) {
    const size_t size = a.numbers.size();
    return size == b.numbers.size() && (size == 0 || std::memcmp(a.numbers.data(), b.numbers.data(),
                                                                 size * sizeof(float)) == 0);
  }
};

Bits read_whole(fcp::CsvReader& reader) {
  fcp::Array x, y;
  Bits all;
  while (reader.next(5, x, y)) {
    if (x.values.size() != x.rows() * reader.encoding().feature_count()) __builtin_trap();
    all.numbers.insert(all.numbers.end(), x.values.begin(), x.values.end());
    all.numbers.insert(all.numbers.end(), y.values.begin(), y.values.end());
  }
  return all;
}

fcp::CsvOptions options_of(unsigned choice) {
  fcp::CsvOptions options;
  options.find_types = true;
  options.impute = (choice & 1) != 0;
  options.keep_missing = (choice & 2) != 0;
  options.header = (choice & 4) != 0 ? fcp::CsvHeader::kYes : fcp::CsvHeader::kAuto;
  options.labels = static_cast<fcp::CsvLabels>(choice >> 3 & 3);
  return options;
}

void check_schema(const fcp::TableSchema& schema) {
  if (schema.columns.size() != schema.head.names.size()) __builtin_trap();
  for (const fcp::TableColumn& column : schema.columns) {
    const auto again = fcp::parse_format(fcp::format_text(column.format));
    if (!again || fcp::format_text(*again) != fcp::format_text(column.format)) __builtin_trap();
  }
  fcp::schema_text(schema);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fcp::InputFile file;
  if (size == 0) return 0;
  fcp::CsvOptions options = options_of(data[0]);
  const std::string target = (data[0] & 32) != 0 ? "-1" : "";
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t end = std::min(text.find('\n'), text.size());
  const size_t begin = std::min(end + 1, text.size());
  const std::string& path = file.write(data + 1 + begin, text.size() - begin);
  try {
    options.types = fcp::parse_types(std::string(text.substr(0, end)));
    fcp::CsvReader reader(path, target, options);
    if (reader.schema() == nullptr) __builtin_trap();
    check_schema(*reader.schema());
    const Bits content = read_whole(reader);
    reader.rewind();
    if (!(read_whole(reader) == content)) __builtin_trap();
    options.encoding = fcp::parse_encoding(fcp::encoding_text(reader.encoding()));
    fcp::CsvReader second(path, target, options);
    if (!(read_whole(second) == content)) __builtin_trap();
    second.find_problems();
  } catch (const fcp::Error&) {
  }
  return 0;
}

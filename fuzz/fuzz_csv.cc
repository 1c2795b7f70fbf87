// Any bytes as a CSV file, gzip or plain. The first byte chooses how it is read: with or without
// imputing, a categorical column, a target, a separator, and reading again through the encoding
// that was learned. An Error is a right answer; a crash, or other numbers the second time, is not.
#include <vector>

#include "fcp/base/error.h"
#include "fcp/data/columns.h"
#include "fcp/data/csv.h"

#include "fuzz/input_file.h"

namespace {

struct Content {
  std::vector<float> x, y;
  friend bool operator==(const Content&, const Content&) = default;
};

Content read_whole(fcp::CsvReader& reader) {
  fcp::Array x, y;
  Content content;
  while (reader.next(3, x, y)) {
    content.x.insert(content.x.end(), x.values.begin(), x.values.end());
    content.y.insert(content.y.end(), y.values.begin(), y.values.end());
  }
  return content;
}

fcp::CsvOptions options_of(unsigned choice) {
  fcp::CsvOptions options;
  options.impute = (choice & 1) != 0;
  if ((choice & 2) != 0) options.categorical = {"0"};
  if ((choice & 4) != 0) options.separator = ';';
  options.header = (choice & 8) != 0    ? fcp::CsvHeader::kNo
                   : (choice & 16) != 0 ? fcp::CsvHeader::kYes
                                        : fcp::CsvHeader::kAuto;
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fcp::InputFile file;
  if (size == 0) return 0;
  fcp::CsvOptions options = options_of(data[0]);
  const std::string target = (data[0] & 32) != 0 ? "-1" : "";
  const std::string& path = file.write(data + 1, size - 1);
  try {
    fcp::CsvReader reader(path, target, options);
    const Content content = read_whole(reader);
    reader.rewind();
    if (read_whole(reader) != content) __builtin_trap();
    options.encoding = fcp::parse_encoding(fcp::encoding_text(reader.encoding()));
    fcp::CsvReader second(path, target, options);
    if (read_whole(second) != content) __builtin_trap();
  } catch (const fcp::Error&) {
  }
  return 0;
}

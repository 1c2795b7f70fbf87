// Any text as the description of a network's columns (metadata fcp.columns), and small tables read
// through what it describes, with a header and without.
#include <string>
#include <string_view>

#include "fcp/base/error.h"
#include "fcp/data/columns.h"
#include "fcp/data/csv.h"

#include "fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fcp::InputFile file;
  fcp::CsvOptions options;
  try {
    options.encoding = fcp::parse_encoding(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const fcp::Error&) {
    return 0;
  }
  for (const std::string_view table : {"a,b,c\n1,red,3\n4,blue,\n", "1,red,3\n4,blue,\n", "7\n"}) {
    try {
      fcp::CsvReader reader(
          file.write(reinterpret_cast<const uint8_t*>(table.data()), table.size()), "", options);
      fcp::Array x, y;
      while (reader.next(3, x, y)) {
        if (x.values.size() != x.rows() * options.encoding->feature_count()) __builtin_trap();
      }
    } catch (const fcp::Error&) {
    }
  }
  return 0;
}

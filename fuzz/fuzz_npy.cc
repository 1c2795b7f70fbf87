// Any bytes as an .npy or .npz file: streamed, read whole, and every entry of an archive.
#include "fcp/base/error.h"
#include "fcp/data/npy.h"
#include "fcp/data/npz.h"

#include "fuzz/input_file.h"

namespace {

void read_both_ways(const std::string& path) {
  try {
    fcp::NpyReader reader(path);
    fcp::Array part;
    size_t streamed = 0;
    while (reader.next(3, part)) streamed += part.values.size();
    reader.rewind();
    const fcp::Array whole = reader.read_all();
    if (!whole.shape.empty() && whole.values.size() != streamed) __builtin_trap();
  } catch (const fcp::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fcp::InputFile file;
  const std::string& path = file.write(data, size);
  read_both_ways(path);
  try {
    if (fcp::is_npz(path)) {
      for (const std::string& entry : fcp::npz_entries(path)) read_both_ways(path + ":" + entry);
    }
  } catch (const fcp::Error&) {
  }
  return 0;
}

// Compressed bodies of requests, by zlib.
#include <algorithm>

#include <zlib.h>

#include "fcp/base/error.h"

#include "apps/server/http_message.h"

namespace fcp {
namespace {

class Inflater {
 public:
  Inflater() {
    constexpr int kEither = 32;  // gzip's header, or zlib's
    if (inflateInit2(&stream_, MAX_WBITS + kEither) != Z_OK) fail("zlib has no memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Status of the answer, or 0 where all is well.
  int unpack(std::string& packed, size_t most, std::string& out) {
    stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream_.avail_in = static_cast<uInt>(packed.size());
    size_t size = 0;
    while (true) {
      if (size == out.size()) out.resize(std::min(most + 1, size + std::max<size_t>(size, 65536)));
      stream_.next_out = reinterpret_cast<Bytef*>(out.data()) + size;
      stream_.avail_out = static_cast<uInt>(out.size() - size);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      size = out.size() - stream_.avail_out;
      if (size > most) return 413;
      if (result == Z_STREAM_END) {
        out.resize(size);
        if (stream_.avail_in == 0) return 0;
        if (inflateReset(&stream_) != Z_OK) return 400;  // gzip may have several members
      } else if (result != Z_OK || (stream_.avail_in == 0 && stream_.avail_out != 0)) {
        return 400;
      }
    }
  }

 private:
  z_stream stream_{};
};

}  // namespace

std::optional<HttpResponse> unpack_body(HttpRequest& request, size_t most) {
  const std::string encoding = request.header("content-encoding");
  if (encoding.empty() || request.body.empty()) return std::nullopt;
  std::string out;
  const int status = Inflater().unpack(request.body, most, out);
  if (status == 413) {
    return error_response(413, concat("the body has more than ", most, " bytes when unpacked"));
  }
  if (status != 0) return error_response(status, concat("the body is not whole ", encoding));
  request.body = std::move(out);
  return std::nullopt;
}

}  // namespace fcp

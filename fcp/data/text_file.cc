#include "fcp/data/text_file.h"

#include <algorithm>
#include <array>

#include <zlib.h>

#include "fcp/base/error.h"

namespace fcp {

struct TextFile::Packer {
  z_stream stream{};

  explicit Packer(const std::string& path) {
    constexpr int kGzip = 16 + MAX_WBITS, kMemory = 8;
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      fail(path, ": zlib cannot pack it");
    }
  }
  ~Packer() { deflateEnd(&stream); }
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
};

TextFile::TextFile(const std::string& path) : file_(path) {
  if (path.ends_with(".gz")) packer_ = std::make_unique<Packer>(path);
}

TextFile::~TextFile() = default;

void TextFile::pack(std::string_view text, bool last) {
  std::array<char, size_t{1} << 16> out;
  z_stream& stream = packer_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    file_.write({out.data(), out.size() - stream.avail_out});
  } while (stream.avail_out == 0);
}

void TextFile::write(std::string_view text) {
  constexpr size_t kMostPacked = size_t{1} << 30;  // that zlib takes at once
  if (!packer_) return file_.write(text);
  for (; !text.empty(); text.remove_prefix(std::min(kMostPacked, text.size()))) {
    pack(text.substr(0, kMostPacked), false);
  }
}

void TextFile::commit() {
  if (packer_) pack({}, true);
  file_.commit();
}

}  // namespace fcp

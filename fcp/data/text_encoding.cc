#include "fcp/data/text_encoding.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr size_t kRecodeSize = size_t{1} << 16;

// The letters of 0x80 to 0x9f; 0 for the five that stand for nothing.
constexpr std::array<uint16_t, 32> kCp1252 = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

void put_letter(uint32_t letter, std::string& out) {
  const auto byte = [&](uint32_t value) { out += static_cast<char>(value); };
  if (letter < 0x80) {
    byte(letter);
  } else if (letter < 0x800) {
    byte(0xc0 | letter >> 6);
    byte(0x80 | (letter & 0x3f));
  } else if (letter < 0x10000) {
    byte(0xe0 | letter >> 12);
    byte(0x80 | (letter >> 6 & 0x3f));
    byte(0x80 | (letter & 0x3f));
  } else {
    byte(0xf0 | letter >> 18);
    byte(0x80 | (letter >> 12 & 0x3f));
    byte(0x80 | (letter >> 6 & 0x3f));
    byte(0x80 | (letter & 0x3f));
  }
}

class RecodedBytes : public ByteSource {
 public:
  RecodedBytes(std::unique_ptr<ByteSource> inner, TextEncoding encoding)
      : inner_(std::move(inner)), encoding_(encoding) {}

  size_t read(char* buffer, size_t count) override {
    while (text_.size() - used_ < count && fill()) continue;
    const size_t some = std::min(count, text_.size() - used_);
    std::copy_n(text_.data() + used_, some, buffer);
    used_ += some;
    return some;
  }
  void rewind() override {
    inner_->rewind();
    raw_.clear();
    text_.clear();
    used_ = offset_ = 0;
    big_endian_.reset();
  }
  std::optional<uint64_t> size() const override { return std::nullopt; }
  const std::string& name() const override { return inner_->name(); }

 private:
  // Recodes some more bytes; false at the end.
  bool fill() {
    text_.erase(0, used_);
    used_ = 0;
    const size_t before = raw_.size();
    raw_.resize(before + kRecodeSize);
    const size_t got = inner_->read(raw_.data() + before, kRecodeSize);
    raw_.resize(before + got);
    const size_t done = encoding_ == TextEncoding::kCp1252 ? recode_cp1252() : recode_utf16();
    if (got == 0 && done < raw_.size()) {
      fail(name(), ": ends within a letter of UTF-16 text");
    }
    raw_.erase(0, done);
    offset_ += done;
    return got > 0;
  }

  size_t recode_cp1252() {
    for (size_t i = 0; i < raw_.size(); ++i) {
      const auto byte = static_cast<uint8_t>(raw_[i]);
      const bool special = byte >= 0x80 && byte < 0xa0;
      const uint32_t letter = special ? kCp1252[byte - size_t{0x80}] : byte;
      if (special && letter == 0) {
        fail(name(), ": byte ", offset_ + i, " is ", int{byte}, ", which is no letter of cp1252");
      }
      put_letter(letter, text_);
    }
    return raw_.size();
  }

  uint32_t unit_at(size_t i) const {
    const auto first = static_cast<uint8_t>(raw_[i]), second = static_cast<uint8_t>(raw_[i + 1]);
    return *big_endian_ ? uint32_t{first} << 8 | second : uint32_t{second} << 8 | first;
  }

  size_t recode_utf16() {
    size_t i = 0;
    if (!big_endian_ && raw_.size() >= 2) {
      big_endian_ = raw_.starts_with("\xfe\xff");
      if (*big_endian_ || raw_.starts_with("\xff\xfe")) i = 2;
    }
    while (raw_.size() >= i + 2) {
      uint32_t letter = unit_at(i);
      size_t length = 2;
      if (letter >= 0xd800 && letter < 0xe000) {
        if (raw_.size() < i + 4) break;
        const uint32_t low = unit_at(i + 2);
        if (letter >= 0xdc00 || low < 0xdc00 || low >= 0xe000) {
          fail(name(), ": byte ", offset_ + i, ": half a letter of UTF-16; is it UTF-16?");
        }
        letter = 0x10000 + ((letter - 0xd800) << 10 | (low - 0xdc00));
        length = 4;
      }
      put_letter(letter, text_);
      i += length;
    }
    return i;
  }

  std::unique_ptr<ByteSource> inner_;
  TextEncoding encoding_;
  std::string raw_, text_;
  size_t used_ = 0;    // of text_
  size_t offset_ = 0;  // of raw_ in the file
  std::optional<bool> big_endian_;
};

}  // namespace

std::vector<std::string> text_encoding_names() { return {"utf-8", "cp1252", "latin-1", "utf-16"}; }

TextEncoding parse_text_encoding(const std::string& name) {
  if (name == "utf-8") return TextEncoding::kUtf8;
  if (name == "cp1252" || name == "latin-1") return TextEncoding::kCp1252;
  if (name == "utf-16") return TextEncoding::kUtf16;
  fail_option("encoding", "found '", name, "', expected utf-8, cp1252, latin-1 or utf-16");
}

std::unique_ptr<ByteSource> open_text(const std::string& path, TextEncoding encoding) {
  auto bytes = open_bytes(path);
  if (encoding == TextEncoding::kUtf8) return bytes;
  return std::make_unique<RecodedBytes>(std::move(bytes), encoding);
}

}  // namespace fcp

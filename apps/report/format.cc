#include "apps/report/format.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "fcp/base/error.h"

namespace fcp {
namespace {

std::string range_text(const std::string& low, const std::string& high) {
  return low == high ? low : low + "–" + high;
}

}  // namespace

std::string format_target(const Level& level) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), 100 * (1 - level.value()),
                                 std::chars_format::general, 6);
  return std::string(text, end.ptr) + " %";
}

std::string format_confidence(double confidence) { return format_percent(confidence, 0) + " CI"; }

std::string format_lengths(const Stratum& stratum) {
  return range_text(format_number(stratum.low, 3), format_number(stratum.high, 3));
}

std::string format_sizes(const Stratum& stratum) {
  return range_text(format_count(static_cast<size_t>(stratum.low)),
                    format_count(static_cast<size_t>(stratum.high)));
}

std::string format_stratum(const Stratum& stratum, bool sizes) {
  const bool one = stratum.low == 1 && stratum.high == 1;
  return sizes ? format_sizes(stratum) + (one ? " label" : " labels") : format_lengths(stratum);
}

std::string escape_text(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t') escaped += c;
    }
  }
  return escaped;
}

std::string not_computed(size_t rows) {
  return concat("not computed: ", format_count(rows, "test row"), rows == 1 ? " is" : " are",
                " too few");
}

std::string base64_text(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;  // three bytes, those beyond the end zero
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= count ? kDigits[bits >> (18 - 6 * i) & 63u] : '=';
    }
  }
  return text;
}

}  // namespace fcp

#include "fcp/base/text.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace fcp {
namespace {

// Bytes that follow a first byte; negative where none can begin with it.
int continuation_bytes(unsigned char first) {
  if (first < 0x80) return 0;
  if (first < 0xC2) return -1;  // a continuation, or overlong
  if (first < 0xE0) return 1;
  if (first < 0xF0) return 2;
  return first < 0xF5 ? 3 : -1;
}

// The second byte has a narrower range after some first bytes.
bool second_fits(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xE0:
      return second >= 0xA0;  // below is overlong
    case 0xED:
      return second < 0xA0;  // above are surrogates
    case 0xF0:
      return second >= 0x90;  // below is overlong
    case 0xF4:
      return second < 0x90;  // above is beyond U+10FFFF
    default:
      return true;
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int more = continuation_bytes(first);
    if (more < 0 || text.size() - i <= static_cast<size_t>(more)) return false;
    for (int j = 1; j <= more; ++j) {
      const auto byte = static_cast<unsigned char>(text[i + static_cast<size_t>(j)]);
      if ((byte & 0xC0) != 0x80 || (j == 1 && !second_fits(first, byte))) return false;
    }
    i += static_cast<size_t>(more) + 1;
  }
  return true;
}

namespace {

// Damerau and Levenshtein's distance, with swaps of neighbours.
size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> least(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      const size_t change = least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      least[i][j] = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1, change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
    }
  }
  return least[a.size()][b.size()];
}

std::string_view without_dashes(std::string_view word) {
  while (word.starts_with('-')) word.remove_prefix(1);
  return word.substr(0, word.find('='));
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& words) {
  const std::string_view typed = without_dashes(word);
  std::string best;
  size_t least = typed.size() + 1;
  for (const std::string& known : words) {
    const std::string_view name = without_dashes(known);
    if (typed.size() < 2 || name.size() < 2) continue;
    const size_t apart = letters_apart(typed, name);
    const size_t most = std::max<size_t>(1, (std::max(typed.size(), name.size()) + 1) / 3);
    if (apart <= most && apart < least) {
      least = apart;
      best = known;
    }
  }
  return best;
}

}  // namespace fcp

#include "fcp/base/nearest_word.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace fcp {
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
  size_t least = 1 + std::max<size_t>(1, typed.size() / 3);
  for (const std::string& known : words) {
    const std::string_view name = without_dashes(known);
    if (typed.size() < 2 || name.size() < 2) continue;
    const size_t apart = letters_apart(typed, name);
    if (apart < least) {
      least = apart;
      best = known;
    }
  }
  return best;
}

}  // namespace fcp

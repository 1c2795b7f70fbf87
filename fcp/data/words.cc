#include "fcp/data/words.h"

#include <algorithm>

namespace fcp {
namespace {

bool is_of_word(unsigned char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter >= 0x80;
}

}  // namespace

std::vector<std::string> distinct_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char letter : text) {
    const bool of_word = is_of_word(static_cast<unsigned char>(letter));
    if (of_word && !inside) words.emplace_back();
    inside = of_word;
    if (!of_word) continue;
    const bool capital = letter >= 'A' && letter <= 'Z';
    words.back() += capital ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

}  // namespace fcp

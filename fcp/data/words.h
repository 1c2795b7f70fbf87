// The words of a text cell, by which a column of free text becomes features: one for each word that
// enough training rows have, 1 in the rows that have it and 0 in others.
//
// A word is a run of ASCII letters and digits and of bytes beyond ASCII; capitals of ASCII are
// small letters. Tested by tests/data/words_test.cc; python/fcp/runtime.py has the same rule.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fcp/data/number.h"

namespace fcp {

// Whether a column's features are named by texts of its cells: categories or words.
inline bool has_texts(ColumnKind kind) {
  return kind == ColumnKind::kCategory || kind == ColumnKind::kText;
}

// In ascending order, each once.
std::vector<std::string> distinct_words(std::string_view text);

}  // namespace fcp

// The word that somebody may have meant. Tested by tests/cli/test_console.py and
// tests/data/csv_test.cc.
#pragma once

#include <string>
#include <vector>

namespace fcp {

// The one of `words` that is nearest to `word` by letters left out, put in, changed or swapped with
// the next one; "" where none is near. An option's dashes do not count.
std::string nearest_word(const std::string& word, const std::vector<std::string>& words);

}  // namespace fcp

// Numbers in text files.
//
// Idea: most cells are a few digits with perhaps a point. Their digits are gathered in a 64-bit
// integer m and their value is m · 10^e; where m ≤ 2^53 and |e| ≤ 22 both factors are exact
// doubles, so one multiplication or division is correctly rounded (Clinger, 1990). Everything else
// goes to std::from_chars, which is always exact.
//
// Tested by tests/data/number_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fcp {

// Whether all of `text` (spaces around it allowed) is a number, and which: "1", "-2.5e3", "+.5",
// "inf", "-Infinity". Beyond the range of double the value is ±infinity or 0.
bool parse_number(std::string_view text, double& value);

// Whether the cell stands for "no value": empty, ?, NA, N/A, n/a, #N/A, <NA>, NaN, nan, -nan, NaT,
// null, NULL or None (spaces around it allowed).
bool is_missing(std::string_view text);

// The shortest decimal that reads back as the same float; "inf", "-inf", "nan".
std::string number_text(float value);

// The same written at `out`, where there is room for kNumberLength letters; returns its end.
constexpr size_t kNumberLength = 32;
char* write_number(float value, char* out);

}  // namespace fcp

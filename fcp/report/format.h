// Numbers and text as people read them: in tables on the terminal, in charts and on the page.
//
// Infinities are "∞" and "−∞", an undefined value is "–". The minus sign is U+2212.
// Tested by tests/report/console_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fcp/conformal/level.h"
#include "fcp/evaluation/coverage.h"

namespace fcp {

// With so many significant digits: "1.753", "0.08120", "1235"; "1.235e6" beyond a million.
std::string format_number(double value, int digits = 4);

// A fraction in [0, 1] as "90.3 %".
std::string format_percent(double fraction, int decimals = 1);

// "89.1–91.4 %".
std::string format_percent_range(double low, double high, int decimals = 1);

// What is promised at this level, 1 − α: "90 %", "99.9 %".
std::string format_target(const Level& level);

// "12,345".
std::string format_count(size_t count);

// "12,345 test rows", "1 test row".
std::string format_count(size_t count, std::string_view noun);

// "95 % CI".
std::string format_confidence(double confidence);

// What lies in a stratum: lengths "0.512–1.75", or set sizes "2–5"; one number where its ends are
// equal.
std::string format_lengths(const Stratum& stratum);
std::string format_sizes(const Stratum& stratum);

// How many columns a UTF-8 text takes: code points, those that combine with the one before left
// out.
size_t display_width(std::string_view text);

// Text for HTML and SVG: & < > " ' are written as entities, control characters left out.
std::string escape_text(std::string_view text);

// Bytes as base64 with padding (RFC 4648), for pictures inside the page.
std::string base64_text(std::string_view bytes);

}  // namespace fcp

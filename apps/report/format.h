// What a report says of levels and parts, as people read it, and text made safe for the page. Plain
// numbers are those of base/number_text.h.
// Tested by tests/report/console_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fcp/base/number_text.h"
#include "fcp/evaluate/measures/coverage.h"
#include "fcp/level.h"

namespace fcp {

// What is promised at this level, 1 − α: "90 %", "99.9 %".
std::string format_target(const Level& level);

// "95 % CI".
std::string format_confidence(double confidence);

// What lies in a stratum: lengths "0.512–1.75", or set sizes "2–5"; one number where its ends are
// equal.
std::string format_lengths(const Stratum& stratum);
std::string format_sizes(const Stratum& stratum);

// The same as the name of a part: "0.512–1.75", or "2–5 labels".
std::string format_stratum(const Stratum& stratum, bool sizes);

// In the place of a figure: these test rows do not determine it.
std::string not_computed(size_t rows);

// Text for HTML and SVG: & < > " ' are written as entities, control characters left out.
std::string escape_text(std::string_view text);

// Bytes as base64 with padding (RFC 4648), for pictures inside the page.
std::string base64_text(std::string_view bytes);

}  // namespace fcp

// A CsvEncoding as text (JSON) and back, so that a network can carry how its columns are to be
// read. Tested by tests/data/encoding_text_test.cc.
#pragma once

#include <string>

#include "fcp/data/csv.h"

namespace fcp {

// The key under which training keeps the text in the network's metadata.
constexpr char kEncodingKey[] = "fcp.columns";

// And the key of the names of its targets, a JSON list.
constexpr char kTargetsKey[] = "fcp.targets";

// And the key of what its answers are beside, where they are doubles; then targets are read
// unrounded (fcp/training/target_offset.h).
constexpr char kTargetOffsetKey[] = "fcp.target_offset";

std::string encoding_text(const CsvEncoding& encoding);

// An Error where the text is damaged.
CsvEncoding parse_encoding(const std::string& text);

}  // namespace fcp

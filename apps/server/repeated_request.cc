#include "apps/server/repeated_request.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fcp/base/error.h"

#include "apps/server/sql_database.h"

namespace fcp {
namespace {

template <typename Number>
void append(std::vector<Number>& all, std::span<const Number> more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Part i of numbers that lie part by part.
template <typename Number>
std::span<const Number> part_of(const std::vector<Number>& all, size_t parts, size_t i) {
  const size_t width = all.size() / parts;
  return std::span(all).subspan(i * width, width);
}

template <typename Number>
std::span<const Number> row_of(const ResponseTensor& tensor, size_t rows, size_t i) {
  return part_of(std::get<std::vector<Number>>(tensor.data), rows, i);
}

// Bits, so that missing numbers are equal too.
bool are_rows(const std::vector<WaitingPrediction>& kept, std::span<const float> x, size_t rows) {
  if (kept.size() != rows) return false;
  const size_t width = x.size() / rows;
  for (size_t i = 0; i < rows; ++i) {
    const WaitingPrediction& one = kept[i];
    const bool whole =
        one.row == static_cast<int64_t>(i) && one.x.size() == width && !one.answer.empty();
    if (!whole || std::memcmp(one.x.data(), &x[i * width], width * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

// The levels of the answer, with the texts of the request; none where it names others.
std::optional<std::vector<Level>> levels_of(const StoredAnswer& answer, bool adapted,
                                            const std::vector<Level>& named) {
  std::vector<Level> levels;
  for (const double level : answer.levels) levels.emplace_back(level);
  if (named.empty()) return levels.size() == 1 ? std::optional(levels) : std::nullopt;
  if (adapted || named.size() != levels.size()) return std::nullopt;
  for (size_t k = 0; k < named.size(); ++k) {
    if (named[k].value() != answer.levels[k]) return std::nullopt;
  }
  return named;
}

// Tensors without rows, in the order of an answer.
std::vector<ResponseTensor> empty_tensors(const StoredAnswer& answer,
                                          const std::vector<Level>& levels, size_t rows) {
  const auto count = static_cast<int64_t>(rows);
  const auto suffix = [&](const Level& level) {
    return levels.size() == 1 ? "" : "_" + level.text();
  };
  std::vector<ResponseTensor> all;
  if (!answer.members.empty()) {
    const auto classes = static_cast<int64_t>(answer.members.size() / levels.size());
    all.push_back({"prediction", {count}, std::vector<int64_t>()});
    for (const Level& level : levels) {
      all.push_back({"in_set" + suffix(level), {count, classes}, std::vector<uint8_t>()});
    }
    return all;
  }
  const auto outputs = static_cast<int64_t>(answer.prediction.size());
  all.push_back({"prediction", {count, outputs}, std::vector<float>()});
  for (const Level& level : levels) {
    for (const char* end : {"lower", "upper"}) {
      all.push_back({end + suffix(level), {count, outputs}, std::vector<float>()});
    }
  }
  return all;
}

void add_row(const StoredAnswer& row, std::vector<ResponseTensor>& all) {
  const size_t levels = row.levels.size();
  const bool labels = !row.members.empty();
  if (labels) {
    std::get<std::vector<int64_t>>(all[0].data).push_back(row.label);
  } else {
    append(std::get<std::vector<float>>(all[0].data), std::span(row.prediction));
  }
  for (size_t k = 0; k < levels; ++k) {
    if (labels) {
      append(std::get<std::vector<uint8_t>>(all[1 + k].data), part_of(row.members, levels, k));
      continue;
    }
    append(std::get<std::vector<float>>(all[1 + 2 * k].data), part_of(row.lower, levels, k));
    append(std::get<std::vector<float>>(all[2 + 2 * k].data), part_of(row.upper, levels, k));
  }
}

}  // namespace

RegionCounts counts_of(const GivenAnswer& given) {
  RegionCounts counts;
  const auto rows = static_cast<size_t>(given.tensors.at(0).shape.at(0));
  const ResponseTensor& first = given.tensors.at(1);
  for (size_t i = 0; i < rows; ++i) {
    if (std::holds_alternative<std::vector<uint8_t>>(first.data)) {
      const auto in = row_of<uint8_t>(first, rows, i);
      counts.empty += std::find(in.begin(), in.end(), 1) == in.end() ? 1 : 0;
      continue;
    }
    const auto lower = row_of<float>(first, rows, i),
               upper = row_of<float>(given.tensors.at(2), rows, i);
    bool unbounded = false, empty = false;
    for (size_t k = 0; k < lower.size(); ++k) {
      empty = empty || lower[k] > upper[k];
      unbounded = unbounded || std::isinf(lower[k]) || std::isinf(upper[k]);
    }
    counts.empty += empty ? 1 : 0;
    counts.unbounded += unbounded && !empty ? 1 : 0;
  }
  return counts;
}

std::vector<std::string> kept_answers(const GivenAnswer& given) {
  const std::vector<ResponseTensor>& all = given.tensors;
  const auto rows = static_cast<size_t>(all.at(0).shape.at(0));
  const auto* labels = std::get_if<std::vector<int64_t>>(&all[0].data);
  std::vector<std::string> kept;
  for (size_t i = 0; i < rows; ++i) {
    StoredAnswer row{.version = given.version};
    if (labels != nullptr) {
      row.label = (*labels)[i];
    } else {
      append(row.prediction, row_of<float>(all[0], rows, i));
    }
    for (size_t k = 0; k < given.levels.size(); ++k) {
      row.levels.push_back(given.levels[k].value());
      if (labels != nullptr) {
        append(row.members, row_of<uint8_t>(all.at(1 + k), rows, i));
        continue;
      }
      append(row.lower, row_of<float>(all.at(1 + 2 * k), rows, i));
      append(row.upper, row_of<float>(all.at(2 + 2 * k), rows, i));
    }
    kept.push_back(bytes_of(row));
  }
  return kept;
}

std::optional<GivenAnswer> repeated_answer(const std::vector<WaitingPrediction>& kept,
                                           std::span<const float> x, size_t rows,
                                           const std::vector<Level>& named) {
  if (!are_rows(kept, x, rows)) return std::nullopt;
  const StoredAnswer first = read_answer(kept[0].answer);
  const bool adapted = kept[0].level > 0;
  const auto levels = levels_of(first, adapted, named);
  if (!levels) return std::nullopt;
  GivenAnswer given{.tensors = empty_tensors(first, *levels, rows), .levels = *levels};
  for (const WaitingPrediction& one : kept) add_row(read_answer(one.answer), given.tensors);
  if (adapted) given.adapted = Level(kept[0].level);
  given.version = first.version;
  return given;
}

}  // namespace fcp

#include "fcp/data/column_facts.h"

#include <algorithm>

#include "fcp/base/error.h"
#include "fcp/data/file_witness.h"

namespace fcp {
namespace {

constexpr double kFarShare = 0.25;  // of the range's width
constexpr char kSeparator = '|';
constexpr const char* kNovelties[] = {"missing", "unseen", "range"};

}  // namespace

std::pair<double, double> ColumnFacts::usual() const {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  if (low > high) return {-kMost, kMost};
  const double allowed = kFarShare * (high - low);
  return {low - allowed, high + allowed};
}

bool ColumnFacts::is_far(double value) const {
  const auto [least, most] = usual();
  return value < least || value > most;
}

bool ColumnFacts::has_rare(std::string_view category) const {
  return more || std::binary_search(rare.begin(), rare.end(), category_hash(category));
}

// 48 bits, which a JSON number of any reader holds.
uint64_t category_hash(std::string_view category) { return hash_bytes(category) >> 16; }

std::string novelty_flag(Novelty novelty, const std::string& column) {
  return concat(kNovelties[static_cast<size_t>(novelty) - 1], ':', column);
}

void add_flag(const std::string& flag, std::string& flags) {
  if (!flags.empty()) flags += kSeparator;
  flags += flag;
}

void NoveltyCounts::add(const std::string& flags) {
  if (flags.empty()) return;
  ++rows_;
  for (size_t begin = 0, end; begin < flags.size(); begin = end + 1) {
    end = std::min(flags.find(kSeparator, begin), flags.size());
    ++flags_[flags.substr(begin, end - begin)];
  }
}

void NoveltyCounts::add(const NoveltyCounts& more) {
  rows_ += more.rows_;
  for (const auto& [flag, count] : more.flags_) flags_[flag] += count;
}

std::string NoveltyCounts::text(size_t of) const {
  std::string kinds;
  for (const std::string kind : kNovelties) {
    std::string columns;
    for (const auto& [flag, count] : flags_) {
      if (!flag.starts_with(kind + ":")) continue;
      columns += concat(columns.empty() ? "" : ", ", flag.substr(kind.size() + 1), " in ", count);
    }
    if (columns.empty()) continue;
    const std::string name = kind == "range" ? "far outside the training range" : kind;
    kinds += concat(kinds.empty() ? "" : "; ", name, ": ", columns);
  }
  return concat(rows_, " of ", of, " rows have what no training row had (", kinds,
                "): the coverage guarantee does not extend to them");
}

}  // namespace fcp

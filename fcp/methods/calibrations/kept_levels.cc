#include "fcp/methods/calibrations/kept_levels.h"

#include <algorithm>

#include "fcp/base/error.h"
#include "fcp/conformal/quantile.h"

namespace fcp {

size_t SideRanks::rank(const Level& level) const {
  const size_t k = conformal_rank(side_level(level, sharing(), paper), rows);
  return paper && rows > 0 ? std::min(k, rows) : k;
}

std::vector<uint64_t> SideRanks::ranks(std::span<const Level> levels) const {
  std::vector<uint64_t> found;
  for (const Level& level : levels) {
    if (const size_t k = rank(level); k <= rows) found.push_back(k);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::optional<size_t> radius_place(const SideRanks& ranked, std::span<const Level> kept,
                                   const Level& level) {
  if (const auto missing = missing_level(kept, level)) fail("the calibration ", *missing);
  const size_t k = ranked.rank(level);
  if (k > ranked.rows) return std::nullopt;
  if (kept.empty()) return k - 1;
  const std::vector<uint64_t> ranks = ranked.ranks(kept);
  const auto place = std::lower_bound(ranks.begin(), ranks.end(), k);
  return static_cast<size_t>(place - ranks.begin());
}

std::optional<std::string> missing_level(std::span<const Level> kept, const Level& level) {
  if (std::find(kept.begin(), kept.end(), level) != kept.end()) return std::nullopt;
  const auto missing = missing_scores(kept);
  if (!missing) return std::nullopt;
  return concat(*missing, "; found alpha ", level.text());
}

std::optional<std::string> missing_scores(std::span<const Level> kept) {
  if (kept.empty()) return std::nullopt;
  std::string list;
  for (const Level& level : kept) list += (list.empty() ? "" : ", ") + level.text();
  return concat("keeps the radii for ", kept.size() == 1 ? "level " : "levels ", list,
                " alone (calibrate --levels)");
}

}  // namespace fcp

// What the paper prints, to stand beside our figures, as text: mean ± deviation over its five
// seeds. "Official" is the paper's own code run by its own recipe, where that was measured.
#pragma once

#include <string>
#include <string_view>

namespace fcp {

// A row of the paper's tables on the one-dimensional sets, and on the synthetic one; empty where it
// prints nothing. Lengths, unless said otherwise.
struct PaperSet {
  std::string_view set;
  std::string_view cp, fcp;                    // vanilla CP, Feature CP
  std::string_view official_cp, official_fcp;  // by IBP
  std::string_view cqr, feature_cqr;
  std::string_view cqr_third, feature_cqr_third;  // coverage of the worst third, %
  std::string_view cubic_feature, cubic_output;   // distances to the quantile
  std::string_view untrained_cp, untrained_fcp;
};

// "meps21 (rebuilt)" is looked up as meps21. A set the paper does not have is empty throughout.
const PaperSet& paper_set(std::string_view set);

// Its ablation of the cut: `layers` is "1:3", "2:2" or "3:1".
std::string paper_cut_length(std::string_view set, std::string_view layers);

}  // namespace fcp

// The miscoverage level alpha: the share of wrong regions a user allows, 0 < alpha < 1.
//
// A level is an exact fraction, never a rounded double. "0.1" is one tenth, and so the conformal
// rank ⌈(1 − α)(n + 1)⌉ is integer arithmetic: no 1 - 0.9 = 0.09999999999999998 can shift it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fcp {

class Level {
 public:
  // The number a user typed: "0.1", ".05", "1e-3", at most 18 significant digits and 38 decimals.
  // Throws fcp::Error on anything that is not such a number or not strictly between 0 and 1.
  static Level parse(std::string_view text);

  // numerator / denominator, as in Level::fraction(1, 3).
  static Level fraction(uint64_t numerator, uint64_t denominator);

  // The double rounded to the 15 significant digits that every double carries faithfully:
  // Level(0.1) is one tenth, and so is Level(1 - 0.9). Where more digits matter, parse or fraction
  // keep them.
  explicit Level(double alpha);

  // This level shared equally: Level(0.1).divided_by(2) for a region with two sides.
  Level divided_by(uint64_t parts) const;

  // ⌊α · count⌋, exactly.
  uint64_t floor_times(uint64_t count) const;

  // Whether amount ≤ α · total, for sums too fine for integers. Exact as long as the two products
  // with the reduced fraction are exact in Real, and right to its last digit beyond.
  template <typename Real>
  bool at_most_share(Real amount, Real total) const {
    return amount * static_cast<Real>(denominator_) <= static_cast<Real>(numerator_) * total;
  }

  double value() const;
  const std::string& text() const { return text_; }  // as typed, or "1/3"

  // Equal as numbers: "0.1" and "1e-1" are the same level.
  friend bool operator==(const Level& a, const Level& b) {
    return a.numerator_ == b.numerator_ && a.denominator_ == b.denominator_;
  }

 private:
  using Wide = unsigned __int128;

  Level(uint64_t numerator, Wide denominator, std::string text);

  uint64_t numerator_;  // the fraction is kept in lowest terms
  Wide denominator_;
  std::string text_;
};

}  // namespace fcp

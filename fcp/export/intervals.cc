#include "fcp/export/intervals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/conformal/quantile.h"
#include "fcp/export/gradients.h"
#include "fcp/export/precision.h"
#include "fcp/export/quantile_nodes.h"
#include "fcp/methods/scores/cqr.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/methods/scores/rectified.h"
#include "fcp/methods/scores/support.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/element_types.h"

namespace fcp {
namespace {

// The outputs that are the ends at radius 0: one and the same, or two quantiles.
QuantileOutputs center_outputs(const ScoreOptions& score, const Network& head) {
  const std::string* low = score.find(field::low);
  if (low != nullptr) return quantile_outputs(head, *low, score.value(field::high));
  const size_t output = output_index(head, score.output);
  return {output, output};
}

class IntervalWriter {
 public:
  IntervalWriter(GraphBuilder& builder, const CalibrationArtifact& artifact, const ExportHead& head)
      : builder_(builder),
        score_(artifact.method.score),
        rounding_(builder, artifact.rounding),
        type_(scalar_type(interval_output(artifact, *head.network).type)) {
    const std::shared_ptr<const Network> own = own_head(head.network);
    const std::vector<TensorInfo>& outputs = own->outputs();
    rank_ = interval_output(artifact, *head.network).shape.size();
    if (!score_.rectifier.empty()) {
      rectifiers_ = head.network->outputs()[output_index(*head.network, score_.rectifier)].shape[1];
    }
    const QuantileOutputs ends = center_outputs(score_, *own);
    low_ = ends.low;
    high_ = ends.high;
    if (low_ == high_) {
      center_ = {outputs[low_].name, outputs[low_].name};
    } else {
      check_same_rank(outputs[low_], outputs[high_]);
      const std::vector<std::string> both = {outputs[low_].name, outputs[high_].name};
      center_ = {builder_.add("Min", both), builder_.add("Max", both)};
    }
    center_rounding_ =
        std::max(rounding_.of_output(outputs[low_].name), rounding_.of_output(outputs[high_].name));
    const Parts parts{artifact, own, *head.network, head.feature};
    std::visit([&](const auto& options) { prepare(options, parts); }, score_.own);
  }

  // Of outputs with radii of their own, the column of each from its own intervals of all.
  Ends write(const std::vector<double>& radius) {
    const size_t targets = std::max<size_t>(1, score_.targets), own = radius.size() / targets;
    if (targets == 1) return write_sides(radius, 0);
    if (rank_ != 2) fail("a radius for each output is exported for rows of numbers alone");
    std::vector<std::string> lower, upper;
    for (size_t k = 0; k < targets; ++k) {
      const Ends ends = write_sides(std::span(radius).subspan(k * own, own), k * own);
      const std::string column =
          builder_.constant(torch::full({1}, static_cast<int64_t>(k), torch::kLong));
      lower.push_back(builder_.add("Gather", {ends.lower, column}, {{"axis", int64_t{1}}}));
      upper.push_back(builder_.add("Gather", {ends.upper, column}, {{"axis", int64_t{1}}}));
    }
    return {builder_.add("Concat", lower, {{"axis", int64_t{1}}}),
            builder_.add("Concat", upper, {{"axis", int64_t{1}}})};
  }

 private:
  // `side`: the number of the first of these among all sides.
  Ends write_sides(std::span<const double> radius, size_t side) {
    side_ = static_cast<int64_t>(side);
    const Ends first = at(radius.front());
    if (radius.size() == 1 || (radius[1] == radius[0] && rectifiers_ == 1)) {
      return kept(with_slack(first));
    }
    ++side_;
    return kept(with_slack({first.lower, at(radius[1]).upper}));
  }

  // What the nodes of a score are made from.
  struct Parts {
    const CalibrationArtifact& artifact;
    const std::shared_ptr<const Network>& own;  // the head without heads on features
    const Network& head;                        // with them
    const torch::Tensor& feature;
  };

  // Of each score: the nodes that all radii have in common.
  template <typename Options>
  void prepare(const Options&, const Parts&) {}

  void prepare(const CrossOptions&, const Parts& parts) {
    cross_rows_ = static_cast<int64_t>(parts.artifact.rows.count());
  }

  void prepare(const NestedOptions& options, const Parts& parts) {
    ranges_.emplace(builder_, parts.own, options, parts.feature);
  }

  void prepare(const FeatureCqrOptions& options, const Parts& parts) {
    ranges_.emplace(
        builder_, parts.own,
        NestedOptions{.norm = options.norm, .bound = options.bound, .scale = options.scale},
        parts.feature);
  }

  void prepare(const SpreadOptions& options, const Parts&) {
    const std::string spread = options.learned_outputs()[0];
    spread_ = builder_.add("Max", {as_output(spread), number(0)});
    spread_rounding_ = rounding_.of_output(spread);
  }

  // Of the box: the lengths of the factor's rows. The rounding of K numbers is that of their norm.
  void prepare(const EllipsoidOptions& options, const Parts& parts) {
    const std::string factor = options.learned_outputs()[0];
    const std::vector<int64_t>& shape = parts.own->outputs()[low_].shape;
    if (shape.size() != 2 || shape[1] < 1) {
      fail("the output '", center_.lower, "' does not say its numbers per row, which export needs");
    }
    const int64_t outputs = shape[1];
    const std::string cast =
        builder_.add("Cast", {factor}, {{"to", int64_t{type_ == torch::kDouble ? 11 : 1}}});
    const std::string lower =
        builder_.add("Mul", {builder_.reshape_rows(cast, {outputs, outputs}),
                             builder_.constant(torch::ones({outputs, outputs}, type_).tril())});
    const std::string squares =
        builder_.reduce("ReduceSum", builder_.add("Mul", {lower, lower}), 2, /*keep=*/false);
    spread_ = builder_.add("Sqrt", {squares});
    spread_rounding_ = rounding_.of_output(factor) * std::sqrt(static_cast<double>(outputs));
  }

  void prepare(const LinearizedOptions& options, const Parts& parts) {
    spread_ = write_gradients(builder_, *parts.own, low_, parts.feature, options.norm);
    const double floor = options.floor * options.slope / 2;
    if (floor > 0) spread_ = builder_.add("Add", {spread_, number(floor)});
  }

  void prepare(const QuantilesOptions& options, const Parts& parts) {
    grid_ = quantile_grid(parts, options.learned_outputs()[0]);
  }

  void prepare(const DensityOptions& options, const Parts& parts) {
    grid_ = quantile_grid(parts, options.learned_outputs()[0]);
  }

  void prepare(const ResidualOptions& options, const Parts& parts) {
    if (options.normalize.empty()) return;
    const TensorInfo& spread = parts.own->outputs()[output_index(*parts.own, options.normalize)];
    check_same_rank(parts.own->outputs()[low_], spread);
    spread_ = spread.name;
    spread_rounding_ = rounding_.of_output(spread.name);
  }

  // export.h: each end outwards by ε (|end| + |center|), which leaves infinite ones as they are,
  // and by the rounding of the center.
  Ends with_slack(const Ends& ends) {
    const double rounding = cross_rows_ > 0 ? std::max(rounding_.of_output(kCrossLowOutput),
                                                       rounding_.of_output(kCrossHighOutput))
                                            : center_rounding_;
    const auto slack = [&](const std::string& end, const std::string& center) {
      const std::string size =
          builder_.add("Add", {builder_.add("Abs", {end}), builder_.add("Abs", {center})});
      return rounding_.added(builder_.add("Mul", {size, number(kRuntimeSlack)}), rounding, rank_,
                             type_);
    };
    return {builder_.add("Sub", {ends.lower, slack(ends.lower, center_.lower)}),
            builder_.add("Add", {ends.upper, slack(ends.upper, center_.upper)})};
  }

  // The ends that are asked for, within the support.
  Ends kept(Ends ends) {
    if (score_.side == BoundSide::kUpper) ends.lower = everything().lower;
    if (score_.side == BoundSide::kLower) ends.upper = everything().upper;
    const Support support = parse_support(score_.support, score_.integer);
    if (std::isfinite(support.lower)) {
      ends.lower = builder_.add("Max", {ends.lower, number(support.lower)});
    }
    if (std::isfinite(support.upper)) {
      ends.upper = builder_.add("Min", {ends.upper, number(support.upper)});
    }
    if (!support.integer) return ends;
    return {builder_.add("Ceil", {ends.lower}), builder_.add("Floor", {ends.upper})};
  }

  Ends at(double radius) {
    if (cross_rows_ > 0) return ranked_ends(radius);
    // A score that the other runtime may find larger by so much.
    rounding_.check_radius(radius);
    radius += rounding_.of_scores();
    if (std::isinf(radius) || (ranges_ && radius > kLargestBall)) return everything();
    if (grid_.quantiles > 0) return around_center(radius);
    return ranges_ ? band(radius) : margin(radius);
  }

  // The head without heads on features: what bounds walk through and gradients are taken of.
  // The scale of a residual comes along.
  std::shared_ptr<const Network> own_head(const std::shared_ptr<const Network>& head) const {
    std::vector<TensorInfo> outputs;
    for (const TensorInfo& output : head->outputs()) {
      const bool kept =
          !is_head_output(output.name) || output.name == score_.value(field::normalize);
      if (kept) outputs.push_back(output);
    }
    if (outputs.size() == head->outputs().size()) return head;
    return std::make_shared<const Network>(extract(head->graph(), head->inputs(), outputs));
  }

  // A tensor [N, K] of the graph in the type and number of dimensions of the output.
  std::string as_output(const std::string& name) {
    const std::string cast =
        builder_.add("Cast", {name}, {{"to", int64_t{type_ == torch::kDouble ? 11 : 1}}});
    return builder_.add("Reshape", {cast, builder_.add("Shape", {center_.lower})});
  }

  // That of the side, [N, 1, …], with as many dimensions as the output.
  std::string rectifier() {
    std::string cast = builder_.add("Cast", {score_.rectifier},
                                    {{"to", int64_t{type_ == torch::kDouble ? 11 : 1}}});
    cast = rounding_.added(cast, rounding_.of_output(score_.rectifier), 2, type_);
    if (rectifiers_ > 1) {
      const std::string column = builder_.constant(torch::tensor({side_}, torch::kLong));
      cast = builder_.add("Gather", {cast, column}, {{"axis", int64_t{1}}});
    }
    return builder_.reshape_rows(cast, std::vector<int64_t>(rank_ - 1, 1));
  }

  QuantileGrid quantile_grid(const Parts& parts, const std::string& name) const {
    const TensorInfo& output = parts.own->outputs()[low_];
    const TensorInfo& grid = parts.head.outputs()[output_index(parts.head, name)];
    int64_t outputs = 1;
    for (size_t i = 1; i < output.shape.size(); ++i) outputs *= output.shape[i];
    if (!output.known_rank || outputs < 1 || !grid.known_rank || grid.shape.size() != 2 ||
        grid.shape[1] % outputs != 0 || grid.shape[1] / outputs < 2) {
      fail("the outputs '", output.name, "' and '", grid.name,
           "' do not say how many quantiles there are of each number, which export needs");
    }
    return {grid.name, outputs, grid.shape[1] / outputs, ""};
  }

  // The ends of the residual, put on the prediction.
  Ends around_center(double radius) {
    const double* const tail = score_.find(field::tail);  // of a pair that is moved
    const bool grown = tail == nullptr;
    if (grown && score_.rectifier.empty() && radius >= grown_limit(grid_.quantiles)) {
      return everything();
    }
    NodeRadius given{radius, "", score_.may_be_negative()};
    if (!score_.rectifier.empty()) {
      given.rectifier =
          rounding_.added(builder_.add("Cast", {score_.rectifier}, {{"to", int64_t{11}}}),
                          rounding_.of_output(score_.rectifier), 2, torch::kDouble);
    }
    grid_.rounding = rounding_.node(rounding_.of_output(grid_.name), 3, torch::kDouble);
    const Ends residual = grown ? write_grown_interval(builder_, grid_, given)
                                : write_quantile_pair(builder_, grid_, *tail, given);
    return {builder_.add("Add", {center_.lower, as_output(residual.lower)}),
            builder_.add("Add", {center_.upper, as_output(residual.upper)})};
  }

  // The (n + 1 − k)-th smallest lower end and the k-th smallest upper one:
  // fcp/methods/scores/cross.h.
  Ends ranked_ends(double rank) {
    if (rank > static_cast<double>(cross_rows_)) return everything();
    if (sorted_.lower.empty()) {
      sorted_ = {builder_.sort(kCrossLowOutput, cross_rows_),
                 builder_.sort(kCrossHighOutput, cross_rows_)};
    }
    const auto k = static_cast<int64_t>(rank);
    const auto pick = [&](const std::string& sorted, int64_t place) {
      const std::string column = builder_.constant(torch::tensor({place}, torch::kLong));
      return as_output(builder_.add("Gather", {sorted, column}, {{"axis", int64_t{1}}}));
    };
    return {pick(sorted_.lower, cross_rows_ - k), pick(sorted_.upper, k - 1)};
  }

  // ±∞ in the shape of the prediction, whatever the prediction is.
  Ends everything() {
    const std::string always = builder_.constant(torch::ones({1}, torch::kBool));
    return {builder_.add("Where", {always, number(-kInfinity), center_.lower}),
            builder_.add("Where", {always, number(kInfinity), center_.upper})};
  }

  // r times the spread, and the rounding of the spread outwards whatever the sign of r.
  std::string spread_reach(const std::string& radius) {
    const std::string reach = builder_.add("Mul", {spread_, radius});
    const std::string more = rounding_.node(spread_rounding_, rank_, type_);
    if (more.empty()) return reach;
    return builder_.add("Add", {reach, builder_.add("Mul", {more, builder_.add("Abs", {radius})})});
  }

  // center ∓ r, times the spread where there is one.
  Ends margin(double radius) {
    if (score_.find(field::normalize) && spread_.empty() && score_.rectifier.empty()) {
      rounding_.check_center(radius, center_.lower);
    }
    std::string reach = number(rounded_up(radius));
    if (!score_.rectifier.empty()) {
      const bool difference = score_.may_be_negative();
      reach = builder_.add(difference ? "Add" : "Mul", {rectifier(), reach});
    }
    if (!spread_.empty()) reach = spread_reach(reach);
    return {builder_.add("Sub", {center_.lower, reach}),
            builder_.add("Add", {center_.upper, reach})};
  }

  // As nested.h says: the outer ends, or for a negative radius the inner ones, on their side of
  // the prediction.
  Ends band(double radius) {
    for (const size_t output : {low_, high_}) {
      if (!rounding_.measured()) ranges_->check_precision(std::abs(radius), output);
    }
    std::string factor = score_.rectifier;
    if (!factor.empty()) {
      factor = rounding_.added(factor, rounding_.of_output(factor), 2, type_);
    }
    const std::vector<Ends> ranges = ranges_->ranges(std::abs(radius), factor);
    const Ends& low = ranges[low_];
    const Ends& high = ranges[high_];
    const bool shrinks = radius < 0;
    Ends ends =
        shrinks
            ? Ends{extreme("Min", low.upper, high.upper), extreme("Max", low.lower, high.lower)}
            : Ends{extreme("Min", low.lower, high.lower), extreme("Max", low.upper, high.upper)};
    const double floor = radius * score_.value(field::floor) * score_.value(field::slope) / 2;
    if (floor != 0) {
      std::string wider = number(floor);
      if (!score_.rectifier.empty()) wider = builder_.add("Mul", {rectifier(), wider});
      ends = {builder_.add("Sub", {ends.lower, wider}), builder_.add("Add", {ends.upper, wider})};
    }
    // Weights near the end of single precision make ∞ − ∞ on the way, as in nested.cc.
    ends = {instead_of_nan(ends.lower, -kInfinity), instead_of_nan(ends.upper, kInfinity)};
    return {builder_.add(shrinks ? "Max" : "Min", {ends.lower, center_.lower}),
            builder_.add(shrinks ? "Min" : "Max", {ends.upper, center_.upper})};
  }

  std::string instead_of_nan(const std::string& end, double value) {
    return builder_.add("Where", {builder_.add("IsNaN", {end}), number(value), end});
  }

  std::string extreme(const char* op, const std::string& a, const std::string& b) {
    return a == b ? a : builder_.add(op, {a, b});
  }

  // Never below the radius when it becomes a float32.
  double rounded_up(double radius) const {
    if (type_ != torch::kFloat) return radius;
    const auto single = static_cast<float>(radius);
    return single >= radius ? single
                            : std::nextafter(single, std::numeric_limits<float>::infinity());
  }

  std::string number(double value) { return builder_.constant(torch::full({1}, value, type_)); }

  static void check_same_rank(const TensorInfo& a, const TensorInfo& b) {
    if (a.known_rank && b.known_rank && a.shape.size() == b.shape.size()) return;
    fail("the outputs '", a.name, "' and '", b.name,
         "' do not say that they have the same number of dimensions, which export needs");
  }

  GraphBuilder& builder_;
  const ScoreOptions& score_;
  RoundingNodes rounding_;
  double center_rounding_ = 0;
  torch::ScalarType type_;
  size_t low_ = 0, high_ = 0;
  Ends center_;
  std::string spread_;  // empty: 1
  double spread_rounding_ = 0;
  QuantileGrid grid_{"", 0, 0, ""};
  int64_t cross_rows_ = 0;
  Ends sorted_;      // of cross
  size_t rank_ = 2;  // of the output
  int64_t rectifiers_ = 1;
  int64_t side_ = 0;
  std::optional<RangeWriter> ranges_;
};

}  // namespace

TensorInfo interval_output(const CalibrationArtifact& artifact, const Network& head) {
  const TensorInfo& output = head.outputs()[center_outputs(artifact.method.score, head).low];
  if (output.type != ElementType::kFloat && output.type != ElementType::kDouble) {
    fail("output '", output.name, "' is ", output.type, ", export needs float32 or float64");
  }
  return output;
}

std::vector<std::string> center_names(const CalibrationArtifact& artifact, const Network& head) {
  const QuantileOutputs center = center_outputs(artifact.method.score, head);
  const std::vector<TensorInfo>& outputs = head.outputs();
  if (center.low == center.high) return {outputs[center.low].name};
  return {outputs[center.low].name, outputs[center.high].name};
}

std::vector<Ends> write_intervals(GraphBuilder& builder, const CalibrationArtifact& artifact,
                                  const ExportHead& head, const std::vector<Level>& levels) {
  IntervalWriter writer(builder, artifact, head);
  std::vector<Ends> intervals;
  for (const Level& level : levels) {
    const bool crossed = artifact.method.score.traits().made_by_fit;
    const auto rank = static_cast<double>(conformal_rank(level, artifact.rows.count()));
    intervals.push_back(writer.write(crossed ? std::vector{rank} : artifact.radius(level)));
  }
  return intervals;
}

}  // namespace fcp

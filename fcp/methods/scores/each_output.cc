#include "fcp/methods/scores/each_output.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

constexpr char kAllColumns[] = "outputs";

// The columns of one output of the head, among all of them side by side.
struct OutputColumns {
  size_t output = 0;
  int64_t first = 0;
  int64_t width = 0;  // K, a multiple of it, or 1 where all outputs share it
};

// Where the head does not say its width, it is K. What fits no K is read by no score of one output.
std::vector<OutputColumns> columns_of(const Network& head, int64_t targets) {
  std::vector<OutputColumns> columns;
  int64_t next = 0;
  for (size_t i = 0; i < head.outputs().size(); ++i) {
    const TensorInfo& info = head.outputs()[i];
    if (info.known_rank && info.shape.size() != 2) continue;
    const bool known = info.known_rank && info.shape[1] != kDynamic;
    const int64_t width = known ? info.shape[1] : targets;
    if (width % targets != 0 && width != 1) continue;
    columns.push_back({i, next, width});
    next += width;
  }
  return columns;
}

// All columns in, those of output k out, under the names of the head's outputs.
std::shared_ptr<const Network> column_network(const Network& head,
                                              const std::vector<OutputColumns>& columns,
                                              int64_t targets, int64_t k) {
  Graph graph;
  TensorInfo all;
  all.name = kAllColumns;
  all.type = ElementType::kDouble;
  all.shape = {kDynamic, columns.back().first + columns.back().width};
  graph.inputs = {all};
  for (const OutputColumns& one : columns) {
    const int64_t own = std::max<int64_t>(1, one.width / targets);
    const int64_t first = one.first + (one.width == 1 ? 0 : k * own);
    TensorInfo info = head.outputs()[one.output];
    info.type = ElementType::kDouble;
    info.known_rank = true;
    info.shape = {kDynamic, own};
    info.dimension_names = {};
    graph.initializers[info.name + "/columns"] = torch::arange(first, first + own, torch::kLong);
    Node gather;
    gather.op = "Gather";
    gather.name = info.name;
    gather.inputs = {kAllColumns, info.name + "/columns"};
    gather.outputs = {info.name};
    gather.attributes["axis"] = int64_t{1};
    graph.nodes.push_back(gather);
    graph.outputs.push_back(info);
  }
  NetworkOptions options;
  options.device = head.device();
  return std::make_shared<const Network>(std::move(graph), options);
}

class EachOutput : public Score {
 public:
  EachOutput(std::shared_ptr<const Network> head, std::vector<OutputColumns> columns,
             std::vector<std::unique_ptr<Score>> scores)
      : head_(std::move(head)), columns_(std::move(columns)), scores_(std::move(scores)) {}

  int64_t targets() const override { return static_cast<int64_t>(scores_.size()); }
  int64_t sides() const override { return targets() * scores_[0]->sides(); }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const torch::Tensor all = columns(features), y = output_matrix(truth);
    if (y.size(1) != targets()) {
      fail("the truth has ", y.size(1), " numbers per row, expected ", targets(),
           ": each has a radius of its own");
    }
    const auto own = static_cast<size_t>(scores_[0]->sides());
    const size_t each = own * scores_.size();
    std::vector<double> joined(static_cast<size_t>(y.size(0)) * each);
    for (size_t k = 0; k < scores_.size(); ++k) {
      const std::vector<double> found =
          scores_[k]->score(all, y.narrow(1, static_cast<int64_t>(k), 1).contiguous());
      for (size_t i = 0; i < found.size(); ++i) {
        joined[i / own * each + k * own + i % own] = found[i];
      }
    }
    return joined;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const torch::Tensor all = columns(features);
    check_radii(radius, all.size(0), sides());
    const int64_t own = scores_[0]->sides();
    std::vector<torch::Tensor> prediction, lower, upper;
    Regions regions;
    for (int64_t k = 0; k < targets(); ++k) {
      const Regions one =
          scores_[static_cast<size_t>(k)]->region(all, radius.narrow(1, k * own, own).contiguous());
      prediction.push_back(one.prediction);
      lower.push_back(one.lower);
      upper.push_back(one.upper);
      regions.side = one.side;
    }
    regions.prediction = torch::cat(prediction, 1);
    regions.lower = torch::cat(lower, 1);
    regions.upper = torch::cat(upper, 1);
    return regions;
  }

 private:
  torch::Tensor columns(const torch::Tensor& features) const {
    const Tensors outputs = run_apart(*head_, {features});
    std::vector<torch::Tensor> parts;
    for (const OutputColumns& one : columns_) {
      parts.push_back(output_matrix(outputs[one.output]));
      if (parts.back().size(1) == one.width) continue;
      fail("output '", head_->outputs()[one.output].name, "' has ", parts.back().size(1),
           " numbers per row, expected ", one.width);
    }
    return torch::cat(parts, 1);
  }

  std::shared_ptr<const Network> head_;
  std::vector<OutputColumns> columns_;
  std::vector<std::unique_ptr<Score>> scores_;
};

}  // namespace

std::unique_ptr<Score> make_each_output(int64_t targets, std::shared_ptr<const Network> head,
                                        const MakeScore& make) {
  std::vector<OutputColumns> columns = columns_of(*head, targets);
  if (columns.empty()) {
    fail("the network has no output of ", targets, " numbers, each to have a radius of its own");
  }
  std::vector<std::unique_ptr<Score>> scores;
  for (int64_t k = 0; k < targets; ++k) {
    scores.push_back(make(column_network(*head, columns, targets, k)));
  }
  return std::make_unique<EachOutput>(std::move(head), std::move(columns), std::move(scores));
}

}  // namespace fcp

#include "fcp/evaluate/judge.h"

#include "fcp/predictor/batch.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {

HostIntervals::HostIntervals(const torch::Tensor& truths, const Regions& regions)
    : lower(host_doubles(regions.lower)),
      upper(host_doubles(regions.upper)),
      truth(host_doubles(truths)),
      side(regions.side) {
  if (side != BoundSide::kBoth) prediction = host_doubles(regions.prediction);
  if (regions.parts.defined()) parts = host_doubles(regions.parts);
  if (!regions.factor.defined()) return;
  volumes = host_doubles(region_volumes(regions));
  const torch::Tensor in = in_regions(regions, truth).to(torch::kByte).contiguous();
  inside.assign(in.data_ptr<uint8_t>(), in.data_ptr<uint8_t>() + in.numel());
}

IntervalBatch HostIntervals::batch() const {
  IntervalBatch batch;
  batch.lower = numbers(lower);
  batch.upper = numbers(upper);
  batch.truth = numbers(truth);
  batch.side = side;
  if (prediction.defined()) batch.prediction = numbers(prediction);
  batch.inside = inside;
  if (volumes.defined()) batch.volumes = numbers(volumes);
  if (!parts.defined()) return batch;
  batch.parts = numbers(parts);
  batch.part_count = static_cast<size_t>(parts.size(2));
  return batch;
}

JudgedRows Judge::run(const Rows& rows, const RowFacts& facts, size_t first) const {
  const size_t groups = artifact().rows.group_names.size();
  const SideInformation known = side_information(facts, groups, first, rows.x.rows());
  return {rows, predictor_.describe(view(rows.x), known), view(rows.y)};
}

Regions Judge::regions(const JudgedRows& rows, const Level& level) const {
  Regions regions = predictor_.region(rows.inputs, level);
  internal::check_numbers(regions, rows.names());
  return regions;
}

Conformity Judge::judge(const JudgedRows& rows, bool p_values) const {
  Conformity judged{predictor_.scores(rows.inputs, rows.truth, rows.names()), {}};
  if (p_values) judged.p_values = predictor_.p_values(rows.inputs, rows.truth, judged.scores);
  return judged;
}

}  // namespace fcp

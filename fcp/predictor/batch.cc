#include "fcp/predictor/batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/special_numbers.h"
#include "fcp/data/file_witness.h"
#include "fcp/distributed/packing.h"
#include "fcp/predictor/open_data.h"

namespace fcp::internal {
namespace {

[[noreturn]] void fail_of_answer(const std::string& row) {
  fail(row, ": the network's answer is NaN, expected a number; do its numbers overflow there?");
}

// The first row in which something is wrong, of [N, …] booleans.
void check_rows(const torch::Tensor& wrong, const RowNames& row_name) {
  const torch::Tensor rows =
      wrong.reshape({wrong.size(0), -1}).any(1).to(torch::kCPU, torch::kLong);
  if (!rows.any().item<bool>()) return;
  fail_of_answer(row_name(static_cast<size_t>(rows.argmax().item<int64_t>())));
}

}  // namespace

std::string BatchData::name_of(size_t row) const {
  return row_name ? row_name(row) : concat("x: row ", row, " (from 0)");
}

BatchData joined(const std::vector<BatchData>& batches) {
  if (batches.size() == 1) return batches[0];
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  std::vector<torch::Tensor> x;
  BatchData all{.x = {}, .placed = batches.at(0).placed, .row_name = batches[0].row_name};
  for (const BatchData& one : batches) {
    x.push_back(one.x);
    append(all.known.groups, one.known.groups);
    append(all.known.weights, one.known.weights);
    append(all.known.places, one.known.places);
  }
  all.x = torch::cat(x);
  return all;
}

AnswerData part_of(const AnswerData& answer, size_t first, size_t count) {
  const auto narrowed = [&](const torch::Tensor& all) {
    return all.defined() ? all.narrow(0, static_cast<int64_t>(first), static_cast<int64_t>(count))
                         : all;
  };
  const auto each = [&](const std::vector<Regions>& all) {
    std::vector<Regions> parts;
    for (const Regions& one : all) {
      parts.push_back({narrowed(one.prediction), narrowed(one.lower), narrowed(one.upper),
                       narrowed(one.members), narrowed(one.parts), one.side, narrowed(one.factor),
                       narrowed(one.radius)});
    }
    return parts;
  };
  return {answer.levels, each(answer.regions), each(answer.host), narrowed(answer.points)};
}

BatchData batch_of(const Rows& rows, SideInformation known) {
  return {.x = view(rows.x),
          .known = std::move(known),
          .placed = true,
          .row_name = [&rows](size_t row) { return rows.place(row); }};
}

void check_numbers(const torch::Tensor& output, const RowNames& row_name) {
  if (output.dim() == 0 || output.numel() == 0 || !output.is_floating_point()) return;
  if (output.is_cpu() && output.is_contiguous() && output.scalar_type() == torch::kDouble) {
    const auto count = static_cast<size_t>(output.numel());
    if (!any_nan(output.data_ptr<double>(), count)) return;
  }
  // A sum with a NaN in it is NaN, and costs one look at each number.
  if (std::isfinite(output.sum().item<double>())) return;
  check_rows(output.isnan(), row_name);
}

void check_numbers(const Regions& regions, const RowNames& row_name) {
  if (regions.members.defined()) return check_rows(regions.prediction < 0, row_name);
  for (const torch::Tensor* part : {&regions.prediction, &regions.lower, &regions.upper}) {
    check_numbers(*part, row_name);
  }
}

void check_numbers(const std::vector<double>& scores, int64_t sides, const RowNames& row_name) {
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) fail_of_answer(row_name(i / static_cast<size_t>(sides)));
  }
}

}  // namespace fcp::internal

namespace fcp {

size_t Batch::rows() const { return data_->rows(); }

const std::vector<std::string>& Batch::flags() const {
  static const std::vector<std::string> none;
  return data_->cells == nullptr ? none : data_->cells->flags;
}

namespace {

constexpr uint64_t kNotRead = std::numeric_limits<uint64_t>::max();

// The least and the largest of each number over all ranks.
struct LeastAndMost {
  LeastAndMost(Communicator& ranks, const std::vector<uint64_t>& values)
      : least(values), most(values) {
    for (uint64_t& value : most) value = value == kNotRead ? 0 : value;
    ranks.all_reduce(least, Reduce::kMin);
    ranks.all_reduce(most, Reduce::kMax);
  }
  std::vector<uint64_t> least, most;
};

// All ranks have found the same; the others wait until rank 0, which speaks, has ended the job.
template <typename... Parts>
[[noreturn]] void fail_together(Communicator& ranks, const Parts&... parts) {
  if (ranks.rank() > 0) ranks.barrier();
  fail(parts...);
}

void check_same_file(Communicator& ranks, const FileWitness& file) {
  const LeastAndMost size(ranks, {static_cast<uint64_t>(file.state().size)});
  if (size.least != size.most) {
    fail_together(ranks, file.path(), ": changed while it was read: one rank found ", size.least[0],
                  " bytes, another ", size.most[0]);
  }
  std::vector<uint64_t> hashes = file.hashes();
  hashes.resize((size.least[0] + FileWitness::kBlock - 1) / FileWitness::kBlock);
  std::replace(hashes.begin(), hashes.end(), uint64_t{0}, kNotRead);
  const LeastAndMost hash(ranks, hashes);
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (hash.most[i] == 0 || hash.least[i] == hash.most[i]) continue;
    fail_together(ranks, file.path(), ": changed while it was read: the block at byte ",
                  i * FileWitness::kBlock, " has the hash ", hash_text(hash.least[i]),
                  " on one rank, ", hash_text(hash.most[i]), " on another");
  }
}

}  // namespace

void check_same_files(Communicator& ranks) {
  if (ranks.size() == 1) return;
  for (const auto& file : FileWitness::all()) check_same_file(ranks, *file);
}

void check_same_bytes(Communicator& ranks, const std::string& what, std::string_view bytes) {
  if (ranks.size() == 1) return;
  Sha256 sha;
  sha.add(bytes);
  const std::string hash = sha.hex();
  const std::vector<std::string> all = ranks.gather(hash);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == hash) continue;
    fail(what, ": changed while it was read: the hash on rank ", rank, " is ", all[rank],
         ", on rank 0 it is ", hash);
  }
}

size_t each_batch(RowSource& source, const Context& context, std::string_view name,
                  const std::function<void(const Rows& rows)>& take) {
  const size_t size = context.batch_for(source);
  size_t done = 0;
  Stage stage(context, name, source.size().value_or(0));
  for (Rows rows; source.next(size, rows);) {
    check_interrupted();
    take(rows);
    done += rows.x.rows();
    stage.advance(rows.x.rows());
  }
  return done;
}

void share_batches(Communicator& ranks, RowSource& source, size_t size,
                   const std::function<std::string(size_t, const Rows&)>& measure,
                   const std::function<void(size_t, std::string_view)>& take) {
  Rows rows;
  size_t place = 0;  // the batch that the source is at
  const auto make = [&](size_t batch) -> std::optional<std::string> {
    check_interrupted();
    if (batch > place) source.skip((batch - place) * size);
    place = batch + 1;
    if (!source.next(size, rows)) return std::nullopt;
    return measure(batch, rows);
  };
  relay_batches(ranks, make, take);
  check_same_files(ranks);
  check_interrupted();
}

}  // namespace fcp

#include "fcp/predictor/shared_batches.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/sha256.h"
#include "fcp/data/file_witness.h"
#include "fcp/distributed/relay.h"

namespace fcp {
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

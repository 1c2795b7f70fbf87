#include "apps/server/batcher.h"

#include <algorithm>
#include <new>
#include <utility>

#include "fcp/nn/runtime/libtorch_error.h"

#include "apps/server/batch_queue.h"

namespace fcp {

bool ran_out_of_memory(const std::exception& problem) {
  if (dynamic_cast<const std::bad_alloc*>(&problem) != nullptr) return true;
  const auto* of_libtorch = dynamic_cast<const c10::Error*>(&problem);
  return of_libtorch != nullptr && is_out_of_memory(*of_libtorch);
}

Batcher::Batcher(std::shared_ptr<const ServedModel> model, const Options& options)
    : model_(std::move(model)),
      options_(options),
      few_(std::make_unique<BatchQueue>(*model_, options)),
      many_(std::make_unique<BatchQueue>(*model_, options)) {}

Batcher::~Batcher() = default;

bool Batcher::put(internal::BatchData rows, std::vector<Level> levels,
                  std::shared_ptr<Deadline> deadline, Done done) {
  BatchQueue& queue = rows.rows() <= options_.few_rows ? *few_ : *many_;
  return queue.put(std::move(rows), std::move(levels), std::move(deadline), std::move(done));
}

size_t Batcher::batches() const { return few_->batches() + many_->batches(); }

size_t Batcher::queued() const { return few_->queued() + many_->queued(); }

bool Batcher::is_full() const {
  return std::max(few_->queued(), many_->queued()) >= options_.queued_rows;
}

}  // namespace fcp

#include "apps/server/batcher.h"

#include <new>
#include <utility>

#include "fcp/nn/runtime/libtorch_error.h"

namespace fcp {

bool ran_out_of_memory(const std::exception& problem) {
  if (dynamic_cast<const std::bad_alloc*>(&problem) != nullptr) return true;
  const auto* of_libtorch = dynamic_cast<const c10::Error*>(&problem);
  return of_libtorch != nullptr && is_out_of_memory(*of_libtorch);
}

Batcher::Batcher(std::shared_ptr<const ServedModel> model, const Options& options)
    : model_(std::move(model)), options_(options), thread_([this] { work(); }) {}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool Batcher::put(internal::BatchData rows, std::vector<Level> levels, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (queued_ > 0 && queued_ + rows.rows() > options_.queued_rows) return false;
    queued_ += rows.rows();
    queue_.push_back({std::move(rows), std::move(levels), std::move(done)});
  }
  wake_.notify_one();
  return true;
}

size_t Batcher::queued() const {
  const std::lock_guard lock(mutex_);
  return queued_;
}

// The first job and those behind it that ask for the same levels.
std::vector<Batcher::Job> Batcher::take_jobs() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
  std::vector<Job> jobs;
  size_t rows = 0;
  while (!queue_.empty()) {
    Job& next = queue_.front();
    const bool fits = jobs.empty() || (rows + next.rows.rows() <= options_.batch_rows &&
                                       next.levels == jobs[0].levels);
    if (!fits) break;
    rows += next.rows.rows();
    queued_ -= next.rows.rows();
    jobs.push_back(std::move(next));
    queue_.pop_front();
  }
  return jobs;
}

void Batcher::work() {
  while (true) {
    const std::vector<Job> jobs = take_jobs();
    if (jobs.empty()) return;
    run(jobs);
  }
}

// Where rows of one job spoil a batch, all jobs are run by themselves, so that the others are
// answered.
void Batcher::run(const std::vector<Job>& jobs) {
  ++batches_;
  std::vector<internal::BatchData> rows;
  for (const Job& job : jobs) rows.push_back(job.rows);
  std::string error;
  internal::AnswerData answer;
  try {
    answer = model_->answer(internal::joined(rows), jobs[0].levels);
  } catch (const std::exception& problem) {
    error = ran_out_of_memory(problem) ? kOutOfMemory : problem.what();
  }
  if (!error.empty() && jobs.size() > 1) {
    for (const Job& job : jobs) run({job});
    return;
  }
  size_t first = 0;
  if (options_.ran) {
    for (const Job& job : jobs) first += job.rows.rows();
    options_.ran(*model_, std::exchange(first, 0));
  }
  for (const Job& job : jobs) {
    if (error.empty()) {
      const internal::AnswerData part = internal::part_of(answer, first, job.rows.rows());
      job.done(&part, "");
    } else {
      job.done(nullptr, error);
    }
    first += job.rows.rows();
  }
}

}  // namespace fcp

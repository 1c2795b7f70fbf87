#include "apps/server/batcher.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/runtime/libtorch_error.h"

namespace fcp {
namespace {

using internal::AnswerData;
using internal::BatchData;

constexpr size_t kFewest = 32;  // rows of a slice, whose own cost must not be what is paid for

template <typename Value>
std::vector<Value> some_of(const std::vector<Value>& all, size_t first, size_t count) {
  if (all.empty()) return {};
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

// Some of the rows, in the same memory, which messages call what they are in the whole.
BatchData rows_of_slice(const BatchData& all, size_t first, size_t count) {
  if (count == all.rows()) return all;
  BatchData some = all;
  some.x = all.x.narrow(0, static_cast<int64_t>(first), static_cast<int64_t>(count));
  some.known.groups = some_of(all.known.groups, first, count);
  some.known.weights = some_of(all.known.weights, first, count);
  some.known.places = some_of(all.known.places, first, count);
  some.known.first = all.known.first + first;
  if (all.row_name) {
    some.row_name = [name = all.row_name, first](size_t row) { return name(first + row); };
  }
  return some;
}

std::string what_is_wrong(const std::exception& problem) {
  return ran_out_of_memory(problem) ? Batcher::kOutOfMemory : problem.what();
}

// The answers of consecutive slices as one, on the host and without parts of unions.
AnswerData joined_answers(const std::vector<AnswerData>& parts) {
  if (parts.size() == 1) return parts[0];
  AnswerData all{.levels = parts.at(0).levels, .regions = {}};
  const auto join = [&](size_t level, torch::Tensor Regions::*which) {
    if (!(parts[0].host.at(level).*which).defined()) return torch::Tensor();
    std::vector<torch::Tensor> each;
    for (const AnswerData& part : parts) each.push_back(part.host[level].*which);
    return torch::cat(each);
  };
  for (size_t i = 0; i < parts[0].host.size(); ++i) {
    Regions one;
    one.prediction = join(i, &Regions::prediction);
    one.lower = join(i, &Regions::lower);
    one.upper = join(i, &Regions::upper);
    one.members = join(i, &Regions::members);
    all.host.push_back(std::move(one));
  }
  std::vector<torch::Tensor> points;
  for (const AnswerData& part : parts) points.push_back(part.points);
  all.points = torch::cat(points);
  return all;
}

}  // namespace

bool ran_out_of_memory(const std::exception& problem) {
  if (dynamic_cast<const std::bad_alloc*>(&problem) != nullptr) return true;
  const auto* of_libtorch = dynamic_cast<const c10::Error*>(&problem);
  return of_libtorch != nullptr && is_out_of_memory(*of_libtorch);
}

// One queue of a Batcher, with its thread.
class BatchQueue {
 public:
  BatchQueue(const ServedModel& model, const Batcher::Options& options);
  ~BatchQueue();
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  bool put(internal::BatchData rows, std::vector<Level> levels, std::shared_ptr<Deadline> deadline,
           Batcher::Done done);
  size_t queued() const;

 private:
  struct Job {
    internal::BatchData rows;
    std::vector<Level> levels;
    std::shared_ptr<Deadline> deadline;
    Batcher::Done done;
    size_t taken = 0;                              // rows that are run, or are being run
    std::vector<internal::AnswerData> answered{};  // of those before
    size_t answered_rows = 0;

    size_t left() const { return rows.rows() - taken; }
    bool is_over() const { return deadline != nullptr && deadline->is_over(); }
  };
  using JobPointer = std::shared_ptr<Job>;
  struct Slice {
    JobPointer job;
    size_t first, count;
  };

  void work();
  std::vector<Slice> take_slices(std::vector<JobPointer>& over);
  void drop_over(std::vector<JobPointer>& over);
  void run(const std::vector<Slice>& slices);
  void answer(const Slice& slice, internal::AnswerData part);
  void give_up(const JobPointer& job, const std::string& error);
  size_t slice_rows(size_t levels) const;
  void note_time(size_t rows, size_t levels, double seconds);

  const ServedModel& model_;
  Batcher::Options options_;
  std::map<size_t, double> row_seconds_;  // by the number of levels; of the thread alone
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::list<JobPointer> queue_;  // that have rows left
  size_t queued_ = 0;            // rows
  bool ending_ = false;
  std::thread thread_;
};

BatchQueue::BatchQueue(const ServedModel& model, const Batcher::Options& options)
    : model_(model), options_(options), thread_([this] { work(); }) {}

BatchQueue::~BatchQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool BatchQueue::put(BatchData rows, std::vector<Level> levels, std::shared_ptr<Deadline> deadline,
                     Batcher::Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (queued_ > 0 && queued_ + rows.rows() > options_.queued_rows) return false;
    queued_ += rows.rows();
    queue_.push_back(std::make_shared<Job>(
        Job{std::move(rows), std::move(levels), std::move(deadline), std::move(done)}));
  }
  wake_.notify_one();
  return true;
}

size_t BatchQueue::queued() const {
  const std::lock_guard lock(mutex_);
  return queued_;
}

// So many that a slice takes about batch_seconds, by the slices before; the first is a small one.
size_t BatchQueue::slice_rows(size_t levels) const {
  const auto known = row_seconds_.find(levels);
  if (known == row_seconds_.end()) {
    return std::min(std::max(kFewest, options_.batch_rows / 16), options_.batch_rows);
  }
  const double rows = options_.batch_seconds / std::max(known->second, 1e-9);
  const double most = static_cast<double>(options_.batch_rows);
  return std::max(std::min(kFewest, options_.batch_rows),
                  static_cast<size_t>(std::min(rows, most)));
}

void BatchQueue::note_time(size_t rows, size_t levels, double seconds) {
  if (rows < std::min(kFewest, options_.batch_rows)) return;
  const double found = seconds / static_cast<double>(rows);
  const auto [known, fresh] = row_seconds_.try_emplace(levels, found);
  if (!fresh) known->second += (found - known->second) / 4;
}

void BatchQueue::drop_over(std::vector<JobPointer>& over) {
  over.reserve(queue_.size());
  std::erase_if(queue_, [&](const JobPointer& job) {
    if (!job->is_over()) return false;
    queued_ -= job->left();
    job->taken = job->rows.rows();
    over.push_back(job);
    return true;
  });
}

// Of the first job, and of those behind it that ask for the same levels. A job with rows left goes
// to the end of the queue. Memory is taken before anything is changed.
std::vector<BatchQueue::Slice> BatchQueue::take_slices(std::vector<JobPointer>& over) {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
  drop_over(over);
  std::vector<Slice> slices;
  if (queue_.empty()) return slices;
  slices.reserve(queue_.size());
  const std::vector<Level> levels = queue_.front()->levels;
  size_t room = slice_rows(levels.size());
  std::list<JobPointer> behind;
  for (auto next = queue_.begin(); next != queue_.end();) {
    const auto one = next++;
    const JobPointer& job = *one;
    const size_t count = job->levels == levels ? std::min(room, job->left()) : 0;
    if (count == 0) continue;
    slices.push_back({job, job->taken, count});
    job->taken += count;
    room -= count;
    queued_ -= count;
    if (job->left() > 0) {
      behind.splice(behind.end(), queue_, one);
    } else {
      queue_.erase(one);
    }
  }
  queue_.splice(queue_.end(), behind);
  return slices;
}

// Where memory runs out the others go on; who is not answered is told so when his time is over.
void BatchQueue::work() {
  constexpr std::chrono::milliseconds kPause(10);
  while (true) {
    try {
      std::vector<JobPointer> over;
      const std::vector<Slice> slices = take_slices(over);
      for (const JobPointer& job : over) give_up(job, Batcher::kTimeIsOver);
      if (!slices.empty()) {
        run(slices);
      } else if (over.empty()) {
        return;
      }
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

// Where rows of one job spoil a batch, all are run by themselves, so that the others are answered.
void BatchQueue::run(const std::vector<Slice>& slices) {
  AnswerData found;
  const auto start = std::chrono::steady_clock::now();
  try {
    std::vector<BatchData> rows;
    for (const Slice& one : slices) {
      rows.push_back(rows_of_slice(one.job->rows, one.first, one.count));
    }
    const BatchData all = internal::joined(rows);
    found = model_.answer(all, slices[0].job->levels);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    note_time(all.rows(), slices[0].job->levels.size(), time.count());
    if (options_.ran) options_.ran(model_, all.rows());
  } catch (const std::exception& problem) {
    if (slices.size() == 1) return give_up(slices[0].job, what_is_wrong(problem));
    for (const Slice& one : slices) run({one});
    return;
  }
  size_t first = 0;
  for (const Slice& one : slices) {
    try {
      answer(one, internal::part_of(found, first, one.count));
    } catch (const std::exception& problem) {
      give_up(one.job, what_is_wrong(problem));
    }
    first += one.count;
  }
}

void BatchQueue::answer(const Slice& slice, AnswerData part) {
  Job& job = *slice.job;
  part.regions.clear();
  job.answered.push_back(std::move(part));
  job.answered_rows += slice.count;
  if (slice.first + slice.count < job.rows.rows()) return;
  if (job.answered_rows != job.rows.rows()) fail("a part of the answer was lost");
  const AnswerData all = joined_answers(job.answered);
  if (const Batcher::Done done = std::exchange(job.done, nullptr)) done(&all, "");
}

void BatchQueue::give_up(const JobPointer& job, const std::string& error) {
  {
    const std::lock_guard lock(mutex_);
    queued_ -= job->left();
    job->taken = job->rows.rows();
    std::erase(queue_, job);
  }
  if (const Batcher::Done done = std::exchange(job->done, nullptr)) done(nullptr, error);
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

size_t Batcher::queued() const { return few_->queued() + many_->queued(); }

bool Batcher::is_full() const {
  return std::max(few_->queued(), many_->queued()) >= options_.queued_rows;
}

}  // namespace fcp

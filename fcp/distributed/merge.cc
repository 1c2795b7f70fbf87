#include "fcp/distributed/merge.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "fcp/distributed/selection.h"

namespace fcp {
namespace {

constexpr size_t kLongestRun = size_t{1} << 13;  // scores that are handed to the sink at once

void send_chunks(Communicator& ranks, std::span<const double> sorted, size_t chunk) {
  for (size_t begin = 0; begin < sorted.size(); begin += chunk) {
    const auto part = sorted.subspan(begin, std::min(chunk, sorted.size() - begin));
    ranks.send({reinterpret_cast<const char*>(part.data()), part.size_bytes()}, 0);
  }
  ranks.send({}, 0);  // an empty chunk says that there are no more
}

// The ascending scores of one rank as rank 0 sees them: the head of what is left.
class Stream {
 public:
  explicit Stream(std::vector<double> own) : chunk_(std::move(own)), rank_(0) {}
  Stream(Communicator& ranks, int rank) : rank_(rank) { refill(ranks); }

  bool empty() const { return next_ == chunk_.size(); }
  double head() const { return chunk_[next_]; }
  void pop(Communicator& ranks) {
    if (++next_ == chunk_.size() && rank_ != 0) refill(ranks);
  }

 private:
  void refill(Communicator& ranks) {
    std::string bytes;
    ranks.receive(bytes, rank_);
    chunk_.resize(bytes.size() / sizeof(double));
    if (!bytes.empty()) std::memcpy(chunk_.data(), bytes.data(), bytes.size());
    next_ = 0;
  }

  std::vector<double> chunk_;
  size_t next_ = 0;
  int rank_;
};

void merge_streams(Communicator& ranks, std::vector<Stream>& streams,
                   const std::function<void(std::span<const double>)>& sink) {
  std::vector<Stream*> heap;  // the stream with the smallest head first
  for (Stream& stream : streams) {
    if (!stream.empty()) heap.push_back(&stream);
  }
  const auto later = [](const Stream* a, const Stream* b) { return a->head() > b->head(); };
  std::make_heap(heap.begin(), heap.end(), later);
  std::vector<double> run;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Stream& smallest = *heap.back();
    run.push_back(smallest.head());
    smallest.pop(ranks);
    if (smallest.empty()) {
      heap.pop_back();
    } else {
      std::push_heap(heap.begin(), heap.end(), later);
    }
    if (run.size() == kLongestRun || heap.empty()) {
      sink(run);
      run.clear();
    }
  }
}

}  // namespace

void merge_sorted(Communicator& ranks, std::vector<double> scores,
                  const std::function<void(std::span<const double>)>& sink,
                  const MergeOptions& options) {
  check_scores(ranks, scores, options.first_row);
  for (double& score : scores) score += 0.0;  // −0.0 becomes 0.0
  std::sort(scores.begin(), scores.end());
  const size_t chunk =
      std::max<size_t>(1, options.buffer / sizeof(double) / static_cast<size_t>(ranks.size()));
  if (ranks.rank() != 0) return send_chunks(ranks, scores, chunk);
  std::vector<Stream> streams;
  streams.emplace_back(std::move(scores));
  for (int rank = 1; rank < ranks.size(); ++rank) streams.emplace_back(ranks, rank);
  merge_streams(ranks, streams, sink);
}

std::vector<double> gather_sorted(Communicator& ranks, std::vector<double> scores,
                                  const MergeOptions& options) {
  uint64_t total = scores.size();
  ranks.all_reduce(std::span(&total, 1), Reduce::kSum);
  std::vector<double> all;
  if (ranks.rank() == 0) all.reserve(total);
  merge_sorted(
      ranks, std::move(scores),
      [&](std::span<const double> run) { all.insert(all.end(), run.begin(), run.end()); }, options);
  return all;
}

}  // namespace fcp

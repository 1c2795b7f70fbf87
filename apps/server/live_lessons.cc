// What a LiveState learns: the truths of one caller, piece by piece. A piece is looked up in one
// transaction, judged outside of any, and written in another, where a truth that has come meanwhile
// from elsewhere makes it a duplicate.
#include <algorithm>
#include <map>
#include <utility>

#include "fcp/base/error.h"

#include "apps/server/live_state.h"
#include "apps/server/stored_answer.h"

namespace fcp {

struct LiveState::Lesson {
  std::string model;
  std::vector<TruthReport> truths;
  std::shared_ptr<Deadline> deadline;
  Learned done;
  std::vector<TruthResult> results{};  // of all
  size_t first = 0, last = 0;          // of the piece
  struct Found {
    size_t truth;  // its number
    StoredTruth stored;
    std::shared_ptr<const ServedModel> by;  // null: it is served no longer
    bool judged = false;
  };
  std::vector<Found> found{};  // predictions of the piece
};

bool LiveState::learn(std::string model, std::vector<TruthReport> truths,
                      std::shared_ptr<Deadline> deadline, Learned done) {
  const auto lesson = std::make_shared<Lesson>(
      Lesson{std::move(model), std::move(truths), std::move(deadline), std::move(done)});
  lesson->results.resize(lesson->truths.size());
  {
    const std::lock_guard lock(mutex_);
    ++lessons_;
  }
  if (put(look_up(lesson))) return true;
  const std::lock_guard lock(mutex_);
  --lessons_;
  return false;
}

// What has begun is not refused because much waits.
void LiveState::go_on(Task task) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void LiveState::go_on(const LessonPointer& lesson) {
  lesson->first = lesson->last;
  if (lesson->first == lesson->truths.size()) return end(lesson, "");
  if (ending_) return end(lesson, "the server is ending");
  const bool over = lesson->deadline != nullptr && lesson->deadline->is_over();
  if (over) return end(lesson, Batcher::kTimeIsOver);
  go_on(look_up(lesson));
}

void LiveState::end(const LessonPointer& lesson, const std::string& error) {
  lesson->done(lesson->results, error);
  {
    const std::lock_guard lock(mutex_);
    --lessons_;
  }
  wake_.notify_one();
}

LiveState::Task LiveState::look_up(const LessonPointer& lesson) {
  lesson->last = std::min(lesson->first + kRowsAtOnce, lesson->truths.size());
  Task task;
  task.rows = lesson->last - lesson->first;
  task.work = [this, lesson] {
    lesson->found.clear();
    for (size_t i = lesson->first; i < lesson->last; ++i) {
      const TruthReport& told = lesson->truths[i];
      TruthResult& result = lesson->results[i];
      if (store_->has_truth(lesson->model, told.id, told.row)) {
        result = {.status = "duplicate"};
        continue;
      }
      result = {.status = "unknown"};
      auto waiting = store_->find_waiting(lesson->model, told.id, told.row);
      if (!waiting) continue;
      auto by = served(lesson->model, waiting->sha256);
      if (by == nullptr && waiting->answer.empty()) {
        result.error = "the version that predicted is not served any more";
        continue;
      }
      StoredTruth stored{.prediction = std::move(*waiting), .truth = told.truth, .scores = {}};
      lesson->found.push_back({i, std::move(stored), std::move(by)});
    }
  };
  task.tell = [this, lesson](const std::string& error) {
    if (!error.empty()) return end(lesson, error);
    if (lesson->found.empty()) return go_on(lesson);
    judges_.put([this, lesson] {
      judge_piece(*lesson);
      go_on(write(lesson));
    });
  };
  return task;
}

void LiveState::judge_piece(Lesson& lesson) const {
  std::map<std::pair<const ServedModel*, double>, std::vector<size_t>> together;
  for (size_t i = 0; i < lesson.found.size(); ++i) {
    const Lesson::Found& one = lesson.found[i];
    together[{one.by.get(), one.stored.prediction.level}].push_back(i);
  }
  for (const auto& [key, which] : together) {
    if (key.first != nullptr) {
      judge_together(lesson, which);
    } else {
      for (const size_t i : which) judge_together(lesson, {i});
    }
  }
}

// Where one truth cannot be judged, all are judged by themselves, so that the others are.
void LiveState::judge_together(Lesson& lesson, const std::vector<size_t>& which) const {
  const Lesson::Found& first = lesson.found[which[0]];
  try {
    if (first.by == nullptr) {
      StoredTruth& stored = lesson.found[which[0]].stored;
      const AnswerJudgement judged = judge_by_answer(read_answer(stored.prediction.answer),
                                                     stored.truth, options_.monitor.level.value());
      stored.covered = judged.covered;
      stored.size = judged.size;
      stored.alpha = judged.alpha;
    } else {
      std::vector<StoredTruth*> truths;
      for (const size_t i : which) truths.push_back(&lesson.found[i].stored);
      for (const StoredTruth* one : truths) {
        const bool odd = one->truth.size() != first.stored.truth.size();
        if (odd) fail("truths of different lengths");
      }
      judge(*first.by, truths);
    }
    for (const size_t i : which) lesson.found[i].judged = true;
  } catch (const std::exception& error) {
    if (which.size() > 1) {
      for (const size_t i : which) judge_together(lesson, {i});
      return;
    }
    lesson.results[first.truth] = {.status = "wrong", .error = error.what()};
  }
}

LiveState::Task LiveState::write(const LessonPointer& lesson) {
  Task task;
  task.rows = lesson->found.size();
  task.work = [this, lesson] {
    for (Lesson::Found& one : lesson->found) {
      if (!one.judged) continue;
      TruthResult& result = lesson->results[one.truth];
      const WaitingPrediction& asked = one.stored.prediction;
      if (store_->has_truth(lesson->model, asked.id, asked.row)) {
        result = {.status = "duplicate"};
        continue;
      }
      one.stored.time = now_seconds();
      store_->add_truth(one.stored);
      result = {.status = "accepted", .covered = one.stored.covered};
      if (one.by != nullptr) result.p_value = one.stored.p_value;
    }
  };
  task.tell = [this, lesson](const std::string& error) {
    if (!error.empty()) return end(lesson, error);
    go_on(lesson);
  };
  return task;
}

}  // namespace fcp

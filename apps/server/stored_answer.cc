#include "apps/server/stored_answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "fcp/base/error.h"

namespace fcp {
namespace {

// Version, label, and how many levels, outputs and classes there are.
using Head = std::array<int64_t, 5>;

constexpr int64_t kMost = 1 << 28;  // numbers of one row

template <typename Number>
void append(std::string& bytes, const std::vector<Number>& numbers) {
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number));
}

template <typename Number>
std::vector<Number> taken(std::string_view& bytes, int64_t count) {
  const size_t size = static_cast<size_t>(count) * sizeof(Number);
  if (count < 0 || count > kMost || bytes.size() < size) fail("the stored answer is damaged");
  std::vector<Number> numbers(static_cast<size_t>(count));
  if (size > 0) std::memcpy(numbers.data(), bytes.data(), size);
  bytes.remove_prefix(size);
  return numbers;
}

size_t nearest_level(const StoredAnswer& answer, double wanted) {
  const auto found = std::min_element(
      answer.levels.begin(), answer.levels.end(),
      [&](double a, double b) { return std::abs(a - wanted) < std::abs(b - wanted); });
  return static_cast<size_t>(found - answer.levels.begin());
}

AnswerJudgement judge_set(const StoredAnswer& answer, const std::vector<float>& truth, size_t at) {
  const size_t classes = answer.members.size() / answer.levels.size();
  const float label = truth[0];
  const bool known =
      label >= 0 && label == std::floor(label) && label < static_cast<float>(classes);
  if (!known) fail("found the label ", label, ", expected a whole number below ", classes);
  const uint8_t* in = answer.members.data() + at * classes;
  return {
      .covered = in[static_cast<size_t>(label)] != 0,
      .size = static_cast<double>(std::count_if(in, in + classes, [](auto c) { return c != 0; })),
      .alpha = answer.levels[at]};
}

}  // namespace

std::string bytes_of(const StoredAnswer& answer) {
  const auto levels = std::max<size_t>(answer.levels.size(), 1);
  const Head head = {answer.version, answer.label, static_cast<int64_t>(answer.levels.size()),
                     static_cast<int64_t>(answer.prediction.size()),
                     static_cast<int64_t>(answer.members.size() / levels)};
  std::string bytes(reinterpret_cast<const char*>(head.data()), sizeof head);
  append(bytes, answer.levels);
  append(bytes, answer.prediction);
  append(bytes, answer.lower);
  append(bytes, answer.upper);
  append(bytes, answer.members);
  return bytes;
}

StoredAnswer read_answer(std::string_view bytes) {
  const std::vector<int64_t> head = taken<int64_t>(bytes, 5);
  const int64_t levels = head[2], outputs = head[3], classes = head[4];
  for (const int64_t count : {levels, outputs, classes}) {
    if (count < 0 || count > kMost) fail("the stored answer is damaged");
  }
  StoredAnswer answer{.version = head[0], .levels = taken<double>(bytes, levels), .label = head[1]};
  answer.prediction = taken<float>(bytes, outputs);
  answer.lower = taken<float>(bytes, levels * outputs);
  answer.upper = taken<float>(bytes, levels * outputs);
  answer.members = taken<uint8_t>(bytes, levels * classes);
  if (!bytes.empty() || levels == 0) fail("the stored answer is damaged");
  return answer;
}

AnswerJudgement judge_by_answer(const StoredAnswer& answer, const std::vector<float>& truth,
                                double wanted) {
  const size_t outputs = answer.members.empty() ? answer.prediction.size() : 1;
  if (truth.size() != outputs) {
    fail("found ", truth.size(), " numbers of truth, expected ", outputs);
  }
  const size_t at = nearest_level(answer, wanted);
  if (!answer.members.empty()) return judge_set(answer, truth, at);
  AnswerJudgement judged{.covered = true, .size = 0, .alpha = answer.levels[at]};
  for (size_t k = 0; k < outputs; ++k) {
    const float lower = answer.lower[at * outputs + k], upper = answer.upper[at * outputs + k];
    judged.covered = judged.covered && lower <= truth[k] && truth[k] <= upper;
    if (lower < upper) judged.size += static_cast<double>(upper) - static_cast<double>(lower);
  }
  judged.size /= static_cast<double>(outputs);
  return judged;
}

}  // namespace fcp

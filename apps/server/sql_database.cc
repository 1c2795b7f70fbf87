#include "apps/server/sql_database.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr int64_t kSchema = 4;

// x: a row; part: its group; level: the adapted one of the answer; alpha: of `covered` and `size`;
// place: of the row, by which localized draws; answer: of the row, as sql_database.h has it.
std::string tables_in(const SqlWords& words) {
  const std::string key = concat("seq ", words.serial,
                                 ", model TEXT NOT NULL, id TEXT NOT NULL, line BIGINT NOT NULL, "
                                 "sha256 TEXT NOT NULL, asked DOUBLE PRECISION NOT NULL, part "
                                 "BIGINT NOT NULL, x ",
                                 words.bytes, " NOT NULL, level DOUBLE PRECISION NOT NULL, ");
  return concat(
      "CREATE TABLE fcp_waiting (", key, "UNIQUE (model, id, line));", "CREATE TABLE fcp_truths (",
      key, "time DOUBLE PRECISION NOT NULL, truth ", words.bytes, " NOT NULL, scores ", words.bytes,
      " NOT NULL, p_value DOUBLE PRECISION NOT NULL, covered BIGINT NOT NULL, size DOUBLE "
      "PRECISION NOT NULL, adapted_size DOUBLE PRECISION NOT NULL, UNIQUE (model, id, line));",
      "CREATE INDEX fcp_truths_of ON fcp_truths (model, sha256, seq);",
      "CREATE TABLE fcp_levels (model TEXT NOT NULL, sha256 TEXT NOT NULL, method TEXT NOT NULL, "
      "target DOUBLE PRECISION NOT NULL, level DOUBLE PRECISION NOT NULL, seq BIGINT NOT NULL, "
      "state ",
      words.bytes, " NOT NULL, PRIMARY KEY (model, sha256, method, target));");
}

// From version 1. What level its truths were judged at is not known: 0.
std::string second_version_in(const SqlWords& words) {
  return concat(
      "ALTER TABLE fcp_truths ADD COLUMN alpha DOUBLE PRECISION NOT NULL DEFAULT 0;",
      "CREATE TABLE fcp_monitors (model TEXT NOT NULL, sha256 TEXT NOT NULL, options TEXT NOT "
      "NULL, seq BIGINT NOT NULL, state ",
      words.bytes, " NOT NULL, PRIMARY KEY (model, sha256, options));",
      "CREATE TABLE fcp_schema (version BIGINT NOT NULL); INSERT INTO fcp_schema VALUES (2)");
}

// From version 2, where localized drew by the place of a row in its request.
std::string third_version() {
  return "ALTER TABLE fcp_waiting ADD COLUMN place BIGINT NOT NULL DEFAULT 0;"
         "ALTER TABLE fcp_truths ADD COLUMN place BIGINT NOT NULL DEFAULT 0;"
         "UPDATE fcp_waiting SET place = line; UPDATE fcp_truths SET place = line;"
         "UPDATE fcp_schema SET version = 3";
}

// From version 3, which kept no answers: empty.
std::string fourth_version_in(const SqlWords& words) {
  return concat("ALTER TABLE fcp_waiting ADD COLUMN answer ", words.bytes, " NOT NULL DEFAULT '';",
                "ALTER TABLE fcp_truths ADD COLUMN answer ", words.bytes, " NOT NULL DEFAULT '';",
                "UPDATE fcp_schema SET version = 4");
}

// 0: there are no tables.
int64_t version_of(SqlDatabase& database) {
  if (!database.has_table("fcp_schema")) return database.has_table("fcp_truths") ? 1 : 0;
  const auto asked = database.prepare("SELECT version FROM fcp_schema");
  const int64_t version = asked->start().step() ? asked->integer(0) : 0;
  asked->end();
  return version;
}

[[noreturn]] void fail_schema(const SqlDatabase& database, const std::string& found) {
  fail(database.name(), ": ", found, ", this one reads version ", kSchema,
       "; give another folder or database as the state, or use the fcp that made it");
}

int64_t known_version(SqlDatabase& database) {
  const int64_t version = version_of(database);
  if (version > kSchema) {
    fail_schema(database, concat("a newer fcp has made its tables, version ", version));
  }
  return version;
}

}  // namespace

void make_schema(SqlDatabase& database) {
  database.begin();
  const int64_t version = known_version(database);
  const bool is_oldest = !database.is_shared() && version == 0 && database.has_table("truths") &&
                         database.has_table("waiting");
  if (is_oldest) fail_schema(database, "an older fcp has made its tables");
  if (version < 1) database.execute(tables_in(database.words()));
  if (version < 2) database.execute(second_version_in(database.words()));
  if (version < 3) database.execute(third_version());
  if (version < 4) database.execute(fourth_version_in(database.words()));
  database.commit();
}

void check_schema(SqlDatabase& database) {
  const int64_t version = known_version(database);
  if (version == 0) fail_schema(database, "found no tables of a server");
  if (version < kSchema) {
    fail(database.name(), ": an older fcp has made its tables; fcp serve brings them up to date");
  }
}

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

// A database as the feedback store uses it: transactions, and statements that are prepared once and
// run many times. There are two, SQLite in a folder and PostgreSQL, and one way to write statements
// for both: parameters are $1, $2, … in their order, integers BIGINT, numbers DOUBLE PRECISION; the
// words that differ are SqlWords.
// Tested by tests/server/feedback_store_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fcp {

class SqlStatement {
 public:
  virtual ~SqlStatement() = default;

  // Ends an earlier run. The parameters are then put in their order.
  virtual SqlStatement& start() = 0;
  virtual SqlStatement& put(const std::string& text) = 0;
  virtual SqlStatement& put(int64_t number) = 0;
  virtual SqlStatement& put(double number) = 0;
  virtual SqlStatement& put_bytes(std::string_view bytes) = 0;

  // Whether there is a row; the columns are those of the row until the next step.
  virtual bool step() = 0;
  virtual std::string text(int column) const = 0;
  virtual int64_t integer(int column) const = 0;
  virtual double number(int column) const = 0;
  virtual std::string_view bytes(int column) const = 0;
  // No more rows are wanted.
  virtual void end() = 0;

  void run() {
    while (step()) {
    }
    end();
  }

  // Numbers as this machine has them; servers that share a database are of one kind.
  template <typename Number>
  SqlStatement& put_numbers(const std::vector<Number>& numbers) {
    return put_bytes(
        {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)});
  }
  template <typename Number>
  std::vector<Number> numbers(int column) const {
    const std::string_view found = bytes(column);
    std::vector<Number> values(found.size() / sizeof(Number));
    if (!values.empty()) {
      std::memcpy(values.data(), found.data(), values.size() * sizeof(Number));
    }
    return values;
  }
};

struct SqlWords {
  const char* serial;  // a key that only grows
  const char* bytes;
};

class SqlDatabase {
 public:
  virtual ~SqlDatabase() = default;
  virtual std::string name() const = 0;  // for messages: the file, or "postgresql"
  virtual SqlWords words() const = 0;
  // Whether other servers may write to it meanwhile. Their transactions and ours come one after the
  // other, so that serial keys grow in the order in which they can be seen.
  virtual bool is_shared() const = 0;

  virtual bool has_table(const std::string& name) = 0;
  virtual void execute(const std::string& text) = 0;
  virtual std::unique_ptr<SqlStatement> prepare(const std::string& text) = 0;

  // Connects again where the connection was lost.
  virtual void begin() = 0;
  virtual void commit() = 0;
  // Nothing where there is no transaction.
  virtual void undo() = 0;
};

// feedback.db in a folder, in WAL mode with full synchronisation. exclusive: the folder is made
// where there is none, and refused where another has it; otherwise it must be there. An Error where
// fcp was built without SQLite.
std::unique_ptr<SqlDatabase> open_sqlite(const std::string& folder, bool exclusive);

// A connection string as libpq takes it. An Error where fcp was built without libpq.
std::unique_ptr<SqlDatabase> open_postgresql(const std::string& url);

// The tables of a feedback store, and what becomes of those that another version of fcp has made.
//
// `fcp_schema` names the version of the tables. Version 1 had no such table; earlier versions are
// brought up to date where a server opens them, and their truths are kept. What came before, and
// what a newer fcp
// has made, is refused in one line.
// Tested by tests/server/feedback_store_test.cc.

// Makes the tables, or brings them up to date, in one transaction.
void make_schema(SqlDatabase& database);

// An Error where the tables are not those of this version.
void check_schema(SqlDatabase& database);

// The answer of one row, as its client was given it and as it is kept beside the prediction: by it
// a truth is judged when the version that predicted is served no longer, and a request that comes
// again is answered as before.
// Tested by tests/server/sql_database_test.cc.

struct StoredAnswer {
  int64_t version = 0;                  // of the file that predicted
  std::vector<double> levels{};         // in the order of the request
  int64_t label = 0;                    // of sets
  std::vector<float> prediction{};      // of intervals, one per output
  std::vector<float> lower{}, upper{};  // level by level, one per output
  std::vector<uint8_t> members{};       // level by level, one per class
};

// Numbers as this machine has them, as in the rest of the store.
std::string bytes_of(const StoredAnswer& answer);
// An Error where the bytes are not such an answer.
StoredAnswer read_answer(std::string_view bytes);

// What an answer alone tells about its truth: neither a score nor a p-value. Of several levels the
// one nearest to `wanted` counts; of a union of intervals, its ends.
struct AnswerJudgement {
  bool covered = false;
  double size = 0;
  double alpha = 0;  // the level that counts
};
// An Error where the truth has other outputs, or is none of the labels.
AnswerJudgement judge_by_answer(const StoredAnswer& answer, const std::vector<float>& truth,
                                double wanted);

}  // namespace fcp

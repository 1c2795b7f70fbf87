#include "fcp/serving/feedback_store.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr char kSchema[] =
    "CREATE TABLE IF NOT EXISTS waiting (seq INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT "
    "NULL, id TEXT NOT NULL, line INTEGER NOT NULL, sha256 TEXT NOT NULL, time REAL NOT NULL, "
    "part INTEGER NOT NULL, x BLOB NOT NULL, UNIQUE (model, id, line));"
    "CREATE TABLE IF NOT EXISTS truths (seq INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT "
    "NULL, id TEXT NOT NULL, line INTEGER NOT NULL, sha256 TEXT NOT NULL, asked REAL NOT NULL, "
    "part INTEGER NOT NULL, x BLOB NOT NULL, time REAL NOT NULL, truth BLOB NOT NULL, scores BLOB "
    "NOT NULL, p_value REAL NOT NULL, covered INTEGER NOT NULL, size REAL NOT NULL, UNIQUE (model, "
    "id, line));"
    "CREATE INDEX IF NOT EXISTS truths_of ON truths (model, sha256, seq);";

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};

struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

// A statement that is prepared once and run many times.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& file, const char* text)
      : database_(database), file_(file) {
    sqlite3_stmt* made = nullptr;
    const int code = sqlite3_prepare_v3(database, text, -1, SQLITE_PREPARE_PERSISTENT, &made, {});
    statement_.reset(made);
    if (code != SQLITE_OK) complain();
  }

  Statement& start() {
    sqlite3_reset(statement_.get());
    next_ = 1;
    return *this;
  }
  Statement& put(const std::string& text) {
    return bound(sqlite3_bind_text(statement_.get(), next_++, text.data(),
                                   static_cast<int>(text.size()), SQLITE_TRANSIENT));
  }
  Statement& put(int64_t number) {
    return bound(sqlite3_bind_int64(statement_.get(), next_++, number));
  }
  Statement& put(double number) {
    return bound(sqlite3_bind_double(statement_.get(), next_++, number));
  }
  template <typename Number>
  Statement& put(const std::vector<Number>& numbers) {
    static constexpr char kNothing = 0;  // an empty blob must not be NULL
    const void* data = numbers.empty() ? static_cast<const void*>(&kNothing) : numbers.data();
    return bound(sqlite3_bind_blob64(statement_.get(), next_++, data,
                                     numbers.size() * sizeof(Number), SQLITE_TRANSIENT));
  }

  // Whether there is a row.
  bool step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) complain();
    return false;
  }
  void run() {
    while (step()) {
    }
    sqlite3_reset(statement_.get());
  }
  void end() { sqlite3_reset(statement_.get()); }

  std::string text(int column) const {
    const auto* bytes =
        reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    return bytes == nullptr ? "" : bytes;
  }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  double number(int column) const { return sqlite3_column_double(statement_.get(), column); }
  template <typename Number>
  std::vector<Number> numbers(int column) const {
    const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
    std::vector<Number> values(size / sizeof(Number));
    if (!values.empty()) {
      std::memcpy(values.data(), sqlite3_column_blob(statement_.get(), column),
                  values.size() * sizeof(Number));
    }
    return values;
  }

 private:
  Statement& bound(int code) {
    if (code != SQLITE_OK) complain();
    return *this;
  }
  [[noreturn]] void complain() const {
    const std::string why = sqlite3_errmsg(database_);
    if (statement_) sqlite3_reset(statement_.get());
    fail(file_, ": ", why);
  }

  sqlite3* database_;
  const std::string& file_;
  std::unique_ptr<sqlite3_stmt, EndStatement> statement_;
  int next_ = 1;
};

class SqliteStore : public FeedbackStore {
 public:
  SqliteStore(const std::string& folder, const StoreLimits& limits) : limits_(limits) {
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      fail(folder, ": cannot be made: ", std::strerror(errno));
    }
    file_ = folder + "/feedback.db";
    lock(folder);
    sqlite3* opened = nullptr;
    const int code = sqlite3_open(file_.c_str(), &opened);
    database_.reset(opened);
    if (code != SQLITE_OK) fail(file_, ": ", sqlite3_errmsg(opened));
    sqlite3_busy_timeout(opened, 10'000);
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = FULL");
    execute(kSchema);
    prepare();
  }

  ~SqliteStore() override {
    if (lock_ >= 0) ::close(lock_);
  }

  void begin() override { execute("BEGIN IMMEDIATE"); }

  void commit() override {
    forget_old("waiting", limits_.waiting);
    forget_old("truths", limits_.truths);
    execute("COMMIT");
  }

  void undo() override {
    if (sqlite3_get_autocommit(database_.get()) == 0) execute("ROLLBACK");
  }

  bool add_waiting(const WaitingPrediction& one) override {
    if (has_truth(one.model, one.id, one.row)) return false;
    add_waiting_->start().put(one.model).put(one.id).put(one.row).put(one.sha256);
    add_waiting_->put(one.time).put(one.group).put(one.x).run();
    return sqlite3_changes(database_.get()) > 0;
  }

  std::optional<WaitingPrediction> find_waiting(const std::string& model, const std::string& id,
                                                int64_t row) override {
    Statement& found = find_waiting_->start().put(model).put(id).put(row);
    if (!found.step()) return std::nullopt;
    WaitingPrediction one{
        model, id, row, found.text(0), found.number(1), found.integer(2), found.numbers<float>(3)};
    found.end();
    return one;
  }

  bool has_truth(const std::string& model, const std::string& id, int64_t row) override {
    Statement& found = has_truth_->start().put(model).put(id).put(row);
    const bool there = found.step();
    found.end();
    return there;
  }

  void add_truth(const StoredTruth& one) override {
    const WaitingPrediction& asked = one.prediction;
    add_truth_->start().put(asked.model).put(asked.id).put(asked.row).put(asked.sha256);
    add_truth_->put(asked.time).put(asked.group).put(asked.x).put(one.time).put(one.truth);
    add_truth_->put(one.scores).put(one.p_value).put(int64_t{one.covered}).put(one.size).run();
    end_waiting_->start().put(asked.model).put(asked.id).put(asked.row).run();
  }

  void each_truth(const std::string& model, const std::string& sha256,
                  const std::function<void(const StoredTruth&)>& take) override {
    Statement& found = each_truth_->start().put(model).put(sha256);
    while (found.step()) {
      StoredTruth one;
      one.prediction = {model,           found.text(0),    found.integer(1),       sha256,
                        found.number(2), found.integer(3), found.numbers<float>(4)};
      one.time = found.number(5);
      one.truth = found.numbers<float>(6);
      one.scores = found.numbers<double>(7);
      one.p_value = found.number(8);
      one.covered = found.integer(9) != 0;
      one.size = found.number(10);
      take(one);
    }
    found.end();
  }

  size_t waiting() override { return count("SELECT COUNT(*) FROM waiting"); }
  size_t truths() override { return count("SELECT COUNT(*) FROM truths"); }

 private:
  // Two servers on one folder would each miss what the other has seen.
  void lock(const std::string& folder) {
    lock_ = ::open((folder + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (lock_ < 0) fail(folder, ": cannot be written");
    if (flock(lock_, LOCK_EX | LOCK_NB) != 0) fail(folder, ": another server is using it");
  }

  void execute(const char* text) {
    char* message = nullptr;
    if (sqlite3_exec(database_.get(), text, nullptr, nullptr, &message) == SQLITE_OK) return;
    const std::string why = message == nullptr ? "unknown" : message;
    sqlite3_free(message);
    fail(file_, ": ", why);
  }

  void prepare() {
    const auto make = [this](const char* text) {
      return std::make_unique<Statement>(database_.get(), file_, text);
    };
    add_waiting_ = make(
        "INSERT OR IGNORE INTO waiting (model, id, line, sha256, time, part, x) VALUES (?, ?, ?, "
        "?, ?, ?, ?)");
    find_waiting_ =
        make("SELECT sha256, time, part, x FROM waiting WHERE model = ? AND id = ? AND line = ?");
    end_waiting_ = make("DELETE FROM waiting WHERE model = ? AND id = ? AND line = ?");
    has_truth_ = make("SELECT 1 FROM truths WHERE model = ? AND id = ? AND line = ?");
    add_truth_ = make(
        "INSERT INTO truths (model, id, line, sha256, asked, part, x, time, truth, scores, "
        "p_value, covered, size) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    each_truth_ = make(
        "SELECT id, line, asked, part, x, time, truth, scores, p_value, covered, size FROM truths "
        "WHERE model = ? AND sha256 = ? ORDER BY seq");
  }

  // By their numbers, which only grow.
  void forget_old(const char* table, size_t most) {
    execute(
        concat("DELETE FROM ", table, " WHERE seq <= (SELECT MAX(seq) FROM ", table, ") - ", most)
            .c_str());
  }

  size_t count(const char* text) {
    Statement statement(database_.get(), file_, text);
    statement.start().step();
    return static_cast<size_t>(statement.integer(0));
  }

  StoreLimits limits_;
  std::string file_;
  int lock_ = -1;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  std::unique_ptr<Statement> add_waiting_, find_waiting_, end_waiting_, has_truth_, add_truth_,
      each_truth_;
};

}  // namespace

std::unique_ptr<FeedbackStore> open_feedback_store(const std::string& folder,
                                                   const StoreLimits& limits) {
  return std::make_unique<SqliteStore>(folder, limits);
}

}  // namespace fcp

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fcp/base/error.h"

#include "apps/server/sql_database.h"

namespace fcp {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};

struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class SqliteStatement : public SqlStatement {
 public:
  SqliteStatement(sqlite3* database, const std::string& file, const std::string& text)
      : database_(database), file_(file) {
    sqlite3_stmt* made = nullptr;
    const int code =
        sqlite3_prepare_v3(database, text.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr);
    statement_.reset(made);
    if (code != SQLITE_OK) complain();
  }

  SqlStatement& start() override {
    sqlite3_reset(statement_.get());
    next_ = 1;
    return *this;
  }
  SqlStatement& put(const std::string& text) override {
    return bound(sqlite3_bind_text(statement_.get(), next_++, text.data(),
                                   static_cast<int>(text.size()), SQLITE_TRANSIENT));
  }
  SqlStatement& put(int64_t number) override {
    return bound(sqlite3_bind_int64(statement_.get(), next_++, number));
  }
  SqlStatement& put(double number) override {
    return bound(sqlite3_bind_double(statement_.get(), next_++, number));
  }
  SqlStatement& put_bytes(std::string_view bytes) override {
    const char* data = bytes.empty() ? "" : bytes.data();  // an empty blob must not be NULL
    return bound(
        sqlite3_bind_blob64(statement_.get(), next_++, data, bytes.size(), SQLITE_TRANSIENT));
  }

  bool step() override {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) complain();
    return false;
  }
  std::string text(int column) const override { return std::string(bytes(column)); }
  int64_t integer(int column) const override {
    return sqlite3_column_int64(statement_.get(), column);
  }
  double number(int column) const override {
    return sqlite3_column_double(statement_.get(), column);
  }
  std::string_view bytes(int column) const override {
    const void* data = sqlite3_column_blob(statement_.get(), column);
    const int size = sqlite3_column_bytes(statement_.get(), column);
    return {static_cast<const char*>(data), static_cast<size_t>(size)};
  }
  void end() override { sqlite3_reset(statement_.get()); }

 private:
  SqlStatement& bound(int code) {
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

// A file that its owner alone can read, also where it was there before. −1, with errno, where it
// cannot be opened.
int open_private(const std::string& path, bool make = true) {
  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0);
  const int file = ::open(path.c_str(), flags, 0600);
  if (file >= 0) fchmod(file, 0600);  // of another owner's file it fails, and that owner decides
  return file;
}

// A folder that was there before is closed to others where it holds nothing but the state; what
// else people keep in a folder may be for others.
void close_folder(const std::string& folder) {
  const std::set<std::string> own = {"lock", "feedback.db", "feedback.db-wal", "feedback.db-shm"};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!own.contains(entry.path().filename().string())) return;
  }
  if (!error) chmod(folder.c_str(), 0700);
}

class SqliteDatabase : public SqlDatabase {
 public:
  SqliteDatabase(const std::string& folder, bool exclusive) : file_(folder + "/feedback.db") {
    if (exclusive) {
      lock(folder);
    } else if (access(file_.c_str(), R_OK) != 0) {
      fail(file_, ": cannot be read: ", std::strerror(errno));
    }
    sqlite3* opened = nullptr;
    const int code = sqlite3_open(file_.c_str(), &opened);
    database_.reset(opened);
    if (code != SQLITE_OK) fail(file_, ": ", sqlite3_errmsg(opened));
    sqlite3_busy_timeout(opened, 10'000);
    if (!exclusive) return;
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = FULL");
    // A log of 1 MiB instead of 4: what fills a small disk is then the data, and not a log that
    // can no longer be emptied because the database has no room to grow.
    execute("PRAGMA wal_autocheckpoint = 256");
  }
  ~SqliteDatabase() override {
    if (lock_ >= 0) ::close(lock_);
  }
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  std::string name() const override { return file_; }
  SqlWords words() const override { return {"INTEGER PRIMARY KEY AUTOINCREMENT", "BLOB"}; }
  bool is_shared() const override { return false; }

  bool has_table(const std::string& name) override {
    const auto asked = prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name = $1");
    const bool found = asked->start().put(name).step();
    asked->end();
    return found;
  }
  void execute(const std::string& text) override {
    char* message = nullptr;
    if (sqlite3_exec(database_.get(), text.c_str(), nullptr, nullptr, &message) == SQLITE_OK) {
      return;
    }
    const std::string why = message == nullptr ? "unknown" : message;
    sqlite3_free(message);
    fail(file_, ": ", why);
  }
  std::unique_ptr<SqlStatement> prepare(const std::string& text) override {
    return std::make_unique<SqliteStatement>(database_.get(), file_, text);
  }

  void begin() override { execute("BEGIN IMMEDIATE"); }
  void commit() override { execute("COMMIT"); }
  void undo() override {
    if (sqlite3_get_autocommit(database_.get()) == 0) execute("ROLLBACK");
  }

 private:
  // Two servers on one folder would each miss what the other has seen.
  void lock(const std::string& folder) {
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      fail(folder, ": cannot be made: ", std::strerror(errno));
    }
    lock_ = open_private(folder + "/lock");
    if (lock_ < 0) fail(folder, ": cannot be written: ", std::strerror(errno));
    if (flock(lock_, LOCK_EX | LOCK_NB) != 0) fail(folder, ": another server is using it");
    // SQLite gives a new database what the umask leaves, and its log the permissions of the
    // database.
    const int database = open_private(file_);
    if (database < 0) fail(file_, ": cannot be written: ", std::strerror(errno));
    ::close(database);
    for (const char* end : {"-wal", "-shm"}) {
      const int log = open_private(file_ + end, /*make=*/false);
      if (log >= 0) ::close(log);
    }
    close_folder(folder);
  }

  std::string file_;
  int lock_ = -1;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
};

}  // namespace

std::unique_ptr<SqlDatabase> open_sqlite(const std::string& folder, bool exclusive) {
  return std::make_unique<SqliteDatabase>(folder, exclusive);
}

}  // namespace fcp

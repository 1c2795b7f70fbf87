// PostgreSQL by libpq. Parameters and columns travel in binary: integers and doubles as eight
// bytes, the most significant first. Rows are fetched one by one, so that a long answer needs no
// memory.
//
// Nobody waits for ever: a database that does not answer in time is given up, as if the connection
// had been lost. A lost connection is an Error for whatever is being done; begin() connects again.
// Whether a transaction whose commit() failed was kept is then unknown, and whoever is told so must
// ask.
#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>

#include <libpq-fe.h>
#include <poll.h>

#include "fcp/base/error.h"

#include "apps/server/sql_database.h"

namespace fcp {
namespace {

constexpr std::chrono::seconds kLongestAnswer(10);

struct CloseConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPointer = std::unique_ptr<PGresult, ClearResult>;

// Its first line, which has no password in it.
[[noreturn]] void fail_postgresql(const char* message) {
  std::string why = message == nullptr ? "" : message;
  why = why.substr(0, why.find('\n'));
  fail("postgresql: ", why.empty() ? "the connection was lost" : why);
}

std::string network_order(uint64_t bits) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>((bits >> shift) & 255);
  return bytes;
}

uint64_t from_network_order(std::string_view bytes) {
  uint64_t bits = 0;
  for (const char byte : bytes) bits = bits << 8 | static_cast<unsigned char>(byte);
  return bits;
}

// The connection, and how often it was made: statements must be prepared anew after each.
class PostgresqlConnection {
 public:
  explicit PostgresqlConnection(std::string url) : url_(std::move(url)) { connect(); }

  size_t made() const { return made_; }
  PGconn* handle() const { return handle_.get(); }
  bool is_lost() const { return PQstatus(handle()) != CONNECTION_OK; }

  // Where that fails the connection is lost.
  void connect() {
    // What the connection string says wins: it comes last.
    const char* names[] = {"connect_timeout", "tcp_user_timeout", "application_name", "dbname",
                           nullptr};
    const char* values[] = {"5", "10000", "fcp", url_.c_str(), nullptr};
    handle_.reset(PQconnectdbParams(names, values, /*expand_dbname=*/1));
    if (is_lost()) fail_postgresql(PQerrorMessage(handle()));
    PQsetNoticeProcessor(
        handle(), [](void*, const char*) {}, nullptr);
    PQsetnonblocking(handle(), 1);
    ++made_;
  }

  // The next result of what was sent; null after the last.
  ResultPointer next_result() {
    const auto until = std::chrono::steady_clock::now() + kLongestAnswer;
    while (true) {
      const int unsent = PQflush(handle());
      if (unsent < 0) fail_postgresql(PQerrorMessage(handle()));
      if (unsent == 0 && PQisBusy(handle()) == 0) return ResultPointer(PQgetResult(handle()));
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      pollfd waiting{PQsocket(handle()), static_cast<short>(POLLIN | (unsent > 0 ? POLLOUT : 0)),
                     0};
      if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) == 0) {
        handle_.reset();
        fail("postgresql: no answer for ", kLongestAnswer.count(), " s");
      }
      if ((waiting.revents & ~POLLOUT) != 0 && PQconsumeInput(handle()) == 0) {
        fail_postgresql(PQerrorMessage(handle()));
      }
    }
  }

  // `sent`: what a PQsend… function returned. An Error where any result is one.
  void finish(int sent) {
    if (sent == 0) fail_postgresql(PQerrorMessage(handle()));
    std::string problem;
    while (const ResultPointer result = next_result()) {
      const ExecStatusType status = PQresultStatus(result.get());
      const bool done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
      if (!done && problem.empty()) problem = PQresultErrorMessage(result.get());
    }
    if (!problem.empty()) fail_postgresql(problem.c_str());
  }

  void execute(const std::string& text) { finish(PQsendQuery(handle(), text.c_str())); }

 private:
  std::string url_;
  std::unique_ptr<PGconn, CloseConnection> handle_;
  size_t made_ = 0;
};

class PostgresqlStatement : public SqlStatement {
 public:
  PostgresqlStatement(PostgresqlConnection& connection, std::string name, std::string text)
      : connection_(connection), name_(std::move(name)), text_(std::move(text)) {
    prepare();
  }

  SqlStatement& start() override {
    end();
    if (prepared_ != connection_.made()) prepare();
    values_.clear();
    sent_ = false;
    return *this;
  }
  SqlStatement& put(const std::string& text) override { return put_bytes(text); }
  SqlStatement& put(int64_t number) override {
    return put_bytes(network_order(static_cast<uint64_t>(number)));
  }
  SqlStatement& put(double number) override {
    return put_bytes(network_order(std::bit_cast<uint64_t>(number)));
  }
  SqlStatement& put_bytes(std::string_view bytes) override {
    values_.emplace_back(bytes);
    return *this;
  }

  bool step() override {
    if (!sent_) send();
    if (!running_) return false;
    fetch();
    if (row_ == nullptr) return false;
    const ExecStatusType status = PQresultStatus(row_.get());
    if (status == PGRES_SINGLE_TUPLE) return true;
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      const std::string why = PQresultErrorMessage(row_.get());
      end();
      fail_postgresql(why.c_str());
    }
    end();
    return false;
  }
  std::string text(int column) const override { return std::string(bytes(column)); }
  int64_t integer(int column) const override {
    return static_cast<int64_t>(from_network_order(bytes(column)));
  }
  double number(int column) const override {
    return std::bit_cast<double>(from_network_order(bytes(column)));
  }
  std::string_view bytes(int column) const override {
    return {PQgetvalue(row_.get(), 0, column),
            static_cast<size_t>(PQgetlength(row_.get(), 0, column))};
  }
  void end() override {
    while (running_) fetch();
  }

 private:
  PGconn* handle() const { return connection_.handle(); }

  void prepare() {
    connection_.finish(PQsendPrepare(handle(), name_.c_str(), text_.c_str(), 0, nullptr));
    prepared_ = connection_.made();
  }

  // Where there is no answer, nothing runs any more.
  void fetch() {
    row_.reset();
    running_ = false;
    row_ = connection_.next_result();
    running_ = row_ != nullptr;
  }

  void send() {
    std::vector<const char*> data;
    std::vector<int> lengths;
    for (const std::string& value : values_) {
      data.push_back(value.data());
      lengths.push_back(static_cast<int>(value.size()));
    }
    const std::vector<int> binary(values_.size(), 1);
    sent_ = true;
    if (PQsendQueryPrepared(handle(), name_.c_str(), static_cast<int>(values_.size()), data.data(),
                            lengths.data(), binary.data(), 1) == 0) {
      fail_postgresql(PQerrorMessage(handle()));
    }
    PQsetSingleRowMode(handle());
    running_ = true;
  }

  PostgresqlConnection& connection_;
  std::string name_, text_;
  size_t prepared_ = 0;
  std::vector<std::string> values_;
  bool sent_ = false;
  bool running_ = false;
  ResultPointer row_;
};

class PostgresqlDatabase : public SqlDatabase {
 public:
  explicit PostgresqlDatabase(const std::string& url) : connection_(url) {
    set_session();
    const char* encoding = PQparameterStatus(connection_.handle(), "server_encoding");
    if (encoding == nullptr || std::string_view(encoding) != "UTF8") {
      fail("postgresql: found a database in ", encoding == nullptr ? "an unknown" : encoding,
           " encoding, expected UTF8");
    }
  }

  std::string name() const override { return "postgresql"; }
  SqlWords words() const override { return {"BIGSERIAL PRIMARY KEY", "BYTEA"}; }
  bool is_shared() const override { return true; }

  bool has_table(const std::string& name) override {
    const auto asked = prepare("SELECT 1 WHERE to_regclass($1) IS NOT NULL");
    const bool found = asked->start().put(name).step();
    asked->end();
    return found;
  }
  void execute(const std::string& text) override { connection_.execute(text); }
  std::unique_ptr<SqlStatement> prepare(const std::string& text) override {
    return std::make_unique<PostgresqlStatement>(connection_, concat("fcp_", statements_++), text);
  }

  void begin() override {
    if (!connection_.is_lost()) {
      try {
        return start_transaction();
      } catch (const Error&) {
        if (!connection_.is_lost()) throw;
      }
    }
    connection_.connect();
    set_session();
    start_transaction();
  }
  // COMMIT of a transaction that failed is answered ROLLBACK, without an error.
  void commit() override {
    if (PQtransactionStatus(connection_.handle()) != PQTRANS_INTRANS) {
      fail_postgresql("the transaction failed");
    }
    execute("COMMIT");
  }
  void undo() override {
    if (!connection_.is_lost()) execute("ROLLBACK");
  }

 private:
  // Durable whatever the server's default is; and nobody waits for ever, nor makes others wait.
  void set_session() {
    execute(
        "SET client_encoding = 'UTF8'; SET synchronous_commit = on; SET statement_timeout = 10000; "
        "SET idle_in_transaction_session_timeout = 30000; SET client_min_messages = warning");
  }

  void start_transaction() {
    execute("BEGIN");
    execute("SELECT pg_advisory_xact_lock(6710128)");  // one at a time: "fcp" in ASCII
  }

  PostgresqlConnection connection_;
  size_t statements_ = 0;
};

}  // namespace

std::unique_ptr<SqlDatabase> open_postgresql(const std::string& url) {
  return std::make_unique<PostgresqlDatabase>(url);
}

}  // namespace fcp

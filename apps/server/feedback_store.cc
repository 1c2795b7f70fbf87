#include "apps/server/feedback_store.h"

#include "fcp/base/error.h"

#include "apps/server/sql_database.h"

namespace fcp {
namespace {

class SqlFeedbackStore : public FeedbackStore {
 public:
  SqlFeedbackStore(std::unique_ptr<SqlDatabase> database, const std::optional<StoreLimits>& limits)
      : limits_(limits.value_or(StoreLimits())), database_(std::move(database)) {
    if (limits) {
      make_schema(*database_);
    } else {
      check_schema(*database_);
    }
    prepare_predictions();
    prepare_truths();
    prepare_levels();
    prepare_monitors();
  }

  void begin() override { database_->begin(); }

  void commit() override {
    forget_old("fcp_waiting", limits_.waiting);
    forget_old("fcp_truths", limits_.truths);
    database_->commit();
  }

  void undo() override { database_->undo(); }

  void touch() override { database_->execute("UPDATE fcp_schema SET version = version"); }

  bool add_waiting(const WaitingPrediction& one) override {
    if (has_truth(one.model, one.id, one.row)) return false;
    put_prediction(*add_waiting_, one);
    return is_found(*add_waiting_);
  }

  std::optional<WaitingPrediction> find_waiting(const std::string& model, const std::string& id,
                                                int64_t row) override {
    SqlStatement& found = find_waiting_->start().put(model).put(id).put(row);
    if (!found.step()) return std::nullopt;
    WaitingPrediction one{model,
                          id,
                          row,
                          found.text(0),
                          found.number(1),
                          found.integer(2),
                          found.numbers<float>(3),
                          found.number(4),
                          found.integer(5),
                          std::string(found.bytes(6))};
    found.end();
    return one;
  }

  std::vector<WaitingPrediction> find_request(const std::string& model,
                                              const std::string& id) override {
    std::vector<WaitingPrediction> rows;
    SqlStatement& found = find_request_->start().put(model).put(id);
    while (found.step()) {
      rows.push_back({model, id, found.integer(0), found.text(1), found.number(2), found.integer(3),
                      found.numbers<float>(4), found.number(5), found.integer(6),
                      std::string(found.bytes(7))});
    }
    found.end();
    return rows;
  }

  bool has_truth(const std::string& model, const std::string& id, int64_t row) override {
    has_truth_->start().put(model).put(id).put(row);
    return is_found(*has_truth_);
  }

  void add_truth(const StoredTruth& one) override {
    const WaitingPrediction& asked = one.prediction;
    put_prediction(*add_truth_, asked);
    add_truth_->put(one.time).put_numbers(one.truth).put_numbers(one.scores).put(one.p_value);
    add_truth_->put(int64_t{one.covered}).put(one.size).put(one.adapted_size);
    add_truth_->put(one.alpha).run();
    end_waiting_->start().put(asked.model).put(asked.id).put(asked.row).run();
  }

  void each_truth(const std::string& model, const std::string& sha256, int64_t after,
                  const std::function<void(const StoredTruth&)>& take) override {
    SqlStatement& found = each_truth_->start().put(model).put(sha256).put(after);
    while (found.step()) {
      StoredTruth one;
      one.prediction = {model,
                        found.text(0),
                        found.integer(1),
                        sha256,
                        found.number(2),
                        found.integer(3),
                        found.numbers<float>(4),
                        found.number(5),
                        found.integer(15),
                        std::string(found.bytes(16))};
      one.time = found.number(6);
      one.truth = found.numbers<float>(7);
      one.scores = found.numbers<double>(8);
      one.p_value = found.number(9);
      one.covered = found.integer(10) != 0;
      one.size = found.number(11);
      one.adapted_size = found.number(12);
      one.alpha = found.number(13);
      one.number = found.integer(14);
      take(one);
    }
    found.end();
  }

  std::vector<std::pair<std::string, std::string>> files() override {
    std::vector<std::pair<std::string, std::string>> files;
    SqlStatement& found = files_->start();
    while (found.step()) files.emplace_back(found.text(0), found.text(1));
    found.end();
    return files;
  }

  std::vector<std::string> models_of(const std::string& sha256) override {
    std::vector<std::string> models;
    for (auto& [model, hash] : files()) {
      if (hash == sha256) models.push_back(std::move(model));
    }
    return models;
  }

  std::optional<StoredLevel> find_level(const LevelKey& key) override {
    SqlStatement& found = find_level_->start();
    found.put(key.model).put(key.sha256).put(key.method).put(key.target);
    if (!found.step()) return std::nullopt;
    StoredLevel level{found.number(0), found.integer(1), found.numbers<double>(2)};
    found.end();
    return level;
  }

  void put_level(const LevelKey& key, const StoredLevel& level) override {
    put_level_->start().put(key.model).put(key.sha256).put(key.method).put(key.target);
    put_level_->put(level.level).put(level.number).put_numbers(level.state).run();
  }

  std::vector<std::pair<LevelKey, StoredLevel>> levels_of(const std::string& sha256) override {
    std::vector<std::pair<LevelKey, StoredLevel>> levels;
    SqlStatement& found = levels_of_->start().put(sha256);
    while (found.step()) {
      levels.emplace_back(LevelKey{found.text(0), sha256, found.text(1), found.number(2)},
                          StoredLevel{found.number(3), found.integer(4), {}});
    }
    found.end();
    return levels;
  }

  std::optional<StoredMonitor> find_monitor(const MonitorKey& key) override {
    SqlStatement& found = find_monitor_->start().put(key.model).put(key.sha256).put(key.options);
    if (!found.step()) return std::nullopt;
    StoredMonitor monitor{found.integer(0), std::string(found.bytes(1))};
    found.end();
    return monitor;
  }

  void put_monitor(const MonitorKey& key, const StoredMonitor& monitor) override {
    put_monitor_->start().put(key.model).put(key.sha256).put(key.options);
    put_monitor_->put(monitor.number).put_bytes(monitor.state).run();
    forget_monitors_->start().put(key.model).run();
  }

  size_t most_truths() const override { return limits_.truths; }
  size_t waiting() override { return count(*count_waiting_); }
  size_t truths() override { return count(*count_truths_); }
  bool is_shared() const override { return database_->is_shared(); }

 private:
  void prepare_predictions() {
    constexpr const char* kAdd =
        "INSERT INTO fcp_waiting (model, id, line, sha256, asked, part, x, level, place, answer) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING RETURNING seq";
    constexpr const char* kRow = "SELECT line, sha256, asked, part, x, level, place, answer FROM ";
    constexpr const char* kOf = " WHERE model = $1 AND id = $2";
    add_waiting_ = database_->prepare(kAdd);
    find_waiting_ = database_->prepare(
        "SELECT sha256, asked, part, x, level, place, answer FROM fcp_waiting WHERE model = $1 AND "
        "id = $2 AND line = $3");
    find_request_ = database_->prepare(
        concat(kRow, "fcp_waiting", kOf, " UNION ALL ", kRow, "fcp_truths", kOf, " ORDER BY line"));
    end_waiting_ =
        database_->prepare("DELETE FROM fcp_waiting WHERE model = $1 AND id = $2 AND line = $3");
    count_waiting_ = database_->prepare("SELECT COUNT(*) FROM fcp_waiting");
  }

  void prepare_truths() {
    has_truth_ =
        database_->prepare("SELECT seq FROM fcp_truths WHERE model = $1 AND id = $2 AND line = $3");
    add_truth_ = database_->prepare(
        "INSERT INTO fcp_truths (model, id, line, sha256, asked, part, x, level, place, answer, "
        "time, truth, scores, p_value, covered, size, adapted_size, alpha) VALUES ($1, $2, $3, $4, "
        "$5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)");
    each_truth_ = database_->prepare(
        "SELECT id, line, asked, part, x, level, time, truth, scores, p_value, covered, size, "
        "adapted_size, alpha, seq, place, answer FROM fcp_truths WHERE model = $1 AND sha256 = $2 "
        "AND seq > $3 ORDER BY seq");
    files_ =
        database_->prepare("SELECT DISTINCT model, sha256 FROM fcp_truths ORDER BY model, sha256");
    count_truths_ = database_->prepare("SELECT COUNT(*) FROM fcp_truths");
  }

  void prepare_levels() {
    find_level_ = database_->prepare(
        "SELECT level, seq, state FROM fcp_levels WHERE model = $1 AND sha256 = $2 AND method = $3 "
        "AND target = $4");
    put_level_ = database_->prepare(
        "INSERT INTO fcp_levels (model, sha256, method, target, level, seq, state) VALUES ($1, $2, "
        "$3, $4, $5, $6, $7) ON CONFLICT (model, sha256, method, target) DO UPDATE SET level = "
        "excluded.level, seq = excluded.seq, state = excluded.state");
    levels_of_ = database_->prepare(
        "SELECT model, method, target, level, seq FROM fcp_levels WHERE sha256 = $1 ORDER BY seq "
        "DESC");
  }

  // The newest four of a model: its versions, and levels that were tried.
  void prepare_monitors() {
    find_monitor_ = database_->prepare(
        "SELECT seq, state FROM fcp_monitors WHERE model = $1 AND sha256 = $2 AND options = $3");
    put_monitor_ = database_->prepare(
        "INSERT INTO fcp_monitors (model, sha256, options, seq, state) VALUES ($1, $2, $3, $4, $5) "
        "ON CONFLICT (model, sha256, options) DO UPDATE SET seq = excluded.seq, state = "
        "excluded.state WHERE excluded.seq > fcp_monitors.seq");
    forget_monitors_ = database_->prepare(
        "DELETE FROM fcp_monitors WHERE model = $1 AND seq < (SELECT MIN(seq) FROM (SELECT seq "
        "FROM fcp_monitors WHERE model = $1 ORDER BY seq DESC LIMIT 4) AS newest)");
  }

  static void put_prediction(SqlStatement& statement, const WaitingPrediction& one) {
    statement.start().put(one.model).put(one.id).put(one.row).put(one.sha256);
    statement.put(one.time).put(one.group).put_numbers(one.x).put(one.level);
    statement.put(one.place).put_bytes(one.answer);
  }

  static bool is_found(SqlStatement& statement) {
    const bool found = statement.step();
    statement.end();
    return found;
  }

  // By their numbers, which only grow.
  void forget_old(const char* table, size_t most) {
    database_->execute(
        concat("DELETE FROM ", table, " WHERE seq <= (SELECT MAX(seq) FROM ", table, ") - ", most));
  }

  static size_t count(SqlStatement& statement) {
    statement.start().step();
    const auto found = static_cast<size_t>(statement.integer(0));
    statement.end();
    return found;
  }

  using StatementPointer = std::unique_ptr<SqlStatement>;

  StoreLimits limits_;
  std::unique_ptr<SqlDatabase> database_;  // outlives its statements
  StatementPointer add_waiting_, find_waiting_, find_request_, end_waiting_, count_waiting_;
  StatementPointer has_truth_, add_truth_, each_truth_, files_, count_truths_;
  StatementPointer find_level_, put_level_, levels_of_;
  StatementPointer find_monitor_, put_monitor_, forget_monitors_;
};

std::unique_ptr<SqlDatabase> open_database(const std::string& where, bool exclusive) {
  const bool shared = where.starts_with("postgresql://") || where.starts_with("postgres://");
  return shared ? open_postgresql(where) : open_sqlite(where, exclusive);
}

}  // namespace

std::unique_ptr<FeedbackStore> open_feedback_store(const std::string& where,
                                                   const StoreLimits& limits) {
  return std::make_unique<SqlFeedbackStore>(open_database(where, true), limits);
}

std::unique_ptr<FeedbackStore> read_feedback_store(const std::string& where) {
  return std::make_unique<SqlFeedbackStore>(open_database(where, false), std::nullopt);
}

}  // namespace fcp

// The C API: every function catches what is thrown and keeps its message for the thread.
#include "fcp/c_api.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/distribution.h"
#include "fcp/outliers.h"
#include "fcp/predictor.h"
#include "fcp/probabilities.h"
#include "fcp/version.h"

struct fcp_predictor {
  explicit fcp_predictor(fcp::Predictor loaded) : value(std::move(loaded)) {}

  // Made when somebody asks; an Error where there is none.
  const fcp::Distribution& distribution() const {
    const std::lock_guard lock(making);
    if (!made) made.emplace(value);
    return *made;
  }

  fcp::Predictor value;
  mutable std::mutex making;
  mutable std::optional<fcp::Distribution> made;
};

namespace {

thread_local std::string last_error;

// What `work` returns, or `otherwise` where it throws.
template <typename Result, typename Work>
Result guarded(Result otherwise, const Work& work) noexcept {
  try {
    return work();
  } catch (const std::exception& error) {
    try {
      last_error = error.what();
    } catch (...) {
      last_error.clear();
    }
  } catch (...) {
    last_error = "unknown error";
  }
  return otherwise;
}

template <typename Pointer>
Pointer* given(Pointer* pointer, const char* name) {
  if (pointer == nullptr) fcp::fail(name, ": is NULL");
  return pointer;
}

fcp::RowInfo info_of(const fcp_rows& rows, size_t count) {
  fcp::RowInfo info;
  for (size_t i = 0; rows.groups != nullptr && i < count; ++i) {
    info.groups.emplace_back(given(rows.groups[i], "groups"));
  }
  if (rows.weights != nullptr) info.weights.assign(rows.weights, rows.weights + count);
  return info;
}

fcp::Batch batch_of(const fcp::Predictor& predictor, const fcp_rows* given_rows) {
  const fcp_rows& rows = *given(given_rows, "rows");
  if (rows.count < 1) fcp::fail("rows: found ", rows.count, ", expected at least 1");
  if ((rows.x == nullptr) == (rows.cells == nullptr)) {
    fcp::fail("rows: expected either x or cells");
  }
  const auto count = static_cast<size_t>(rows.count);
  const fcp::InputSchema& schema = predictor.schema();
  const fcp::RowInfo info = info_of(rows, count);
  if (rows.x != nullptr) {
    return schema.encode(std::span(rows.x, count * schema.row_size()), info);
  }
  std::vector<fcp::Record> records(count);
  const std::vector<std::string>& columns = schema.columns();
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < columns.size(); ++k) {
      const char* cell = rows.cells[i * columns.size() + k];
      if (cell != nullptr) records[i].emplace(columns[k], cell);
    }
  }
  return schema.encode(records, info);
}

std::vector<fcp::Level> levels_of(const char* const* levels, long long count) {
  std::vector<fcp::Level> found;
  for (long long i = 0; i < count; ++i) {
    found.push_back(fcp::Level::parse(given(given(levels, "levels")[i], "levels")));
  }
  return found;
}

const char* name_at(const std::vector<std::string>& names, long long index) {
  const bool known = index >= 0 && static_cast<size_t>(index) < names.size();
  return known ? names[static_cast<size_t>(index)].c_str() : nullptr;
}

void expect_labels(const fcp::Predictor& predictor, bool wanted) {
  if (predictor.predicts_labels() == wanted) return;
  fcp::fail("the predictor gives ",
            wanted ? "intervals, not label sets" : "label sets, not intervals");
}

}  // namespace

const char* fcp_version(void) { return fcp::version(); }
const char* fcp_last_error(void) { return last_error.c_str(); }

fcp_predictor* fcp_load(const char* path, const char* device) {
  return guarded<fcp_predictor*>(nullptr, [&] {
    return new fcp_predictor(fcp::Predictor::load(given(path, "path"), given(device, "device")));
  });
}

void fcp_free(fcp_predictor* predictor) { delete predictor; }

long long fcp_row_size(const fcp_predictor* predictor) {
  return guarded(-1LL, [&] {
    return static_cast<long long>(given(predictor, "predictor")->value.schema().row_size());
  });
}

long long fcp_outputs(const fcp_predictor* predictor) {
  return guarded(
      -1LL, [&] { return static_cast<long long>(given(predictor, "predictor")->value.outputs()); });
}

long long fcp_classes(const fcp_predictor* predictor) {
  return guarded(-1LL, [&] {
    return static_cast<long long>(given(predictor, "predictor")->value.classes().size());
  });
}

const char* fcp_class(const fcp_predictor* predictor, long long index) {
  return guarded<const char*>(
      nullptr, [&] { return name_at(given(predictor, "predictor")->value.classes(), index); });
}

long long fcp_columns(const fcp_predictor* predictor) {
  return guarded(-1LL, [&] {
    return static_cast<long long>(given(predictor, "predictor")->value.schema().columns().size());
  });
}

const char* fcp_column(const fcp_predictor* predictor, long long index) {
  return guarded<const char*>(nullptr, [&] {
    return name_at(given(predictor, "predictor")->value.schema().columns(), index);
  });
}

const char* fcp_group_column(const fcp_predictor* predictor) {
  return guarded<const char*>(nullptr, [&] {
    return given(predictor, "predictor")->value.schema().group_column().c_str();
  });
}

int fcp_needs_weights(const fcp_predictor* predictor) {
  return guarded(
      -1, [&] { return given(predictor, "predictor")->value.schema().needs_weights() ? 1 : 0; });
}

int fcp_intervals(const fcp_predictor* predictor, const fcp_rows* rows, const char* const* levels,
                  long long level_count, double* points, double* lower, double* upper) {
  return guarded(-1, [&] {
    const fcp::Predictor& used = given(predictor, "predictor")->value;
    expect_labels(used, false);
    const fcp::Answer answer = used.predict(batch_of(used, rows), levels_of(levels, level_count));
    if (points != nullptr) std::ranges::copy(answer.points(), points);
    for (size_t i = 0; i < answer.levels().size(); ++i) {
      if (lower != nullptr) lower = std::ranges::copy(answer.lower(i), lower).out;
      if (upper != nullptr) upper = std::ranges::copy(answer.upper(i), upper).out;
    }
    return 0;
  });
}

long long fcp_parts(const fcp_predictor* predictor, const fcp_rows* rows, const char* const* levels,
                    long long level_count, long long* counts, double* ends, long long capacity) {
  return guarded(-1LL, [&] {
    const fcp::Predictor& used = given(predictor, "predictor")->value;
    expect_labels(used, false);
    if (capacity < 0) fcp::fail("capacity: found ", capacity, ", expected 0 or more");
    if (capacity > 0) given(ends, "ends");
    const fcp::Answer answer = used.predict(batch_of(used, rows), levels_of(levels, level_count));
    long long found = 0;
    for (size_t level = 0; level < answer.levels().size(); ++level) {
      for (size_t i = 0; i < answer.rows() * answer.outputs(); ++i) {
        const std::vector<fcp::Interval> parts =
            answer.parts(i / answer.outputs(), i % answer.outputs(), level);
        if (counts != nullptr) *counts++ = std::ssize(parts);
        for (const fcp::Interval& part : parts) {
          if (found++ >= capacity) continue;
          *ends++ = part.lower;
          *ends++ = part.upper;
        }
      }
    }
    return found;
  });
}

int fcp_label_sets(const fcp_predictor* predictor, const fcp_rows* rows, const char* const* levels,
                   long long level_count, long long* labels, unsigned char* members) {
  return guarded(-1, [&] {
    const fcp::Predictor& used = given(predictor, "predictor")->value;
    expect_labels(used, true);
    const fcp::Answer answer = used.predict(batch_of(used, rows), levels_of(levels, level_count));
    if (answer.pixels() != 1) fcp::fail("sets of pixels are not given to C");
    for (size_t row = 0; labels != nullptr && row < answer.rows(); ++row) {
      labels[row] = static_cast<long long>(answer.point(row));
    }
    if (members == nullptr) return 0;
    for (size_t level = 0; level < answer.levels().size(); ++level) {
      for (size_t row = 0; row < answer.rows(); ++row) {
        for (size_t label = 0; label < answer.classes(); ++label) {
          *members++ = answer.in_set(row, label, level) ? 1 : 0;
        }
      }
    }
    return 0;
  });
}

long long fcp_flags(const fcp_predictor* predictor, const fcp_rows* rows, char* texts,
                    long long capacity) {
  return guarded(-1LL, [&] {
    const fcp::Batch batch = batch_of(given(predictor, "predictor")->value, rows);
    if (batch.flags().empty()) fcp::fail("flags are of cells; numbers do not say what rows had");
    long long size = 0;
    for (const std::string& flags : batch.flags()) size += std::ssize(flags) + 1;
    if (capacity < size) return size;
    given(texts, "texts");
    for (const std::string& flags : batch.flags()) {
      texts = std::copy_n(flags.c_str(), flags.size() + 1, texts);
    }
    return size;
  });
}

int fcp_p_values(const fcp_predictor* predictor, const fcp_rows* rows, const float* y,
                 double* p_values) {
  return guarded(-1, [&] {
    const fcp::Predictor& used = given(predictor, "predictor")->value;
    const fcp::Batch batch = batch_of(used, rows);
    const size_t count = batch.rows() * used.outputs();
    const std::vector<double> found = used.p_values(batch, std::span(given(y, "y"), count));
    if (found.size() != batch.rows()) {
      fcp::fail("each of the ", used.outputs(), " outputs has a p-value of its own (joint each), ",
                "which fcp_p_values does not give");
    }
    std::ranges::copy(found, given(p_values, "p_values"));
    return 0;
  });
}

int fcp_quantiles(const fcp_predictor* predictor, const fcp_rows* rows,
                  const char* const* probabilities, long long probability_count,
                  double* quantiles) {
  return guarded(-1, [&] {
    const fcp::Distribution& used = given(predictor, "predictor")->distribution();
    const std::vector<fcp::Level> asked = levels_of(probabilities, probability_count);
    std::ranges::copy(used.quantiles(batch_of(used.predictor(), rows), asked),
                      given(quantiles, "quantiles"));
    return 0;
  });
}

int fcp_probability(const fcp_predictor* predictor, const fcp_rows* rows, double from, double to,
                    double* lower, double* upper) {
  return guarded(-1, [&] {
    const fcp::Distribution& used = given(predictor, "predictor")->distribution();
    given(lower, "lower");
    given(upper, "upper");
    for (const fcp::Interval& band : used.between(batch_of(used.predictor(), rows), from, to)) {
      *lower++ = band.lower;
      *upper++ = band.upper;
    }
    return 0;
  });
}

int fcp_class_probabilities(const fcp_predictor* predictor, const fcp_rows* rows, double* merged,
                            double* p0, double* p1) {
  return guarded(-1, [&] {
    const fcp::Probabilities used(given(predictor, "predictor")->value);
    const fcp::RowProbabilities found = used.of(batch_of(used.predictor(), rows));
    if (!used.calibrated() && (p0 != nullptr || p1 != nullptr)) {
      fcp::fail("p0, p1: the predictor was not calibrated with venn-abers");
    }
    std::ranges::copy(found.merged, given(merged, "merged"));
    if (p0 != nullptr) std::ranges::copy(found.p0, p0);
    if (p1 != nullptr) std::ranges::copy(found.p1, p1);
    return 0;
  });
}

int fcp_discoveries(const double* p_values, long long count, const char* rate,
                    unsigned char* discoveries) {
  return guarded(-1, [&] {
    if (count < 0) fcp::fail("count: found ", count, ", expected at least 0");
    const std::span all(count == 0 ? p_values : given(p_values, "p_values"),
                        static_cast<size_t>(count));
    if (count > 0) given(discoveries, "discoveries");
    for (const bool one : fcp::discoveries(all, fcp::Level::parse(given(rate, "rate")))) {
      *discoveries++ = one ? 1 : 0;
    }
    return 0;
  });
}

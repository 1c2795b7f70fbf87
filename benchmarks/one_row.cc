// Microseconds of processor time per answer for one row at a time, as a service without batches
// asks: the point prediction and the intervals at one level and at four, from C++ and from C. `one
// by one` asks for the prediction and for each level in calls of their own, as programs did with
// fcp 0.2; the last column is the share of its time. All are asked in turn, and the medians of the
// turns shown.
//
//   $ one_row calibrated.onnx [CALLS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include <fcp/c_api.h>
#include <fcp/fcp.h>

namespace {

constexpr int kTurns = 25;

// Of the whole process, whoever else uses the processors.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double microseconds(int calls, const std::function<void()>& work) {
  const double start = processor_seconds();
  for (int i = 0; i < calls; ++i) work();
  return 1e6 * (processor_seconds() - start) / calls;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

struct Case {
  const char* name;
  std::function<void()> work;
  std::vector<double> times{};
};

void measure(const char* path, int calls) {
  const auto predictor = fcp::Predictor::load(path);
  const std::vector<float> x(predictor.schema().row_size(), 0.5f);
  fcp_predictor* loaded = fcp_load(path, "cpu");
  if (loaded == nullptr) throw fcp::Error(fcp_last_error());
  const fcp_rows row = {1, x.data(), nullptr, nullptr, nullptr};
  const char* texts[] = {"0.05", "0.1", "0.2", "0.5"};
  const size_t outputs = predictor.outputs();
  std::vector<double> points(outputs), lower(4 * outputs), upper(4 * outputs);
  double sum = 0;
  for (const long long count : {1, 4}) {
    std::vector<fcp::Level> levels;
    for (long long i = 0; i < count; ++i) levels.push_back(fcp::Level::parse(texts[i]));
    const auto one_by_one = [&] {
      sum += predictor.predict(predictor.schema().encode(x), {}).point(0);
      for (const fcp::Level& level : levels) {
        sum += predictor.predict(predictor.schema().encode(x), {level}).interval(0).lower;
      }
    };
    const auto from_cpp = [&] {
      const fcp::Answer answer = predictor.predict(predictor.schema().encode(x), levels);
      sum += answer.point(0) + answer.interval(0).lower;
    };
    const auto from_c = [&] {
      if (fcp_intervals(loaded, &row, texts, count, points.data(), lower.data(), upper.data())) {
        throw fcp::Error(fcp_last_error());
      }
    };
    std::vector<Case> cases = {{"one by one", one_by_one}, {"C++", from_cpp}, {"C", from_c}};
    for (int turn = 0; turn <= kTurns; ++turn) {
      for (Case& one : cases) {
        const double time = microseconds(calls / kTurns, one.work);
        if (turn > 0) one.times.push_back(time);  // the first one warms caches up
      }
    }
    for (const Case& one : cases) {
      std::printf("%lld level%s  %-10s  %8.1f us  %5.2f\n", count, count == 1 ? " " : "s", one.name,
                  median(one.times), median(one.times) / median(cases[0].times));
    }
  }
  fcp_free(loaded);
  std::printf("sum  %g\n", sum);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s calibrated.onnx [CALLS]\n", argv[0]);
    return 2;
  }
  try {
    measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 5000);
    return 0;
  } catch (const fcp::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

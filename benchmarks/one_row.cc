// Microseconds per answer for one row at a time, as a service without batches asks: the point
// prediction and the intervals at one level and at four, from C++ and from C. Lines with `one by
// one` ask for the prediction and for each level in calls of their own, as programs did with fcp
// 0.2.
//
//   $ one_row calibrated.onnx [CALLS]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include <fcp/c_api.h>
#include <fcp/fcp.h>

namespace {

double microseconds(int calls, const std::function<void()>& work) {
  for (int i = 0; i < calls / 10; ++i) work();  // caches and threads warm up
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) work();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  return time.count() / calls;
}

void measure(const char* path, int calls) {
  const auto predictor = fcp::Predictor::load(path);
  const std::vector<float> x(predictor.schema().row_size(), 0.5f);
  const std::vector<fcp::Level> one = {fcp::Level(0.1)};
  const std::vector<fcp::Level> four = {fcp::Level(0.05), fcp::Level(0.1), fcp::Level(0.2),
                                        fcp::Level(0.5)};
  double sum = 0;
  for (const auto* levels : {&one, &four}) {
    const double time = microseconds(calls, [&] {
      const fcp::Answer answer = predictor.predict(predictor.schema().encode(x), *levels);
      sum += answer.point(0) + answer.interval(0).lower;
    });
    std::printf("C++  %zu level%s  %8.1f us\n", levels->size(), levels->size() == 1 ? " " : "s",
                time);
  }
  for (const auto* levels : {&one, &four}) {
    const double time = microseconds(calls, [&] {
      sum += predictor.predict(predictor.schema().encode(x), {}).point(0);
      for (const fcp::Level& level : *levels) {
        sum += predictor.predict(predictor.schema().encode(x), {level}).interval(0).lower;
      }
    });
    std::printf("C++  %zu level%s  %8.1f us, one by one\n", levels->size(),
                levels->size() == 1 ? " " : "s", time);
  }
  fcp_predictor* loaded = fcp_load(path, "cpu");
  if (loaded == nullptr) throw fcp::Error(fcp_last_error());
  const fcp_rows row = {1, x.data(), nullptr, nullptr, nullptr};
  const char* texts[] = {"0.05", "0.1", "0.2", "0.5"};
  const size_t outputs = predictor.outputs();
  std::vector<double> points(outputs), lower(4 * outputs), upper(4 * outputs);
  for (const int levels : {1, 4}) {
    const double time = microseconds(calls, [&] {
      if (fcp_intervals(loaded, &row, texts, levels, points.data(), lower.data(), upper.data())) {
        throw fcp::Error(fcp_last_error());
      }
    });
    std::printf("C    %d level%s  %8.1f us\n", levels, levels == 1 ? " " : "s", time);
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
    measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 2000);
    return 0;
  } catch (const fcp::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

// How fast a CSV file is read: megabytes of text a second, on one core, values converted.
//
//   csv_read FILE [TARGET] [REPEATS]
//
// The first pass warms the file cache; the best of the others is reported, in processor time so
// that other work on the machine does not count, and by the clock on the wall. MB are 10^6 bytes of
// the file as it lies on the disk (of a .gz that is the packed size).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <string>

#include "fcp/data/rows.h"

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: csv_read FILE [TARGET] [REPEATS]\n");
    return 2;
  }
  const std::string path = argv[1];
  const auto source = fcp::open_rows(path, argc > 2 ? argv[2] : "");
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 5;
  double best_wall = 1e300, best_processor = 1e300, sum = 0;
  size_t rows = 0;
  fcp::Rows batch;
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t processor_start = std::clock();
    source->rewind();
    rows = 0;
    sum = 0;
    while (source->next(256, batch)) {
      rows += batch.x.rows();
      for (const float value : batch.x.values) sum += value;
    }
    const double processor = static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    if (repeat == 0) continue;
    best_wall = std::min(best_wall, wall.count());
    best_processor = std::min(best_processor, processor);
  }
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  std::printf("%s: %zu rows × %zu features, sum %.9g, %.1f MB\n", path.c_str(), rows,
              source->column_names().size(), sum, megabytes);
  std::printf("processor time %.3f s: %.0f MB/s; wall time %.3f s: %.0f MB/s\n", best_processor,
              megabytes / best_processor, best_wall, megabytes / best_wall);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "csv_read: %s\n", error.what());
  return 1;
}

// How fast a CSV file is written: megabytes of text a second, on one core, from float32 numbers.
//
//   csv_write FILE [ROWS] [COLUMNS] [REPEATS]
//
// Normal numbers, as many digits as tell them apart. The best of the repeats, in processor time so
// that other work on the machine does not count, and by the clock on the wall; the file is synced
// and renamed each time, as every file of fcp is.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/data/csv_writer.h"

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: csv_write FILE [ROWS] [COLUMNS] [REPEATS]\n");
    return 2;
  }
  const std::string path = argv[1];
  const size_t rows = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1000000;
  const size_t columns = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 3;
  const int repeats = argc > 4 ? std::atoi(argv[4]) : 5;
  fcp::Random random(0);
  std::vector<float> numbers(4096 * columns);
  for (float& number : numbers) number = static_cast<float>(random.normal());
  const std::vector<std::string> names(columns, "column");
  double best_wall = 1e300, best_processor = 1e300;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t processor_start = std::clock();
    fcp::CsvWriter writer(path, names);
    for (size_t row = 0; row < rows; ++row) {
      writer.row({numbers.data() + row % 4096 * columns, columns});
    }
    writer.close();
    const double processor = static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    best_wall = std::min(best_wall, wall.count());
    best_processor = std::min(best_processor, processor);
  }
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  std::printf("%s: %zu rows × %zu columns, %.1f MB\n", path.c_str(), rows, columns, megabytes);
  std::printf("processor time %.3f s: %.0f MB/s; wall time %.3f s: %.0f MB/s\n", best_processor,
              megabytes / best_processor, best_wall, megabytes / best_wall);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "csv_write: %s\n", error.what());
  return 1;
}

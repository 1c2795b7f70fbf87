// How fast images become rows: decoded, resized, cropped and normalised, in images a second.
//
//   image_read DATA [THREADS] [REPEATS] [RESIZE] [CROP]
//
// DATA is a folder or a CSV of images. The first pass warms the file cache; the best of the others
// is reported, by the clock on the wall and in processor time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>

#include "fcp/data/images/image_list.h"

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: image_read DATA [THREADS] [REPEATS] [RESIZE] [CROP]\n");
    return 2;
  }
  fcp::ImageOptions options;
  const auto number = [&](int i, int standard) { return argc > i ? std::atoi(argv[i]) : standard; };
  options.threads = static_cast<size_t>(number(2, 0));
  const int repeats = number(3, 3);
  options.transform.resize = number(4, options.transform.resize);
  options.transform.crop = number(5, options.transform.crop);
  const auto source = fcp::open_images(argv[1], options);
  double best_wall = 1e300, best_processor = 1e300, sum = 0;
  size_t rows = 0;
  fcp::Rows batch;
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t processor_start = std::clock();
    source->rewind();
    rows = 0;
    while (source->next(32, batch)) {
      rows += batch.x.rows();
      sum += batch.x.values[0];
    }
    const double processor = static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC;
    const double wall =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (repeat == 0) continue;
    best_wall = std::min(best_wall, wall);
    best_processor = std::min(best_processor, processor);
  }
  const auto count = static_cast<double>(rows);
  std::printf("%zu images: %.0f images/s by the clock, %.2f ms of processor time each (%g)\n", rows,
              count / best_wall, 1000 * best_processor / count, sum);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "image_read: %s\n", error.what());
  return 1;
}

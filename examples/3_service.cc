// A service loop: one row of numbers per line on standard input, one line "prediction lower upper"
// on standard output at once, until the input ends. A bad line is answered with "error: …" and the
// service goes on: that is what a caller who sends many wants. The predictor is made once; any
// number of threads could share it.
//
//   $ 3_service calibrated.onnx 0.1
//   3.2 17 4 2 0 0.7 1 12
//   29.25 24.25 36.5
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <fcp/fcp.h>

namespace {

std::vector<float> parse_row(const std::string& line) {
  std::istringstream text(line);
  std::vector<float> row;
  for (float value; text >> value;) row.push_back(value);
  if (!text.eof()) throw fcp::Error("expected numbers, found '" + line + "'");
  return row;
}

void answer(const fcp::Predictor& predictor, const fcp::Level& level,
            const std::vector<float>& row) {
  const fcp::Answer found = predictor.predict(predictor.schema().encode(row), {level});
  for (size_t k = 0; k < found.outputs(); ++k) {
    const fcp::Interval interval = found.interval(0, k);
    std::cout << (k == 0 ? "" : " ") << found.point(0, k) << ' ' << interval.lower << ' '
              << interval.upper;
  }
  std::cout << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s calibrated.onnx ALPHA\n", argv[0]);
    return 2;
  }
  try {
    const fcp::Level level = fcp::Level::parse(argv[2]);
    const auto predictor = fcp::Predictor::load(argv[1]);
    for (std::string line; std::getline(std::cin, line);) {
      try {
        answer(predictor, level, parse_row(line));
      } catch (const fcp::Error& error) {
        std::cout << "error: " << error.what() << std::endl;
      }
    }
    return 0;
  } catch (const fcp::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

// The shortest program: calibrate a network on rows it has not seen, keep the result, and ask for
// the 90 % interval of one row. It looks for model.onnx and cal.csv in the current folder.
#include <iostream>
#include <vector>

#include <fcp/fcp.h>

int main() {
  fcp::ConformalPredictor p =
      fcp::calibrate("model.onnx", "cal.csv", "minutes", {.score = "nested", .cut = "auto"});
  p.save("calibrated.onnx");
  const std::vector<float> x = {3.2f, 17, 4, 2, 0, 0.7f, 1, 12};
  for (const fcp::Interval& i : p.intervals(x, fcp::Level(0.1))) {
    std::cout << i.lower << ' ' << i.upper << '\n';
  }
}

// The shortest program: calibrate a network on rows it has not seen, keep the result, and ask for
// the 90 % interval of one row. It looks for model.onnx and cal.csv in the current folder.
#include <iostream>
#include <vector>

#include <fcp/fcp.h>

int main() {
  const fcp::Predictor p =
      fcp::calibrate("model.onnx", "cal.csv", "minutes", {.score = "nested", .cut = "auto"});
  p.save("calibrated.onnx");
  const std::vector<float> x = {3.2f, 17, 4, 2, 0, 0.7f, 1, 12};
  const fcp::Answer a = p.predict(p.schema().encode(x), {fcp::Level(0.1)});
  std::cout << a.interval(0).lower << ' ' << a.interval(0).upper << '\n';
}

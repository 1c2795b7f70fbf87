/* The 90 % interval of one row of numbers: 4_from_c calibrated.onnx 3.2 17 4 2 0 0.7 1 12 */
#include <stdio.h>
#include <stdlib.h>

#include <fcp/c_api.h>

int main(int argc, char** argv) {
  float x[64];
  if (argc < 3 || argc > 66) return 2;
  for (int i = 2; i < argc; ++i) x[i - 2] = strtof(argv[i], NULL);
  fcp_predictor* p = fcp_load(argv[1], "cpu");
  if (p == NULL || fcp_row_size(p) != argc - 2 || fcp_outputs(p) != 1) {
    fprintf(stderr, "%s\n", p == NULL ? fcp_last_error() : "rows have another size");
    return 1;
  }
  const fcp_rows row = {.count = 1, .x = x};
  const char* levels[] = {"0.1"};
  double point, lower, upper;
  const int failed = fcp_intervals(p, &row, levels, 1, &point, &lower, &upper);
  if (failed) fprintf(stderr, "%s\n", fcp_last_error());
  else printf("%g %g %g\n", point, lower, upper);
  fcp_free(p);
  return failed != 0;
}

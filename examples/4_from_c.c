/* The 90 % interval of one row, a cell for each column: 4_from_c model.onnx 3.2 17 4 2 0 0.7 1 12 */
#include <stdio.h>

#include <fcp/c_api.h>

int main(int argc, char** argv) {
  fcp_predictor* p = fcp_load(argc > 1 ? argv[1] : "", "cpu");
  const int fits = p != NULL && fcp_columns(p) == argc - 2;
  const fcp_rows row = {.count = 1, .cells = (const char* const*)argv + 2};
  double y, lower, upper;
  const int ok = fits && !fcp_intervals(p, &row, (const char*[]){"0.1"}, 1, &y, &lower, &upper);
  if (ok) printf("%g %g %g\n", y, lower, upper);
  else fprintf(stderr, "%s\n", p && !fits ? "expected a cell per column" : fcp_last_error());
  fcp_free(p);
  return !ok;
}

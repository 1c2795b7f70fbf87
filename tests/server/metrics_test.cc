#include "apps/server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcp {
namespace {

using ::testing::HasSubstr;

TEST(Metrics, AreWrittenAsPrometheusReadsThem) {
  Metrics metrics;
  metrics.count("a", "infer", 200, 3, 0.002);
  metrics.count("a", "infer", 200, 2, 0.2);
  metrics.count("a", "infer", 400, 0, 0.0001);
  metrics.set("fcp_coverage", "model=\"a\"", 0.9);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("# TYPE fcp_requests_total counter\n"));
  EXPECT_THAT(text, HasSubstr("fcp_requests_total{model=\"a\",what=\"infer\",status=\"200\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("fcp_rows_total{model=\"a\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{model=\"a\",what=\"infer\",le=\"0.001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{model=\"a\",what=\"infer\",le=\"0.0025\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{model=\"a\",what=\"infer\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("fcp_request_seconds_count{model=\"a\",what=\"infer\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE fcp_coverage gauge\nfcp_coverage{model=\"a\"} 0.9\n"));
}

}  // namespace
}  // namespace fcp

#include "fcp/pipeline/ahead_batches.h"

#include <limits>
#include <memory>

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/data/npy.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/score_collector.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

// x [rows, 3] and y [rows, 1], in files that go with this.
class ArrayFiles {
 public:
  explicit ArrayFiles(int64_t rows) {
    Random random(1);
    Array x = zeros({rows, 3}), y = zeros({rows, 1});
    for (float& value : x.values) value = static_cast<float>(random.normal());
    for (float& value : y.values) value = static_cast<float>(random.normal());
    write(x, y);
  }

  void write(const Array& x, const Array& y) const {
    write_npy(folder_.path("x.npy"), x);
    write_npy(folder_.path("y.npy"), y);
  }
  std::unique_ptr<RowSource> open() const {
    return open_rows(folder_.path("x.npy"), folder_.path("y.npy"));
  }

 private:
  Folder folder_;
};

std::vector<uint64_t> first_number(const Rows& rows) { return {rows.first_row}; }

void expect_same_batches(torch::Device device) {
  const ArrayFiles files(1000);
  const auto source = files.open(), plain = files.open();
  ASSERT_TRUE(source->read_apart());
  for (int turn = 0; turn < 2; ++turn) {
    source->rewind();
    plain->rewind();
    AheadBatches batches(*source, 64, first_number, device);
    ReadyBatch ready;
    for (Rows rows; plain->next(64, rows);) {
      ASSERT_TRUE(batches.next(ready));
      EXPECT_EQ(ready.rows.first_row, rows.first_row);
      EXPECT_EQ(ready.rows.x.values, rows.x.values);
      EXPECT_EQ(ready.rows.y.values, rows.y.values);
      EXPECT_EQ(ready.sha256, hash_rows(rows));
      EXPECT_EQ(ready.trained, first_number(rows));
      EXPECT_EQ(ready.x.device().type(), device.type());
      EXPECT_TRUE(torch::equal(ready.x.cpu(), view(rows.x)));
    }
    EXPECT_FALSE(batches.next(ready));
  }
}

TEST(AheadBatches, AreThoseOfTheSource) { expect_same_batches(torch::kCPU); }

TEST(AheadBatches, AreOnTheCudaDevice) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "this machine has no CUDA device";
  expect_same_batches(torch::kCUDA);
}

TEST(AheadBatches, ABadRowIsSaidAtItsTurnAndTheRestMayBeLeft) {
  const ArrayFiles files(1000);
  Array x = zeros({1000, 3});
  x.values[3 * 700] = std::numeric_limits<float>::quiet_NaN();
  files.write(x, zeros({1000, 1}));
  const auto source = files.open();
  {
    AheadBatches some(*source, 100, first_number, torch::kCPU);
    ReadyBatch ready;
    ASSERT_TRUE(some.next(ready));
  }
  source->rewind();
  AheadBatches batches(*source, 100, first_number, torch::kCPU);
  ReadyBatch ready;
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(batches.next(ready));
  EXPECT_THROW(batches.next(ready), Error);
}

}  // namespace
}  // namespace fcp

#include "fcp/calibrate/batch_stream.h"

#include <limits>
#include <memory>

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/data/npy.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/provenance.h"

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

// A network that says which rows it was trained on: the first 100 of these.
TrainingRows trained_on(RowSource& source) {
  Rows rows;
  source.next(100, rows);
  source.rewind();
  RowSample sample;
  sample.add(row_codes(rows.x));
  return TrainingRows({{kTrainingFilterKey, sample.filter()}});
}

BatchStreamOptions ahead_of(size_t batch, torch::Device device) {
  return {.batch = batch, .ahead = true, .device = device};
}

void expect_same_batches(torch::Device device) {
  const ArrayFiles files(1000);
  const auto source = files.open(), plain = files.open();
  ASSERT_TRUE(source->can_prefetch());
  const TrainingRows training = trained_on(*source);
  for (int turn = 0; turn < 2; ++turn) {
    source->rewind();
    plain->rewind();
    BatchStream batches(*source, training, ahead_of(64, device));
    ReadyBatch ready;
    size_t number = 0;
    for (Rows rows; plain->next(64, rows); ++number) {
      ASSERT_TRUE(batches.next(number, ready));
      EXPECT_EQ(ready.rows.first_row, rows.first_row);
      EXPECT_EQ(ready.rows.x.values, rows.x.values);
      EXPECT_EQ(ready.rows.y.values, rows.y.values);
      EXPECT_EQ(ready.sha256, hash_rows(rows));
      EXPECT_EQ(ready.trained, training.codes(rows.x, rows.y));
      EXPECT_FALSE(ready.trained.empty());
      EXPECT_EQ(ready.x.device().type(), device.type());
      EXPECT_TRUE(torch::equal(ready.x.cpu(), view(rows.x)));
    }
    EXPECT_FALSE(batches.next(number, ready));
  }
}

TEST(BatchStream, AheadIsThatOfTheSource) { expect_same_batches(torch::kCPU); }

TEST(BatchStream, AheadIsOnTheCudaDevice) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "this machine has no CUDA device";
  expect_same_batches(torch::kCUDA);
}

TEST(BatchStream, ABadRowIsSaidAtItsTurnAndTheRestMayBeLeft) {
  const ArrayFiles files(1000);
  Array x = zeros({1000, 3});
  x.values[3 * 700] = std::numeric_limits<float>::quiet_NaN();
  files.write(x, zeros({1000, 1}));
  const auto source = files.open();
  const TrainingRows untrained({});
  {
    BatchStream some(*source, untrained, ahead_of(100, torch::kCPU));
    ReadyBatch ready;
    ASSERT_TRUE(some.next(0, ready));
  }
  source->rewind();
  BatchStream batches(*source, untrained, ahead_of(100, torch::kCPU));
  ReadyBatch ready;
  for (size_t i = 0; i < 7; ++i) ASSERT_TRUE(batches.next(i, ready));
  EXPECT_THROW(batches.next(7, ready), Error);
}

// As a rank does, whose share is every third batch.
TEST(BatchStream, PassesOverTheBatchesOfOthers) {
  const ArrayFiles files(1000);
  const auto source = files.open();
  const Rows all = read_all(*files.open());
  const TrainingRows untrained({});
  BatchStream batches(*source, untrained, {.batch = 100});
  ReadyBatch ready;
  for (size_t number = 1; number < 10; number += 3) {
    ASSERT_TRUE(batches.next(number, ready));
    EXPECT_EQ(ready.rows.first_row, 100 * number);
    EXPECT_EQ(ready.rows.x.values, slice_rows(all.x, 100 * number, 100).values);
    EXPECT_EQ(ready.sha256, hash_rows(ready.rows));
    EXPECT_TRUE(torch::equal(ready.x, view(ready.rows.x)));
  }
  EXPECT_FALSE(batches.next(10, ready));
}

}  // namespace
}  // namespace fcp

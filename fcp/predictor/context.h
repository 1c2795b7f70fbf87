// What every step of the pipeline is given besides its rows and options: where to compute, which
// processes share the work, the seed, and who hears of progress. A step prints nothing.
//
// Nothing here sets the number of threads of the process or its allocator: a program does that.
//
//   Context context{.device = device_named("cpu"), .observer = &my_observer};
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <torch/types.h>

#include "fcp/data/rows.h"
#include "fcp/distributed/communicator.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

struct Choices;  // choices.h

// Hears what happens while it happens. Every function may be left as it is.
class Observer {
 public:
  virtual ~Observer() = default;

  // A stage of `total` steps begins; total = 0: how many is not known.
  virtual void begin(std::string_view stage, size_t total);
  // `detail` is a short text (the loss, say); it costs nothing unless it is called.
  virtual void advance(size_t count, const std::function<std::string()>& detail);
  virtual void end();

  virtual void chosen(const Choices& choices);    // what calibration has chosen, and from what
  virtual void note(const std::string& text);     // worth knowing
  virtual void warning(const std::string& text);  // worth acting on
};

// One process, which is the whole job.
Communicator* serial_ranks();

// An observer that hears nothing.
Observer* silent_observer();

// Rows of so many numbers each to run at a time on the CPU: what fits the caches.
size_t usual_batch(size_t numbers);

struct Context {
  torch::Device device = torch::kCPU;
  bool choose_device = false;  // `device` is to be chosen when the work is known
  Communicator* ranks = serial_ranks();
  Observer* observer = silent_observer();
  uint64_t seed = 0;
  size_t batch = 0;  // rows at a time; 0: chosen by the size of a row

  // Rows of `source` to run at a time. On a CUDA device several times as many small ones as on the
  // CPU: a batch costs the host the same time whatever its size.
  size_t batch_for(const RowSource& source) const;
};

// A stage that its observer hears of from construction to destruction.
class Stage {
 public:
  Stage(const Context& context, std::string_view name, size_t total);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  void advance(size_t count, const std::function<std::string()>& detail = {});

 private:
  Observer* observer_;
};

// For programs: begins, on a thread of its own that ends with the process, what a CUDA device takes
// some tenths of a second for: whoever needs the device first waits for the rest. Does nothing
// where there is none, or a second time.
void start_cuda_ahead();

// "cpu" or "cuda"; an Error where the device is not there.
torch::Device device_named(const std::string& name);

// The device `auto`: CUDA where it is expected to be faster, the CPU otherwise, for commands that
// run a network over rows.
//
// The rule, which stands here alone. Both devices read the same rows; besides, a CUDA device has to
// be started, and rows copied to it, before it saves arithmetic:
//
//   CPU   rows · flops / (threads · 10 Gflop/s)
//   CUDA  0.6 s + rows · numbers · 4 bytes / (5 GB/s) + rows · flops / (5 Tflop/s)
//
// flops are those of the network for one row, as `inspect` counts them. CUDA is taken where its
// time is shorter; never where the number of rows, or the shape of a row, is not known beforehand.
// Rates are round numbers of small networks: what matters is the first half second. The choice
// depends on the number of threads and on nothing that is measured, so that it does not change from
// run to run. Tested by tests/predictor/context_test.cc.

struct DeviceWork {
  double rows = 0;
  double flops = 0;    // of the network, for one row
  double numbers = 0;  // of one row
  int threads = 1;
};

// The rule, for a machine that has a CUDA device.
bool cuda_is_faster(const DeviceWork& work);

// Sets the context's device where it is still to be chosen, and notes it where it is CUDA.
void choose_device(const Graph& network, const RowSource& source, Context& context);

}  // namespace fcp

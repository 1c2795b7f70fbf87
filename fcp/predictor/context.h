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
  bool choose_device = false;  // `device` is to be chosen when the work is known (device_choice.h)
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

}  // namespace fcp

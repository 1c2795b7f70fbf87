#include "fcp/nn/runtime/batch_free.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/nn/ops/op_traits.h"
#include "fcp/nn/runtime/parallel_alone.h"
#include "fcp/nn/runtime/single_thread.h"

namespace fcp {
namespace {

bool is_constant_slot(const Tensors& constants, int slot) {
  return slot < 0 || constants[static_cast<size_t>(slot)].defined();
}

}  // namespace

bool is_batch_free(const Network& network) {
  const Tensors& constants = network.constants();
  return std::all_of(network.steps().begin(), network.steps().end(), [&](const Step& step) {
    Tensors inputs;
    std::vector<bool> constant;
    for (const int slot : step.inputs) {
      inputs.push_back(slot < 0 ? torch::Tensor() : constants[static_cast<size_t>(slot)]);
      constant.push_back(is_constant_slot(constants, slot));
    }
    const bool varies = std::find(constant.begin(), constant.end(), false) != constant.end();
    return !varies || has_traits(step.node, kBatchFree) || step.op->batch_free(inputs, constant);
  });
}

namespace {

Tensors rows_of(const Tensors& inputs, size_t first, size_t count) {
  Tensors some;
  for (const torch::Tensor& input : inputs) {
    some.push_back(input.narrow(0, static_cast<int64_t>(first), static_cast<int64_t>(count)));
  }
  return some;
}

bool convolves(const Network& network) {
  return std::any_of(network.steps().begin(), network.steps().end(),
                     [](const Step& step) { return has_traits(step.node, kConvolves); });
}

// Attention and what is built around it, and convolutions, make far more numbers than a row has:
// such rows run together, but only as many at a time as fit into the caches.
bool runs_in_pieces(const Network& network) {
  if (convolves(network)) return true;
  const std::vector<Step>& steps = network.steps();
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    if (step.node.op == "LayerNormalization") return true;
    return step.node.op == "MatMul" && !is_constant_slot(network.constants(), step.inputs[0]) &&
           !is_constant_slot(network.constants(), step.inputs[1]);
  });
}

// Runs the first row, and counts the bytes of all that it made.
Tensors run_first(const Network& network, const Tensors& inputs, double& bytes) {
  bytes = 1;
  const auto count = [&](const Step&, const Tensors&, const Tensors& results) {
    for (const torch::Tensor& result : results) {
      if (result.defined()) bytes += static_cast<double>(result.nbytes());
    }
  };
  return network.run_fused(rows_of(inputs, 0, 1), count);
}

// Rows in pieces, each on one thread; the first row runs alone, to tell what a row takes.
class PieceRunner {
 public:
  PieceRunner(const Network& network, const Tensors& inputs)
      : network_(network),
        inputs_(inputs),
        rows_(static_cast<size_t>(inputs[0].size(0))),
        threads_(static_cast<size_t>(at::get_num_threads())) {}

  Tensors run(bool alone) {
    const SingleThread one_thread;
    double bytes = 1;
    std::vector<Tensors> done = {run_first(network_, inputs_, bytes)};
    size_t next = 1;
    const size_t piece = alone ? 1 : piece_rows(bytes);
    if (piece > 1) next += try_piece(piece, done);
    run_rest(next, next == 1 ? 1 : piece, bytes, done);
    Tensors outputs;
    for (size_t i = 0; i < network_.outputs().size(); ++i) {
      Tensors parts;
      for (const Tensors& results : done) parts.push_back(results[i]);
      outputs.push_back(torch::cat(parts));
    }
    return outputs;
  }

 private:
  static double budget() { return static_cast<double>(memory_budget() / memory_sharers()); }

  size_t piece_rows(double bytes) const {
    // Of all tensors together. Those of convolutions are few at a time: small ones stay in the
    // caches, of large ones some rows share the weights.
    constexpr double kCachedBytes = 1 << 22, kConvBytes = 1 << 27, kOtherBytes = 1 << 25;
    constexpr double kSharingRows = 8;
    const double wanted = convolves(network_)
                              ? std::max(kCachedBytes, std::min(kSharingRows * bytes, kConvBytes))
                              : kOtherBytes;
    const double most = std::min(wanted, budget() / static_cast<double>(threads_));
    return std::min(rows_ - 1, static_cast<size_t>(std::max(1.0, most / bytes)));
  }

  // The rows it took: none where the network, whatever its file says, takes one row at a time.
  size_t try_piece(size_t piece, std::vector<Tensors>& done) const {
    try {
      Tensors results = network_.run(rows_of(inputs_, 1, piece));
      for (const torch::Tensor& result : results) {
        if (result.dim() == 0 || result.size(0) != static_cast<int64_t>(piece)) return 0;
      }
      done.push_back(std::move(results));
      return piece;
    } catch (const Error&) {
      return 0;
    }
  }

  void run_rest(size_t from, size_t piece, double bytes, std::vector<Tensors>& done) const {
    constexpr size_t kThreadRows = 4;
    const size_t before = done.size(), count = (rows_ - from + piece - 1) / piece;
    const double affordable = std::max(1.0, budget() / (bytes * static_cast<double>(piece)));
    const size_t threads = std::min(threads_, static_cast<size_t>(affordable));
    done.resize(before + count);
    parallel_alone(count, piece > 1 ? 1 : kThreadRows, threads, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) {
        const size_t row = from + i * piece;
        done[before + i] = network_.run(rows_of(inputs_, row, std::min(piece, rows_ - row)));
      }
    });
  }

  const Network& network_;
  const Tensors& inputs_;
  size_t rows_, threads_;
};

Tensors run_rows_apart(const Network& network, const Tensors& inputs) {
  const bool one_row = inputs.empty() || inputs[0].dim() == 0 || inputs[0].size(0) < 2;
  if (one_row || !network.device().is_cpu() || network.fixed_batch() > 1) {
    return network.run_rows(inputs);
  }
  const bool free = is_batch_free(network);
  if (free && !runs_in_pieces(network)) return network.run_rows(inputs);
  return PieceRunner(network, inputs).run(/*alone=*/!free || network.fixed_batch() == 1);
}

// Of this thread; null: every run is made.
thread_local RunOnce* remembered_runs = nullptr;

bool wants_gradients(const Tensors& inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const torch::Tensor& input) { return input.requires_grad(); });
}

bool are_same(const Tensors& left, const Tensors& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const torch::Tensor& a, const torch::Tensor& b) { return a.is_same(b); });
}

}  // namespace

RunOnce::RunOnce() {
  if (remembered_runs != nullptr) return;
  remembered_runs = this;
  outer_ = true;
}

RunOnce::~RunOnce() {
  if (outer_) remembered_runs = nullptr;
}

Tensors run_apart(const Network& network, const Tensors& inputs) {
  if (remembered_runs == nullptr || wants_gradients(inputs)) {
    return run_rows_apart(network, inputs);
  }
  for (const RunOnce::Run& run : remembered_runs->runs_) {
    if (run.network == &network && are_same(run.inputs, inputs)) return run.outputs;
  }
  Tensors outputs = run_rows_apart(network, inputs);
  remembered_runs->runs_.push_back({&network, inputs, outputs});
  return outputs;
}

}  // namespace fcp

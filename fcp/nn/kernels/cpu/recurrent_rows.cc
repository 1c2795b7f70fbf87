#include "fcp/nn/kernels/cpu/recurrent_rows.h"

#include <algorithm>

#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"

namespace fcp {
namespace {

constexpr size_t kRowsAtOnce = 48;                // whole tiles of a product
constexpr double kRecurrentThreadWork = 1 << 21;  // products; below, a thread costs more

// A row's numbers: what the input and the state give to the gates, and the state.
struct GateRow {
  const float* gates;
  const float* state;  // GRU: h · R; null where r multiplied the state before
  const float* reset_bias;
  size_t hidden;
  float* h;
  float* c;
};

template <typename Floats>
FCP_KERNEL void lstm_row(const GateRow& row) {
  typename Floats::Type i, o, f, g, c;
  for (size_t at = 0; at < row.hidden; at += kFloatsIn<Floats>) {
    const size_t left = row.hidden - at;
    load_floats<Floats>(row.gates + at, left, 0, i);
    load_floats<Floats>(row.gates + row.hidden + at, left, 0, o);
    load_floats<Floats>(row.gates + 2 * row.hidden + at, left, 0, f);
    load_floats<Floats>(row.gates + 3 * row.hidden + at, left, 0, g);
    load_floats<Floats>(row.c + at, left, 0, c);
    sigmoid_floats<Floats>(i);
    sigmoid_floats<Floats>(o);
    sigmoid_floats<Floats>(f);
    tanh_floats<Floats>(g);
    c = f * c + i * g;
    store_floats<Floats>(c, left, row.c + at);
    tanh_floats<Floats>(c);
    c *= o;
    store_floats<Floats>(c, left, row.h + at);
  }
}

// z and r: h becomes what r lets through, and z stays in the gates' place for the second half.
template <typename Floats>
FCP_KERNEL void reset_row(const GateRow& row, float* z_to, float* through) {
  typename Floats::Type z, r, more, h;
  for (size_t at = 0; at < row.hidden; at += kFloatsIn<Floats>) {
    const size_t left = row.hidden - at;
    load_floats<Floats>(row.gates + at, left, 0, z);
    load_floats<Floats>(row.state + at, left, 0, more);
    z += more;
    load_floats<Floats>(row.gates + row.hidden + at, left, 0, r);
    load_floats<Floats>(row.state + row.hidden + at, left, 0, more);
    r += more;
    load_floats<Floats>(row.h + at, left, 0, h);
    sigmoid_floats<Floats>(z);
    sigmoid_floats<Floats>(r);
    r *= h;
    store_floats<Floats>(z, left, z_to + at);
    store_floats<Floats>(r, left, through + at);
  }
}

// The rest where r came before: `state` [H] is its product.
template <typename Floats>
FCP_KERNEL void candidate_row(const GateRow& row, const float* z_from) {
  typename Floats::Type z, n, more, h;
  for (size_t at = 0; at < row.hidden; at += kFloatsIn<Floats>) {
    const size_t left = row.hidden - at;
    load_floats<Floats>(z_from + at, left, 0, z);
    load_floats<Floats>(row.gates + 2 * row.hidden + at, left, 0, n);
    load_floats<Floats>(row.state + at, left, 0, more);
    load_floats<Floats>(row.h + at, left, 0, h);
    n += more;
    tanh_floats<Floats>(n);
    n = (1.0f - z) * n + z * h;
    store_floats<Floats>(n, left, row.h + at);
  }
}

template <typename Floats>
FCP_KERNEL void gru_row(const GateRow& row) {
  typename Floats::Type z, r, n, more, h;
  for (size_t at = 0; at < row.hidden; at += kFloatsIn<Floats>) {
    const size_t left = row.hidden - at;
    load_floats<Floats>(row.gates + at, left, 0, z);
    load_floats<Floats>(row.state + at, left, 0, more);
    z += more;
    load_floats<Floats>(row.gates + row.hidden + at, left, 0, r);
    load_floats<Floats>(row.state + row.hidden + at, left, 0, more);
    r += more;
    load_floats<Floats>(row.state + 2 * row.hidden + at, left, 0, more);
    load_floats<Floats>(row.reset_bias + at, left, 0, h);
    more += h;
    load_floats<Floats>(row.gates + 2 * row.hidden + at, left, 0, n);
    load_floats<Floats>(row.h + at, left, 0, h);
    sigmoid_floats<Floats>(z);
    sigmoid_floats<Floats>(r);
    n += r * more;
    tanh_floats<Floats>(n);
    n = (1.0f - z) * n + z * h;
    store_floats<Floats>(n, left, row.h + at);
  }
}

template <typename Floats>
FCP_KERNEL void rnn_row(const GateRow& row) {
  typename Floats::Type x;
  for (size_t at = 0; at < row.hidden; at += kFloatsIn<Floats>) {
    load_floats<Floats>(row.gates + at, row.hidden - at, 0, x);
    tanh_floats<Floats>(x);
    store_floats<Floats>(x, row.hidden - at, row.h + at);
  }
}

// A block of rows at one step. `gates` is what the input gives, `state` what the state does, both
// together in `gates` but for a GRU.
struct GateBlock {
  CellKind kind;
  size_t rows, hidden, wide;  // `wide` numbers of a row in gates and state
  const float* gates;
  float* state;
  float* h;
  float* c;
  const float* reset_bias;
  float* through;  // GRU whose r comes before: [rows, H]
  bool second;     // … its second half; `state` is [rows, H]
  float* z;        // [rows, H]
};

template <typename Floats>
FCP_KERNEL void gate_block(const GateBlock& block) {
  for (size_t i = 0; i < block.rows; ++i) {
    const size_t at = i * block.hidden;
    const GateRow row = {block.gates + i * block.wide,
                         nullptr,
                         block.reset_bias,
                         block.hidden,
                         block.h + at,
                         block.c == nullptr ? nullptr : block.c + at};
    if (block.kind == CellKind::kLstm) {
      lstm_row<Floats>(row);
    } else if (block.kind == CellKind::kRnn) {
      rnn_row<Floats>(row);
    } else {
      GateRow own = row;
      const size_t states = block.second               ? block.hidden
                            : block.through != nullptr ? 2 * block.hidden
                                                       : 3 * block.hidden;
      own.state = block.state + i * states;
      if (block.second) {
        candidate_row<Floats>(own, block.z + at);
      } else if (block.through != nullptr) {
        reset_row<Floats>(own, block.z + at, block.through + at);
      } else {
        gru_row<Floats>(own);
      }
    }
  }
}

FCP_AVX512 void gates_avx512(const GateBlock& block) { gate_block<Floats16>(block); }
FCP_AVX2 void gates_avx2(const GateBlock& block) { gate_block<Floats8>(block); }
void gates_plain(const GateBlock& block) { gate_block<Floats4>(block); }

using GateKernel = void (*)(const GateBlock&);
GateKernel gate_kernel() {
  const int width = simd_width();
  return width == 512 ? gates_avx512 : width == 256 ? gates_avx2 : gates_plain;
}

// A block of rows through all steps; its memory serves the next block.
class RecurrentBlock {
 public:
  RecurrentBlock(const RecurrentPanels& cell, const RecurrentRows& work)
      : cell_(cell),
        work_(work),
        wide_(cell.input->outputs()),
        gates_(kRowsAtOnce * wide_),
        state_(kRowsAtOnce * wide_),
        kernel_(gate_kernel()) {
    if (cell.reset != nullptr) z_.resize(kRowsAtOnce * cell.hidden);
    if (cell.reset != nullptr) through_.resize(kRowsAtOnce * cell.hidden);
  }

  void walk(size_t first, size_t rows) {
    const size_t hidden = cell_.hidden;
    for (size_t i = 0; i < work_.steps; ++i) {
      const auto t = static_cast<ptrdiff_t>(work_.backwards ? work_.steps - 1 - i : i);
      step(first, rows, t);
      float* to = work_.y + t * work_.y_step;
      const float* h = work_.h + first * hidden;
      for (size_t row = 0; row < rows; ++row) {
        std::copy_n(h + row * hidden, hidden,
                    to + static_cast<ptrdiff_t>(first + row) * work_.y_row);
      }
    }
  }

 private:
  void step(size_t first, size_t rows, ptrdiff_t t) {
    const size_t hidden = cell_.hidden;
    const float* x = work_.x + t * work_.x_step + static_cast<ptrdiff_t>(first) * work_.x_row;
    float* h = work_.h + first * hidden;
    float* c = work_.c == nullptr ? nullptr : work_.c + first * hidden;
    multiply_panels<float>({x, rows, work_.inputs, work_.x_row, 1}, *cell_.input,
                           to(gates_.data(), rows, wide_), {nullptr, cell_.bias});
    const bool gru = cell_.kind == CellKind::kGru;
    ProductEpilogue<float> add;
    if (!gru) add.added = gates_.data();
    multiply_panels<float>(from(h, rows), *cell_.state,
                           to(state_.data(), rows, cell_.state->outputs()), add);
    GateBlock block = {cell_.kind,
                       rows,
                       hidden,
                       wide_,
                       gru ? gates_.data() : state_.data(),
                       state_.data(),
                       h,
                       c,
                       cell_.reset_bias,
                       nullptr,
                       false,
                       z_.data()};
    if (cell_.reset != nullptr) block.through = through_.data();
    kernel_(block);
    if (cell_.reset == nullptr) return;
    multiply_panels<float>(from(through_.data(), rows), *cell_.reset,
                           to(state_.data(), rows, hidden));
    block.second = true;
    kernel_(block);
  }

  MatrixView<const float> from(const float* at, size_t rows) const {
    return {at, rows, cell_.hidden, static_cast<ptrdiff_t>(cell_.hidden), 1};
  }
  static MatrixView<float> to(float* at, size_t rows, size_t columns) {
    return {at, rows, columns, static_cast<ptrdiff_t>(columns), 1};
  }

  const RecurrentPanels& cell_;
  const RecurrentRows& work_;
  size_t wide_;
  FloatRows gates_, state_, z_, through_;
  GateKernel kernel_;
};

}  // namespace

void walk_recurrent(const RecurrentPanels& cell, const RecurrentRows& work, size_t threads) {
  const double products = static_cast<double>(work.steps) *
                          static_cast<double>(work.inputs + cell.hidden) *
                          static_cast<double>(cell.input->outputs() * kRowsAtOnce);
  const size_t blocks = (work.rows + kRowsAtOnce - 1) / kRowsAtOnce;
  parallel_rows(blocks, static_cast<size_t>(kRecurrentThreadWork / (products + 1)) + 1, threads,
                [&](size_t first, size_t last) {
                  RecurrentBlock block(cell, work);
                  for (size_t i = first; i < last; ++i) {
                    const size_t begin = i * kRowsAtOnce;
                    block.walk(begin, std::min(kRowsAtOnce, work.rows - begin));
                  }
                });
}

}  // namespace fcp

#include "fcp/base/interrupt.h"

#include <csignal>

namespace fcp {
namespace {

volatile std::sig_atomic_t caught_signal = 0;

void remember(int signal) {
  caught_signal = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

void check_interrupted() {
  if (caught_signal != 0) throw Interrupted(caught_signal);
}

}  // namespace fcp

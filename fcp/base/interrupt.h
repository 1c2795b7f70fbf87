// Ctrl-C ends long work in an orderly way: the signal only sets a flag, loops ask for it between
// batches, and the exception unwinds so that temporary files are removed. The program then exits
// with 130 (SIGINT) or 143 (SIGTERM), as shells expect.
#pragma once

#include <exception>

namespace fcp {

class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}
  const char* what() const noexcept override { return "interrupted"; }
  int exit_code() const { return 128 + signal_; }

 private:
  int signal_;
};

// From now on SIGINT and SIGTERM set the flag; a second one ends the process at once.
void catch_interrupts();

// Throws Interrupted when a signal has arrived. Cheap: call it once a batch.
void check_interrupted();

}  // namespace fcp

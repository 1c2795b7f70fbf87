#include "fcp/nn/runtime/parallel_alone.h"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include "fcp/base/parallel.h"
#include "fcp/nn/runtime/single_thread.h"

namespace fcp {

void parallel_alone(size_t rows, size_t least, size_t threads,
                    const std::function<void(size_t first, size_t last)>& work) {
  const SingleThread one_thread;
  const at::ThreadLocalState caller;
  parallel_rows(rows, least, threads, [&](size_t first, size_t last) {
    const at::ThreadLocalStateGuard as_caller(caller);
    at::set_num_threads(1);  // of this thread
    work(first, last);
  });
}

}  // namespace fcp

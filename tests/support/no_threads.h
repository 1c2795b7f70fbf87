// While it lives no thread can be started: each would need a stack larger than the address space.
#pragma once

#include <cstddef>

#include <pthread.h>

namespace fcp {

class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t endless;
    pthread_attr_init(&endless);
    pthread_attr_setstacksize(&endless, size_t{1} << 47);
    pthread_setattr_default_np(&endless);
    pthread_attr_destroy(&endless);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace fcp

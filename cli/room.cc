#include "cli/room.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <new>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace fcp {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;
constexpr size_t kBlasBuffer = 129 * kMebibyte;  // 128, and a page of its own
constexpr size_t kLeastWork = 64 * kMebibyte;    // networks and rows, small ones

bool is_room_for(size_t bytes) {
  void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return false;
  munmap(place, bytes);
  return true;
}

bool is_limited(int resource) {
  rlimit limit{};
  return getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY;
}

// A thread's stack, as the system makes it.
size_t stack_size() {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? static_cast<size_t>(limit.rlim_cur) : 8 * kMebibyte;
}

// OpenBLAS keeps what it has got, so buffers that are taken and given back are there for good.
void reserve_blas_buffers(int count) {
  using Take = void* (*)(int);
  using Give = void (*)(void*);
  const auto take = reinterpret_cast<Take>(dlsym(RTLD_DEFAULT, "blas_memory_alloc"));
  const auto give = reinterpret_cast<Give>(dlsym(RTLD_DEFAULT, "blas_memory_free"));
  if (take == nullptr || give == nullptr) return;  // another BLAS
  std::vector<void*> buffers;
  bool enough = true;
  for (int i = 0; enough && i < count; ++i) {
    enough = is_room_for(kBlasBuffer);
    if (enough) buffers.push_back(take(0));
  }
  for (void* buffer : buffers) give(buffer);
  if (!enough) throw std::bad_alloc();
}

}  // namespace

void check_room_to_start() {
  if (!is_room_for(kBlasBuffer)) end_out_of_memory();
}

void reserve_room(int threads, int cores) {
  if (is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA)) {
    constexpr int kMostAtOnce = 32;  // OpenBLAS has places for some dozens
    reserve_blas_buffers(std::min(threads, kMostAtOnce));
    usleep(2000);  // enough for OpenBLAS's own threads to get what they wait for, if they do
  }
  // libtorch has three sets of threads: OpenMP's, another team of them, and one for mobile
  // networks.
  const size_t stacks = 3 * static_cast<size_t>(std::max(threads, cores)) * stack_size();
  if (!is_room_for(std::max(kBlasBuffer, kLeastWork + stacks))) throw std::bad_alloc();
}

void end_out_of_memory() {
  std::cerr << "fcp: out of memory; try a smaller --batch or fewer --threads, or allow more memory "
               "(ulimit -v)\n";
  _exit(1);
}

}  // namespace fcp

// How the process uses memory.
#pragma once

#include <cstddef>

namespace fcp {

// Tells the allocator to keep what is freed. By default glibc gives large blocks back to the
// system at once and asks for them again, zeroed, at the next layer of a network.
void keep_freed_memory();

// Bytes that can be allocated without swapping, as the system says; 0 where it does not say.
size_t available_memory();

}  // namespace fcp

// Room in memory to start in. Where a process may have little address space (ulimit -v), libraries
// below fcp do not fail but wait for ever: OpenBLAS tries again and again to get a buffer of 128
// MiB, for each thread that multiplies matrices, and libtorch waits for threads that never began.
// So fcp asks first, and gets the buffers while there is room for them.
//
// Tested by tests/cli/test_memory.py.
#pragma once

namespace fcp {

// First thing in main(): ends the process with one line and exit code 1 where there is no room for
// a buffer of OpenBLAS, whose own threads may then be waiting for one already.
void check_room_to_start();

// Throws std::bad_alloc where so many threads cannot multiply matrices, or a thread for each of so
// many cores cannot start. Where address space is limited, OpenBLAS has the buffers for the threads
// when this returns.
void reserve_room(int threads, int cores);

// Ends the process with one line and exit code 1, without the work that libraries do at exit:
// OpenBLAS would wait there for threads that wait for memory.
[[noreturn]] void end_out_of_memory();

}  // namespace fcp

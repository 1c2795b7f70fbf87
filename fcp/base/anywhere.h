// A function that both processors and CUDA devices run: FCP_ANYWHERE in front of it, and for
// compilers other than nvcc it is as if it were not there.
#pragma once

#ifdef __CUDACC__
#define FCP_ANYWHERE __host__ __device__
#else
#define FCP_ANYWHERE
#endif

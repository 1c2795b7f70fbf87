// Included before everything else in the fuzzing build. clang 14 instantiates members of C++20's
// constexpr std::vector too early for libtorch 1.13, which keeps vectors of a type it has only
// declared; as in C++17, where the members are not constexpr, it waits. Written for g++ 12's
// library; the one function of <vector> that was declared constexpr before gets another name.
#pragma once

#include <string>  // must be constexpr

#pragma push_macro("_GLIBCXX20_CONSTEXPR")
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_of_bits
#include <vector>
#undef __fill_a1
#pragma pop_macro("_GLIBCXX20_CONSTEXPR")

// std::fill of a vector<bool> looks for a function that plain_vector.h has given another name; here
// it is under the first one, as the linker knows it.
#include <vector>

namespace fcp {

void fill_bits(std::_Bit_iterator first, std::_Bit_iterator last,
               const bool& value) __asm__("_ZSt9__fill_a1St13_Bit_iteratorS_RKb");

void fill_bits(std::_Bit_iterator first, std::_Bit_iterator last, const bool& value) {
  std::__fill_a1_of_bits(first, last, value);
}

}  // namespace fcp

#include "fcp/version.h"

#include <string_view>

namespace fcp {
namespace {

#define FCP_TEXT_OF(number) #number
#define FCP_TEXT(number) FCP_TEXT_OF(number)
static_assert(std::string_view(FCP_TEXT(FCP_VERSION_MAJOR) "." FCP_TEXT(
                  FCP_VERSION_MINOR) "." FCP_TEXT(FCP_VERSION_PATCH)) == FCP_VERSION,
              "the numbers are of another version than the text");

}  // namespace

const char* version() { return FCP_VERSION; }

}  // namespace fcp

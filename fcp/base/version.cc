#include "fcp/version.h"

#include <string_view>

namespace fcp {
namespace {

#define FCP_TEXT_OF(number) #number
#define FCP_TEXT(number) FCP_TEXT_OF(number)
constexpr char kVersion[] =
    FCP_TEXT(FCP_VERSION_MAJOR) "." FCP_TEXT(FCP_VERSION_MINOR) "." FCP_TEXT(FCP_VERSION_PATCH);
static_assert(std::string_view(kVersion) == FCP_VERSION, "CMakeLists.txt has another version");

}  // namespace

const char* version() { return kVersion; }

}  // namespace fcp

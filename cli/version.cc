#include "cli/version.h"

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#include <torch/version.h>

#include "fcp/distributed/communicator.h"

#include "build_facts.h"

namespace fcp::cli {
namespace {

using VersionJson = nlohmann::ordered_json;

VersionJson text_or_null(const std::string& text) {
  return text.empty() ? VersionJson() : VersionJson(text);
}

// A library that is there, whose version may be unknown.
VersionJson version_if(bool found, const std::string& version) {
  if (!found) return {};
  return version.empty() ? "unknown" : version;
}

}  // namespace

std::string version_text(bool json) {
  if (!json) return "fcp " FCP_VERSION;
  const VersionJson facts = {{"fcp", FCP_VERSION},
                             {"build_type", FCP_BUILD_TYPE},
                             {"compiler", FCP_COMPILER},
                             {"libtorch", TORCH_VERSION},
                             {"onnx", version_if(true, FCP_ONNX_VERSION)},
                             {"protobuf", version_if(true, FCP_PROTOBUF_VERSION)},
                             {"mpi", text_or_null(mpi_library())},
                             {"jpeg", version_if(JPEG_FOUND, FCP_JPEG_VERSION)},
                             {"png", version_if(PNG_FOUND, FCP_PNG_VERSION)},
                             {"zlib", version_if(true, FCP_ZLIB_VERSION)},
                             {"nlohmann_json", version_if(true, FCP_JSON_VERSION)},
                             {"cli11", CLI11_VERSION}};
  return facts.dump(2);
}

}  // namespace fcp::cli

#include "apps/cli/version.h"

#include <string>
#include <vector>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#include <torch/version.h>

#include "fcp/distributed/communicator.h"
#include "fcp/version.h"

#include "build_facts.h"

namespace fcp::cli {
namespace {

using VersionJson = nlohmann::ordered_json;

struct Component {
  const char* name;
  bool found;
  std::string version;  // empty: not known
  const char* license;  // SPDX
};

std::vector<Component> components() {
  const std::string mpi = mpi_library(), xxhash = FCP_XXHASH_VERSION;
  return {{"libtorch", true, TORCH_VERSION, "BSD-3-Clause"},
          {"onnx", true, FCP_ONNX_VERSION, "Apache-2.0"},
          {"protobuf", true, FCP_PROTOBUF_VERSION, "BSD-3-Clause"},
          {"mpi", !mpi.empty(), mpi, "BSD-3-Clause"},
          {"jpeg", JPEG_FOUND, FCP_JPEG_VERSION, "IJG AND BSD-3-Clause AND Zlib"},
          {"png", PNG_FOUND, FCP_PNG_VERSION, "libpng-2.0"},
          {"zlib", true, FCP_ZLIB_VERSION, "Zlib"},
          {"openssl", true, FCP_OPENSSL_VERSION, "Apache-2.0"},
          {"xxhash", !xxhash.empty(), xxhash, "BSD-2-Clause"},
          {"sqlite", SQLite3_FOUND, FCP_SQLITE_VERSION, "blessing"},
          {"libpq", PostgreSQL_FOUND, FCP_POSTGRESQL_VERSION, "PostgreSQL"},
          {"nlohmann_json", true, FCP_JSON_VERSION, "MIT"},
          {"cli11", true, CLI11_VERSION, "BSD-3-Clause"}};
}

}  // namespace

std::string version_text(bool json) {
  if (!json) return "fcp " FCP_VERSION;
  VersionJson facts = {{"fcp", FCP_VERSION},
                       {"license", "Apache-2.0"},
                       {"build_type", FCP_BUILD_TYPE},
                       {"compiler", FCP_COMPILER}};
  VersionJson licenses = VersionJson::object();
  for (const Component& one : components()) {
    facts[one.name] = nullptr;
    if (!one.found) continue;
    facts[one.name] = one.version.empty() ? "unknown" : one.version;
    licenses[one.name] = one.license;
  }
  facts["licenses"] = licenses;
  return facts.dump(2);
}

}  // namespace fcp::cli

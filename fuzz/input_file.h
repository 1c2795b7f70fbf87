// The input of a fuzzing step as a file, because fcp reads files: one name per process, overwritten
// at each step, in memory where the system offers that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <unistd.h>

namespace fcp {

class InputFile {
 public:
  InputFile() {
    const bool memory = access("/dev/shm", W_OK) == 0;
    path_ = (memory ? "/dev/shm/fcp_fuzz_" : "/tmp/fcp_fuzz_") + std::to_string(getpid());
  }
  ~InputFile() { std::remove(path_.c_str()); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& write(const uint8_t* data, size_t size) const {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    if (file == nullptr || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) {
      std::abort();
    }
    return path_;
  }

 private:
  std::string path_;
};

}  // namespace fcp

// SHA-256, by libcrypto: it tells in an artifact which rows it was calibrated on.
// Tested by tests/base/sha256_test.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace fcp {

class Sha256 {
 public:
  Sha256();
  ~Sha256();

  void add(std::string_view bytes);
  std::string hex();  // 64 hexadecimal digits; ends the message

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Of one piece.
std::string sha256_hex(std::string_view bytes);

}  // namespace fcp

// A certificate of its own for a test, for localhost, valid for an hour.
#pragma once

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace fcp::testing {

inline void write_certificate(const std::string& certificate, const std::string& key) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pair(EVP_EC_gen("P-256"),
                                                                 EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_set_pubkey(made.get(), pair.get());
  X509_NAME* name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  if (X509_sign(made.get(), pair.get(), EVP_sha256()) == 0)
    throw std::runtime_error("no signature");
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  const File first(std::fopen(certificate.c_str(), "w"), std::fclose);
  PEM_write_X509(first.get(), made.get());
  const File second(std::fopen(key.c_str(), "w"), std::fclose);
  PEM_write_PrivateKey(second.get(), pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
}

}  // namespace fcp::testing

// A text file that is written whole or not at all (fcp/base/output_file.h), packed by gzip where
// its name ends in .gz. Tested by tests/data/csv_writer_test.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fcp/base/output_file.h"

namespace fcp {

class TextFile {
 public:
  explicit TextFile(const std::string& path);
  ~TextFile();

  void write(std::string_view text);
  void commit();

  const std::string& path() const { return file_.path(); }

 private:
  struct Packer;

  void pack(std::string_view text, bool last);

  OutputFile file_;
  std::unique_ptr<Packer> packer_;  // null: not packed
};

}  // namespace fcp

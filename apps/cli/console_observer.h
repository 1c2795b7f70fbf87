// Tells on stderr what the pipeline does: a progress line, notes and warnings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fcp/base/progress.h"
#include "fcp/predictor/context.h"

namespace fcp::cli {

class ConsoleObserver : public Observer {
 public:
  explicit ConsoleObserver(bool quiet) : quiet_(quiet) {}

  void begin(std::string_view stage, size_t total) override;
  void advance(size_t count, const std::function<std::string()>& detail) override;
  void end() override;
  void chosen(const Choices& choices) override;
  void note(const std::string& text) override;
  void warning(const std::string& text) override;

 private:
  bool quiet_;
  std::optional<Progress> progress_;
};

}  // namespace fcp::cli

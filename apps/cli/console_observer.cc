#include "apps/cli/console_observer.h"

#include <iostream>

#include "fcp/base/printable.h"

#include "apps/report/choices_text.h"

namespace fcp::cli {

void ConsoleObserver::begin(std::string_view stage, size_t total) {
  progress_.emplace(std::string(stage), total, !quiet_);
}

void ConsoleObserver::advance(size_t count, const std::function<std::string()>& detail) {
  if (progress_) progress_->advance(count, detail);
}

void ConsoleObserver::end() { progress_.reset(); }

void ConsoleObserver::chosen(const Choices& choices) {
  for (const std::string& text : choices_text(choices)) note(text);
}

void ConsoleObserver::note(const std::string& text) {
  if (!quiet_) std::cerr << printable(text) << '\n';
}

void ConsoleObserver::warning(const std::string& text) { note("warning: " + text); }

}  // namespace fcp::cli

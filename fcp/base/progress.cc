#include "fcp/base/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include <unistd.h>

namespace fcp {
namespace {

constexpr int kBarWidth = 24;

constexpr std::chrono::milliseconds kBetweenDrawings(100);  // on a terminal
constexpr std::chrono::milliseconds kBetweenLines(30'000);  // elsewhere, as in a log

bool is_terminal() { return isatty(STDERR_FILENO) == 1; }

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%ldh%02ldm", whole / 3600, whole / 60 % 60);
  } else if (whole >= 60) {
    std::snprintf(text, sizeof text, "%ldm%02lds", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lds", whole);
  }
  return text;
}

std::string rate_text(double rate) {
  char text[32];
  if (rate >= 1e6) {
    std::snprintf(text, sizeof text, "%.1fM/s", rate / 1e6);
  } else if (rate >= 1e4) {
    std::snprintf(text, sizeof text, "%.0fk/s", rate / 1e3);
  } else {
    std::snprintf(text, sizeof text, rate >= 10 ? "%.0f/s" : "%.2f/s", rate);
  }
  return text;
}

}  // namespace

std::string progress_text(const std::string& label, size_t done, size_t total, double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  if (total == 0) return label + " " + std::to_string(done) + " " + rate_text(rate);
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int filled = static_cast<int>(share * kBarWidth);
  std::string bar(static_cast<size_t>(filled), '=');
  bar.resize(kBarWidth, ' ');
  char percent[8];
  std::snprintf(percent, sizeof percent, "%3.0f%%", 100 * share);
  std::string text = label + " [" + bar + "] " + percent + " " + rate_text(rate);
  if (rate > 0 && done < total) {
    text += ", " + duration_text(static_cast<double>(total - done) / rate) + " left";
  }
  return text;
}

Progress::Progress(std::string label, size_t total, bool enabled)
    : label_(std::move(label)),
      total_(total),
      visible_(enabled),
      start_(Clock::now()),
      last_drawn_(start_) {}

Progress::~Progress() {
  if (visible_ && is_terminal()) std::fputs("\r\033[K", stderr);
}

void Progress::advance(size_t count, const std::function<std::string()>& note) {
  done_ += count;
  if (!visible_) return;
  const Clock::time_point now = Clock::now();
  const bool terminal = is_terminal();
  if (now - last_drawn_ < (terminal ? kBetweenDrawings : kBetweenLines)) return;
  last_drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::string line = progress_text(label_, done_, total_, seconds);
  if (note) line += "  " + note();
  std::fprintf(stderr, terminal ? "\r%s\033[K" : "%s\n", line.c_str());
  std::fflush(stderr);
}

}  // namespace fcp

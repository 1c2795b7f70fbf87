// Reads the numbers back out of an <svg>: what a browser would draw with.
#pragma once

#include <cmath>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fcp::testing {

inline std::vector<std::string> attribute_values(const std::string& svg, const std::string& name) {
  const std::regex pattern("[ ]" + name + "=\"([^\"]*)\"");
  std::vector<std::string> values;
  for (std::sregex_iterator it(svg.begin(), svg.end(), pattern), end; it != end; ++it) {
    values.push_back((*it)[1]);
  }
  return values;
}

// Every coordinate is a finite number inside the viewBox (text and bars may touch its edge).
inline void expect_drawable(const std::string& svg) {
  ASSERT_EQ(svg.rfind("<svg ", 0), 0u);
  const std::string box = attribute_values(svg, "viewBox").at(0);
  double width = 0, height = 0;
  ASSERT_EQ(std::sscanf(box.c_str(), "0 0 %lf %lf", &width, &height), 2) << box;
  size_t seen = 0;
  for (const char* name :
       {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "points", "d"}) {
    for (std::string text : attribute_values(svg, name)) {
      for (char& c : text) {
        if (c == ',' || c == 'M' || c == 'L' || c == 'Z') c = ' ';
      }
      EXPECT_EQ(text.find_first_not_of("-.0123456789 "), std::string::npos) << name << ": " << text;
      const char* at = text.c_str();
      for (char* end = nullptr; *at != '\0'; at = end) {
        const double value = std::strtod(at, &end);
        if (end == at) break;
        ++seen;
        EXPECT_GE(value, -10) << name << "=" << text;
        EXPECT_LE(value, std::max(width, height) + 10) << name << "=" << text;
      }
    }
  }
  EXPECT_GT(seen, 0u);
  for (const std::string& size : attribute_values(svg, "width")) EXPECT_NE(size.front(), '-');
  for (const std::string& size : attribute_values(svg, "height")) EXPECT_NE(size.front(), '-');
  EXPECT_NE(svg.find("aria-label="), std::string::npos);
}

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

}  // namespace fcp::testing

// What calibration chose and detected, as notes for people to read.
//
// Tested by tests/report/choices_text_test.cc.
#pragma once

#include <string>
#include <vector>

#include "fcp/calibrate/choices.h"

namespace fcp {

std::vector<std::string> choices_text(const Choices& choices);
std::vector<std::string> findings_text(const CalibrationFindings& findings);

}  // namespace fcp

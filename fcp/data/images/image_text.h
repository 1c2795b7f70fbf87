// An ImageTransform and class names as text (JSON) and back, so that a calibrated network carries
// how its images are to be read. Tested by tests/data/images/image_text_test.cc.
#pragma once

#include <string>
#include <vector>

#include "fcp/data/images/image_transform.h"

namespace fcp {

// The keys under which calibration keeps the texts in the network's metadata.
constexpr char kImagesKey[] = "fcp.images";
constexpr char kClassesKey[] = "fcp.classes";  // a JSON list of names

std::string transform_text(const ImageTransform& transform);

// An Error where the text is damaged.
ImageTransform parse_transform(const std::string& text);

std::string class_names_text(const std::vector<std::string>& names);
std::vector<std::string> parse_class_names(const std::string& text);

}  // namespace fcp

#include "fcp/data/images/image_text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

namespace fcp {
namespace {

using ImageJson = nlohmann::ordered_json;

int whole_number(const ImageJson& json) {
  if (!json.is_number_integer()) fail("the image settings are damaged: ", json.dump());
  return json.get<int>();
}

}  // namespace

std::string transform_text(const ImageTransform& transform) {
  return ImageJson{{"resize", transform.resize},
                   {"size", transform.size},
                   {"crop", transform.crop},
                   {"mean", transform.mean},
                   {"deviation", transform.deviation}}
      .dump();
}

ImageTransform parse_transform(const std::string& text) {
  try {
    const ImageJson json = ImageJson::parse(text);
    ImageTransform transform;
    transform.resize = whole_number(json.at("resize"));
    transform.size = {whole_number(json.at("size").at(0)), whole_number(json.at("size").at(1))};
    transform.crop = whole_number(json.at("crop"));
    json.at("mean").get_to(transform.mean);
    json.at("deviation").get_to(transform.deviation);
    check_transform(transform);
    return transform;
  } catch (const nlohmann::json::exception&) {
    fail("the image settings are damaged: ", text);
  }
}

std::string class_names_text(const std::vector<std::string>& names) {
  // Names that are not UTF-8 keep what can be kept of them.
  return ImageJson(names).dump(-1, ' ', false, ImageJson::error_handler_t::replace);
}

std::vector<std::string> parse_class_names(const std::string& text) {
  const ImageJson names = ImageJson::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto is_text = [](const ImageJson& name) { return name.is_string(); };
  if (!names.is_array() || !std::all_of(names.begin(), names.end(), is_text)) {
    fail("the class names are damaged: ", text);
  }
  return names.get<std::vector<std::string>>();
}

}  // namespace fcp

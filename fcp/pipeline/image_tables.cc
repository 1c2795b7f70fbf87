#include "fcp/pipeline/image_tables.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

namespace fcp {
namespace {

// A double with all its digits.
std::string digits(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

}  // namespace

void write_image_scores(const std::string& path, const SegmentationSet& set,
                        const RowScores& rows) {
  std::vector<std::string> columns = {"file", "score"};
  if (!rows.baseline.empty()) columns.emplace_back("residual");
  CsvWriter csv(path, columns);
  for (size_t i = 0; i < rows.scores.size(); ++i) {
    csv.cell(std::string_view(set.pairs[i].name));
    csv.cell(std::string_view(digits(rows.scores[i])));
    if (!rows.baseline.empty()) csv.cell(std::string_view(digits(rows.baseline[i])));
    csv.end_row();
  }
  csv.close();
}

ImageFiguresFile::ImageFiguresFile(const std::string& path) {
  if (path.empty()) return;
  csv_.emplace(path, std::vector<std::string>{"file", "method", "covered", "pixel_share",
                                              "value_share", "length", "weighted_length"});
}

void ImageFiguresFile::add(const EvaluatedImage& image) {
  if (!csv_) return;
  const ImageFigures& figures = image.figures;
  csv_->cell(std::string_view(image.name));
  csv_->cell(std::string_view(image.method));
  csv_->cell(int64_t{image.covered});
  for (const double value :
       {figures.pixel_share(), figures.values_in, figures.length(), figures.weighted_length}) {
    csv_->cell(std::string_view(digits(value)));
  }
  csv_->end_row();
}

void ImageFiguresFile::close() {
  if (csv_) csv_->close();
}

}  // namespace fcp

#include "fcp/pipeline/region_writer.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/npy.h"
#include "fcp/data/number.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/pixel_pictures.h"
#include "fcp/pipeline/region_tensors.h"

namespace fcp {
namespace {

// Three for each output, and for unions a fourth that lists their intervals.
std::vector<std::string> interval_columns(const Graph& network, size_t outputs, bool unions) {
  std::vector<std::string> parts = {"prediction", "lower", "upper"};
  if (unions) parts.emplace_back("intervals");
  if (outputs == 1) return parts;
  std::vector<std::string> columns;
  for (const std::string& name : target_names_of(network, outputs)) {
    for (const std::string& part : parts) columns.push_back(part + "_" + name);
  }
  return columns;
}

// "1.5:2|3:4.25", the intervals of [P, 2] in ascending order.
std::string union_text(const torch::Tensor& parts) {
  const FloatEnds ends = float_ends(parts.select(1, 0), parts.select(1, 1));
  std::string text;
  for (int64_t i = 0; i < parts.size(0); ++i) {
    const float low = ends.lower[i].item<float>(), high = ends.upper[i].item<float>();
    if (low > high) continue;
    if (!text.empty()) text += '|';
    text += number_text(low) + ":" + number_text(high);
  }
  return text;
}

std::span<const float> float_numbers(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

std::span<const bool> flags(const torch::Tensor& tensor) {
  return {tensor.data_ptr<bool>(), static_cast<size_t>(tensor.numel())};
}

// Opened when the first rows say how many outputs or classes there are.
class RegionFile : public RegionWriter {
 public:
  RegionFile(std::string out, const CalibrationArtifact& artifact)
      : out_(std::move(out)), artifact_(artifact) {}

  void append(const Rows&, const Regions& regions) override {
    if (!npy_ && !csv_) open(regions);
    if (regions.members.defined()) {
      append_sets(regions);
    } else {
      append_intervals(regions);
    }
  }

  void close() override {
    if (npy_) npy_->close();
    if (csv_) csv_->close();
  }

 private:
  void open(const Regions& regions) {
    const bool sets = regions.members.defined(), unions = regions.parts.defined();
    if (unions && out_.ends_with(".npy")) {
      fail(out_, ": an .npy holds one interval for each output; write unions as CSV");
    }
    const int64_t width = sets ? regions.members.size(1) : regions.prediction.size(1);
    if (sets) names_ = class_names_of(artifact_.network, static_cast<size_t>(width));
    if (out_.ends_with(".npy")) {
      const std::vector<int64_t> shape = sets ? std::vector{width} : std::vector{width, int64_t{3}};
      npy_ = std::make_unique<NpyWriter>(out_, shape,
                                         sets ? NpyWriter::Type::kBool : NpyWriter::Type::kFloat32);
    } else {
      csv_ = std::make_unique<CsvWriter>(
          out_, sets ? std::vector<std::string>{"prediction", "size", "labels"}
                     : interval_columns(artifact_.network, static_cast<size_t>(width), unions));
    }
  }

  void append_intervals(const Regions& regions) {
    const FloatEnds ends = float_ends(regions.lower, regions.upper);
    const torch::Tensor rows =
        torch::stack({regions.prediction.to(torch::kFloat), ends.lower, ends.upper}, 2)
            .to(torch::kCPU)
            .contiguous();  // [N, K, 3]
    const std::span<const float> all = float_numbers(rows);
    if (npy_) {
      npy_->append(all);
      return;
    }
    const size_t width = all.size() / static_cast<size_t>(std::max<int64_t>(1, rows.size(0)));
    if (regions.parts.defined()) return append_unions(regions.parts.to(torch::kCPU), all, width);
    for (size_t i = 0; i < all.size(); i += width) csv_->row(all.subspan(i, width));
  }

  // `parts` [N, K, P, 2], `all` [N, K, 3].
  void append_unions(const torch::Tensor& parts, std::span<const float> all, size_t width) {
    for (size_t i = 0; i < all.size(); i += 3) {
      const auto at = static_cast<int64_t>(i / 3), outputs = parts.size(1);
      for (const float value : all.subspan(i, 3)) csv_->cell(value);
      csv_->cell(std::string_view(union_text(parts[at / outputs][at % outputs])));
      if ((i + 3) % width == 0) csv_->end_row();
    }
  }

  void append_sets(const Regions& regions) {
    const torch::Tensor members = host_members(regions);
    if (npy_) {
      npy_->append(flags(members));
      return;
    }
    const std::vector<int64_t> predicted = host_labels(regions.prediction);
    for (int64_t row = 0; row < members.size(0); ++row) {
      const std::vector<std::string> labels = member_names(members, row, names_);
      std::string joined;
      for (const std::string& label : labels) joined += (joined.empty() ? "" : "|") + label;
      csv_->cell(
          std::string_view(names_[static_cast<size_t>(predicted[static_cast<size_t>(row)])]));
      csv_->cell(static_cast<int64_t>(labels.size()));
      csv_->cell(std::string_view(joined));
      csv_->end_row();
    }
  }

  std::string out_;
  const CalibrationArtifact& artifact_;
  std::vector<std::string> names_;  // of the classes
  std::unique_ptr<NpyWriter> npy_;
  std::unique_ptr<CsvWriter> csv_;
};

void write_pixel_regions(const std::string& path, const Regions& regions, const Image& image,
                         const SegmentTask& task) {
  const int64_t height = image.height, width = image.width;
  if (regions.members.defined()) {
    const torch::Tensor members = host_members(regions);
    NpyWriter file(path, {height, width}, NpyWriter::Type::kBool);
    file.append(flags(members));
    file.close();
    return;
  }
  NpyWriter file(path, {task.channels(), height, width});
  const FloatEnds ends = float_ends(regions.lower, regions.upper);
  const torch::Tensor lower = ends.lower.to(torch::kCPU).contiguous();
  const torch::Tensor upper = ends.upper.to(torch::kCPU).contiguous();
  file.append(float_numbers(lower));
  file.append(float_numbers(upper));
  file.close();
}

class RegionFolder : public RegionWriter {
 public:
  RegionFolder(std::string folder, bool bands, const SegmentationRows& images)
      : folder_(std::move(folder)), bands_(bands), images_(images) {}

  void append(const Rows& rows, const Regions& regions) override {
    for (size_t i = 0; i < rows.x.rows(); ++i) {
      const SegmentImage& image = images_.images().at(i);
      const Regions own = region_of_row(regions, i);
      const std::string stem = folder_ + "/" + image.name;
      write_png(stem + ".png", pixel_picture(image.image, own, images_.task()).strip);
      if (bands_) write_pixel_regions(stem + ".npy", own, image.image, images_.task());
    }
  }

  void close() override {}

 private:
  std::string folder_;
  bool bands_;
  const SegmentationRows& images_;
};

}  // namespace

std::unique_ptr<RegionWriter> open_region_file(const std::string& out,
                                               const CalibrationArtifact& artifact) {
  return std::make_unique<RegionFile>(out, artifact);
}

std::unique_ptr<RegionWriter> open_region_folder(const std::string& folder, bool bands,
                                                 const SegmentationRows& images) {
  return std::make_unique<RegionFolder>(folder, bands, images);
}

}  // namespace fcp

#include "fcp/predictor/region_writer.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/data/columns.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/data/npy.h"
#include "fcp/data/number.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"
#include "fcp/predictor/segmentation_task.h"

namespace fcp {
namespace {

// Of each output: the prediction, then lower and upper end for each level, and for unions a column
// that lists their intervals.
std::vector<std::string> interval_columns(const Graph& network, size_t outputs, bool unions,
                                          const std::vector<std::string>& endings) {
  std::vector<std::string> names =
      outputs == 1 ? std::vector<std::string>{""} : target_names_of(network, outputs);
  std::vector<std::string> columns;
  for (std::string& name : names) {
    if (!name.empty()) name.insert(name.begin(), '_');
    columns.push_back("prediction" + name);
    for (const std::string& ending : endings) {
      columns.push_back("lower" + name + ending);
      columns.push_back("upper" + name + ending);
      if (unions) columns.push_back("intervals" + name + ending);
    }
  }
  return columns;
}

std::vector<std::string> set_columns(const std::vector<std::string>& endings) {
  std::vector<std::string> columns{"prediction"};
  for (const std::string& ending : endings) {
    columns.push_back("size" + ending);
    columns.push_back("labels" + ending);
  }
  return columns;
}

// What columns of a level end in: nothing where there is one.
std::vector<std::string> level_endings(const std::vector<Level>& levels) {
  std::vector<std::string> endings;
  for (const Level& level : levels) endings.push_back("_" + level.text());
  return endings.size() > 1 ? endings : std::vector<std::string>{""};
}

std::string exact_text(double value) {
  char text[kNumberLength];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// Prediction, lower and upper, [N, K, 3] doubles: where float32 numbers are too coarse.
torch::Tensor exact_numbers(const Regions& regions) {
  return torch::stack({host_doubles(regions.prediction), host_doubles(regions.lower),
                       host_doubles(regions.upper)},
                      2)
      .contiguous();
}

// "1.5:2|3:4.25", the intervals of [P, 2] in ascending order.
std::string union_text(const torch::Tensor& parts, bool exact) {
  std::string text;
  if (exact) {
    const torch::Tensor ends = host_doubles(parts);
    for (int64_t i = 0; i < ends.size(0); ++i) {
      const double low = ends[i][0].item<double>(), high = ends[i][1].item<double>();
      if (low > high) continue;
      text += concat(text.empty() ? "" : "|", exact_text(low), ":", exact_text(high));
    }
    return text;
  }
  const FloatEnds ends = float_ends(parts.select(1, 0), parts.select(1, 1));
  for (int64_t i = 0; i < parts.size(0); ++i) {
    const float low = ends.lower[i].item<float>(), high = ends.upper[i].item<float>();
    if (low > high) continue;
    if (!text.empty()) text += '|';
    text += number_text(low) + ":" + number_text(high);
  }
  return text;
}

// Of each level, for every row and output; empty where regions are intervals.
std::vector<std::vector<std::string>> union_texts(std::span<const Regions> regions, bool exact) {
  std::vector<std::vector<std::string>> texts(regions.size());
  for (size_t level = 0; level < regions.size(); ++level) {
    if (!regions[level].parts.defined()) continue;
    const torch::Tensor parts = regions[level].parts.to(torch::kCPU).flatten(0, 1);
    for (int64_t i = 0; i < parts.size(0); ++i) {
      texts[level].push_back(union_text(parts[i], exact));
    }
  }
  return texts;
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
  RegionFile(std::string out, const CalibrationArtifact& artifact, RegionFileOptions options)
      : out_(std::move(out)), artifact_(artifact), options_(std::move(options)) {
    check_csv_path(out_);  // before anything is computed
    const bool more = options_.levels.size() > 1 || !options_.kept.names.empty() ||
                      options_.lines || options_.probabilities || options_.flags ||
                      !options_.added.empty();
    if (more && out_.ends_with(".npy")) {
      fail(out_, ": an .npy holds the regions of one level alone; write CSV");
    }
  }

  using RegionWriter::append;
  void append(const Rows& rows, std::span<const Regions> levels,
              const torch::Tensor& more) override {
    if (!npy_ && !csv_ && !json_) open(levels.front());
    if (more.defined()) more_ = more.to(torch::kFloat).contiguous();
    if (levels.front().members.defined()) {
      append_sets(rows, levels);
    } else {
      append_intervals(rows, levels);
    }
  }

  void close() override {
    if (npy_) npy_->close();
    if (csv_) csv_->close();
    if (json_) json_->close();
  }

 private:
  void open(const Regions& regions) {
    const bool sets = regions.members.defined(), unions = regions.parts.defined();
    if (exact_ && !sets && out_.ends_with(".npy")) {
      fail(out_, ": an .npy holds float32 numbers, too coarse for a target whose spread is this ",
           "small beside its mean; write CSV or JSON");
    }
    if (unions && out_.ends_with(".npy")) {
      fail(out_, ": an .npy holds one interval for each output; write unions as CSV");
    }
    const int64_t width = sets ? regions.members.size(1) : regions.prediction.size(1);
    if (sets) names_ = class_names_of(artifact_.network, static_cast<size_t>(width));
    if (out_.ends_with(".npy")) {
      const std::vector<int64_t> shape = sets ? std::vector{width} : std::vector{width, int64_t{3}};
      npy_ = std::make_unique<NpyWriter>(out_, shape,
                                         sets ? NpyWriter::Type::kBool : NpyWriter::Type::kFloat32);
      return;
    }
    const std::vector<std::string> endings = level_endings(options_.levels);
    std::vector<std::string> columns = options_.kept.names;
    if (options_.lines) columns.insert(columns.begin(), "line");
    for (const std::string& column :
         sets ? set_columns(endings)
              : interval_columns(artifact_.network, static_cast<size_t>(width), unions, endings)) {
      columns.push_back(column);
    }
    std::vector<const char*> kinds = {"p_"};
    if (!artifact_.chances.empty()) kinds.insert(kinds.end(), {"p0_", "p1_"});
    for (const char* kind : kinds) {
      for (size_t k = 0; options_.probabilities && k < names_.size(); ++k) {
        columns.push_back(kind + names_[k]);
      }
    }
    columns.insert(columns.end(), options_.added.begin(), options_.added.end());
    if (options_.flags) columns.emplace_back("flags");
    if (out_.ends_with(".json") || out_.ends_with(".json.gz")) {
      json_ = std::make_unique<JsonRows>(out_, columns);
    } else {
      csv_ = std::make_unique<CsvWriter>(out_, columns);
    }
  }

  // Each row: what is kept of the data, what `write` adds, and what is said of the row.
  template <typename Write>
  void append_rows(const Rows& rows, size_t count, const Write& write) {
    const auto put = [&](size_t row, auto& text) {
      if (options_.lines) text.cell(static_cast<int64_t>(rows.notes.lines.at(row)));
      for (const std::vector<std::string>& column : options_.kept.cells) {
        text.cell(std::string_view(column.at(rows.first_row + row)));
      }
      write(row, text);
      const size_t more = more_.defined() ? static_cast<size_t>(more_.size(1)) : 0;
      for (size_t k = 0; k < more; ++k) text.cell(more_.data_ptr<float>()[row * more + k]);
      const bool said = options_.flags && row < rows.notes.flags.size();
      if (options_.flags) text.cell(std::string_view(said ? rows.notes.flags[row] : ""));
    };
    if (csv_) return csv_->rows(count, put);
    for (size_t row = 0; row < count; ++row) {
      put(row, *json_);
      json_->end_row();
    }
  }

  void append_intervals(const Rows& rows, std::span<const Regions> regions) {
    std::vector<torch::Tensor> levels;
    for (const Regions& one : regions) {
      levels.push_back(exact_ ? exact_numbers(one) : interval_numbers(one));
    }
    if (npy_) {
      npy_->append(float_numbers(levels.front()));
      return;
    }
    const std::vector<std::vector<std::string>> unions = union_texts(regions, exact_);
    const size_t outputs = static_cast<size_t>(levels.front().size(1));
    append_rows(rows, static_cast<size_t>(levels.front().size(0)), [&](size_t row, auto& text) {
      for (size_t k = 0; k < outputs; ++k) {
        for (size_t level = 0; level < levels.size(); ++level) {
          const size_t place = row * outputs + k;
          for (size_t i = level == 0 ? 0 : 1; i < 3; ++i) {
            if (exact_) {
              text.cell(numbers(levels[level])[3 * place + i]);
            } else {
              text.cell(float_numbers(levels[level])[3 * place + i]);
            }
          }
          if (!unions[level].empty()) text.cell(std::string_view(unions[level][place]));
        }
      }
    });
  }

  void append_sets(const Rows& rows, std::span<const Regions> regions) {
    std::vector<torch::Tensor> levels;
    for (const Regions& one : regions) levels.push_back(host_members(one));
    if (npy_) {
      npy_->append(flags(levels.front()));
      return;
    }
    const std::vector<int64_t> predicted = host_labels(regions.front().prediction);
    append_rows(rows, predicted.size(), [&](size_t row, auto& text) {
      text.cell(std::string_view(names_[static_cast<size_t>(predicted[row])]));
      for (const torch::Tensor& members : levels) {
        const std::vector<std::string> labels =
            member_names(members, static_cast<int64_t>(row), names_);
        text.cell(static_cast<int64_t>(labels.size()));
        text.list(labels);
      }
    });
  }

  std::string out_;
  const CalibrationArtifact& artifact_;
  RegionFileOptions options_;
  const bool exact_ = artifact_.network.metadata.contains(kTargetOffsetKey);
  std::vector<std::string> names_;  // of the classes
  std::unique_ptr<NpyWriter> npy_;
  std::unique_ptr<CsvWriter> csv_;
  std::unique_ptr<JsonRows> json_;
  torch::Tensor more_;  // of the rows that are written, [N, columns] float32
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
  RegionFolder(std::string folder, bool bands, const RowSource& images)
      : folder_(std::move(folder)),
        bands_(bands),
        task_(*images.segmentation()),
        class_names_(images.class_names()) {}

  using RegionWriter::append;
  void append(const Rows& rows, std::span<const Regions> levels,
              const torch::Tensor& /*more*/) override {
    for (size_t i = 0; i < rows.images.size(); ++i) {
      const SegmentImage& image = *rows.images[i];
      const Regions own = region_of_row(levels.front(), i);
      const std::string stem = folder_ + "/" + image.name;
      write_png(stem + ".png", pixel_picture(image.image, own, task_, class_names_));
      if (bands_) write_pixel_regions(stem + ".npy", own, image.image, task_);
    }
  }

  void close() override {}

 private:
  std::string folder_;
  bool bands_;
  SegmentTask task_;
  std::vector<std::string> class_names_;
};

}  // namespace

KeptColumns read_kept_columns(const DataOptions& data, const std::string& list) {
  KeptColumns kept;
  if (list.empty()) return kept;
  const std::vector<std::string> files = file_list(data.data);
  if (are_images(data) || holds_array(files[0])) {
    fail_option("keep", "takes columns of a CSV file; ", data.data, " has none");
  }
  CsvRecords records(open_text(files[0], data.csv.text_encoding), data.csv.separator);
  CsvHead head = read_head(records, data.csv.header);
  make_names_unique(head);
  std::vector<size_t> columns(head.names.size());
  std::iota(columns.begin(), columns.end(), size_t{0});
  if (list != "all" || head.has(list)) columns = head.find_list(list, "keep");
  for (const size_t column : columns) {
    kept.names.push_back(head.names[column]);
    std::vector<std::string>& cells = kept.cells.emplace_back();
    for (const std::string& file : files) {
      for (std::string& cell : read_csv_column(file, head.names[column], data.csv)) {
        cells.push_back(std::move(cell));
      }
    }
  }
  return kept;
}

std::unique_ptr<RegionWriter> open_region_file(const std::string& out,
                                               const CalibrationArtifact& artifact,
                                               RegionFileOptions options) {
  return std::make_unique<RegionFile>(out, artifact, std::move(options));
}

std::unique_ptr<RegionWriter> open_region_folder(const std::string& folder, bool bands,
                                                 const RowSource& images) {
  return std::make_unique<RegionFolder>(folder, bands, images);
}

}  // namespace fcp

#include "cli/label_steps.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/progress.h"
#include "fcp/base/random.h"
#include "fcp/calibration/calibrated_predictor.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/image.h"
#include "fcp/data/npy.h"
#include "fcp/distributed/packing.h"
#include "fcp/report/console.h"
#include "fcp/report/format.h"
#include "fcp/scores/labels.h"

#include "cli/answers.h"
#include "cli/method_stream.h"
#include "cli/same_rows.h"
#include "cli/shared_batches.h"
#include "cli/steps.h"

namespace fcp {
namespace {

constexpr size_t kExamples = 24;

// The members [N, C] as bytes on the host.
torch::Tensor host_members(const Regions& regions) {
  return regions.members.to(torch::kCPU, torch::kBool).contiguous();
}

std::vector<int64_t> host_labels(const torch::Tensor& labels) {
  const torch::Tensor plain = labels.to(torch::kCPU, torch::kLong).flatten().contiguous();
  return {plain.data_ptr<int64_t>(), plain.data_ptr<int64_t>() + plain.numel()};
}

// The labels of row `row` by name.
std::vector<std::string> member_names(const torch::Tensor& members, int64_t row,
                                      const std::vector<std::string>& names) {
  std::vector<std::string> labels;
  const bool* in = members.data_ptr<bool>() + row * members.size(1);
  for (size_t k = 0; k < names.size(); ++k) {
    if (in[k]) labels.push_back(names[k]);
  }
  return labels;
}

class SetWriter {
 public:
  SetWriter(const std::string& out, std::vector<std::string> names) : names_(std::move(names)) {
    if (out.ends_with(".npy")) {
      npy_ = std::make_unique<NpyWriter>(
          out, std::vector<int64_t>{static_cast<int64_t>(names_.size())}, NpyWriter::Type::kBool);
    } else {
      csv_ = std::make_unique<CsvWriter>(out,
                                         std::vector<std::string>{"prediction", "size", "labels"});
    }
  }

  void append(const Regions& regions) {
    const torch::Tensor members = host_members(regions);
    if (npy_) {
      npy_->append(std::span(members.data_ptr<bool>(), static_cast<size_t>(members.numel())));
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

  void close() {
    if (npy_) npy_->close();
    if (csv_) csv_->close();
  }

 private:
  std::vector<std::string> names_;
  std::unique_ptr<NpyWriter> npy_;
  std::unique_ptr<CsvWriter> csv_;
};

// One score of labels on a stream of rows.
class SetStream {
 public:
  SetStream(const Calibrated& calibrated, const CalibratedPredictor& predictor,
            const RowSource& source, const Level& level, const std::vector<std::string>& names,
            const std::vector<std::string>& groups)
      : calibrated_(calibrated),
        predictor_(predictor),
        source_(source),
        level_(level),
        evaluator_(names.size(), {.class_names = names, .group_names = groups}) {}

  // Packs what take() needs of these rows, and returns their sets.
  Regions measure(const NewRows& rows, size_t first_row, const torch::Tensor& truth,
                  Packer& packer) const {
    const Regions regions = predictor_.region(rows, level_);
    check_answers(regions, source_, first_row);
    const torch::Tensor members = host_members(regions);
    const bool all_scores = calibrated_.rows.levels.empty();
    const Judged judged = judge_rows(predictor_, rows, truth, all_scores);
    uint64_t detected = 0;
    for (const bool in :
         within_radii(predictor_, rows, truth, judged.scores, level_, calibrated_.score.paper)) {
      detected += in ? 1 : 0;
    }
    packer.add(std::span(reinterpret_cast<const uint8_t*>(members.data_ptr<bool>()),
                         static_cast<size_t>(members.numel())));
    packer.add(judged.p_values);
    packer.add(count_within(calibrated_, predictor_, rows, truth, judged.scores));
    packer.add(detected);
    return regions;
  }

  void take(Unpacker& unpacker, std::span<const int64_t> labels, std::span<const int64_t> groups) {
    const std::vector<uint8_t> members = unpacker.numbers<uint8_t>();
    evaluator_.add({.members = members, .truth = labels, .groups = groups});
    const std::vector<double> p_values = unpacker.numbers<double>();
    p_values_.insert(p_values_.end(), p_values.begin(), p_values.end());
    add_counts(within_, unpacker.numbers<uint64_t>());
    detected_ += unpacker.number();
    rows_ += labels.size();
  }

  LabelMethodResult finish() const {
    LabelMethodResult result;
    result.name = calibrated_.score.name;
    result.evaluation = evaluator_.finish();
    const bool all_scores = calibrated_.rows.levels.empty();
    if (calibrated_.calibration.name == "split") {
      result.radius = calibrated_.radius(level_)[0];
      if (all_scores) result.scores = calibrated_.rows.scores;
    }
    result.curve = all_scores ? coverage_curve(p_values_, curve_levels())
                              : curve_of_levels(calibrated_, within_, rows_);
    result.guaranteed = obeys_law(calibrated_.score);
    if (!result.guaranteed) result.detection = coverage_of(detected_, rows_);
    return result;
  }

 private:
  const Calibrated& calibrated_;
  const CalibratedPredictor& predictor_;
  const RowSource& source_;
  Level level_;
  SetEvaluator evaluator_;
  std::vector<double> p_values_;
  std::vector<uint64_t> within_;
  size_t detected_ = 0;
  size_t rows_ = 0;
};

// How often the true label is among the largest one or five logits.
class TopCounter {
 public:
  TopCounter(const CalibratedPredictor& predictor, const std::string& output)
      : head_(logit_head(predictor.predictor().shared_head(), output)) {}

  void measure(const torch::Tensor& features, const torch::Tensor& truth, Packer& packer) const {
    const torch::Tensor ranks = label_ranks(logits_of(head_, features));
    const torch::Tensor own = ranks.gather(1, truth.to(torch::kLong).reshape({-1, 1}));
    packer.add(std::vector<int64_t>{(own == 1).sum().item<int64_t>(),
                                    (own <= 5).sum().item<int64_t>(), own.size(0)});
  }

  void take(Unpacker& unpacker) {
    const std::vector<int64_t> counts = unpacker.numbers<int64_t>();
    first_ += counts.at(0);
    fifth_ += counts.at(1);
    rows_ += counts.at(2);
  }

  double top1() const { return static_cast<double>(first_) / static_cast<double>(rows_); }
  double top5() const { return static_cast<double>(fifth_) / static_cast<double>(rows_); }

 private:
  LogitHead head_;
  int64_t first_ = 0, fifth_ = 0, rows_ = 0;
};

void pack_example(const LabelExample& example, Packer& packer) {
  packer.add(example.name);
  packer.add(example.truth);
  packer.add(example.prediction);
  packer.add(uint64_t{example.members.size()});
  for (const std::string& member : example.members) packer.add(member);
  packer.add(uint64_t{example.covered});
  packer.add(example.image_png);
}

LabelExample unpack_example(Unpacker& unpacker) {
  LabelExample example;
  example.name = unpacker.text();
  example.truth = unpacker.text();
  example.prediction = unpacker.text();
  const uint64_t members = unpacker.number();
  for (uint64_t i = 0; i < members; ++i) example.members.push_back(unpacker.text());
  example.covered = unpacker.number() != 0;
  example.image_png = unpacker.text();
  return example;
}

// A sample of rows to be shown, with their pictures where the rows are images. Which rows are drawn
// follows from their numbers alone: a rank draws for all rows, and makes the examples of its own.
class ExampleSampler {
 public:
  ExampleSampler(const RowSource& source, const std::vector<std::string>& names,
                 std::optional<ImageTransform> transform, uint64_t seed)
      : source_(source), names_(names), transform_(std::move(transform)), random_(seed) {}

  void measure(const Rows& rows, const Regions& regions, Packer& packer) {
    const torch::Tensor members = host_members(regions);
    const std::vector<int64_t> predicted = host_labels(regions.prediction);
    while (drawn_ < rows.first_row) draw();
    std::vector<uint64_t> places;
    std::vector<size_t> chosen;
    for (size_t i = 0; i < rows.x.rows(); ++i) {
      const size_t place = draw();
      if (place >= kExamples) continue;
      places.push_back(place);
      chosen.push_back(i);
    }
    packer.add(places);
    for (const size_t i : chosen) {
      LabelExample example;
      example.name = source_.row_name(rows.first_row + i);
      if (example.name.empty()) example.name = concat("row ", rows.first_row + i);
      const auto truth = static_cast<size_t>(rows.y.values[i]);
      example.truth = names_[truth];
      example.prediction = names_[static_cast<size_t>(predicted[i])];
      example.members = member_names(members, static_cast<int64_t>(i), names_);
      example.covered = members[static_cast<int64_t>(i)][static_cast<int64_t>(truth)].item<bool>();
      if (transform_) example.image_png = picture(rows.x, i);
      pack_example(example, packer);
    }
  }

  void take(Unpacker& unpacker) {
    for (const uint64_t place : unpacker.numbers<uint64_t>()) {
      if (place >= examples_.size()) examples_.resize(place + 1);
      examples_[place] = unpack_example(unpacker);
    }
  }

  std::vector<LabelExample> take() { return std::move(examples_); }

 private:
  // The place of the next row in the sample; kExamples or more: it is left out.
  size_t draw() {
    const size_t row = drawn_++;
    return row < kExamples ? row : static_cast<size_t>(random_.below(row + 1));
  }

  // What the network saw, with the normalisation undone.
  std::string picture(const Array& x, size_t row) const {
    const auto height = static_cast<int>(x.shape[2]), width = static_cast<int>(x.shape[3]);
    Image image = blank_image(height, width, 3);
    const size_t plane = static_cast<size_t>(height) * static_cast<size_t>(width);
    for (size_t channel = 0; channel < 3; ++channel) {
      const float* from = x.values.data() + (row * 3 + channel) * plane;
      for (size_t i = 0; i < plane; ++i) {
        const float value =
            255 * (from[i] * transform_->deviation[channel] + transform_->mean[channel]);
        image.pixels[i * 3 + channel] =
            static_cast<uint8_t>(std::clamp(std::lround(value), 0l, 255l));
      }
    }
    return encode_png(image);
  }

  const RowSource& source_;
  const std::vector<std::string>& names_;
  std::optional<ImageTransform> transform_;
  Random random_;
  std::vector<LabelExample> examples_;
  size_t drawn_ = 0;
};

}  // namespace

size_t predict_sets(const Calibrated& calibrated, RowSource& source, size_t batch,
                    const Level& level, const RowFacts& facts, const std::string& out,
                    torch::Device device, const CommonOptions& common) {
  torch::NoGradGuard no_grad;
  const CalibratedPredictor predictor(calibrated, device);
  const auto classes = static_cast<size_t>(predictor.score().classes());
  SetWriter writer(out, class_names_of(calibrated.network, classes));
  size_t done = 0;
  Progress progress("predict", source.size().value_or(0), !common.quiet);
  for (Rows rows; source.next(batch, rows);) {
    check_interrupted();
    const size_t count = rows.x.rows();
    const NewRows fresh = predictor.describe(
        view(rows.x), given_rows(facts, calibrated.rows.group_names.size(), done, count));
    const Regions regions = predictor.region(fresh, level);
    check_answers(regions, source, rows.first_row);
    writer.append(regions);
    done += count;
    progress.advance(count);
  }
  if (done == 0) fail("the data has no rows to predict");
  check_facts(facts, done);
  writer.close();
  return done;
}

LabelReport evaluate_sets(const Calibrated& calibrated, RowSource& source, const DataOptions& data,
                          const Level& level, const RowFacts& facts, torch::Device device,
                          const CommonOptions& common) {
  torch::NoGradGuard no_grad;
  const CalibratedPredictor predictor(calibrated, device);
  const auto names =
      class_names_of(calibrated.network, static_cast<size_t>(predictor.score().classes()));
  const std::optional<Calibrated> plain = baseline_predictor(calibrated);
  std::optional<CalibratedPredictor> plain_predictor;
  if (plain) plain_predictor.emplace(*plain, device);
  SetStream method(calibrated, predictor, source, level, names, facts.shown.names);
  std::optional<SetStream> baseline;
  if (plain) baseline.emplace(*plain, *plain_predictor, source, level, names, facts.shown.names);
  TopCounter top(predictor, calibrated.score.output);
  std::optional<ImageTransform> transform;
  if (are_images(data)) transform = transform_for(data, &calibrated.network);
  ExampleSampler sampler(source, names, transform, common.seed);
  SameRows same(calibrated, source);
  size_t done = 0;
  Progress progress("evaluate", source.size().value_or(0), !common.quiet);
  const size_t batch = batch_rows(data, source);
  const auto measure = [&](size_t, const Rows& rows) {
    const NewRows fresh = predictor.describe(
        view(rows.x),
        given_rows(facts, calibrated.rows.group_names.size(), rows.first_row, rows.x.rows()));
    const torch::Tensor truth = view(rows.y);
    Packer packer;
    packer.add(host_labels(truth));
    const Regions regions = method.measure(fresh, rows.first_row, truth, packer);
    if (baseline) baseline->measure(fresh, rows.first_row, truth, packer);
    top.measure(fresh.features, truth, packer);
    sampler.measure(rows, regions, packer);
    same.measure(rows, packer);
    return packer.take();
  };
  const auto take = [&](size_t, std::string_view result) {
    Unpacker unpacker(result);
    const std::vector<int64_t> labels = unpacker.numbers<int64_t>();
    const auto ids = groups_of(facts.shown, done, labels.size());
    method.take(unpacker, labels, ids);
    if (baseline) baseline->take(unpacker, labels, ids);
    top.take(unpacker);
    sampler.take(unpacker);
    same.take(unpacker);
    done += labels.size();
    progress.advance(labels.size());
  };
  share_batches(*common.ranks, source, batch, measure, take);
  LabelReport report;
  if (common.ranks->rank() != 0) return report;
  check_facts(facts, done);
  report.level = level;
  report.calibration_rows = calibrated.rows.count();
  report.methods.push_back(method.finish());
  report.methods.front().top1 = top.top1();
  report.methods.front().top5 = top.top5();
  if (baseline) report.methods.push_back(baseline->finish());
  report.examples = sampler.take();
  report.class_names = names;
  report.provenance.assign(calibrated.provenance.begin(), calibrated.provenance.end());
  for (const auto& warning : {infinite_radius_warning(calibrated, level), same.warning()}) {
    if (warning) report.notes.push_back(*warning);
  }
  return report;
}

void print_methods(const LabelReport& report) {
  for (const LabelMethodResult& method : report.methods) {
    std::cout << (&method == &report.methods.front() ? "" : "\n") << method.name << '\n';
    if (method.top1) {
      std::cout << "top-1, top-5    " << format_percent(*method.top1) << ", "
                << format_percent(*method.top5) << '\n';
    }
    if (method.detection) {
      std::cout << "detection       " << format_percent(method.detection->rate)
                << "  scores within the radius: what is guaranteed, but not of the sets\n";
    }
    print_evaluation(std::cout, method.evaluation, {.level = report.level});
  }
}

}  // namespace fcp

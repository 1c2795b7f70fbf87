// The public headers as a program outside uses them, on one table with numbers and text.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fcp/fcp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"
#include "fcp/nn/graph/onnx_reader.h"

#include "tests/support/files.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kRows = 400;

struct Trip {
  std::string distance, city;
  float minutes;
};

// Made once for all tests, because it trains.
class ProgramTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = std::make_unique<Shared>();
    fcp::Random random(3);
    shared_->trips = drive(kRows, random);
    write_csv(path("trips.csv"), shared_->trips);
    shared_->fresh = drive(kRows / 2, random);
    write_csv(path("fresh.csv"), shared_->fresh);
    const fcp::FitResult fitted =
        fcp::fit(path("trips.csv"), "minutes",
                 {.score = "residual", .calibration = "split", .members = 2, .epochs = 5});
    shared_->fitted = fitted.evaluation;
    EXPECT_EQ(fitted.training_rows + fitted.calibration_rows + fitted.test_rows, kRows);
    fitted.predictor.save(path("calibrated.onnx"));
  }
  static void TearDownTestSuite() { shared_.reset(); }

  static std::vector<Trip> drive(size_t count, fcp::Random& random) {
    std::vector<Trip> trips;
    for (size_t i = 0; i < count; ++i) {
      const float distance = static_cast<float>(1 + 9 * random.uniform());
      const bool ulm = random.uniform() < 0.5;
      const double minutes = 3 * distance + (ulm ? 5 : 0) + random.normal();
      trips.push_back({text_of(distance), ulm ? "Ulm" : "Bonn", static_cast<float>(minutes)});
    }
    return trips;
  }

  // All digits of it.
  static std::string text_of(float number) {
    std::ostringstream text;
    text << std::setprecision(9) << number;
    return text.str();
  }

  static void write_csv(const std::string& path, const std::vector<Trip>& trips) {
    std::ofstream csv(path);
    csv << "distance_km,city,minutes\n";
    for (const Trip& trip : trips) {
      csv << trip.distance << ',' << trip.city << ',' << text_of(trip.minutes) << '\n';
    }
  }

  static std::string path(const std::string& name) { return shared_->folder.path(name); }
  static fcp::Predictor loaded() { return fcp::Predictor::load(path("calibrated.onnx")); }
  static std::vector<fcp::Record> records() {
    std::vector<fcp::Record> rows;
    for (const Trip& trip : shared_->trips) {
      rows.push_back({{"distance_km", trip.distance}, {"city", trip.city}});
    }
    return rows;
  }
  static std::vector<float> truths() {
    std::vector<float> minutes;
    for (const Trip& trip : shared_->trips) minutes.push_back(trip.minutes);
    return minutes;
  }

  struct Shared {
    fcp::Folder folder;
    std::vector<Trip> trips, fresh;
    fcp::EvaluationResult fitted;
  };
  static inline std::unique_ptr<Shared> shared_;
};

template <typename Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const fcp::Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(ProgramTest, AnswersARecordAtTwoLevels) {
  const auto p = fcp::Predictor::load(path("calibrated.onnx"));
  const std::vector<fcp::Record> rows = {{{"distance_km", "3.2"}, {"city", "Ulm"}}};
  const fcp::Answer a = p.predict(p.schema().encode(rows), {fcp::Level(0.05), fcp::Level(0.1)});
  EXPECT_EQ(a.rows(), 1u);
  EXPECT_EQ(a.outputs(), 1u);
  EXPECT_EQ(a.classes(), 0u);
  for (size_t level = 0; level < 2; ++level) {
    const double radius = p.radius(a.levels()[level]).at(0);
    EXPECT_NEAR(a.interval(0, 0, level).lower, a.point(0) - radius, 1e-9);
    EXPECT_NEAR(a.interval(0, 0, level).upper, a.point(0) + radius, 1e-9);
    EXPECT_THAT(a.parts(0, 0, level), ElementsAre(a.interval(0, 0, level)));
  }
  EXPECT_LT(a.interval(0, 0, 1).length(), a.interval(0, 0, 0).length());
  EXPECT_THROW((void)a.interval(0, 0, 2), std::out_of_range);
  EXPECT_THROW((void)a.interval(1), std::out_of_range);
  EXPECT_THROW((void)a.point(0, 1), std::out_of_range);
}

TEST_F(ProgramTest, TellsWhatItIs) {
  const fcp::Predictor p = loaded();
  EXPECT_THAT(p.schema().columns(), ElementsAre("distance_km", "city"));
  EXPECT_EQ(p.schema().group_column(), "");
  EXPECT_FALSE(p.schema().needs_weights());
  EXPECT_EQ(p.schema().inputs().size(), 1u);
  EXPECT_EQ(p.method("score"), "residual");
  EXPECT_EQ(p.method("calibration"), "split");
  EXPECT_EQ(p.method("no such option"), "");
  EXPECT_THAT(p.kept_levels(), IsEmpty());
  EXPECT_THAT(p.classes(), IsEmpty());
  EXPECT_EQ(p.provenance().at("fcp"), fcp::version());
  EXPECT_EQ(std::string(fcp::version()), std::to_string(FCP_VERSION_MAJOR) + "." +
                                             std::to_string(FCP_VERSION_MINOR) + "." +
                                             std::to_string(FCP_VERSION_PATCH));
}

// Columns by name, as numbers and as texts, are the records.
TEST_F(ProgramTest, ColumnsAreRecords) {
  const fcp::Predictor p = loaded();
  const fcp::Answer expected = p.predict(p.schema().encode(records()), {fcp::Level(0.1)});
  std::vector<double> distance;
  std::vector<std::string> city;
  for (const Trip& trip : shared_->trips) {
    distance.push_back(std::stod(trip.distance));
    city.push_back(trip.city);
  }
  const std::vector<fcp::NamedValues> columns = {{"city", city}, {"distance_km", distance}};
  const fcp::Answer found = p.predict(p.schema().encode(columns), {fcp::Level(0.1)});
  EXPECT_TRUE(std::ranges::equal(found.lower(), expected.lower()));
  EXPECT_TRUE(std::ranges::equal(found.points(), expected.points()));
  const std::vector<fcp::NamedValues> uneven = {{"city", city}, {"distance_km", std::vector{1.0}}};
  EXPECT_EQ(message_of([&] { (void)p.schema().encode(uneven); }),
            "input 'distance_km': found the shape [1], expected [400] or [400, 1]");
}

TEST_F(ProgramTest, JudgesByTheSameRegions) {
  const fcp::Predictor p = loaded();
  const fcp::Batch batch = p.schema().encode(records());
  const std::vector<float> y = truths();
  const std::vector<fcp::Level> levels = {fcp::Level(0.1), fcp::Level(0.4)};
  const fcp::Answer answer = p.predict(batch, levels);
  const fcp::Judgement judged = p.judge(batch, y, levels);
  EXPECT_EQ(judged.p_values, p.p_values(batch, y));
  for (size_t i = 0; i < kRows; ++i) {
    EXPECT_EQ(judged.scores[i], std::abs(y[i] - answer.point(i))) << i;
    for (size_t level = 0; level < levels.size(); ++level) {
      const bool inside = answer.interval(i, 0, level).contains(y[i]);
      EXPECT_EQ(judged.in[level][i], inside) << i;
      EXPECT_EQ(judged.p_values[i] > levels[level].value(), inside) << i;
    }
  }
}

TEST_F(ProgramTest, EvaluatesFilesAndMemoryAlike) {
  const fcp::Predictor p = loaded();
  const fcp::EvaluationResult by_file = fcp::evaluate(p, path("trips.csv"), "minutes");
  const std::vector<float> y = truths();
  const fcp::EvaluationResult by_memory = fcp::evaluate(p, p.schema().encode(records()), y);
  EXPECT_EQ(by_file.rows, kRows);
  EXPECT_EQ(by_file.covered, by_memory.covered);
  EXPECT_EQ(by_file.coverage, by_memory.coverage);
  EXPECT_EQ(by_file.interval_score, by_memory.interval_score);
  EXPECT_NEAR(by_file.size, 2 * p.radius(fcp::Level(0.1)).at(0), 1e-9);
  EXPECT_LE(by_file.coverage_low, by_file.coverage);
  EXPECT_GE(by_file.coverage_high, by_file.coverage);
  EXPECT_GT(shared_->fitted.rows, 0u);
}

// Other rows, and a radius for each city: by files, and by named columns in memory.
TEST_F(ProgramTest, CalibratesByNamedColumnsToo) {
  const fcp::CalibrateOptions options{
      .score = "residual", .calibration = "grouped", .group = "city"};
  const fcp::Predictor by_file =
      fcp::calibrate(path("calibrated.onnx"), path("fresh.csv"), "minutes", options);
  std::vector<std::string> distance, city;
  std::vector<float> minutes;
  for (const Trip& trip : shared_->fresh) {
    distance.push_back(trip.distance);
    city.push_back(trip.city);
    minutes.push_back(trip.minutes);
  }
  const std::vector<fcp::NamedValues> columns = {{"distance_km", distance}, {"city", city}};
  const fcp::Predictor by_memory =
      fcp::calibrate(path("calibrated.onnx"), columns, minutes, options, {.groups = city});
  EXPECT_EQ(by_file.schema().group_column(), "city");
  EXPECT_EQ(by_file.calibration_rows(), kRows / 2);
  const std::vector<fcp::Level> levels = {fcp::Level(0.1), fcp::Level(0.3)};
  const fcp::Answer file = by_file.predict(by_file.schema().encode(records()), levels);
  const fcp::Answer memory = by_memory.predict(by_memory.schema().encode(records()), levels);
  for (size_t level = 0; level < 2; ++level) {
    EXPECT_TRUE(std::ranges::equal(file.lower(level), memory.lower(level)));
    EXPECT_TRUE(std::ranges::equal(file.upper(level), memory.upper(level)));
  }
  std::set<long> lengths;  // one per city, but for rounding
  for (size_t i = 0; i < kRows; ++i) lengths.insert(std::lround(1e4 * file.interval(i).length()));
  EXPECT_THAT(lengths.size(), testing::AllOf(testing::Ge(2u), testing::Le(4u)));
}

TEST_F(ProgramTest, KeepsSomeLevelsAlone) {
  const fcp::Predictor p =
      fcp::calibrate(path("calibrated.onnx"), path("fresh.csv"), "minutes",
                     {.score = "residual", .keep_levels = {fcp::Level(0.05), fcp::Level(0.1)}});
  EXPECT_THAT(p.kept_levels(), ElementsAre(fcp::Level(0.05), fcp::Level(0.1)));
  p.save(path("kept.onnx"));
  const fcp::Predictor read = fcp::Predictor::load(path("kept.onnx"));
  const fcp::Batch batch = read.schema().encode(records());
  EXPECT_EQ(read.predict(batch, {fcp::Level(0.1)}).interval(3),
            p.predict(batch, {fcp::Level(0.1)}).interval(3));
  EXPECT_THAT(message_of([&] { (void)read.predict(batch, {fcp::Level(0.2)}); }),
              HasSubstr("keeps the radii for levels 0.05, 0.1 alone"));
}

TEST_F(ProgramTest, ExportsLevels) {
  const fcp::Predictor p = loaded();
  fcp::export_onnx(p, path("plain.onnx"), {.levels = {fcp::Level(0.1)}, .prefix = "my_"});
  const fcp::Graph graph = fcp::read_onnx(path("plain.onnx"));
  EXPECT_EQ(graph.outputs.at(graph.outputs.size() - 2).name, "my_lower");
  EXPECT_EQ(graph.outputs.back().name, "my_upper");
}

TEST_F(ProgramTest, FitsByGroupsWeightsAndTypes) {
  fcp::FitOptions options{.score = "residual", .members = 2, .epochs = 2};
  options.keep_together = "city";
  options.types = {{"distance_km", "category"}};
  EXPECT_THAT(message_of([&] { (void)fcp::fit(path("trips.csv"), "minutes", options); }),
              HasSubstr("to calibrate"))
      << "two cities are too few groups for three parts";
  options.keep_together = "";
  options.cover_each = "city";
  options.row_weights = "distance_km";
  options.target_scale = "identity";
  options.types.clear();
  options.trees = false;
  const fcp::FitResult fitted = fcp::fit(path("trips.csv"), "minutes", options);
  EXPECT_EQ(fitted.split, "at random");
  EXPECT_EQ(fitted.predictor.schema().groups().size(), 2u);
  EXPECT_EQ(fitted.predictor.provenance().at("row weights"), "'distance_km', in training alone");
  ASSERT_EQ(fitted.evaluation.rmse.size(), 1u);
  EXPECT_GT(fitted.evaluation.rmse[0], fitted.evaluation.mae[0]);
  options.types = {{"city", "town"}};
  EXPECT_THAT(message_of([&] { (void)fcp::fit(path("trips.csv"), "minutes", options); }),
              HasSubstr("'town' is not a type"));
  options.types.clear();
  options.target_scale = "sqrt";
  EXPECT_THAT(message_of([&] { (void)fcp::fit(path("trips.csv"), "minutes", options); }),
              HasSubstr("target_scale: found 'sqrt'"));
}

TEST_F(ProgramTest, NamesWhatIsWrong) {
  const fcp::Predictor p = loaded();
  const std::vector<fcp::Record> rows = {{{"distance_km", "3"}, {"city", "Ulm"}},
                                         {{"distance_km", "far"}, {"city", "Ulm"}}};
  EXPECT_THAT(message_of([&] { (void)p.schema().encode(rows); }),
              HasSubstr("row 1 (from 0), column 'distance_km': expected a number, found 'far'"));
  EXPECT_THAT(message_of([] { (void)fcp::Predictor::load("none.onnx"); }), HasSubstr("none.onnx"));
  EXPECT_THAT(message_of([] { (void)fcp::fit("none.csv", "y", {.task = "sums"}); }),
              HasSubstr("task: found 'sums'"));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_F(ProgramTest, NamesOfTheLastVersionStay) {
  const fcp::ConformalPredictor old = fcp::ConformalPredictor::load(path("calibrated.onnx"));
  const fcp::Predictor p = loaded();
  const fcp::Answer answer = p.predict(p.schema().encode(records()), {fcp::Level(0.1)});
  EXPECT_EQ(old.intervals(records(), fcp::Level(0.1)).at(7), answer.interval(7));
  EXPECT_EQ(old.predictions(records()).at(7), answer.point(7));
  EXPECT_EQ(old.score(), "residual");
  const fcp::Settings settings{.score = "nested"};
  EXPECT_EQ(settings.score, "nested");
}
#pragma GCC diagnostic pop

}  // namespace

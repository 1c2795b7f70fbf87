#include "apps/experiments/prepared_set.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "fcp/base/random.h"
#include "fcp/data/scaling.h"
#include "fcp/data/split.h"
#include "fcp/training/train.h"

#include "apps/experiments/paper_sets.h"

namespace fcp {
namespace {

constexpr double kSelectionShare = 0.2;
constexpr size_t kQuickRows = 1500;

torch::Tensor tensor_of(const Array& array) {
  return torch::from_blob(const_cast<float*>(array.values.data()), array.shape, torch::kFloat)
      .clone();
}

DataSet quick_set(const std::string& name, uint64_t seed) {
  if (name == "synthetic") return synthetic_set(seed, {.rows = kQuickRows});
  return demo_set(seed, kQuickRows);
}

}  // namespace

PreparedSet prepare(const DataSet& data, uint64_t seed) {
  const Folds folds = paper_folds(data.x.rows(), seed);
  const Array x_train = take_rows(data.x, folds.training);
  const Array y_train = take_rows(data.y, folds.training);
  const Standardiser scaler = fit_standardiser(x_train);
  const double unit = target_scale(y_train);
  const auto x_of = [&](const std::vector<size_t>& rows) {
    return tensor_of(standardise(scaler, take_rows(data.x, rows)));
  };
  const auto y_of = [&](const std::vector<size_t>& rows) {
    return tensor_of(divide(take_rows(data.y, rows), unit));
  };
  PreparedSet set;
  set.name = data.name;
  set.seed = seed;
  set.unit = unit;
  set.x_training = standardise(scaler, x_train);
  set.y_training = divide(y_train, unit);
  set.x_calibration = x_of(folds.calibration);
  set.y_calibration = y_of(folds.calibration);
  set.x_test = x_of(folds.test);
  set.y_test = y_of(folds.test);
  return set;
}

PreparedSet prepare_cell(const CellKey& key, const ExperimentOptions& options) {
  static Memo<DataSet> sets;  // of files: each is read by all its seeds
  const bool made = key.set == "synthetic" || key.set == "demo";
  PreparedSet prepared;
  if (made) {
    const DataSet data =
        options.quick ? quick_set(key.set, key.seed) : load_regression_set(key.set, "", key.seed);
    prepared = prepare(data, key.seed);
  } else {
    try {
      prepared = prepare(
          *sets.get(options.data_dir + "/" + key.set,
                    [&] { return load_regression_set(key.set, options.data_dir, key.seed); }),
          key.seed);
    } catch (const Error& error) {
      throw MissingData(error.what());
    }
  }
  if (made) prepared.name = key.set;
  prepared.shared = true;
  return prepared;
}

DataSet load_regression_set(const std::string& name, const std::string& data_dir, uint64_t seed) {
  if (name == "synthetic") return synthetic_set(seed);
  if (name == "demo") return demo_set(seed);
  return load_paper_set(name, data_dir);
}

const std::vector<std::string>& one_dimensional_sets() { return paper_set_names(); }

const std::vector<std::string>& regression_sets() {
  static const std::vector<std::string> sets = [] {
    std::vector<std::string> names = paper_set_names();
    names.push_back("synthetic");
    return names;
  }();
  return sets;
}

std::shared_ptr<const Graph> trained_network(const PreparedSet& set, Loss loss, int64_t epochs) {
  static Memo<Graph> networks;
  if (set.network) return set.network;
  const auto train = [&] {
    TrainOptions options;
    options.seed = set.seed;
    options.epochs = epochs;
    options.scale = false;
    options.loss = loss;
    options.two_networks = loss == Loss::kQuantile;
    return train_network(set.x_training, set.y_training, options).graph;
  };
  if (!set.shared) return std::make_shared<const Graph>(train());
  const std::string key = concat(set.name, " ", set.seed, " ", set.x_training.rows(), " ",
                                 loss_name(loss), " ", epochs);
  return networks.get(key, train);
}

SplitRows split_rows(const torch::Tensor& rows, uint64_t seed) {
  const auto count = static_cast<size_t>(rows.size(0));
  std::vector<int64_t> order;
  for (const size_t row : Random(seed).permutation(count)) {
    order.push_back(static_cast<int64_t>(row));
  }
  const torch::Tensor mixed = rows.index_select(0, torch::tensor(order, torch::kLong));
  const auto slice = static_cast<int64_t>(static_cast<double>(count) * kSelectionShare);
  return {mixed.narrow(0, 0, slice), mixed.narrow(0, slice, mixed.size(0) - slice)};
}

namespace {

int64_t signed_size(size_t size) { return static_cast<int64_t>(size); }

Array uniform_array(Random& random, size_t rows, size_t columns, double low, double high) {
  Array array = zeros({signed_size(rows), signed_size(columns)});
  for (float& value : array.values) {
    value = static_cast<float>(low + (high - low) * random.uniform());
  }
  return array;
}

// x·Wᵀ + b for x [N, inputs], W [outputs, inputs], b [outputs].
Array affine(const Array& x, const Array& weight, const Array& bias) {
  const size_t outputs = weight.rows(), inputs = weight.row_size();
  Array y = zeros({x.shape[0], signed_size(outputs)});
  for (size_t i = 0; i < x.rows(); ++i) {
    const float* row = x.values.data() + i * inputs;
    for (size_t k = 0; k < outputs; ++k) {
      const float* w = weight.values.data() + k * inputs;
      double sum = bias.values[k];
      for (size_t j = 0; j < inputs; ++j) sum += static_cast<double>(w[j]) * row[j];
      y.values[i * outputs + k] = static_cast<float>(sum);
    }
  }
  return y;
}

std::vector<std::string> numbered(const std::string& letter, size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(letter + std::to_string(i));
  return names;
}

double round_to(double value, double step) { return std::round(value / step) * step; }

}  // namespace

DataSet synthetic_set(uint64_t seed, const SyntheticOptions& options) {
  Random random(seed);
  DataSet set{"synthetic", numbered("x", options.inputs), numbered("y", options.outputs), {}, {}};
  set.x = uniform_array(random, options.rows, options.inputs, 0, 1);
  const Array weight = uniform_array(random, options.outputs, options.inputs, 0, 1);
  set.y = affine(set.x, weight, zeros({signed_size(options.outputs)}));
  for (float& value : set.y.values) value += static_cast<float>(random.normal());
  return set;
}

Array evaluate(const DenseNetwork& network, const Array& x) {
  Array value = x;
  for (size_t i = 0; i < network.weights.size(); ++i) {
    if (i > 0) {
      for (float& v : value.values) v = std::max(v, 0.0f);
    }
    value = affine(value, network.weights[i], network.biases[i]);
  }
  return value;
}

ZeroQuantileSet zero_quantile_set(uint64_t seed, const ZeroQuantileOptions& options) {
  Random random(seed);
  ZeroQuantileSet set;
  const size_t sizes[] = {options.inputs, options.width, options.width, 1};
  for (size_t i = 0; i < 3; ++i) {  // uniform in ±1/√inputs, as networks usually begin
    const double bound = 1 / std::sqrt(static_cast<double>(sizes[i]));
    set.truth.weights.push_back(uniform_array(random, sizes[i + 1], sizes[i], -bound, bound));
    Array bias = uniform_array(random, 1, sizes[i + 1], -bound, bound);
    bias.shape = {signed_size(sizes[i + 1])};
    set.truth.biases.push_back(bias);
  }
  set.data = {"zero quantile", numbered("x", options.inputs), {"y"}, {}, {}};
  set.data.x = uniform_array(random, options.rows, options.inputs, 0, 1);
  set.data.y = evaluate(set.truth, set.data.x);
  set.noise = zeros(set.data.y.shape);
  for (size_t i = 0; i < options.rows; ++i) {
    if (random.uniform() < options.zero_share) continue;
    set.noise.values[i] = static_cast<float>(random.normal());
    set.data.y.values[i] += set.noise.values[i];
  }
  return set;
}

DataSet demo_set(uint64_t seed, size_t rows) {
  DataSet set{"demo",
              {"distance_km", "hour", "weekday", "items", "rain_mm", "traffic", "courier_years",
               "temperature_c"},
              {"minutes"},
              zeros({signed_size(rows), 8}),
              zeros({signed_size(rows), 1})};
  Random random(seed);
  for (size_t i = 0; i < rows; ++i) {
    const double distance = round_to(0.5 + 14.5 * random.uniform(), 0.01);
    const double hour = static_cast<double>(8 + random.below(15));
    const double weekday = static_cast<double>(random.below(7));
    const double items = static_cast<double>(1 + random.below(8));
    const double rain = round_to(std::max(0.0, 2 * random.normal() - 1), 0.1);
    const double evening = std::exp(-(hour - 18) * (hour - 18) / 8);
    const double traffic = round_to(0.3 * evening + 0.7 * random.uniform(), 0.01);
    const double years = round_to(10 * random.uniform(), 0.1);
    const double temperature = round_to(14 + 8 * random.normal(), 0.1);
    const double expected = 8 + 2.2 * distance * (1 + 0.8 * traffic) + 1.5 * items +
                            3 * std::sqrt(rain) - 0.8 * std::min(years, 5.0) +
                            (weekday >= 5 ? 3 : 0) + (temperature < 0 ? 4 : 0);
    const double noise = 1 + distance * traffic * (0.8 + 0.15 * rain);
    const double values[] = {distance, hour, weekday, items, rain, traffic, years, temperature};
    std::copy(std::begin(values), std::end(values), set.x.values.begin() + signed_size(8 * i));
    set.y.values[i] = static_cast<float>(round_to(expected + noise * random.normal(), 0.01));
  }
  return set;
}

}  // namespace fcp

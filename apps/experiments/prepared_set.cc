#include "apps/experiments/prepared_set.h"

#include "fcp/base/random.h"
#include "fcp/data/folds.h"
#include "fcp/data/scaling.h"
#include "fcp/training/train.h"

#include "apps/experiments/memo.h"
#include "apps/experiments/paper_sets.h"
#include "apps/experiments/synthetic.h"

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

}  // namespace fcp

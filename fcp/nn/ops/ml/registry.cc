#include <map>
#include <string>

#include "fcp/nn/ops/factories.h"

namespace fcp {

const std::map<std::string, OpFactory>& ml_ops() {
  static const std::map<std::string, OpFactory> ops = {
      {"ArrayFeatureExtractor", make_array_feature_extractor},
      {"Binarizer", make_binarizer},
      {"FeatureVectorizer", make_feature_vectorizer},
      {"Imputer", make_imputer},
      {"LabelEncoder", make_label_encoder},
      {"LinearClassifier", make_linear_classifier},
      {"LinearRegressor", make_linear_regressor},
      {"Normalizer", make_normalizer},
      {"OneHotEncoder", make_one_hot_encoder},
      {"SVMClassifier", make_svm_classifier},
      {"SVMRegressor", make_svm_regressor},
      {"Scaler", make_scaler},
      {"TreeEnsemble", make_tree_ensemble},
      {"TreeEnsembleClassifier", make_tree_ensemble_classifier},
      {"TreeEnsembleRegressor", make_tree_ensemble_regressor},
  };
  return ops;
}

}  // namespace fcp

#include "fcp/data/images/segmentation_folds.h"

#include <algorithm>
#include <set>

#include "fcp/base/error.h"
#include "fcp/data/images/folder.h"
#include "fcp/data/images/image_list.h"

namespace fcp {

SegmentationSet open_labelled(const SegmentDataOptions& options, const std::string& usual,
                              int classes) {
  SegmentationSet set = open_segmentation(options.data, classes, options.folds);
  if (!options.folds.empty()) return set;
  std::set<std::string> folds;
  for (const SegmentationPair& pair : set.pairs) folds.insert(pair.fold);
  if (folds.size() == 1) return set;
  if (!folds.contains(usual)) {
    std::string known;
    for (const std::string& fold : folds) known += (known.empty() ? "" : ", ") + fold;
    fail(options.data, ": has the folds ", known, "; name the fold to use");
  }
  std::erase_if(set.pairs, [&](const SegmentationPair& pair) { return pair.fold != usual; });
  return set;
}

SegmentationSet open_unlabelled(const SegmentDataOptions& options, int classes) {
  SegmentationSet set{};
  set.classes = classes;
  if (!is_folder(options.data)) {
    set.pairs.push_back({file_stem(options.data), options.data, "", ""});
    return set;
  }
  const std::vector<std::string> folders = list_folder(options.data).folders;
  const bool layout = std::any_of(folders.begin(), folders.end(), [](const std::string& name) {
    return name == "leftImg8bit" || name == "labels" || name.ends_with("annot");
  });
  if (layout) return open_labelled(options, "test", classes);
  if (!options.folds.empty()) fail(options.data, ": is a plain folder of images; it has no folds");
  std::set<std::string> names;
  for (const std::string& path : images_below(options.data)) {
    set.pairs.push_back({file_stem(path), path, "", ""});
    if (!names.insert(set.pairs.back().name).second) {
      fail(path, ": another image of this folder has the same name");
    }
  }
  if (set.pairs.empty()) fail(options.data, ": no .jpg, .jpeg or .png image");
  return set;
}

}  // namespace fcp

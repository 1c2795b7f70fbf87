// Images as rows, streamed like any other data: x [n, 3, height, width], y [n, 1]. Files are
// decoded and transformed by threads ahead of the consumer, in order; memory holds the images that
// are ahead, whatever the size of the data set. Besides what image_list.h lists there are .npy
// arrays of uint8 images [N, height, width, 3], normalised as they are read.
//
// Tested by tests/data/images/image_rows_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "fcp/data/images/image_list.h"
#include "fcp/data/images/image_transform.h"
#include "fcp/data/rows.h"

namespace fcp {

struct ImageOptions {
  ImageTransform transform = {};
  ImageListOptions list = {};
  std::string labels = "";  // of .npy images: their .npy of labels; empty for none
  size_t threads = 0;       // that decode; 0: as many as the machine has
  size_t ahead = 64;        // images kept ready at most
};

// Where the transform leaves the size open (no crop and no size), the first image gives it, and
// another size later is an Error.
std::unique_ptr<RowSource> open_images(const std::string& data, const ImageOptions& options = {});

}  // namespace fcp

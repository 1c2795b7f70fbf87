// Which images a data set has, and their labels:
//   a folder of folders   every folder is a class, with images at any depth; classes are numbered
//                         in the order of their sorted names, as torchvision's ImageFolder does
//   a flat folder         images in the order of their sorted names, without labels
//   a CSV file            a column of files, relative to the CSV, and a column of labels
// A label is a number, or text: then it is a class name, numbered by the list of class names where
// one is given and in sorted order otherwise.
//
// Tested by tests/data/images/image_list_test.cc.
#pragma once

#include <string>
#include <vector>

namespace fcp {

struct ImageList {
  std::vector<std::string> files;
  std::vector<float> labels;             // one per file, or none
  std::vector<std::string> class_names;  // label i is class_names[i]; empty where unknown
};

struct ImageListOptions {
  std::string file_column = "file";
  std::string label_column = "label";  // empty: no labels
  std::string class_file = "";         // class names, one per line
};

// `data` is a folder, or a CSV file with a header. Fails where there is no image, or a label has no
// class name while names are known.
ImageList list_images(const std::string& data, const ImageListOptions& options = {});

// All images below the folder, with its path: sorted by folder, then by name.
std::vector<std::string> images_below(const std::string& folder);

}  // namespace fcp

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

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fcp/data/images/image_transform.h"
#include "fcp/data/rows.h"

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

// What lies in a folder, in an order that does not depend on the file system.
// Tested by tests/data/images/image_list_test.cc.

struct FolderEntries {
  std::vector<std::string> files;    // names, sorted by bytes
  std::vector<std::string> folders;  // the same
};

bool is_folder(const std::string& path);

// Links are followed; names that begin with a dot are left out.
FolderEntries list_folder(const std::string& path);

// folder/name.
std::string path_in(const std::string& folder, const std::string& name);

// The file's name without folders and without its last ending: "a/b.c.png" gives "b.c".
std::string file_stem(const std::string& path);

// The lines of a text file, without line ends; empty lines at the end do not count.
std::vector<std::string> read_lines(const std::string& path);

// Images as rows, streamed like any other data: x [n, 3, height, width], y [n, 1]. Files are
// decoded and transformed by threads ahead of the consumer, in order; memory holds the images that
// are ahead, whatever the size of the data set. Besides what is listed so there are .npy
// arrays of uint8 images [N, height, width, 3], normalised as they are read.
//
// Tested by tests/data/images/image_list_test.cc.

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

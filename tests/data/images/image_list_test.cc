#include "fcp/data/images/image_list.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fcp/data/npy.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Only names are looked at here, so that the files may be empty.
void touch(const Folder& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (size_t slash = 0; (slash = name.find('/', slash)) != std::string::npos; ++slash) {
      mkdir(folder.path(name.substr(0, slash)).c_str(), 0755);
    }
    folder.write(name, "");
  }
}

std::vector<std::string> names_in(const Folder& folder, std::vector<std::string> paths) {
  for (std::string& path : paths) path = path.substr(folder.path().size() + 1);
  return paths;
}

TEST(Folder, ListsSortedNames) {
  const Folder folder;
  touch(folder, {"b.txt", "B.txt", "a/x", ".hidden", "c/y", ".d/z"});
  const FolderEntries entries = list_folder(folder.path());
  EXPECT_THAT(entries.files, ElementsAre("B.txt", "b.txt"));
  EXPECT_THAT(entries.folders, ElementsAre("a", "c"));
  EXPECT_EQ(message_of(folder, [&] { list_folder(folder.path("no")); }), "no: no such folder");
  EXPECT_EQ(file_stem("a.b/c.d.png"), "c.d");
  EXPECT_EQ(file_stem("c"), "c");
}

TEST(Folder, ReadsLines) {
  const Folder folder;
  EXPECT_THAT(read_lines(folder.write("a", "one, two\r\n\nthree\n\n")),
              ElementsAre("one, two", "", "three"));
  EXPECT_THAT(read_lines(folder.write("b", "")), IsEmpty());
}

TEST(ImageList, OfClassFolders) {
  const Folder folder;
  // Folders in the order of torchvision's sorted(os.walk()): "a", "a-b", "a/b", by bytes.
  touch(folder, {"s/dog/2.jpg", "s/dog/10.PNG", "s/cat/a/b/1.jpeg", "s/cat/a-b/2.jpg",
                 "s/cat/a/9.jpg", "s/cat/notes.txt", "s/Ant/x.jpg", "s/readme.md"});
  const ImageList list = list_images(folder.path("s"));
  EXPECT_THAT(list.class_names, ElementsAre("Ant", "cat", "dog"));
  EXPECT_THAT(names_in(folder, list.files),
              ElementsAre("s/Ant/x.jpg", "s/cat/a/9.jpg", "s/cat/a-b/2.jpg", "s/cat/a/b/1.jpeg",
                          "s/dog/10.PNG", "s/dog/2.jpg"));
  EXPECT_THAT(list.labels, ElementsAre(0, 1, 1, 1, 2, 2));
  folder.write("names.txt", "an ant\na cat\na dog\n");
  EXPECT_THAT(list_images(folder.path("s"), {.class_file = folder.path("names.txt")}).class_names,
              ElementsAre("an ant", "a cat", "a dog"));
  folder.write("names.txt", "an ant\n");
  EXPECT_EQ(
      message_of(folder,
                 [&] { list_images(folder.path("s"), {.class_file = folder.path("names.txt")}); }),
      "names.txt: found 1 class names, expected 3, one for each folder of " +
          folder.path("s").substr(folder.path().size() + 1));
}

TEST(ImageList, OfAFlatFolder) {
  const Folder folder;
  touch(folder, {"b.png", "a.jpg", "c.txt"});
  const ImageList list = list_images(folder.path());
  EXPECT_THAT(names_in(folder, list.files), ElementsAre("a.jpg", "b.png"));
  EXPECT_THAT(list.labels, IsEmpty());
  EXPECT_THAT(list.class_names, IsEmpty());
}

TEST(ImageList, OfACsvFile) {
  const Folder folder;
  const std::string csv = folder.write("t.csv", "label,file\n3,x/a.jpg\n0,/b.jpg\n");
  ImageList list = list_images(csv);
  EXPECT_THAT(list.files, ElementsAre(folder.path("x/a.jpg"), "/b.jpg"));
  EXPECT_THAT(list.labels, ElementsAre(3, 0));
  EXPECT_THAT(list.class_names, IsEmpty());

  folder.write("t.csv", "path,kind,n\na.jpg,dog,1\nb.jpg,\"cat, big\",2\nc.jpg,dog,3\n");
  list = list_images(csv, {.file_column = "path", .label_column = "kind"});
  EXPECT_THAT(list.labels, ElementsAre(1, 0, 1));
  EXPECT_THAT(list.class_names, ElementsAre("cat, big", "dog"));
  folder.write("names.txt", "dog\nhorse\ncat, big\n");
  list = list_images(csv, {"path", "kind", folder.path("names.txt")});
  EXPECT_THAT(list.labels, ElementsAre(0, 2, 0));
  list = list_images(csv, {.file_column = "path", .label_column = ""});
  EXPECT_THAT(list.labels, IsEmpty());
  folder.write("t.csv", "file\na.jpg\nb.jpg\n");
  list = list_images(csv, {.label_column = ""});
  EXPECT_THAT(names_in(folder, list.files), ElementsAre("a.jpg", "b.jpg"));
}

TEST(ImageList, SaysWhatIsWrong) {
  const Folder folder;
  touch(folder,
        {"mixed/a.jpg", "mixed/cat/b.jpg", "empty/none.txt", "hole/cat/a.jpg", "hole/dog/x"});
  folder.write("names.txt", "dog\ncat\n");
  const auto listing = [&](const std::string& name, const ImageListOptions& options = {}) {
    return message_of(folder, [&] { list_images(folder.path(name), options); });
  };
  EXPECT_EQ(listing("mixed"),
            "mixed: holds both images (mixed/a.jpg) and folders (cat), expected images alone or a "
            "folder for each class");
  EXPECT_EQ(listing("empty"), "empty: no .jpg, .jpeg or .png image");
  EXPECT_EQ(listing("hole"), "hole/dog: no .jpg, .jpeg or .png image of its class");
  EXPECT_EQ(listing("nothing"), "nothing: no such file");
  const ImageListOptions named{.class_file = folder.path("names.txt")};
  folder.write("t.csv", "file,label\na.jpg,1\nb.jpg,2\n");
  EXPECT_EQ(listing("t.csv", named),
            "b.jpg: label 2, expected a whole number from 0 to 1, one for each class name");
  folder.write("t.csv", "file,label\na.jpg,dog\nb.jpg,cow\n");
  EXPECT_EQ(listing("t.csv", named),
            "t.csv: row 1 (from 0): found label 'cow', expected a class name");
  folder.write("names.txt", "dog\ncrane\ncrane\n");
  EXPECT_EQ(listing("t.csv", named),
            "t.csv: labels are text, but two classes are called 'crane'; number the labels");
  folder.write("t.csv", "file,label\na.jpg,dog\nb.jpg,\n");
  EXPECT_EQ(listing("t.csv"), "t.csv: row 1 (from 0): found label '', expected a class name");
  folder.write("t.csv", "file,label\n,1\n");
  EXPECT_EQ(listing("t.csv"), "t.csv: row 0 (from 0): no file name");
  folder.write("t.csv", "file,label\n");
  EXPECT_EQ(listing("t.csv"), "t.csv: there are no rows below the header");
}

}  // namespace
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Pixels become themselves / 255.
const ImageTransform kPlain = {.resize = 0, .crop = 0, .mean = {0, 0, 0}, .deviation = {1, 1, 1}};

// Of one colour, so that its first number tells which image it is.
void write_even(const std::string& path, int height, int width, uint8_t value) {
  Image image = blank_image(height, width, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), value);
  write_png(path, image);
}

// Images 0.png … of the colours 0, 10, 20 … in folders by turns "odd" and "even".
void write_classes(const Folder& folder, int count) {
  mkdir(folder.path("even").c_str(), 0755);
  mkdir(folder.path("odd").c_str(), 0755);
  for (int i = 0; i < count; ++i) {
    const std::string name = (i % 2 ? "odd/" : "even/") + std::to_string(100 + i) + ".png";
    write_even(folder.path(name), 4, 5, static_cast<uint8_t>(10 * i));
  }
}

TEST(ImageRows, StreamsInOrderAndRewinds) {
  const Folder folder;
  write_classes(folder, 20);
  for (const size_t threads : {1, 3}) {
    const auto source =
        open_images(folder.path(), {.transform = kPlain, .threads = threads, .ahead = 4});
    EXPECT_EQ(source->size(), 20u);
    EXPECT_THAT(source->row_shape(), ElementsAre(3, 4, 5));
    EXPECT_THAT(source->class_names(), ElementsAre("even", "odd"));
    EXPECT_EQ(source->target_count(), 1u);
    for (int round = 0; round < 3; ++round) {
      size_t seen = 0;
      for (Rows rows; source->next(7, rows); seen += rows.x.rows()) {
        EXPECT_EQ(rows.first_row, seen);
        EXPECT_THAT(rows.x.shape, ElementsAre(seen < 14 ? 7 : 6, 3, 4, 5));
        EXPECT_EQ(rows.y.shape, (std::vector<int64_t>{rows.x.shape[0], 1}));
        for (size_t i = 0; i < rows.x.rows(); ++i) {
          const size_t row = seen + i;
          const bool odd = row >= 10;
          const size_t number = 2 * (row % 10) + (odd ? 1 : 0);
          const std::string name = concat(odd ? "odd/" : "even/", 100 + number, ".png");
          EXPECT_EQ(rows.name(i), folder.path(name));
          EXPECT_EQ(rows.place(i), rows.name(i));
          EXPECT_EQ(rows.y.values[i], odd ? 1 : 0);
          for (const float value : rows.x.row(i)) {
            ASSERT_FLOAT_EQ(value, static_cast<float>(10 * number) / 255) << row;
          }
        }
        if (round == 1 && seen == 7) break;  // rewound in the middle
      }
      source->rewind();
    }
    const Rows all = read_all(*source);
    EXPECT_THAT(all.x.shape, ElementsAre(20, 3, 4, 5));
  }
}

TEST(ImageRows, SkipPassesOverImages) {
  const Folder folder;
  write_classes(folder, 20);
  const auto source = open_images(folder.path(), {.transform = kPlain, .threads = 2, .ahead = 4});
  const Rows all = read_all(*source);
  source->rewind();
  Rows rows;
  for (const size_t first : {3, 9, 15}) {  // three rows after three that are skipped
    source->skip(3);
    ASSERT_TRUE(source->next(3, rows));
    EXPECT_EQ(rows.first_row, first);
    const auto from = all.x.values.begin() + static_cast<std::ptrdiff_t>(first * all.x.row_size());
    EXPECT_EQ(rows.x.values,
              std::vector<float>(from, from + static_cast<std::ptrdiff_t>(rows.x.values.size())));
  }
  source->skip(30);
  EXPECT_FALSE(source->next(3, rows));
}

TEST(ImageRows, ErrorsNameTheFileInTurn) {
  const Folder folder;
  for (int i = 0; i < 6; ++i) write_even(folder.path(std::to_string(i) + ".png"), 4, 5, 1);
  const std::string bytes = read_file(folder.path("3.png"));
  folder.write("3.png", bytes.substr(0, bytes.size() / 2));
  const auto source = open_images(folder.path(), {.transform = kPlain, .threads = 2});
  EXPECT_EQ(source->target_count(), 0u);
  Rows rows;
  ASSERT_TRUE(source->next(2, rows));
  EXPECT_THAT(rows.y.shape, IsEmpty());
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(message_of(folder, [&] { source->next(2, rows); }),
              "3.png: bad PNG image: the file ends too early");
  }
  folder.write("3.png", bytes);
  ASSERT_TRUE(source->next(2, rows));
  EXPECT_EQ(rows.first_row, 2u);
  write_even(folder.path("0.png"), 6, 5, 1);
  EXPECT_EQ(
      message_of(folder, [&] { read_all(*open_images(folder.path(), {.transform = kPlain})); }),
      "1.png: 5 x 4 pixels after the transform, expected 5 x 6 as the first image has; crop "
      "or resize them all");
  EXPECT_EQ(read_all(*open_images(folder.path())).x.shape, (std::vector<int64_t>{6, 3, 224, 224}));
  const Folder thin;
  write_even(thin.path("0.png"), 1, 1000, 1);
  const ImageOptions huge{.transform = {.resize = 4096}};
  EXPECT_EQ(message_of(thin, [&] { read_all(*open_images(thin.path(), huge)); }),
            "0.png: resized image: the image is 4096000 x 4096 pixels, expected 1 to 134217728 in "
            "all");
  EXPECT_EQ(message_of(folder, [&] { open_images(folder.path(), {.labels = "y.npy"}); }),
            folder.path() + ": not an .npy array, but y.npy is named for its labels");
}

// A version 1.0 .npy file by hand: the module writes no bytes.
std::string byte_array(const std::string& shape, const std::string& bytes) {
  std::string head = "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }";
  head.resize(118 - 1, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head + "\n" + bytes;
}

TEST(ImageRows, OfAnArrayOfBytes) {
  const Folder folder;
  std::string bytes;
  for (int i = 0; i < 2 * 2 * 1 * 3; ++i) bytes += static_cast<char>(20 * i);
  const std::string data = folder.write("x.npy", byte_array("(2, 2, 1, 3)", bytes));
  write_npy(folder.path("y.npy"), Array{{2}, {7, 8}});
  folder.write("names.txt", "one\ntwo\n");
  const auto source = open_images(data, {.transform = kPlain,
                                         .list = {.class_file = folder.path("names.txt")},
                                         .labels = folder.path("y.npy")});
  EXPECT_EQ(source->size(), 2u);
  EXPECT_THAT(source->class_names(), ElementsAre("one", "two"));
  const Rows all = read_all(*source);
  EXPECT_THAT(all.x.shape, ElementsAre(2, 3, 2, 1));
  EXPECT_THAT(all.y.values, ElementsAre(7, 8));
  const std::vector<float> order = {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11};  // to planes
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_FLOAT_EQ(all.x.values[i], 20 * order[i] / 255) << i;
  }
  EXPECT_EQ(read_all(*open_images(data, {.transform = {.resize = 8, .crop = 6}})).x.shape,
            (std::vector<int64_t>{2, 3, 6, 6}));
  write_npy(folder.path("f.npy"), zeros({2, 2, 1, 3}));
  EXPECT_EQ(
      message_of(folder, [&] { open_images(folder.path("f.npy")); }),
      "f.npy: shape [2, 2, 1, 3] of type f4, expected images [N, height, width, 3] of type u1");
}

TEST(ImageRows, OfRealSets) {
  const char* folder = std::getenv("FCP_DATA_DIR");
  if (!folder) GTEST_SKIP() << "FCP_DATA_DIR is not set";
  if (!is_folder(std::string(folder) + "/imagenet_val1000"))
    GTEST_SKIP() << "FCP_DATA_DIR has no imagenet_val1000";
  const std::string data = folder;
  const auto source = open_images(data + "/imagenet_val1000/labels.csv");
  EXPECT_EQ(source->size(), 1000u);
  Rows rows;
  for (int batch = 0; batch < 3; ++batch) ASSERT_TRUE(source->next(10, rows));
  EXPECT_EQ(rows.first_row, 20u);
  EXPECT_EQ(rows.y.values[4], 24);
  EXPECT_EQ(rows.name(4), data + "/imagenet_val1000/0024_c024.jpg");
  const Array alone = transform_image({}, read_image(rows.name(4)));
  const auto row = rows.x.row(4);
  EXPECT_EQ(alone.values, std::vector<float>(row.begin(), row.end()));

  const auto cifar = open_images(
      data + "/cifar10_test/images.npy",
      {.transform = {.resize = 0, .crop = 0}, .labels = data + "/cifar10_test/labels.npy"});
  EXPECT_EQ(cifar->size(), 10000u);
  EXPECT_THAT(cifar->row_shape(), ElementsAre(3, 32, 32));
  ASSERT_TRUE(cifar->next(100, rows));
  EXPECT_THAT(rows.x.shape, ElementsAre(100, 3, 32, 32));
}

}  // namespace
}  // namespace fcp

#include "fcp/data/images/image_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fcp/data/images/folder.h"

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
}  // namespace fcp

#include "fcp/base/output_file.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace fcp {
namespace {

TEST(OutputFile, AppearsOnlyWhenComplete) {
  const Folder folder;
  const std::string path = folder.write("out", "before");
  {
    OutputFile file(path);
    file.write("abc");
  }
  EXPECT_EQ(read_file(path), "before");
  {
    OutputFile file(path);
    file.write("abcdef");
    file.overwrite(1, "XY");
    file.write("g");
    EXPECT_EQ(read_file(path), "before");
    file.commit();
  }
  EXPECT_EQ(read_file(path), "aXYdefg");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

// What only its owner may read stays so when it is written anew.
TEST(OutputFile, KeepsThePermissionsOfTheFileItReplaces) {
  namespace fs = std::filesystem;
  const Folder folder;
  const std::string path = folder.write("out", "before");
  const fs::perms own = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(path, own);
  write_file(path, "after");
  EXPECT_EQ(fs::status(path).permissions(), own);
  EXPECT_EQ(read_file(path), "after");
}

TEST(OutputFile, NamesTheFileThatCannotBeWritten) {
  const Folder folder;
  EXPECT_EQ(message_of(folder, [&] { OutputFile(folder.path("none/out")); }),
            "none/out: cannot write: No such file or directory");
  EXPECT_EQ(message_of(folder, [&] { OutputFile file(folder.path()); }),
            folder.path() + ": cannot write: is a folder");
  EXPECT_EQ(message_of(folder,
                       [&] {
                         OutputFile file("/dev/full");
                         file.write("abc");
                         file.commit();
                       }),
            "/dev/full: cannot write: No space left on device");
}

}  // namespace
}  // namespace fcp

#include "fcp/base/output_file.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

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

std::string umask_as_the_kernel_says() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Umask:")) return line;
  }
  return "";
}

// A new file has what the umask leaves, and no other thread ever sees another umask.
TEST(OutputFile, LeavesTheUmaskAlone) {
  namespace fs = std::filesystem;
  const Folder folder;
  const mode_t before = umask(027);
  std::atomic<bool> done = false;
  std::set<std::string> seen;
  std::thread watcher([&] {
    while (!done) seen.insert(umask_as_the_kernel_says());
  });
  for (int i = 0; i < 300; ++i) {
    fs::remove(folder.path("out"));
    write_file(folder.path("out"), "new");
  }
  done = true;
  watcher.join();
  umask(before);
  EXPECT_EQ(fs::status(folder.path("out")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  EXPECT_EQ(seen.size(), 1u) << testing::PrintToString(seen);
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

#include "fcp/base/output_file.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fcp/base/error.h"

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
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

const std::string kOneKey(64, 'a');
const std::string kOtherKey(64, 'b');

std::string file_bytes(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void put_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class CheckpointTest : public testing::Test {
 protected:
  const std::string path_ = testing::TempDir() + "checkpoint_" + std::to_string(getpid()) + "_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }
};

TEST_F(CheckpointTest, GivesBackWhatWasAppended) {
  {
    Checkpoint first(path_, kOneKey);
    EXPECT_THAT(first.records(), IsEmpty());
    first.append("one");
    first.append(std::string_view("\0\n", 2));
  }
  {
    Checkpoint second(path_, kOneKey);
    EXPECT_THAT(second.records(), ElementsAre("one", std::string("\0\n", 2)));
    second.append("three");
  }
  EXPECT_THAT(Checkpoint(path_, kOneKey).records(),
              ElementsAre("one", std::string("\0\n", 2), "three"));
}

// A kill may come after any byte.
TEST_F(CheckpointTest, DropsWhatWasCutOff) {
  {
    Checkpoint whole(path_, kOneKey);
    whole.append("first");
    whole.append("second");
  }
  const std::string bytes = file_bytes(path_);
  const size_t record = 8 + 64;
  const size_t head = bytes.size() - 2 * record - 5 - 6;
  for (size_t length = 0; length < bytes.size(); ++length) {
    put_bytes(path_, bytes.substr(0, length));
    Checkpoint cut(path_, kOneKey);
    EXPECT_EQ(cut.records().size(), length < head + record + 5 ? 0 : 1) << length;
    cut.append("again");
  }
  EXPECT_THAT(Checkpoint(path_, kOneKey).records(), ElementsAre("first", "again"));
}

TEST_F(CheckpointTest, DropsWhatFollowsADamagedRecord) {
  {
    Checkpoint whole(path_, kOneKey);
    for (const char* text : {"first", "second", "third"}) whole.append(text);
  }
  std::string bytes = file_bytes(path_);
  bytes[bytes.find("second")] = 'S';
  put_bytes(path_, bytes);
  EXPECT_THAT(Checkpoint(path_, kOneKey).records(), ElementsAre("first"));
}

TEST_F(CheckpointTest, RefusesOtherWorkAndNamesBothHashes) {
  { Checkpoint(path_, kOneKey).append("one"); }
  const std::string before = file_bytes(path_);
  EXPECT_THAT(
      [&] { Checkpoint(path_, kOtherKey); },
      ThrowsMessage<Error>(AllOf(HasSubstr(path_), HasSubstr(kOneKey), HasSubstr(kOtherKey))));
  EXPECT_EQ(file_bytes(path_), before);
}

TEST_F(CheckpointTest, LeavesAFileThatIsNoCheckpoint) {
  put_bytes(path_, "x,y\n1,2\n");
  EXPECT_THAT([&] { Checkpoint(path_, kOneKey); },
              ThrowsMessage<Error>(HasSubstr("is not a checkpoint")));
  EXPECT_EQ(file_bytes(path_), "x,y\n1,2\n");
}

TEST_F(CheckpointTest, IsForOneProcessAtATime) {
  const Checkpoint open(path_, kOneKey);
  EXPECT_THAT([&] { Checkpoint(path_, kOneKey); },
              ThrowsMessage<Error>(HasSubstr("another process")));
}

}  // namespace
}  // namespace fcp

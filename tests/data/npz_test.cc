#include "fcp/data/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/data/npy.h"

#include "tests/support/files.h"
#include "tests/support/zip.h"

namespace fcp {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;

class Npz : public testing::Test {
 protected:
  Npz() {
    write_npy(folder_.path("a.npy"), Array{{2, 2}, {1, 2, 3, 4}});
    a_ = read_file(folder_.path("a.npy"));
    Array b = zeros({3000, 5});
    for (size_t i = 0; i < b.values.size(); ++i) b.values[i] = static_cast<float>(i % 1000);
    write_npy(folder_.path("b.npy"), b);
    b_ = read_file(folder_.path("b.npy"));
    b_values_ = b.values;
  }
  std::string write(const ZipOptions& options) {
    return folder_.write("t.npz", zip({{"a.npy", a_}, {"b.npy", b_}}, options));
  }
  std::string error(const std::string& bytes, const std::string& entry) {
    return message_of(folder_, [&] { read_npz(folder_.write("t.npz", bytes), entry); });
  }

  Folder folder_;
  std::string a_, b_;
  std::vector<float> b_values_;
};

TEST_F(Npz, ReadsStoredDeflatedAndZip64) {
  for (const bool deflate : {false, true}) {
    for (const bool zip64 : {false, true}) {
      const std::string path = write({.deflate = deflate, .zip64 = zip64});
      EXPECT_TRUE(is_npz(path));
      EXPECT_THAT(npz_entries(path), ElementsAre("a", "b"));
      EXPECT_THAT(read_npz(path, "a").values, ElementsAre(1, 2, 3, 4));
      EXPECT_EQ(read_npz(path, "b.npy").values, b_values_);
      EXPECT_EQ(read_npy(path + ":b").values, b_values_);
    }
  }
}

TEST_F(Npz, TheOnlyEntryNeedsNoName) {
  const std::string path = folder_.write("one.npz", zip({{"a.npy", a_}}, {}));
  EXPECT_THAT(read_npy(path).values, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(message_of(folder_, [&] { read_npy(write({})); }),
            "t.npz: has 2 entries, name one of: a, b");
}

TEST_F(Npz, RefusesWhatItCannotRead) {
  const std::string good = zip({{"a.npy", a_}}, {});
  EXPECT_EQ(error(good, "c"), "t.npz: no entry 'c'; the entries are a");
  EXPECT_EQ(error("PK\x03\x04", "a"), "t.npz: not an .npz file: no zip directory at its end");
  EXPECT_EQ(error(good.substr(0, good.size() - 30), "a"),
            "t.npz: not an .npz file: no zip directory at its end");
  EXPECT_EQ(error(good.substr(20), "a"), "t.npz: the zip directory is damaged or cut off");
  EXPECT_EQ(error(zip({{"a.npy", a_}}, {.method = 12}), "a"),
            "t.npz:a: zip method 12, expected 0 (stored) or 8 (deflated)");
  EXPECT_EQ(error(zip({{"a.npy", a_.substr(0, 130)}}, {}), "a"),
            "t.npz:a: truncated: shape [2, 2] of float32 needs 16 bytes, found 2");
  EXPECT_EQ(error(zip({{"a.npy", a_}}, {.deflate = true, .declared_size = 140}), "a"),
            "t.npz:a: truncated: shape [2, 2] of float32 needs 16 bytes, found 12");
  EXPECT_EQ(error(zip({{"a.npy", a_}}, {.deflate = true, .declared_size = 1000}), "a"),
            "t.npz:a: unpacks to 144 bytes, the archive declares 1000");
  folder_.write("t.csv", "a\n");
  EXPECT_EQ(message_of(folder_, [&] { read_npy(folder_.path("t.csv:a")); }),
            "t.csv: not an .npz archive, but an entry of it is asked for");
}

// Whatever single byte is wrong: an Error or an array, never a crash.
TEST_F(Npz, SurvivesDamage) {
  for (const bool zip64 : {false, true}) {
    const std::string good = zip({{"a.npy", a_}}, {.deflate = true, .zip64 = zip64});
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(~bad[i]);
      EXPECT_NO_FATAL_FAILURE(error(bad, "a")) << i;
    }
  }
}

}  // namespace
}  // namespace fcp

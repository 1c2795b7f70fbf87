#include "fcp/data/bytes.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "fcp/base/random.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

std::string all_bytes(ByteSource& source, size_t step) {
  std::string all, block(step, ' ');
  while (const size_t got = source.read(block.data(), step)) all.append(block, 0, got);
  return all;
}

std::string long_text() {
  Random random(3);
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(random.below(1000)) + ",";
  return text;
}

TEST(Bytes, PlainAndGzipReadTheSameTwice) {
  const Folder folder;
  const std::string text = long_text();
  folder.write("plain", text);
  folder.write("packed", gzipped(text));  // known by its first bytes: the name says nothing
  for (const char* name : {"plain", "packed"}) {
    const auto source = open_bytes(folder.path(name));
    EXPECT_EQ(all_bytes(*source, 777), text);
    source->rewind();
    EXPECT_EQ(all_bytes(*source, 1 << 20), text);
  }
  EXPECT_EQ(open_bytes(folder.path("plain"))->size(), text.size());
  EXPECT_EQ(open_bytes(folder.path("packed"))->size(), std::nullopt);
}

// Blocks are read to where they belong, wherever the range begins and ends, and by several threads.
TEST(Bytes, LongReadsAreThoseOfShortOnes) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 12; ++i) text += long_text();
  const std::string path = folder.write("long", text);
  for (const size_t threads : {1, 4}) {
    set_reading_threads(threads);
    for (const size_t offset : {0, 1, 65535, 65536, 70000}) {
      const size_t length = text.size() - offset - (threads == 1 ? 0 : 100);
      const auto source = open_range(path, path, offset, length);
      EXPECT_EQ(all_bytes(*source, text.size()), text.substr(offset, length)) << offset;
      source->rewind();
      EXPECT_EQ(all_bytes(*source, 200000), text.substr(offset, length)) << offset;
    }
    const auto beyond = open_range(path, path, 0, text.size() + 500000);  // the file ends before
    EXPECT_EQ(all_bytes(*beyond, text.size() + 500000), text);
  }
  set_reading_threads(1);
}

TEST(Bytes, AFileThatChangesWhileItIsReadIsAnError) {
  const Folder folder;
  const std::string text = long_text();
  const auto message_after = [&](const std::string& bytes, const auto& change) {
    const std::string path = folder.write("f", bytes);
    const auto source = open_bytes(path);
    std::string block(1000, ' ');
    EXPECT_EQ(source->read(block.data(), block.size()), block.size());
    change(path);
    source->rewind();
    return message_of(folder, [&] { all_bytes(*source, 4096); });
  };
  const auto append = [](const std::string& path) { std::ofstream(path, std::ios::app) << "more"; };
  const auto touch = [](const std::string& path) {
    namespace fs = std::filesystem;
    fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(1));
  };
  EXPECT_EQ(message_after(text, append), concat("f: changed while it was read: ", text.size(),
                                                " bytes at first, then ", text.size() + 4));
  EXPECT_EQ(message_after(text, touch), "f: was written to while it was read");
  EXPECT_EQ(message_after(gzipped(text), touch), "f: was written to while it was read");
  EXPECT_EQ(message_after(text, [](const std::string&) {}), "");
}

TEST(Bytes, GzipMembersAreOneStream) {
  const Folder folder;
  const auto source = open_bytes(folder.write("two.gz", gzipped("one,") + gzipped("two")));
  EXPECT_EQ(all_bytes(*source, 100), "one,two");
}

TEST(Bytes, NamesTheFileThatCannotBeRead) {
  const Folder folder;
  const auto reading = [&](const std::string& name) {
    return message_of(folder, [&] { all_bytes(*open_bytes(folder.path(name)), 1000); });
  };
  const std::string whole = gzipped(long_text());
  folder.write("cut.gz", whole.substr(0, whole.size() / 2));
  std::string broken = whole;
  broken[whole.size() / 2] ^= 64;
  folder.write("broken.gz", broken);
  std::filesystem::create_directory(folder.path("folder"));
  EXPECT_EQ(reading("none"), "none: no such file");
  EXPECT_EQ(reading("folder"), "folder: is a folder, expected a file");
  EXPECT_EQ(reading("cut.gz"), "cut.gz: compressed data end too early; is the file cut off?");
  EXPECT_TRUE(reading("broken.gz").starts_with("broken.gz: compressed data are damaged"));
  EXPECT_EQ(
      message_of(folder, [] { open_bytes("/dev/null"); }),
      "/dev/null: not a regular file; data may be read more than once, so a pipe will not do");
}

TEST(Bytes, DeflatedEntriesAreHeldAgainstTheirDeclaration) {
  const Folder folder;
  const std::string text = "some text, some text", raw = packed(text, -15);
  const std::string path = folder.write("file", "xx" + raw);
  const auto crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
  const auto reading = [&](uint64_t size, uint32_t sum) {
    return message_of(folder, [&] {
      EXPECT_EQ(all_bytes(*open_deflated(path, "e", 2, raw.size(), size, sum), 100), text);
    });
  };
  EXPECT_EQ(reading(text.size(), crc), "");
  EXPECT_EQ(reading(5, crc), "e: unpacks to more than the 5 bytes the archive declares");
  EXPECT_EQ(reading(50, crc), "e: unpacks to 20 bytes, the archive declares 50");
  EXPECT_EQ(reading(text.size(), crc + 1), "e: checksum differs from the archive's; damaged file");
}

}  // namespace
}  // namespace fcp

#include "fcp/data/file_witness.h"

#include <filesystem>
#include <set>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/data/bytes.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/rows.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

std::string digits(size_t count) {
  Random random(5);
  std::string text;
  while (text.size() < count) text += static_cast<char>('0' + random.below(10));
  return text;
}

// Writes over a byte, and sets the time of the last write back to what it was.
void change_quietly(const std::string& path, uint64_t place, char byte) {
  struct stat before {};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  const int file = open(path.c_str(), O_WRONLY);
  ASSERT_EQ(pwrite(file, &byte, 1, static_cast<off_t>(place)), 1);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(futimens(file, times), 0);
  close(file);
  struct stat after {};
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  ASSERT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
}

std::string read_from(ByteSource& source, size_t count) {
  std::string bytes(count, ' ');
  bytes.resize(source.read(bytes.data(), count));
  return bytes;
}

TEST(FileWitness, HashesTellBytesApart) {
  EXPECT_NE(hash_bytes(""), 0u);
  EXPECT_EQ(hash_text(0x1f), "000000000000001f");
  const std::string text = digits(1003);
  std::set<uint64_t> seen = {hash_bytes(text)};
  EXPECT_EQ(hash_bytes(std::string(text)), *seen.begin());
  for (size_t i = 0; i < text.size(); ++i) {
    for (const int bit : {0, 7}) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      EXPECT_TRUE(seen.insert(hash_bytes(other)).second) << "byte " << i << ", bit " << bit;
    }
  }
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_TRUE(seen.insert(hash_bytes(text.substr(0, size))).second) << "length " << size;
    EXPECT_TRUE(seen.insert(hash_bytes(text.substr(0, size) + '\0')).second) << "length " << size;
  }
  // The signs of two float32 numbers, which plain multiplication would lose together.
  std::string other = text;
  for (size_t i = 3; i + 1 < text.size(); i += 4) {
    for (size_t j = i + 4; j < std::min<size_t>(i + 200, text.size()); j += 4) {
      other[i] = static_cast<char>(text[i] ^ 128);
      other[j] = static_cast<char>(text[j] ^ 128);
      EXPECT_TRUE(seen.insert(hash_bytes(other)).second) << "bytes " << i << " and " << j;
      other = text;
    }
  }
  other[8] = 'a';
  other[72] = 'b';
  EXPECT_TRUE(seen.insert(hash_bytes(other)).second);
  std::swap(other[8], other[72]);
  EXPECT_TRUE(seen.insert(hash_bytes(other)).second);
}

TEST(FileWitness, NamesTheBlockThatIsOtherThanBefore) {
  const Folder folder;
  std::string text = digits(3 * FileWitness::kBlock + 10);
  for (const uint64_t place : {uint64_t{0}, uint64_t{FileWitness::kBlock + 5}, text.size() - 1}) {
    const std::string path = folder.write("f", text);
    const auto source = open_bytes(path);
    EXPECT_EQ(read_from(*source, 2 * text.size()), text);
    const uint64_t first = place / FileWitness::kBlock * FileWitness::kBlock;
    const uint64_t last = std::min<uint64_t>(first + FileWitness::kBlock, text.size());
    const std::string block = text.substr(first, last - first);
    change_quietly(path, place, 'x');
    std::string changed = block;
    changed[place - first] = 'x';
    source->rewind();
    EXPECT_EQ(
        message_of(folder, [&] { read_from(*source, text.size()); }),
        concat("f: changed while it was read: bytes ", first, " to ", last, " had the hash ",
               hash_text(hash_bytes(block)), " at first, then ", hash_text(hash_bytes(changed))));
  }
}

TEST(FileWitness, WhatWasNotReadMayChange) {
  const Folder folder;
  const std::string text = digits(3 * FileWitness::kBlock);
  const std::string path = folder.write("f", text);
  const auto source = open_bytes(path);
  read_from(*source, 10);
  change_quietly(path, text.size() - 1, 'x');
  source->skip(text.size() - 11);
  EXPECT_EQ(read_from(*source, 10), "x");
}

TEST(FileWitness, AllWhoHaveAFileOpenMayShareIt) {
  const Folder folder;
  const std::string path = folder.write("f", digits(1000));
  {
    const OneReading reading;
    const auto first = open_bytes(path);
    const auto second = open_bytes(path);
    EXPECT_EQ(FileWitness::all().size(), 1u);
    EXPECT_EQ(FileWitness::all()[0]->hashes().size(), 1u);
    read_from(*first, 10);
    change_quietly(path, 500, 'x');
    second->rewind();
    EXPECT_NE(message_of(folder, [&] { read_from(*second, 10); }), "");
  }
  EXPECT_TRUE(FileWitness::all().empty());
  const auto first = open_bytes(path);  // another reading, another state
  change_quietly(path, 500, 'y');
  EXPECT_EQ(read_from(*open_bytes(path), 1000)[500], 'y');
}

TEST(FileWitness, AFileThatTakesTheOthersNameIsNotTheSame) {
  const Folder folder;
  const std::string path = folder.write("f.csv", "a,b\n1,2\n3,4\n");
  const OneReading reading;
  const auto rows = open_rows(path, "b");
  struct stat state {};
  ASSERT_EQ(stat(path.c_str(), &state), 0);
  const timespec times[2] = {state.st_atim, state.st_mtim};
  const std::string other = folder.write("other", "a,b\n1,2\n5,4\n");
  ASSERT_EQ(utimensat(AT_FDCWD, other.c_str(), times, 0), 0);
  std::filesystem::rename(other, path);
  const std::string message = message_of(folder, [&] { read_csv_column(path, "a", {}); });
  EXPECT_TRUE(message.starts_with("f.csv: changed while it was read: bytes 0 to 12 had the hash "))
      << message;
}

// The pass that learns the means, and the one that gives the rows.
TEST(FileWitness, ATableThatChangesBetweenItsTwoPasses) {
  const Folder folder;
  const std::string path = folder.write("f.csv", "a,b\n1,2\n,3\n5,4\n");
  RowOptions options;
  options.impute = true;
  const auto rows = open_rows(path, "b", options);
  change_quietly(path, 11, '9');
  // The first block is in memory already and is not read again before the rows are.
  const std::string message = message_of(folder, [&] {
    Rows some;
    rows->rewind();
    rows->next(10, some);
  });
  EXPECT_TRUE(message.starts_with("f.csv: changed while it was read: bytes 0 to 15 ")) << message;
}

}  // namespace
}  // namespace fcp

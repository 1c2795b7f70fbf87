#include "fcp/data/images/image.h"

#include <charconv>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/random.h"
#include "fcp/data/images/image_list.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A JPEG of one red pixel (254, 0, 0) and one blue (0, 0, 254), quality 100, made by Pillow.
constexpr std::string_view kJpeg =
    "ffd8ffe000104a46494600010100000100010000ffdb004300010101010101010101010101010101010101010101"
    "01010101010101010101010101010101010101010101010101010101010101010101010101010101010101ffdb00"
    "43010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "0101010101010101010101010101010101010101ffc00011080001000203011100021101031101ffc40014000100"
    "00000000000000000000000000000affc4001a1000010501000000000000000000000000060004073676b5ffc400"
    "150101010000000000000000000000000000050affc4001a11000105010000000000000000000000000800063878"
    "b707ffda000c03010002110311003f0022d20df8df5e4bda7aad38138421bd551e7236822ccd98257594ee9a83a5"
    "7fffd9";

// A progressive JPEG of one grey pixel, up to its last scan; and that scan.
constexpr std::string_view kProgressive =
    "ffd8ffe000104a46494600010100000100010000ffdb004300010101010101010101010101010101010101010101"
    "01010101010101010101010101010101010101010101010101010101010101010101010101010101010101ffc200"
    "0b080001000101011100ffc40014000100000000000000000000000000000008ffda000801010000000119ff00ff"
    "c40014100100000000000000000000000000000000ffda00080101000105027fffc4001410010000000000000000"
    "0000000000000000ffda0008010100063f027fffc40014100100000000000000000000000000000000ffda000801"
    "0100013f217fffda00080101000000107fffc40014100100000000000000000000000000000000";
constexpr std::string_view kScan = "ffda0008010100013f107f";

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    int byte = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string jpeg_bytes() { return from_hex(kJpeg); }

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string png_chunk(const std::string& kind, const std::string& data) {
  const std::string body = kind + data;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(data.size())) + body +
         big_endian(static_cast<uint32_t>(sum));
}

// A PNG written by hand: rows already packed, each behind its filter byte 0.
std::string png_by_hand(uint32_t width, uint32_t height, char depth, char colour,
                        const std::string& rows, const std::string& extra = "") {
  const std::string head =
      big_endian(width) + big_endian(height) + std::string{depth, colour, 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", head) + extra +
         png_chunk("IDAT", packed(rows, 15)) + png_chunk("IEND", "");
}

Image random_image(int height, int width, int channels) {
  Image image = blank_image(height, width, channels);
  Random random(3);
  for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(random.below(256));
  return image;
}

TEST(Image, ComesBackFromAPngAsItWas) {
  const Folder folder;
  for (const int channels : {1, 3}) {
    const Image image = random_image(19, 33, channels);
    write_png(folder.path("a.png"), image);
    EXPECT_EQ(read_file(folder.path("a.png")), encode_png(image));
    const Image back =
        channels == 3 ? read_image(folder.path("a.png")) : read_label_image(folder.path("a.png"));
    EXPECT_EQ(back.height, 19);
    EXPECT_EQ(back.width, 33);
    EXPECT_EQ(back.channels, channels);
    EXPECT_EQ(back.pixels, image.pixels);
  }
}

TEST(Image, ExpandsGreyPalettesAndSixteenBits) {
  using namespace std::string_literals;
  const auto decoded = [](const std::string& bytes) { return decode_image(bytes, "x").pixels; };
  // Grey of one byte, of two bits (0 1 2 3 → 0 85 170 255), of 16 bits (the upper byte).
  EXPECT_THAT(decoded(png_by_hand(2, 1, 8, 0, "\0\x05\xfe"s)), ElementsAre(5, 5, 5, 254, 254, 254));
  EXPECT_THAT(decoded(png_by_hand(3, 1, 2, 0, "\0\x6c"s)),
              ElementsAre(85, 85, 85, 170, 170, 170, 255, 255, 255));
  EXPECT_THAT(decoded(png_by_hand(1, 1, 16, 0, "\0\x12\xff"s)), ElementsAre(18, 18, 18));
  EXPECT_THAT(decoded(png_by_hand(1, 1, 16, 2, "\0\1\xff\2\xff\3\xff"s)), ElementsAre(1, 2, 3));
  // A palette with a transparent entry; colour with alpha, which is dropped and not multiplied.
  const std::string palette = png_chunk("PLTE", "\x09\x08\x07\x01\x02\x03"s);
  EXPECT_THAT(decoded(png_by_hand(2, 1, 8, 3, "\0\1\0"s, palette + png_chunk("tRNS", "\0"s))),
              ElementsAre(1, 2, 3, 9, 8, 7));
  EXPECT_THAT(decoded(png_by_hand(1, 1, 8, 6, "\0\x64\x65\x66\x01"s)), ElementsAre(100, 101, 102));
}

TEST(Image, LabelsKeepTheirValues) {
  using namespace std::string_literals;
  const Folder folder;
  const std::string palette = png_chunk("PLTE", "\x09\x08\x07\x01\x02\x03\x04\x05\x06"s);
  const std::string path = folder.write("a.png", png_by_hand(3, 1, 2, 3, "\0\x24"s, palette));
  EXPECT_THAT(read_label_image(path).pixels, ElementsAre(0, 2, 1));
  folder.write("grey.png", png_by_hand(3, 1, 2, 0, "\0\x6c"s));
  EXPECT_THAT(read_label_image(folder.path("grey.png")).pixels, ElementsAre(1, 2, 3));
  folder.write("wide.png", png_by_hand(1, 1, 16, 0, "\0\x12\xff"s));
  folder.write("colour.png", png_by_hand(1, 1, 8, 2, "\0\1\2\3"s));
  folder.write("a.jpg", jpeg_bytes());
  for (const std::string name : {"wide.png", "colour.png"}) {
    EXPECT_EQ(
        message_of(folder, [&] { read_label_image(folder.path(name)); }),
        name + ": bad PNG image: colours or 16 bits, expected labels: 8-bit grey or a palette");
  }
  EXPECT_EQ(message_of(folder, [&] { read_label_image(folder.path("a.jpg")); }),
            "a.jpg: a JPEG image, which does not keep labels exactly; expected a PNG");
}

TEST(Image, ReadsAJpeg) {
  const Image image = decode_image(jpeg_bytes(), "x");
  ASSERT_EQ(image.width, 2);
  ASSERT_EQ(image.height, 1);
  EXPECT_THAT(image.pixels, ElementsAre(254, 0, 0, 0, 0, 254));
}

TEST(Image, RefusesWhatIsNoImage) {
  const Folder folder;
  const auto reading = [&](const std::string& bytes) {
    folder.write("a.png", bytes);
    return message_of(folder, [&] { read_image(folder.path("a.png")); });
  };
  EXPECT_EQ(reading("hello"),
            "a.png: neither a JPEG nor a PNG image: begins with bytes 68 65 6c 6c, expected ff d8 "
            "ff or 89 50 4e 47");
  EXPECT_EQ(reading(""),
            "a.png: neither a JPEG nor a PNG image: begins with bytes (none), expected ff d8 ff or "
            "89 50 4e 47");
  EXPECT_EQ(message_of(folder, [&] { read_image(folder.path("none.png")); }),
            "none.png: no such file");
  EXPECT_THAT(message_of(folder, [] { encode_png(Image{2, 2, 2, {}}); }), HasSubstr("2 channels"));
}

// A header of a few bytes must not make us allocate gigabytes.
TEST(Image, RefusesSizesBeforeAllocating) {
  const Folder folder;
  const auto reading = [&](const std::string& bytes) {
    return message_of(folder, [&] { decode_image(bytes, "a"); });
  };
  EXPECT_EQ(reading(png_by_hand(900000, 900000, 8, 2, "")),
            "a: the image is 900000 x 900000 pixels, expected 1 to 134217728 in all");
  EXPECT_EQ(reading(png_by_hand(10000, 10000, 8, 2, "")),
            "a: bad PNG image: the file is too short for the size in its header");
  EXPECT_THAT(reading(png_by_hand(0, 5, 8, 2, "")), StartsWith("a: bad PNG image: "));
  std::string jpeg = jpeg_bytes();
  const size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_EQ(reading(jpeg), "a: the image is 65500 x 65500 pixels, expected 1 to 134217728 in all");
  // Small enough to be an image, but not one of this file: found by fuzzing, as seconds of work.
  jpeg.replace(frame + 5, 4, "\x2b\x2b\x2b\x2b");
  EXPECT_EQ(reading(jpeg), "a: bad JPEG image: the file is too short for the size in its header");
}

// Each scan of a few bytes is work over the whole picture.
TEST(Image, RefusesEndlessScans) {
  const auto with_scans = [](int count) {
    std::string bytes = from_hex(kProgressive);
    for (int i = 0; i < count; ++i) bytes += from_hex(kScan);
    return bytes + "\xff\xd9";
  };
  const Folder folder;
  EXPECT_THAT(decode_image(with_scans(1), "a").pixels, ElementsAre(77, 77, 77));
  EXPECT_EQ(message_of(folder, [&] { decode_image(with_scans(400), "a"); }), "");
  EXPECT_THAT(message_of(folder, [&] { decode_image(with_scans(600), "a"); }),
              StartsWith("a: bad JPEG image: "));
}

// Every prefix of a good file is an Error that names it; nothing crashes, nothing half-grey passes.
// Some libraries do not miss a JPEG's end mark, two bytes, behind which nothing is.
void expect_prefixes_refused(const std::string& bytes, size_t step) {
  const Folder folder;
  for (size_t length = 0; length + 2 < bytes.size(); length += step) {
    const std::string part = bytes.substr(0, length);
    EXPECT_THAT(message_of(folder, [&] { decode_image(part, "a"); }),
                AnyOf(StartsWith("a: bad "), StartsWith("a: neither")))
        << length;
  }
}

// Bytes overwritten here and there: any result or an Error, but no crash (the sanitizers watch).
void expect_survives_noise(const std::string& bytes) {
  Random random(5);
  for (int trial = 0; trial < 300; ++trial) {
    std::string spoilt = bytes;
    for (int i = 0; i < 3; ++i) {
      spoilt[random.below(spoilt.size())] = static_cast<char>(random.below(256));
    }
    try {
      const Image image = decode_image(spoilt, "a");
      EXPECT_EQ(image.pixels.size(), image.offset(image.height));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith("a: "));
    }
  }
}

TEST(Image, RefusesTruncatedFiles) {
  expect_prefixes_refused(jpeg_bytes(), 1);
  expect_prefixes_refused(encode_png(random_image(40, 30, 3)), 50);
  expect_survives_noise(jpeg_bytes());
  expect_survives_noise(encode_png(random_image(20, 10, 3)));
}

TEST(Image, RefusesTruncatedPhotographs) {
  const char* data = std::getenv("FCP_DATA_DIR");
  if (!data) GTEST_SKIP() << "FCP_DATA_DIR is not set";
  if (!is_folder(std::string(data) + "/imagenet_val1000"))
    GTEST_SKIP() << "FCP_DATA_DIR has no imagenet_val1000";
  const std::string bytes = read_file(std::string(data) + "/imagenet_val1000/0001_c001.jpg");
  ASSERT_GT(bytes.size(), 10000u);
  EXPECT_EQ(decode_image(bytes, "a").width, 256);
  expect_prefixes_refused(bytes, 50);
  expect_survives_noise(bytes);
}

TEST(Image, KnowsNamesOfImages) {
  for (const char* name : {"a.jpg", "b/c.JPEG", "x.y.Png"}) EXPECT_TRUE(has_image_name(name));
  for (const char* name : {"a.txt", ".jpg", "jpg", "a.jpg.gz", ""}) {
    EXPECT_FALSE(has_image_name(name)) << name;
  }
}

}  // namespace
}  // namespace fcp

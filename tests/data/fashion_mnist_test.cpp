#include "gpipe/data/fashion_mnist.h"

#include <zlib.h>

#include <numeric>

#include "gpipe/data/idx.h"
#include "tests/data/testing.h"

namespace gpipe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string word(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<char>(value >> shift & 0xFF));
  return bytes;
}

/// An IDX file of unsigned bytes; the data may be shorter or longer than the shape asks.
std::string make_idx(const std::vector<uint32_t>& shape, const std::string& data) {
  std::string bytes = word(0x0800U + static_cast<uint32_t>(shape.size()));
  for (uint32_t size : shape)
    bytes += word(size);
  return bytes + data;
}

std::string gzip(const std::string& bytes) {
  TempFolder folder;
  const auto path = folder.path() / "data.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// `rows` images of 28 x 28, filled with their own number, and their labels.
void write_images(const TempFolder& folder, uint32_t rows, const std::string& labels) {
  std::string pixels;
  for (uint32_t row = 0; row < rows; ++row)
    pixels += std::string(28 * 28, static_cast<char>(row));
  const auto count = static_cast<uint32_t>(labels.size());
  folder.write("train-images-idx3-ubyte.gz", gzip(make_idx({rows, 28, 28}, pixels)));
  folder.write("train-labels-idx1-ubyte", make_idx({count}, labels));
}

std::string idx_error(const std::string& bytes) {
  TempFolder folder;
  const auto path = folder.write("file", bytes);
  return error_of([&] { read_idx(path); });
}

TEST(IdxTest, ReadsPlainAndCompressedFiles) {
  TempFolder folder;
  const std::string bytes = make_idx({2, 3}, "abcdef");
  for (const auto& content : {bytes, gzip(bytes)}) {
    const at::Tensor data = read_idx(folder.write("file", content));
    EXPECT_EQ(data.scalar_type(), at::kByte);
    EXPECT_EQ(data.sizes(), (at::IntArrayRef{2, 3}));
    EXPECT_THAT(numbers_of(data.to(at::kLong)), ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  }
  EXPECT_EQ(read_idx(folder.write("empty", make_idx({0, 3}, ""))).numel(), 0);
}

TEST(IdxTest, RefusesMissingFilesAndFolders) {
  TempFolder folder;
  EXPECT_THAT(error_of([&] { read_idx(folder.path() / "none"); }), HasSubstr("none is missing"));
  EXPECT_THAT(error_of([&] { read_idx(folder.path()); }), HasSubstr("not a file"));
}

TEST(IdxTest, RefusesTooFewAndTooManyBytes) {
  EXPECT_THAT(
      idx_error(make_idx({2, 3}, "abcde")), HasSubstr("holds 5 bytes where its header promises 6"));
  EXPECT_THAT(
      idx_error(gzip(make_idx({2, 3}, "abcdefg"))),
      HasSubstr("holds more than 6 bytes where its header promises 6"));
  EXPECT_THAT(idx_error(word(0x0803) + word(5)), HasSubstr("ends within its header"));
}

TEST(IdxTest, RefusesForeignFiles) {
  EXPECT_THAT(idx_error(""), HasSubstr("is not an IDX file"));
  EXPECT_THAT(idx_error("\x89PNG"), HasSubstr("is not an IDX file"));
  EXPECT_THAT(
      idx_error(word(0x0D01) + word(1) + word(0)), HasSubstr("starts with the number 3329"));
  EXPECT_THAT(idx_error(word(0x0800)), HasSubstr("is not an IDX file"));
  EXPECT_THAT(idx_error(word(0x08FF)), HasSubstr("is not an IDX file"));
}

TEST(IdxTest, RefusesDamagedCompression) {
  std::string data(5000, ' ');
  std::iota(data.begin(), data.end(), 0);
  const std::string good = gzip(make_idx({5000}, data));
  for (size_t length : {good.size() - 1, good.size() - 8, good.size() / 2}) {
    EXPECT_THAT(idx_error(good.substr(0, length)), HasSubstr("is damaged or cut off")) << length;
  }
  std::string flipped = good;
  flipped[good.size() - 6] ^= 1;
  EXPECT_THAT(idx_error(flipped), HasSubstr("is damaged or cut off")) << "its checksum";
}

TEST(IdxTest, DoesNotAllocateWhatALyingHeaderPromises) {
  EXPECT_THAT(
      idx_error(make_idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "abc")),
      HasSubstr("promises more than"));
  EXPECT_THAT(
      idx_error(make_idx({16000, 1000, 1000}, "abc")),
      HasSubstr("holds 3 bytes where its header promises 16000000000"));
}

TEST(FashionMnistTest, NormalizesBatches) {
  TempFolder folder;
  write_images(folder, 3, {4, 0, 9});
  const FashionMnist dataset({.folder = folder.path(), .mean = 0.5F, .std = 0.25F});
  EXPECT_EQ(dataset.size(), 3);
  EXPECT_EQ(dataset.images().scalar_type(), at::kByte);
  const Batch batch = dataset.rows(std::vector<int64_t>{2, 0}, 0);
  EXPECT_EQ(batch.inputs[0].sizes(), (at::IntArrayRef{2, 1, 28, 28}));
  EXPECT_EQ(batch.inputs[0].scalar_type(), at::kFloat);
  EXPECT_THAT(numbers_of(batch.targets[0]), ElementsAre(9, 4));
  EXPECT_FLOAT_EQ(batch.inputs[0][0][0][5][5].item<float>(), (2 / 255.0F - 0.5F) / 0.25F);
  EXPECT_FLOAT_EQ(batch.inputs[0].max().item<float>(), (2 / 255.0F - 0.5F) / 0.25F);
}

TEST(FashionMnistTest, CanUseTheFirstRowsOnly) {
  TempFolder folder;
  write_images(folder, 3, {4, 0, 9});
  EXPECT_EQ(FashionMnist({.folder = folder.path(), .max_rows = 2}).size(), 2);
  EXPECT_EQ(FashionMnist({.folder = folder.path(), .max_rows = 7}).size(), 3);
}

TEST(FashionMnistTest, NamesTheCureForMissingFiles) {
  TempFolder folder;
  const auto error = error_of([&] { FashionMnist({.folder = folder.path(), .train = false}); });
  EXPECT_EQ(
      error,
      "[data] " + (folder.path() / "t10k-images-idx3-ubyte.gz").string() +
          " is missing; install Debian's package dataset-fashion-mnist or give --data-dir");
}

TEST(FashionMnistTest, RefusesFilesThatDoNotMatch) {
  TempFolder folder;
  const auto open = [&] { FashionMnist({.folder = folder.path()}); };
  write_images(folder, 3, {4, 0});
  EXPECT_THAT(error_of(open), HasSubstr("has 3 images and 2 labels"));
  write_images(folder, 3, {4, 10, 0});
  EXPECT_THAT(error_of(open), HasSubstr("has the label 10 at row 1"));
  folder.write("train-labels-idx1-ubyte", make_idx({1, 3}, "abc"));
  EXPECT_THAT(error_of(open), HasSubstr("where labels have [rows]"));
  folder.write("train-images-idx3-ubyte.gz", make_idx({3}, "abc"));
  EXPECT_THAT(error_of(open), HasSubstr("where images have [rows, height, width]"));
}

TEST(FashionMnistTest, ReadsDebiansPackage) {
  const FashionMnistOptions options{.train = false};
  if (!std::filesystem::exists(options.folder))
    GTEST_SKIP() << "Debian's package dataset-fashion-mnist is not installed";
  const FashionMnist dataset(options);
  EXPECT_EQ(dataset.images().sizes(), (at::IntArrayRef{10000, 1, 28, 28}));
  std::vector<int> counts(10);
  for (int64_t label : numbers_of(dataset.labels()))
    ++counts.at(static_cast<size_t>(label));
  EXPECT_THAT(counts, testing::Each(1000));
}

}  // namespace
}  // namespace gpipe::data

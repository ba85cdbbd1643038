#include "gpipe/data/text.h"

#include <ATen/ops/arange.h>

#include "gpipe/data/loader.h"
#include "tests/data/testing.h"

namespace gpipe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string string_of(const at::Tensor& bytes) {
  const auto* data = bytes.const_data_ptr<uint8_t>();
  return {data, data + bytes.numel()};
}

std::string repeat(char letter, size_t count) {
  return std::string(count, letter);
}

TEST(ReadTextTest, SplitsEachFileInBlocks) {
  TempFolder folder;
  folder.write("b.txt", repeat('b', 16) + repeat('B', 4) + repeat('b', 8) + repeat('B', 2));
  folder.write("a.txt", "aaaaA");
  folder.write("c.txt", "");
  folder.write("ignored.md", "no");
  const Text text = read_text(folder.path(), {.held_out_share = 0.2, .block_bytes = 4});
  EXPECT_EQ(text.num_files, 3);
  EXPECT_EQ(string_of(text.train), "aaaa" + repeat('b', 24));
  EXPECT_EQ(string_of(text.held_out), "A" + repeat('B', 6));
}

TEST(ReadTextTest, ReadsOneFileOfAnyNameAndBytes) {
  TempFolder folder;
  std::string bytes;
  for (int value = 0; value < 256; ++value)
    bytes.push_back(static_cast<char>(value));
  const Text text = read_text(folder.write("bytes.bin", bytes), {.held_out_share = 0.25});
  EXPECT_EQ(string_of(text.train) + string_of(text.held_out), bytes);
  EXPECT_EQ(text.held_out.numel(), 64);
}

TEST(ReadTextTest, RefusesMissingAndEmptyText) {
  TempFolder folder;
  const auto read = [](const std::filesystem::path& path, TextOptions options = {}) {
    return error_of([&] { read_text(path, options); });
  };
  EXPECT_THAT(read(folder.path() / "none"), HasSubstr("none is missing; give a text file"));
  EXPECT_THAT(read(folder.path()), HasSubstr("has no file *.txt"));
  const auto file = folder.write("short.txt", "abc");
  EXPECT_THAT(read(folder.path()), HasSubstr("holds 3 bytes, too few to hold some out"));
  EXPECT_THAT(read(file, {.held_out_share = 1}), HasSubstr("a held-out share of 1"));
  EXPECT_THAT(read(file, {.block_bytes = 0}), HasSubstr("blocks of 0 bytes"));
  EXPECT_THAT(read("/dev/null"), HasSubstr("neither a file nor a folder"));
}

TEST(TextWindowsTest, MovesTargetsOnByOne) {
  const TextWindows windows(at::arange(10), {.length = 3});
  EXPECT_EQ(windows.size(), 3);
  const Batch batch = windows.rows(std::vector<int64_t>{2, 0}, 0);
  EXPECT_EQ(batch.inputs[0].sizes(), (at::IntArrayRef{2, 3}));
  EXPECT_EQ(batch.inputs[0].scalar_type(), at::kLong);
  EXPECT_THAT(numbers_of(batch.inputs[0]), ElementsAre(6, 7, 8, 0, 1, 2));
  EXPECT_THAT(numbers_of(batch.targets[0]), ElementsAre(7, 8, 9, 1, 2, 3));
}

TEST(TextWindowsTest, StartsElsewhereInEachEpoch) {
  const at::Tensor text = at::arange(100).to(at::kByte);
  const TextWindows windows(text, {.length = 8, .random_start = true, .seed = 2});
  EXPECT_EQ(windows.size(), 11);
  const std::vector<int64_t> ends{0, 10};
  std::vector<int64_t> starts;
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    const Batch batch = windows.rows(ends, epoch);
    const auto tokens = numbers_of(batch.inputs[0]);
    EXPECT_EQ(tokens[8], tokens[0] + 80);
    EXPECT_LT(numbers_of(batch.targets[0]).back(), 100);
    EXPECT_TRUE(batch.inputs[0].equal(windows.rows(ends, epoch).inputs[0]));
    starts.push_back(tokens[0]);
  }
  EXPECT_THAT(starts, testing::Each(testing::Lt(8)));
  for (int64_t start = 0; start < 8; ++start)
    EXPECT_THAT(starts, testing::Contains(start));
}

TEST(TextWindowsTest, UsesTheShortestTextThatServes) {
  EXPECT_EQ(TextWindows(at::arange(4), {.length = 3}).size(), 1);
  const TextWindows random(at::arange(6), {.length = 3, .random_start = true});
  EXPECT_EQ(random.size(), 1);
  for (int64_t epoch = 0; epoch < 10; ++epoch)
    EXPECT_LT(numbers_of(random.rows({{0}}, epoch).targets[0]).back(), 6);
}

TEST(TextWindowsTest, RefusesTextThatIsTooShort) {
  EXPECT_EQ(
      error_of([] { TextWindows(at::arange(3), {.length = 3}); }),
      "[data] a text of 3 tokens is too short for sequences of 3, which need 4; give more text or "
      "a smaller length");
  EXPECT_THAT(
      error_of([] { TextWindows(at::arange(3), {.length = 0}); }),
      HasSubstr("a sequence length of 0"));
  EXPECT_THAT(error_of([] { TextCover({}, 3); }), HasSubstr("one row of uint8 or int64"));
  EXPECT_THAT(error_of([] { TextCover(at::arange(3), 3); }), HasSubstr("too short"));
}

TEST(TextCoverTest, HasEachTargetOnce) {
  for (int64_t tokens = 5; tokens < 20; ++tokens) {
    auto cover = std::make_shared<TextCover>(at::arange(tokens), 4);
    Loader loader(cover, {.batch_size = 2});
    std::vector<int64_t> targets;
    while (auto batch = loader.next()) {
      const auto inputs = numbers_of(batch->inputs[0]);
      const auto next = numbers_of(batch->targets[0]);
      for (size_t i = 0; i < next.size(); ++i) {
        if (next[i] == TextCover::kIgnoredTarget)
          continue;
        targets.push_back(next[i]);
        EXPECT_EQ(next[i], inputs[i] + 1);
      }
    }
    const auto all = numbers_of(at::arange(1, tokens));
    EXPECT_EQ(targets, all) << tokens << " tokens";
  }
}

TEST(TextCoverTest, TrainAndHeldOutAreDisjoint) {
  std::vector<uint8_t> bytes(250);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(i);
  const Text text = split_text(bytes, {.held_out_share = 0.1, .block_bytes = 5});
  std::vector<int> seen(250);
  TextCover train(text.train, 7);
  TextCover held_out(text.held_out, 7);
  for (const auto* part : {&train, &held_out}) {
    std::vector<int> mine(250);
    for (int64_t row = 0; row < part->size(); ++row) {
      for (int64_t token : numbers_of(part->rows({{row}}, 0).inputs[0]))
        mine.at(static_cast<size_t>(token)) = 1;
    }
    for (size_t i = 0; i < seen.size(); ++i)
      seen[i] += mine[i];
  }
  EXPECT_THAT(seen, testing::Each(testing::Le(1)));
  EXPECT_EQ(text.train.numel() + text.held_out.numel(), 250);
  EXPECT_EQ(text.held_out.numel(), 25);
}

}  // namespace
}  // namespace gpipe::data

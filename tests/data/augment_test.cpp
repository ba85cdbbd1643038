#include "gpipe/data/augment.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <set>

#include "tests/data/testing.h"

namespace gpipe::data {
namespace {

using testing::HasSubstr;

const AugmentOptions kAll{.flip = true, .shift = 2, .cutout = 3, .seed = 4};

/// [rows, 2, 5, 6], all pixels of an image different and above 0.
at::Tensor make_images(int64_t rows, at::ScalarType dtype = at::kFloat) {
  return at::arange(rows * 60).remainder(250).add(1).view({rows, 2, 5, 6}).to(dtype);
}

/// The contract of ImageChange, pixel by pixel.
at::Tensor change_slowly(const at::Tensor& image, const ImageChange& change, int64_t edge) {
  at::Tensor out = at::zeros(image.sizes(), image.options());
  const int64_t height = image.size(1);
  const int64_t width = image.size(2);
  const auto is_cut = [edge](int64_t place, int64_t centre) {
    return place >= centre - edge / 2 && place < centre - edge / 2 + edge;
  };
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t from_y = y + change.down;
      const int64_t from_x = x + change.right;
      const bool outside = from_y < 0 || from_y >= height || from_x < 0 || from_x >= width;
      if (outside || (is_cut(y, change.cutout_y) && is_cut(x, change.cutout_x)))
        continue;
      const int64_t source_x = change.flip ? width - 1 - from_x : from_x;
      out.select(1, y).select(1, x).copy_(image.select(1, from_y).select(1, source_x));
    }
  }
  return out;
}

TEST(AugmentTest, DoesWhatTheChangeSays) {
  std::vector<int64_t> samples(40);
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i] = static_cast<int64_t>(i);
  for (auto dtype : {at::kFloat, at::kByte}) {
    const at::Tensor images = make_images(40, dtype);
    const at::Tensor out = augment(images, samples, 1, kAll);
    EXPECT_EQ(out.scalar_type(), dtype);
    for (int64_t row = 0; row < 40; ++row) {
      const ImageChange change = draw_change(kAll, 1, row, 5, 6);
      EXPECT_TRUE(out[row].equal(change_slowly(images[row], change, kAll.cutout))) << row;
    }
  }
}

TEST(AugmentTest, DoesNotDependOnTheBatchAround) {
  const at::Tensor images = make_images(6);
  const std::vector<int64_t> samples{10, 11, 12, 13, 14, 15};
  const at::Tensor together = augment(images, samples, 3, kAll);
  for (size_t i = samples.size(); i-- > 0;) {
    const auto row = static_cast<int64_t>(i);
    const at::Tensor alone = augment(images.narrow(0, row, 1), {{samples[i]}}, 3, kAll);
    EXPECT_TRUE(alone[0].equal(together[row])) << "row " << row;
  }
}

TEST(AugmentTest, ChangesWithEpochAndSeed) {
  const at::Tensor images = make_images(6);
  const std::vector<int64_t> samples{0, 1, 2, 3, 4, 5};
  const at::Tensor first = augment(images, samples, 0, kAll);
  EXPECT_TRUE(first.equal(augment(images, samples, 0, kAll)));
  EXPECT_FALSE(first.equal(augment(images, samples, 1, kAll)));
  AugmentOptions other = kAll;
  other.seed = 5;
  EXPECT_FALSE(first.equal(augment(images, samples, 0, other)));
}

TEST(AugmentTest, DrawsTheWholeRangeEvenly) {
  std::set<std::pair<int64_t, int64_t>> shifts;
  int flips = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) {
    const ImageChange change = draw_change(kAll, 0, sample, 5, 6);
    shifts.insert({change.down, change.right});
    flips += change.flip ? 1 : 0;
  }
  EXPECT_EQ(shifts.size(), 25U);
  EXPECT_EQ(shifts.begin()->first, -2);
  EXPECT_NEAR(flips, 500, 60);
}

TEST(AugmentTest, OneKindDoesNotDisturbTheOthers) {
  AugmentOptions only_shift{.shift = 2, .seed = kAll.seed};
  for (int64_t sample = 0; sample < 20; ++sample) {
    const ImageChange all = draw_change(kAll, 0, sample, 5, 6);
    const ImageChange one = draw_change(only_shift, 0, sample, 5, 6);
    EXPECT_EQ(one.down, all.down);
    EXPECT_EQ(one.right, all.right);
    EXPECT_FALSE(one.flip);
  }
}

TEST(AugmentTest, LeavesImagesAloneWithoutOptions) {
  const at::Tensor images = make_images(2).transpose(2, 3);
  EXPECT_TRUE(augment(images, {{0, 1}}, 0, {}).equal(images));
  EXPECT_FALSE(AugmentOptions{}.is_enabled());
  EXPECT_EQ(augment(make_images(0), {}, 0, kAll).size(0), 0);
}

TEST(AugmentTest, RefusesWhatItCannotChange) {
  const auto run = [](const at::Tensor& images, const AugmentOptions& options) {
    return error_of([&] { augment(images, {{0, 1}}, 0, options); });
  };
  EXPECT_THAT(run(make_images(2)[0], kAll), HasSubstr("give [batch, channel, height, width]"));
  EXPECT_THAT(run(make_images(3), kAll), HasSubstr("for 2 samples"));
  EXPECT_THAT(run(make_images(2), {.shift = 5}), HasSubstr("use a shift of at most 4"));
  EXPECT_THAT(run(make_images(2, at::kDouble), kAll), HasSubstr("images of Double"));
}

}  // namespace
}  // namespace gpipe::data

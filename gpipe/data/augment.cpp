#include "gpipe/data/augment.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "gpipe/base/error.h"
#include "gpipe/data/random.h"

namespace gpipe::data {

namespace {

struct PlaneSize {
  int64_t height = 0;
  int64_t width = 0;
};

/// Rows and columns outside stay as they are in `out`.
template <class Pixel>
void move_plane(const Pixel* in, Pixel* out, PlaneSize size, const ImageChange& change) {
  const auto [height, width] = size;
  const int64_t top = std::max<int64_t>(0, -change.down);
  const int64_t bottom = std::min(height, height - change.down);
  const int64_t left = std::max<int64_t>(0, -change.right);
  const int64_t right = std::min(width, width - change.right);
  for (int64_t y = top; y < bottom; ++y) {
    const Pixel* from = in + (y + change.down) * width;
    Pixel* to = out + y * width + left;
    if (change.flip) {
      const Pixel* end = from + width;
      std::reverse_copy(end - right - change.right, end - left - change.right, to);
    } else {
      std::copy(from + left + change.right, from + right + change.right, to);
    }
  }
}

template <class Pixel>
void cut_plane(Pixel* out, PlaneSize size, const ImageChange& change, int64_t edge, Pixel fill) {
  const int64_t first_y = change.cutout_y - edge / 2;
  const int64_t first_x = change.cutout_x - edge / 2;
  const int64_t left = std::max<int64_t>(0, first_x);
  const int64_t right = std::min(size.width, first_x + edge);
  const int64_t bottom = std::min(size.height, first_y + edge);
  for (int64_t y = std::max<int64_t>(0, first_y); y < bottom; ++y)
    std::fill(out + y * size.width + left, out + y * size.width + right, fill);
}

template <class Pixel>
void augment_into(
    const at::Tensor& images,
    at::Tensor& out,
    std::span<const int64_t> samples,
    int64_t epoch,
    const AugmentOptions& options) {
  const PlaneSize size{.height = images.size(2), .width = images.size(3)};
  const int64_t channels = images.size(1);
  const int64_t plane = size.height * size.width;
  const auto* from = images.const_data_ptr<Pixel>();
  auto* to = out.mutable_data_ptr<Pixel>();
  for (int64_t sample : samples) {
    const ImageChange change = draw_change(options, epoch, sample, size.height, size.width);
    for (int64_t channel = 0; channel < channels; ++channel, from += plane, to += plane) {
      std::fill(to, to + plane, static_cast<Pixel>(options.fill));
      move_plane(from, to, size, change);
      cut_plane(to, size, change, options.cutout, static_cast<Pixel>(options.fill));
    }
  }
}

void check_images(
    const at::Tensor& images, std::span<const int64_t> samples, const AugmentOptions& options) {
  GPIPE_CHECK(
      images.dim() == 4 && images.size(0) == static_cast<int64_t>(samples.size()),
      "[data] images of shape ",
      images.sizes(),
      " for ",
      samples.size(),
      " samples; give [batch, channel, height, width] with one row per sample");
  const int64_t edge = std::min(images.size(2), images.size(3));
  GPIPE_CHECK(
      options.shift >= 0 && options.cutout >= 0 && (options.shift == 0 || options.shift < edge),
      "[data] a shift of ",
      options.shift,
      " and a cutout of ",
      options.cutout,
      " pixels for images of ",
      images.size(2),
      " x ",
      images.size(3),
      "; use a shift of at most ",
      edge - 1,
      " and no negative numbers");
}

}  // namespace

ImageChange draw_change(
    const AugmentOptions& options, int64_t epoch, int64_t sample, int64_t height, int64_t width) {
  KeyedRandom random{
      options.seed, kDrawAugment, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample)};
  const auto below = [&](int64_t bound) {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(bound)));
  };
  const bool mirrored = below(2) == 1;
  ImageChange change;
  change.flip = options.flip && mirrored;
  change.down = below(2 * options.shift + 1) - options.shift;
  change.right = below(2 * options.shift + 1) - options.shift;
  change.cutout_y = below(height);
  change.cutout_x = below(width);
  return change;
}

at::Tensor augment(
    const at::Tensor& images,
    std::span<const int64_t> samples,
    int64_t epoch,
    const AugmentOptions& options) {
  check_images(images, samples, options);
  const at::Tensor in = images.contiguous();
  at::Tensor out = at::empty_like(in);
  if (in.numel() == 0)
    return out;
  if (in.scalar_type() == at::kByte) {
    augment_into<uint8_t>(in, out, samples, epoch, options);
  } else {
    GPIPE_CHECK(
        in.scalar_type() == at::kFloat,
        "[data] images of ",
        in.scalar_type(),
        " cannot be augmented; convert them to uint8 or float32");
    augment_into<float>(in, out, samples, epoch, options);
  }
  return out;
}

}  // namespace gpipe::data

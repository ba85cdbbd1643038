#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace gpipe::data {

struct AugmentOptions {
  /// Mirrors left and right with probability one half.
  bool flip = false;
  /// Moves by up to this many pixels in each direction, the same as padding by `shift` and cropping
  /// at random. What comes in is `fill`.
  int64_t shift = 0;
  /// Edge in pixels of a square at a random place that is set to `fill`; 0 for none. Its centre is
  /// anywhere in the image, so parts of it may lie outside.
  int64_t cutout = 0;
  /// In the units of the images that are augmented.
  double fill = 0;
  uint64_t seed = 0;

  bool is_enabled() const { return flip || shift > 0 || cutout > 0; }
};

/// What happens to one image. It is mirrored, then moved, then cut: the pixel at (y, x) comes from
/// (y + down, x + right) of the mirrored image.
struct ImageChange {
  bool flip = false;
  int64_t down = 0;
  int64_t right = 0;
  int64_t cutout_y = 0;  ///< centre
  int64_t cutout_x = 0;
};

/// The change for one sample in one epoch. Depends only on (options, epoch, sample) and the size of
/// the image, and switching one kind of change on or off leaves the others as they are.
ImageChange draw_change(
    const AugmentOptions& options, int64_t epoch, int64_t sample, int64_t height, int64_t width);

/// A changed copy of `images`: [batch, channel, height, width], uint8 or float32, on the CPU.
/// `samples` holds the number of each row in its data set, which keys the draws, so an image does
/// not depend on the batch around it or on threads. Throws Error for other dtypes or shapes, and
/// for a shift that may move an image out of sight.
at::Tensor augment(
    const at::Tensor& images,
    std::span<const int64_t> samples,
    int64_t epoch,
    const AugmentOptions& options);

}  // namespace gpipe::data

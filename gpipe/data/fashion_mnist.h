#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>

#include "gpipe/data/augment.h"
#include "gpipe/data/dataset.h"

namespace gpipe::data {

struct FashionMnistOptions {
  /// Holds {train,t10k}-{images-idx3,labels-idx1}-ubyte, with or without .gz. The default is where
  /// Debian's package dataset-fashion-mnist puts them. MNIST's own files have the same form.
  std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
  /// The 60000 training images, or else the 10000 of the test set.
  bool train = true;
  /// Of the pixels divided by 255; inputs become (pixel / 255 - mean) / std.
  float mean = 0.2860F;
  float std = 0.3530F;
  /// Applied to the pixels before they are normalised; `fill` 0 is the images' own background.
  AugmentOptions augment = {};
  /// Uses only this many images from the start; 0 uses all.
  int64_t max_rows = 0;
};

/// Ten classes of clothes. A row has the input float32 [1, 28, 28] and the target int64 [], 0 to 9.
/// Images stay uint8 in memory (47 MB for the training set) and are converted batch by batch.
class FashionMnist : public Dataset {
 public:
  static constexpr int64_t kClasses = 10;

  /// Reads both files. Throws Error where one is missing or damaged, or the two do not match.
  explicit FashionMnist(const FashionMnistOptions& options = {});

  int64_t size() const override { return images_.size(0); }

  /// inputs: float32 [rows, 1, height, width]; targets: int64 [rows].
  Batch rows(std::span<const int64_t> numbers, int64_t epoch) const override;

  const at::Tensor& images() const { return images_; }  ///< uint8 [rows, 1, height, width]
  const at::Tensor& labels() const { return labels_; }  ///< int64 [rows]

 private:
  at::Tensor normalize(const at::Tensor& images) const;

  AugmentOptions augment_;
  std::array<float, 256> value_of_pixel_;
  at::Tensor images_;
  at::Tensor labels_;
};

}  // namespace gpipe::data

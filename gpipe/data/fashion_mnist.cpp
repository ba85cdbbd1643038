#include "gpipe/data/fashion_mnist.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>

#include "gpipe/base/error.h"
#include "gpipe/data/idx.h"

namespace gpipe::data {

namespace {

/// The file with .gz or, where there is none, without.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& name) {
  const auto compressed = folder / (name + ".gz");
  const auto plain = folder / name;
  std::error_code ignored;
  if (std::filesystem::exists(compressed, ignored))
    return compressed;
  GPIPE_CHECK(
      std::filesystem::exists(plain, ignored),
      "[data] ",
      compressed.string(),
      " is missing; install Debian's package dataset-fashion-mnist or give --data-dir");
  return plain;
}

at::Tensor read_images(const FashionMnistOptions& options) {
  const std::string part = options.train ? "train" : "t10k";
  const auto path = find_file(options.folder, part + "-images-idx3-ubyte");
  const at::Tensor images = read_idx(path);
  GPIPE_CHECK(
      images.dim() == 3 && images.numel() > 0,
      "[data] ",
      path.string(),
      " holds numbers of shape ",
      images.sizes(),
      " where images have [rows, height, width]; give the file of images");
  return images.unsqueeze(1);
}

at::Tensor read_labels(const FashionMnistOptions& options) {
  const std::string part = options.train ? "train" : "t10k";
  const auto path = find_file(options.folder, part + "-labels-idx1-ubyte");
  const at::Tensor labels = read_idx(path);
  GPIPE_CHECK(
      labels.dim() == 1,
      "[data] ",
      path.string(),
      " holds numbers of shape ",
      labels.sizes(),
      " where labels have [rows]; give the file of labels");
  const auto* begin = labels.const_data_ptr<uint8_t>();
  const auto* end = begin + labels.size(0);
  const auto* wrong =
      std::find_if(begin, end, [](uint8_t label) { return label >= FashionMnist::kClasses; });
  GPIPE_CHECK(
      wrong == end,
      "[data] ",
      path.string(),
      " has the label ",
      int{*wrong},
      " at row ",
      wrong - begin,
      " where labels are 0 to 9; give the original file");
  return labels.to(at::kLong);
}

}  // namespace

FashionMnist::FashionMnist(const FashionMnistOptions& options)
    : augment_(options.augment), images_(read_images(options)), labels_(read_labels(options)) {
  GPIPE_CHECK(
      images_.size(0) == labels_.size(0),
      "[data] ",
      options.folder.string(),
      " has ",
      images_.size(0),
      " images and ",
      labels_.size(0),
      " labels; give files that belong together");
  GPIPE_CHECK(options.std > 0, "[data] a standard deviation of ", options.std, "; use one above 0");
  if (options.max_rows > 0 && options.max_rows < images_.size(0)) {
    images_ = images_.narrow(0, 0, options.max_rows).clone();
    labels_ = labels_.narrow(0, 0, options.max_rows).clone();
  }
  for (size_t pixel = 0; pixel < value_of_pixel_.size(); ++pixel)
    value_of_pixel_[pixel] = (static_cast<float>(pixel) / 255.0F - options.mean) / options.std;
}

Batch FashionMnist::rows(std::span<const int64_t> numbers, int64_t epoch) const {
  at::Tensor images = select_rows(images_, numbers);
  if (augment_.is_enabled())
    images = augment(images, numbers, epoch, augment_);
  return {.inputs = {normalize(images)}, .targets = {select_rows(labels_, numbers)}};
}

at::Tensor FashionMnist::normalize(const at::Tensor& images) const {
  at::Tensor out = at::empty(images.sizes(), at::kFloat);
  const auto* from = images.const_data_ptr<uint8_t>();
  std::transform(from, from + images.numel(), out.mutable_data_ptr<float>(), [this](uint8_t pixel) {
    return value_of_pixel_[pixel];
  });
  return out;
}

}  // namespace gpipe::data

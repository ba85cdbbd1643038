#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "gpipe/models/amoebanet.h"
#include "gpipe/models/resnet.h"
#include "gpipe/models/transformer.h"
#include "tests/transparency/networks.h"

namespace gpipe::testing {
namespace {

constexpr int64_t kClasses = 5;
constexpr int64_t kVocabulary = 13;

std::pair<Tensors, Tensors> make_images(int step, int64_t rows, c10::ScalarType dtype) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(100 + step));
  const auto images = at::randn({rows, 2, 8, 8}, generator, at::kDouble).to(dtype);
  const auto labels = at::randint(0, kClasses, {rows}, generator, at::kLong);
  return {{images}, {labels}};
}

/// Every third target is ignored, so that micro-batches count differently many.
std::pair<Tensors, Tensors> make_text(int step, int64_t rows, c10::ScalarType) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(100 + step));
  const auto ids = at::randint(0, kVocabulary, {rows, 6}, generator, at::kLong);
  const auto draws = at::randint(0, 3, {rows, 6}, generator, at::kLong);
  return {{ids}, {at::where(draws.eq(0), at::full_like(ids, -100), ids)}};
}

}  // namespace

Network amoebanet_network() {
  return {
      .name = "AmoebaNet",
      .make_layers =
          [] {
            models::AmoebaNetOptions options = models::AmoebaNetOptions::fashion_mnist();
            options.num_layers = 3;
            options.num_filters = 8;
            options.num_classes = kClasses;
            options.in_channels = 2;
            options.dropout = 0.2;
            return models::amoebanet_d(options);
          },
      .make_batch = make_images,
      .make_loss = [] { return CrossEntropyLoss(); }};
}

Network resnet_network() {
  return {
      .name = "ResNet",
      .make_layers =
          [] {
            return models::resnet(
                {.num_blocks = {1, 1, 1, 1},
                 .width = 4,
                 .num_classes = kClasses,
                 .in_channels = 2,
                 .small_images = true});
          },
      .make_batch = make_images,
      .make_loss = [] { return CrossEntropyLoss({.label_smoothing = 0.1}); }};
}

Network transformer_network() {
  return {
      .name = "Transformer",
      .make_layers =
          [] {
            return models::transformer(
                {.num_layers = 3,
                 .model_dimension = 16,
                 .feed_forward_dimension = 32,
                 .num_heads = 2,
                 .vocabulary = kVocabulary,
                 .dropout = 0.1});
          },
      .make_batch = make_text,
      .make_loss = [] { return CrossEntropyLoss({.class_dim = -1}); }};
}

}  // namespace gpipe::testing

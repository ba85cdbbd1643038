#include "gpipe/models/amoebanet.h"

#include <ATen/Functions.h>
#include <torch/nn/modules/linear.h>

#include <string>

#include "gpipe/base/error.h"
#include "gpipe/models/amoebanet_cell.h"
#include "gpipe/models/convolution.h"

namespace gpipe::models {

namespace {

class AmoebaNetClassifierImpl : public torch::nn::Cloneable<AmoebaNetClassifierImpl> {
 public:
  AmoebaNetClassifierImpl(int64_t in_channels, int64_t num_classes, double dropout)
      : in_channels_(in_channels), num_classes_(num_classes), dropout_(dropout) {
    AmoebaNetClassifierImpl::reset();
  }

  void reset() override {
    linear_ = register_module("linear", torch::nn::Linear(in_channels_, num_classes_));
  }

  at::Tensor forward(const at::Tensor& previous, const at::Tensor& /*before_previous*/) {
    at::Tensor features = previous.relu().mean({2, 3});  // [batch, channel]
    if (dropout_ > 0)
      features = at::dropout(features, dropout_, is_training());
    return linear_(features);
  }

 private:
  int64_t in_channels_;
  int64_t num_classes_;
  double dropout_;
  torch::nn::Linear linear_{nullptr};
};
TORCH_MODULE(AmoebaNetClassifier);

/// Appends cells, and knows the channels that the next one finds.
class CellBuilder {
 public:
  CellBuilder(Layers& layers, int64_t stem_channels)
      : layers_(layers),
        channels_(stem_channels),
        previous_(stem_channels),
        before_previous_(stem_channels) {}

  void add_reduction(const std::string& name) {
    channels_ *= 2;
    add(name, true);
  }

  void add_normal(const std::string& name, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      add(name + "." + std::to_string(i), false);
  }

  int64_t output_channels() const { return previous_; }

 private:
  void add(std::string name, bool is_reduction) {
    const AmoebaNetCellOptions options{
        previous_, before_previous_, channels_, is_reduction, follows_reduction_};
    layers_.push_back(std::move(name), [options] { return AmoebaNetCell(options); });
    before_previous_ = previous_;
    previous_ = options.output_channels();
    follows_reduction_ = is_reduction;
  }

  Layers& layers_;
  int64_t channels_;
  int64_t previous_;
  int64_t before_previous_;
  bool follows_reduction_ = false;
};

void check(const AmoebaNetOptions& options) {
  GPIPE_CHECK(
      options.num_layers > 0 && options.num_layers % 3 == 0,
      "[amoebanet-d] num_layers = ",
      options.num_layers,
      " does not split into three groups of normal cells; use a multiple of 3, such as ",
      3 * (std::max<int64_t>(options.num_layers, 0) / 3 + 1));
  GPIPE_CHECK(
      options.stem_reductions >= 0 && options.stem_reductions <= 8,
      "[amoebanet-d] stem_reductions = ",
      options.stem_reductions,
      "; use 0 to 8");
  GPIPE_CHECK(
      options.stem_stride == 1 || options.stem_stride == 2,
      "[amoebanet-d] stem_stride = ",
      options.stem_stride,
      "; use 1 or 2");
  const int64_t unit = int64_t{4} << std::max<int64_t>(options.stem_reductions - 1, 0);
  GPIPE_CHECK(
      options.num_filters > 0 && options.num_filters % unit == 0,
      "[amoebanet-d] num_filters = ",
      options.num_filters,
      " cannot be quartered in every cell with stem_reductions = ",
      options.stem_reductions,
      "; use a multiple of ",
      unit,
      ", such as ",
      unit * (std::max<int64_t>(options.num_filters, 0) / unit + 1));
  GPIPE_CHECK(
      options.num_classes > 0 && options.in_channels > 0,
      "[amoebanet-d] num_classes = ",
      options.num_classes,
      ", in_channels = ",
      options.in_channels,
      "; both must be at least 1");
  GPIPE_CHECK(
      options.dropout >= 0 && options.dropout < 1,
      "[amoebanet-d] dropout = ",
      options.dropout,
      "; use a probability in [0, 1)");
}

}  // namespace

AmoebaNetOptions AmoebaNetOptions::fashion_mnist() {
  AmoebaNetOptions options;
  options.num_layers = 3;
  options.num_filters = 24;
  options.num_classes = 10;
  options.in_channels = 1;
  options.stem_stride = 2;
  options.stem_reductions = 0;
  return options;
}

Layers amoebanet_d(const AmoebaNetOptions& options) {
  check(options);
  const int64_t stem_channels = options.num_filters >> options.stem_reductions;
  const ConvolutionOptions stem{
      options.in_channels, stem_channels, 3, 3, options.stem_stride, options.channels_last};

  Layers layers;
  layers.push_back("stem", [stem] { return ConvolutionNorm(stem); });
  CellBuilder cells(layers, stem_channels);
  for (int64_t i = 0; i < options.stem_reductions; ++i)
    cells.add_reduction("stem_reduction." + std::to_string(i));
  cells.add_normal("normal1", options.num_layers / 3);
  cells.add_reduction("reduction1");
  cells.add_normal("normal2", options.num_layers / 3);
  cells.add_reduction("reduction2");
  cells.add_normal("normal3", options.num_layers / 3);
  layers.push_back(
      "classifier",
      [in = cells.output_channels(), classes = options.num_classes, dropout = options.dropout] {
        return AmoebaNetClassifier(in, classes, dropout);
      });
  return layers;
}

}  // namespace gpipe::models

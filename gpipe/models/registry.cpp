#include "gpipe/models/registry.h"

#include <array>
#include <functional>

#include "gpipe/base/error.h"
#include "gpipe/base/nearest.h"
#include "gpipe/models/amoebanet.h"
#include "gpipe/models/option_fields.h"
#include "gpipe/models/resnet.h"
#include "gpipe/models/transformer.h"

namespace gpipe::models {

namespace {

/// What a model is given, read from text.
struct Made {
  std::function<Layers()> make;
  ModelInput input;
};

Made read_amoebanet_d(OptionFields& fields) {
  AmoebaNetOptions options;
  int64_t image_size = 224;
  fields.add("num_layers", options.num_layers, "normal cells, a multiple of 3 (L)");
  fields.add("num_filters", options.num_filters, "channels of the first normal cells (D)");
  fields.add("num_classes", options.num_classes, "classes to tell apart");
  fields.add("in_channels", options.in_channels, "channels of an image");
  fields.add("image_size", image_size, "height and width of an image");
  fields.add("stem_stride", options.stem_stride, "1 or 2: stride of the first convolution");
  fields.add("stem_reductions", options.stem_reductions, "reduction cells before normal cells");
  fields.add("dropout", options.dropout, "share of features dropped before the classifier");
  fields.add("channels_last", options.channels_last, "memory layout; faster on the CPU");
  return {
      [options] { return amoebanet_d(options); },
      {false, {options.in_channels, image_size, image_size}, options.num_classes}};
}

Made read_resnet(OptionFields& fields, std::array<int64_t, 4> num_blocks) {
  ResNetOptions options;
  options.num_blocks = num_blocks;
  int64_t image_size = 224;
  fields.add("num_classes", options.num_classes, "classes to tell apart");
  fields.add("in_channels", options.in_channels, "channels of an image");
  fields.add("image_size", image_size, "height and width of an image");
  fields.add("width", options.width, "channels inside the first blocks");
  for (size_t group = 0; group < options.num_blocks.size(); ++group)
    fields.add(
        "num_blocks" + std::to_string(group + 1),
        options.num_blocks[group],
        "blocks at image size " + std::to_string(group + 1) + " of 4");
  fields.add("small_images", options.small_images, "3 x 3 stem of stride 1, no pooling");
  fields.add("channels_last", options.channels_last, "memory layout; faster on the CPU");
  return {
      [options] { return resnet(options); },
      {false, {options.in_channels, image_size, image_size}, options.num_classes}};
}

Made read_transformer(OptionFields& fields) {
  TransformerOptions options;
  int64_t sequence_length = 1024;
  fields.add("num_layers", options.num_layers, "blocks (L)");
  fields.add("model_dimension", options.model_dimension, "width of the residual stream");
  fields.add("feed_forward_dimension", options.feed_forward_dimension, "width inside a block");
  fields.add("num_heads", options.num_heads, "attention heads, a divisor of model_dimension");
  fields.add("vocabulary", options.vocabulary, "number of token ids");
  fields.add("sequence_length", sequence_length, "positions in a row");
  fields.add("dropout", options.dropout, "share dropped of what a sub-layer adds");
  fields.add("clip_logits", options.clip_logits, "largest magnitude of a logit; 0: any");
  return {
      [options] { return transformer(options); }, {true, {sequence_length}, options.vocabulary}};
}

struct Entry {
  std::string name;
  std::string description;
  Made (*read)(OptionFields& fields);
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list{
      {"amoebanet-d", "AmoebaNet-D (L, D) for images, a layer for each cell", read_amoebanet_d},
      {"resnet-50",
       "ResNet-50 for images, a layer for each block",
       [](OptionFields& fields) { return read_resnet(fields, {3, 4, 6, 3}); }},
      {"resnet-101",
       "ResNet-101 for images, a layer for each block",
       [](OptionFields& fields) { return read_resnet(fields, {3, 4, 23, 3}); }},
      {"transformer", "decoder-only language model, a layer for each block", read_transformer},
  };
  return list;
}

const Entry& find(const std::string& name) {
  for (const Entry& entry : entries()) {
    if (entry.name == name)
      return entry;
  }
  std::string all;
  for (const std::string& known : model_names())
    all += (all.empty() ? "" : ", ") + known;
  throw Error(
      "[models] unknown model '" + name + "'" + did_you_mean(name, model_names()) +
      "; the models are " + all);
}

Made read(const std::string& name, const ModelOptions& options) {
  OptionFields fields(name, options);
  Made made = find(name).read(fields);
  fields.check_all_known();
  return made;
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries())
    names.push_back(entry.name);
  return names;
}

std::string model_description(const std::string& name) {
  return find(name).description;
}

std::vector<ModelKey> model_keys(const std::string& name) {
  OptionFields fields(name, {});
  find(name).read(fields);
  return fields.keys();
}

Layers make_model(const std::string& name, const ModelOptions& options) {
  return read(name, options).make();
}

ModelInput model_input(const std::string& name, const ModelOptions& options) {
  return read(name, options).input;
}

}  // namespace gpipe::models

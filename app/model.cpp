#include "app/model.h"

#include <algorithm>

#include "gpipe/models/registry.h"

namespace gpipe::app {
namespace {

/// An option of ours and the key that the models have for it; a model knows some of them.
struct ModelOption {
  const char* name;
  const char* key;
};

constexpr ModelOption kOptions[] = {
    {"layers", "num_layers"},
    {"filters", "num_filters"},
    {"filters", "width"},
    {"stem-stride", "stem_stride"},
    {"stem-reductions", "stem_reductions"},
    {"channels", "in_channels"},
    {"image-size", "image_size"},
    {"small-images", "small_images"},
    {"channels-last", "channels_last"},
    {"classes", "num_classes"},
    {"vocabulary", "vocabulary"},
    {"sequence", "sequence_length"},
    {"model-dim", "model_dimension"},
    {"feed-forward", "feed_forward_dimension"},
    {"heads", "num_heads"},
    {"clip-logits", "clip_logits"},
    {"dropout", "dropout"},
};

std::string to_text(const OptionValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : to_toml(value);
}

/// The options that the model knows, under its keys.
models::ModelOptions to_model_options(const Options& options) {
  Options copy = options;
  OptionTable table = make_option_table(copy);
  const auto keys = models::model_keys(options.model);
  models::ModelOptions known;
  for (const auto& [name, key] : kOptions)
    if (std::any_of(keys.begin(), keys.end(), [&](const auto& k) { return k.name == key; }))
      known[key] = to_text(table.find(name)->value());
  return known;
}

/// The text with our names for the models' keys, so that it says what can be typed.
std::string in_our_names(std::string text) {
  for (const auto& [name, key] : kOptions) {
    const std::string theirs = key;
    if (theirs.find('_') == std::string::npos)
      continue;
    for (size_t at = text.find(theirs); at != std::string::npos; at = text.find(theirs, at + 1))
      text.replace(at, theirs.size(), name);
  }
  return text;
}

/// What is wrong with a model is wrong with the options.
template <class F>
auto as_usage_error(F function) {
  try {
    return function();
  } catch (const Error& error) {
    throw UsageError(in_our_names(error.what()));
  }
}

}  // namespace

Layers make_model(const Options& options) {
  return as_usage_error(
      [&] { return models::make_model(options.model, to_model_options(options)); });
}

bool is_sequence_model(const std::string& name) {
  return as_usage_error([&] { return models::model_input(name).is_tokens; });
}

}  // namespace gpipe::app

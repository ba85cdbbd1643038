#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpipe/core/layer.h"

namespace gpipe::models {

/// Options of a model by key, as text: what a configuration file or a command line holds. Those
/// left out have their defaults.
using ModelOptions = std::map<std::string, std::string>;

/// A key that a model knows.
struct ModelKey {
  std::string name;
  std::string default_value;
  std::string meaning;
};

/// What a model reads and answers, so that data can be checked against it, or made up.
struct ModelInput {
  /// Int64 ids below `num_classes`, with a target for each, rather than a float image with one.
  bool is_tokens = false;
  /// [channel, height, width] or [position], without the rows. Other sizes than these work too.
  std::vector<int64_t> row_shape;
  /// Number of logits: classes, or the vocabulary.
  int64_t num_classes = 0;
};

/// The one list of models: amoebanet-d, resnet-50, resnet-101, transformer.
std::vector<std::string> model_names();

/// One line about the model. This and the following throw Error for an unknown model, with the name
/// that was most likely meant.
std::string model_description(const std::string& name);

/// The keys of the model, in the order of importance.
std::vector<ModelKey> model_keys(const std::string& name);

/// The model's layers, none of them built. Throws Error for an unknown key, a value that does not
/// read as what it should be, or options that do not fit each other.
Layers make_model(const std::string& name, const ModelOptions& options = {});

/// Of the model that make_model() makes for the same arguments.
ModelInput model_input(const std::string& name, const ModelOptions& options = {});

}  // namespace gpipe::models

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpipe/core/pipeline.h"

namespace gpipe::testing {

/// A network and its data for transparency tests.
struct Network {
  std::string name;
  std::function<Layers()> make_layers;
  /// Inputs and targets of step `step`, with `rows` rows; the same at every call.
  std::function<std::pair<Tensors, Tensors>(int step, int64_t rows, c10::ScalarType dtype)>
      make_batch;
  std::function<Loss()> make_loss;
  /// Rows of each step's mini-batch: the last is a short one.
  std::vector<int64_t> rows = {19, 19, 19, 19, 17};
};

/// How it is trained.
struct Training {
  int num_stages = 1;
  int num_micro_batches = 1;
  std::string_view schedule = "gpipe";
  plan::Rematerialize rematerialize = plan::Rematerialize::Never;
  c10::ScalarType dtype = c10::kDouble;
  int num_threads = 1;
  std::optional<c10::ScalarType> autocast = std::nullopt;
  /// A cut far from the default one.
  bool has_far_cut = false;
};

/// Everything that must have the same bits, by name: losses, gradients of the last step, weights, buffers, optimizer state.
using Outcome = NamedTensors;

/// Trains with AdamW for as many steps as the network has rows: through the pipeline, or as REF-MB.
Outcome train_pipelined(const Network& network, const Training& training);
Outcome train_reference(const Network& network, const Training& training);

/// Empty where all bits are equal; else the first difference in words.
std::string first_difference(const Outcome& actual, const Outcome& expected);

}  // namespace gpipe::testing

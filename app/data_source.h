#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/options.h"
#include "gpipe/data/batch.h"

namespace gpipe::app {

/// The data of a run: what is trained on, and what is held out from it.
struct RunData {
  /// Shuffled, in epochs, made ahead in a thread of its own.
  std::unique_ptr<data::BatchSource> train;
  /// In order, all rows once, the last batch short.
  std::unique_ptr<data::BatchSource> held_out;
  /// Rows are sequences of tokens, each with a class to predict; otherwise images with one.
  bool is_sequence = false;
  /// Text only: the bigram model's loss on `held_out`, in nats per byte.
  std::optional<double> bigram_loss;
  std::string description;  ///< one line for people
};

/// Opens the data that the options name; synthetic rows are made to fit the model. Throws Error for
/// missing or damaged files, UsageError where options do not fit the data.
RunData open_data(const Options& options);

/// The batch in the numbers that are computed with: floating-point inputs are converted.
data::Batch to_dtype(data::Batch batch, c10::ScalarType dtype);

}  // namespace gpipe::app

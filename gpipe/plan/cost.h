#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace gpipe::plan {

/// What one layer costs for one micro-batch, measured or estimated.
struct LayerCost {
  std::string name;
  double forward_seconds = 0;
  double backward_seconds = 0;  ///< gradients of inputs and weights, without a recompute
  std::int64_t parameters = 0;
  std::int64_t parameter_bytes = 0;  ///< one copy of the weights
  std::int64_t output_bytes = 0;     ///< passed to the next layer, and sent where a stage ends here
  std::int64_t activation_bytes = 0;  ///< kept inside for the backward, without the layer's input

  bool operator==(const LayerCost&) const = default;
};

/// The costs of a model's layers for a micro-batch of a given size.
struct CostTable {
  std::int64_t micro_batch_rows = 1;
  std::int64_t input_bytes = 0;  ///< the model's input, which the first stage keeps
  std::vector<LayerCost> layers;

  bool operator==(const CostTable&) const = default;
};

/// The table for micro-batches of `rows` rows: times and activations grow in proportion, parameters
/// do not. Throws Error where `rows` is below 1.
CostTable scaled_to_rows(const CostTable& table, std::int64_t rows);

/// JSON text: an object with the members of CostTable, layers as objects with those of LayerCost.
std::string to_json(const CostTable& table);

/// Inverse of to_json. Members other than `layers` and a layer's `name` may be left out. Throws
/// Error for text that is not JSON (with line and column), unknown members (with the nearest), and
/// values that are of the wrong kind or negative.
CostTable cost_table_from_json(std::string_view json);

/// What it takes to move a value between ranks: latency + bytes / bandwidth.
struct LinkCost {
  double bytes_per_second = std::numeric_limits<double>::infinity();
  double latency_seconds = 0;

  double seconds(std::int64_t bytes) const {
    return latency_seconds + static_cast<double>(bytes) / bytes_per_second;
  }
};

/// What a stage runs on.
struct DeviceSpec {
  std::string name;
  std::int64_t memory_bytes = 0;  ///< 0: no limit
  double speed = 1;               ///< relative to the device on which costs were measured
};

}  // namespace gpipe::plan

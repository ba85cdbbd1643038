#include "gpipe/plan/cost.h"

#include <cmath>

#include "gpipe/base/error.h"

namespace gpipe::plan {

CostTable scaled_to_rows(const CostTable& table, std::int64_t rows) {
  GPIPE_CHECK(
      rows >= 1 && table.micro_batch_rows >= 1,
      "[cost] cannot scale from ",
      table.micro_batch_rows,
      " to ",
      rows,
      " rows; a micro-batch has at least 1");
  double factor = static_cast<double>(rows) / static_cast<double>(table.micro_batch_rows);
  auto scale_bytes = [&](std::int64_t& bytes) {
    bytes = std::llround(static_cast<double>(bytes) * factor);
  };
  CostTable scaled = table;
  scaled.micro_batch_rows = rows;
  scale_bytes(scaled.input_bytes);
  for (LayerCost& layer : scaled.layers) {
    layer.forward_seconds *= factor;
    layer.backward_seconds *= factor;
    scale_bytes(layer.output_bytes);
    scale_bytes(layer.activation_bytes);
  }
  return scaled;
}

}  // namespace gpipe::plan

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpipe/plan/cost.h"

namespace gpipe::plan {

/// The division of L layers into K stages of consecutive layers, at least one each.
struct Partition {
  /// First layer of each stage, then L: [num_stages + 1], rising.
  std::vector<int> boundaries = {0};

  int num_stages() const { return static_cast<int>(boundaries.size()) - 1; }
  int num_layers() const { return boundaries.back(); }
  int begin_layer(int stage) const { return boundaries.at(stage); }
  int end_layer(int stage) const { return boundaries.at(stage + 1); }
  int num_layers(int stage) const { return end_layer(stage) - begin_layer(stage); }
  /// The stage that holds the layer.
  int stage_of(int layer) const;

  bool operator==(const Partition&) const = default;
};

/// Layers per stage: [num_stages].
std::vector<int> layers_per_stage(const Partition& partition);

/// The user's own cut. Throws Error unless every stage has a layer and all add up to `num_layers`.
Partition partition_from_cut(const std::vector<int>& layers_per_stage, int num_layers);

/// What one stage runs on, for the partition.
struct StageLimits {
  double speed = 1;               ///< the stage's time is its cost divided by this
  std::int64_t memory_bytes = 0;  ///< 0: no limit
  int inputs_in_flight = 1;       ///< micro-batches whose stage input is kept at the peak
  int graphs_in_flight = 1;  ///< those whose activations are kept too; 1 with re-materialization
};

/// What to partition. Only `costs` and `num_stages` are needed; another list is empty, or has one
/// entry for each of what it says.
struct PartitionProblem {
  int num_stages = 1;
  std::vector<double> costs;           ///< [L] seconds, parameters, or any other unit
  std::vector<double> transfer_costs;  ///< [L - 1] added to both stages if one ends after layer i
  std::vector<StageLimits> stages;     ///< [num_stages]
  /// Bytes of a stage: sum of fixed, + inputs_in_flight * input of its first layer
  /// + graphs_in_flight * sum of activations.
  std::vector<std::int64_t> fixed_bytes;       ///< [L] weights, gradients, optimizer state
  std::vector<std::int64_t> input_bytes;       ///< [L] of one micro-batch
  std::vector<std::int64_t> activation_bytes;  ///< [L] of one micro-batch, kept for the backward
  std::vector<std::string> names;              ///< [L] for error texts
};

/// The exact optimum: the slowest stage is as fast as can be, and among those partitions the sum of
/// squares of the stage times is least; where stages are equal and transfers free this is the least
/// variance, the paper's aim. Among the partitions still left, later stages get more layers, since
/// earlier ones keep more micro-batches.
///
/// Costs are rounded to 2^-50 of their sum, so that all arithmetic is exact: equal layers make
/// equal stages, and the answer is the same on every machine. Layers without any cost count as
/// equal ones. Time O(K L s) with s the layers of a stage near the optimum, at worst O(K L^2).
///
/// Throws Error where there are fewer layers than stages, a cost is negative or not a number, a
/// list has another length, or the memory limits cannot be met, naming the layer and the bytes.
Partition make_partition(const PartitionProblem& problem);
Partition make_partition(const std::vector<double>& costs, int num_stages);

/// Time of each stage under the problem's costs, speeds and transfers: [num_stages].
std::vector<double> stage_times(const PartitionProblem& problem, const Partition& partition);

/// Bytes of each stage at its peak: [num_stages].
std::vector<std::int64_t> stage_bytes(const PartitionProblem& problem, const Partition& partition);

enum class PartitionBy {
  Time,        ///< forward and backward seconds
  Parameters,  ///< number of parameters
};

/// `time`, `parameters`.
std::string_view to_string(PartitionBy by);
/// Inverse of to_string. Throws Error on any other text, naming the nearest.
PartitionBy partition_by_from_string(std::string_view text);

/// The cost of each layer by that measure: [L].
std::vector<double> layer_costs(const CostTable& table, PartitionBy by);

}  // namespace gpipe::plan

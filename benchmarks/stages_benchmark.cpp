// K stages on K cores against one stage on one core: the same network, micro-batches and bits.
//
//   ./run bench stages
//
// The two are run in turn, step by step, so that the ratio holds while the machine's speed drifts. Prints a table for
// docs/benchmarks.md. The ideal is K * M / (M + K - 1): 1.88 at K = 2, M = 16.
#include <ATen/ATen.h>
#include <torch/optim/sgd.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/median.h"
#include "gpipe/gpipe.h"
#include "gpipe/models/amoebanet.h"
#include "gpipe/models/transformer.h"
#include "gpipe/plan/partition.h"

namespace {

using gpipe::benchmarks::median;

struct Work {
  std::string name;
  gpipe::Layers (*make_layers)();
  at::Tensor input;
  at::Tensor target;
  gpipe::Loss loss;
};

struct Settings {
  int num_stages = 2;
  int num_micro_batches = 16;
  int num_pairs = 5;
  std::string rematerialize = "never";
};

gpipe::Layers make_transformer() {
  return gpipe::models::transformer(
      {.num_layers = 8,
       .model_dimension = 512,
       .feed_forward_dimension = 2048,
       .num_heads = 8,
       .vocabulary = 256});
}

gpipe::Layers make_amoebanet() {
  auto options = gpipe::models::AmoebaNetOptions::fashion_mnist();
  return gpipe::models::amoebanet_d(options);
}

std::vector<Work> all_work() {
  const auto ids = at::randint(0, 256, {32, 128}, at::kLong);
  const auto images = at::randn({512, 1, 28, 28});
  const auto labels = at::randint(0, 10, {512}, at::kLong);
  return {
      {"Transformer, 8 layers of 512, sequence 128, 32 rows",
       make_transformer,
       ids,
       ids,
       gpipe::CrossEntropyLoss({.class_dim = -1})},
      {"AmoebaNet-D (3, 24), 28 x 28, 512 rows",
       make_amoebanet,
       images,
       labels,
       gpipe::CrossEntropyLoss()}};
}

gpipe::Pipeline make_pipeline(const Work& work, const Settings& settings, int num_stages) {
  gpipe::Layers layers = work.make_layers();
  gpipe::PipelineOptions options;
  options.num_stages = num_stages;
  options.num_micro_batches = settings.num_micro_batches;
  options.rematerialize = gpipe::plan::rematerialize_from_string(settings.rematerialize);
  const auto rows = work.input.size(0) / settings.num_micro_batches;
  const auto costs = gpipe::profile(layers, work.input.narrow(0, 0, rows));
  options.cut = gpipe::plan::layers_per_stage(gpipe::plan::make_partition(
      gpipe::plan::layer_costs(costs, gpipe::plan::PartitionBy::Time), num_stages));
  return gpipe::Pipeline(layers, options);
}

/// One whole training step.
class Trainer {
 public:
  Trainer(const Work& work, const Settings& settings, int num_stages)
      : work_(work),
        pipeline_(make_pipeline(work, settings, num_stages)),
        optimizer_(pipeline_, [](auto parameters) {
          return std::make_unique<torch::optim::SGD>(
              std::move(parameters), torch::optim::SGDOptions(0.01));
        }) {}

  double seconds_of_step() {
    const auto start = std::chrono::steady_clock::now();
    optimizer_.zero_grad();
    pipeline_.step(work_.input, work_.target, work_.loss);
    optimizer_.step();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  gpipe::Pipeline& pipeline() { return pipeline_; }

 private:
  const Work& work_;
  gpipe::Pipeline pipeline_;
  gpipe::PipelineOptimizer optimizer_;
};

void compare(const Work& work, const Settings& settings) {
  Trainer one(work, settings, 1);
  Trainer many(work, settings, settings.num_stages);
  one.seconds_of_step();
  many.seconds_of_step();
  std::vector<double> alone;
  std::vector<double> together;
  std::vector<double> ratios;
  std::vector<double> bubbles;
  for (int pair = 0; pair < settings.num_pairs; ++pair) {
    alone.push_back(one.seconds_of_step());
    together.push_back(many.seconds_of_step());
    ratios.push_back(alone.back() / together.back());
    bubbles.push_back(many.pipeline().timeline().bubble_ratio());
  }
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  std::printf(
      "| %s | %d | %.3f | %.3f | **%.2f** (%.2f to %.2f) | %.1f %% | %s |\n",
      work.name.c_str(),
      settings.num_micro_batches,
      median(alone),
      median(together),
      median(ratios),
      *least,
      *most,
      100 * median(bubbles),
      gpipe::digest(one.pipeline()) == gpipe::digest(many.pipeline()) ? "equal" : "DIFFERENT");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("K stages on K cores against one stage on one core");
  app.add_option("--stages", settings.num_stages, "K")->capture_default_str();
  app.add_option("--micro-batches", settings.num_micro_batches, "M")->capture_default_str();
  app.add_option("--pairs", settings.num_pairs, "steps of each that are timed")
      ->capture_default_str();
  app.add_option("--rematerialize", settings.rematerialize, "always, except_last, never")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  gpipe::use_metered_allocator();
  std::printf(
      "LibTorch %s, K=%d, one thread a stage, re-materialization %s\n\n",
      TORCH_VERSION,
      settings.num_stages,
      settings.rematerialize.c_str());
  std::printf(
      "| work | M | K=1, s | K=%d, s | speed-up, median (range) | bubble | bits |\n",
      settings.num_stages);
  std::printf("|---|---|---|---|---|---|---|\n");
  for (const Work& work : all_work())
    compare(work, settings);
}

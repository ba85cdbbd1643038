// Layers that wait instead of computing: what is left is the pipeline itself. K stages on a machine with fewer cores,
// measured beside the simulator's prediction for the same programs.
//
//   ./run bench waiting
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/median.h"
#include "gpipe/gpipe.h"
#include "gpipe/plan/schedules.h"
#include "gpipe/plan/simulator.h"

namespace {

constexpr double kForwardSeconds = 0.002;
constexpr double kBackwardSeconds = 0.004;

void wait(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

struct Wait : torch::autograd::Function<Wait> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    wait(kForwardSeconds);
    return x.clone();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
    wait(kBackwardSeconds);
    return {gradients[0]};
  }
};

struct Shape {
  int num_stages;
  int num_micro_batches;
  std::string schedule;
};

double measure(const Shape& shape, int num_steps) {
  gpipe::Layers layers;
  for (int i = 0; i < shape.num_stages; ++i) {
    layers.push_back(
        "wait" + std::to_string(i), [](const at::Tensor& x) { return Wait::apply(x); });
  }
  gpipe::PipelineOptions options;
  options.num_stages = shape.num_stages;
  options.num_micro_batches = shape.num_micro_batches;
  options.schedule = shape.schedule;
  options.rematerialize = gpipe::plan::Rematerialize::Never;
  gpipe::Pipeline pipeline(layers, options);
  const auto x = at::ones({shape.num_micro_batches, 1}).requires_grad_();
  const gpipe::Loss loss(
      [](const at::Tensor& y, const at::Tensor&) { return y.sum(); }, gpipe::Reduction::Sum);
  std::vector<double> seconds;
  for (int step = 0; step <= num_steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    pipeline.step(x, x.detach(), loss);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  seconds.erase(seconds.begin());
  return gpipe::benchmarks::median(std::move(seconds));
}

double simulated(const Shape& shape) {
  const auto schedule =
      gpipe::plan::make_schedule(shape.schedule, shape.num_stages, shape.num_micro_batches);
  const auto programs = gpipe::plan::lower(schedule, gpipe::plan::Rematerialize::Never);
  const auto costs =
      gpipe::plan::uniform_stage_costs(shape.num_stages, kForwardSeconds, kBackwardSeconds);
  return gpipe::plan::simulate(programs, costs).step_seconds;
}

}  // namespace

int main(int argc, char** argv) {
  int num_steps = 5;
  CLI::App app("layers that wait 2 ms forward and 4 ms backward");
  app.add_option("--steps", num_steps, "timed steps of each shape")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::printf(
      "| schedule | K | M | measured, ms | simulated, ms | share of ideal | speed-up over K=1 | "
      "K*M/(M+K-1) |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const Shape& shape :
       {Shape{4, 16, "gpipe"}, Shape{8, 32, "gpipe"}, Shape{4, 16, "1f1b"}, Shape{8, 32, "1f1b"}}) {
    const double seconds = measure(shape, num_steps);
    const double ideal = simulated(shape);
    const double alone =
        shape.num_stages * shape.num_micro_batches * (kForwardSeconds + kBackwardSeconds);
    const double limit = static_cast<double>(shape.num_stages) * shape.num_micro_batches /
                         (shape.num_micro_batches + shape.num_stages - 1);
    std::printf(
        "| %s | %d | %d | %.1f | %.1f | %.2f | %.2f | %.2f |\n",
        shape.schedule.c_str(),
        shape.num_stages,
        shape.num_micro_batches,
        1e3 * seconds,
        1e3 * ideal,
        ideal / seconds,
        alone / seconds,
        limit);
    std::fflush(stdout);
  }
}

#include <ATen/Parallel.h>

#include <iostream>

#include "app/command.h"
#include "app/data_source.h"
#include "app/evaluation.h"
#include "app/interrupt.h"
#include "app/metrics_file.h"
#include "app/options.h"
#include "app/pipeline_setup.h"
#include "app/progress.h"
#include "app/report.h"
#include "app/run_files.h"
#include "app/training_loop.h"
#include "gpipe/core/digest.h"
#include "gpipe/core/self_check.h"

namespace gpipe::app {
namespace {

data::Batch first_batch(RunData& data, const Options& options) {
  data.train->start_epoch(0);
  data::Batch batch = to_dtype(data.train->next().value(), weight_dtype(options));
  data.train->start_epoch(0);
  return batch;
}

void check_self(
    const Options& options,
    const Layers& layers,
    const Cut& cut,
    const data::Batch& batch,
    const RunData& data) {
  const SelfCheckReport report = self_check(
      layers,
      to_pipeline_options(options, cut),
      batch.inputs,
      batch.targets,
      make_training_loss(options, data));
  GPIPE_CHECK(report.ok, "[self-check] ", report.to_string());
  std::cout << "self-check: " << report.to_string() << std::endl;
}

void print_header(
    const Options& options, const Pipeline& pipeline, const Cut& cut, const RunData& data) {
  std::cout << options.model << ", " << to_thousands(pipeline.layers().num_parameters())
            << " parameters in " << pipeline.layers().size() << " layers\n"
            << data.description << '\n'
            << fingerprint_text(make_fingerprint(options))
            << plan_text(to_records(pipeline, cut), cut.cost_name) << std::endl;
}

ProgressPlan make_progress_plan(const Options& options, const RunData& data) {
  const int64_t batches = data.train->num_batches();
  return {
      .total_steps = total_steps(options, batches),
      .steps_per_epoch = (batches + options.accumulate - 1) / options.accumulate,
      .max_seconds = 60 * options.max_minutes,
      .log_every = options.log_every,
      .is_text = data.bigram_loss.has_value()};
}

/// The loop's records of the stages have what they did, the pipeline's what they hold.
void complete(RunSummary& summary, const Pipeline& pipeline, const Cut& cut) {
  auto records = to_records(pipeline, cut);
  for (size_t stage = 0; stage < records.size(); ++stage)
    records[stage].busy_share = summary.stages[stage].busy_share;
  summary.stages = std::move(records);
  summary.digest = digest(pipeline);
}

RunSummary train(const Options& options, MetricsFile& metrics, OutputFolder& output) {
  Layers layers = make_layers(options);
  RunData data = open_data(options);
  const data::Batch example = first_batch(data, options);
  const Cut cut = make_cut(options, layers, example);
  if (options.self_check)
    check_self(options, layers, cut, example, data);
  Pipeline pipeline(layers, to_pipeline_options(options, cut));
  load_weights(options.weights, pipeline);
  print_header(options, pipeline, cut, data);

  Progress progress(make_progress_plan(options, data));
  RunSummary summary = TrainingLoop(options, pipeline, data, metrics, progress).run();
  complete(summary, pipeline, cut);
  summary.weights_file = output.save(pipeline, options, summary);
  return summary;
}

}  // namespace

int run_train(const Command& command, const std::vector<std::string>& arguments) {
  Options options;
  OptionTable table = make_option_table(options);
  if (!read_options(arguments, command, options, table))
    return kExitSuccess;
  const Interrupt interrupt;
  at::set_num_threads(static_cast<int>(options.threads));
  OutputFolder output(options.output, table);
  MetricsFile metrics(options.metrics);
  metrics.configuration("train", table, make_fingerprint(options));
  const RunSummary summary = train(options, metrics, output);
  metrics.summary(summary);
  std::cout << summary_text(summary) << std::flush;
  return Interrupt::requested() ? 128 + Interrupt::signal() : kExitSuccess;
}

}  // namespace gpipe::app

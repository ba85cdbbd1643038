#include <ATen/Parallel.h>

#include <iostream>

#include "app/command.h"
#include "app/data_source.h"
#include "app/evaluation.h"
#include "app/interrupt.h"
#include "app/metrics_file.h"
#include "app/options.h"
#include "app/pipeline_setup.h"
#include "app/report.h"
#include "app/run_files.h"
#include "gpipe/core/digest.h"

namespace gpipe::app {
namespace {

data::Batch first_batch(RunData& data, const Options& options) {
  data.held_out->start_epoch(0);
  return to_dtype(data.held_out->next().value(), weight_dtype(options));
}

std::string result_text(const Options& options, const RunData& data, const EvalRecord& record) {
  std::string text = "model     " + options.model + "\ndata      " + data.description + "\n";
  if (record.is_text()) {
    text += "loss      " + to_fixed(record.loss, 4) + " nats per byte\nbigram    " +
            to_fixed(*record.bigram_loss, 4) + " nats per byte\n";
  } else {
    text += "loss      " + to_fixed(record.loss, 4) + "\n";
  }
  return text + "accuracy  " + to_fixed(100 * record.accuracy, 2) + " %\ntime      " +
         to_duration(record.seconds) + ", " + to_thousands(record.rows) + " rows\n";
}

std::optional<EvalRecord> evaluate_weights(const Options& options, MetricsFile& metrics) {
  Layers layers = make_layers(options);
  RunData data = open_data(options);
  const Cut cut = make_cut(options, layers, first_batch(data, options));
  Pipeline pipeline(layers, to_pipeline_options(options, cut));
  load_weights(options.weights, pipeline);
  const auto record = evaluate(pipeline, data, weight_dtype(options));
  if (!record)
    return record;
  metrics.evaluation(*record);
  std::cout << result_text(options, data, *record) << "digest    " << digest(pipeline) << std::endl;
  return record;
}

}  // namespace

int run_eval(const Command& command, const std::vector<std::string>& arguments) {
  Options options;
  OptionTable table = make_option_table(options);
  if (!read_options(arguments, command, options, table))
    return kExitSuccess;
  if (options.weights.empty())
    throw UsageError("[config] eval needs `weights`: --weights FOLDER/model.safetensors");
  const Interrupt interrupt;
  at::set_num_threads(static_cast<int>(options.threads));
  MetricsFile metrics(options.metrics);
  metrics.configuration("eval", table, make_fingerprint(options));
  const auto record = evaluate_weights(options, metrics);
  return record ? kExitSuccess : 128 + Interrupt::signal();
}

}  // namespace gpipe::app

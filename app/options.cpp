#include "app/options.h"

#include <charconv>
#include <iostream>
#include <numeric>

#include "app/flags.h"
#include "app/toml_config.h"
#include "gpipe/base/nearest.h"
#include "gpipe/models/registry.h"
#include "gpipe/plan/schedules.h"

namespace gpipe::app {
namespace {

/// `5,4,4`, blanks allowed; nothing where it is anything else.
std::optional<std::vector<int>> parse_cut(const std::string& text) {
  std::vector<int> cut;
  const char* at = text.data();
  const char* end = at + text.size();
  while (true) {
    while (at != end && *at == ' ')
      ++at;
    int layers = 0;
    const auto result = std::from_chars(at, end, layers);
    if (result.ec != std::errc() || layers < 1)
      return std::nullopt;
    cut.push_back(layers);
    for (at = result.ptr; at != end && *at == ' ';)
      ++at;
    if (at == end)
      return cut;
    if (*at++ != ',')
      return std::nullopt;
  }
}

bool is_named_cut(const std::string& text) {
  return text == "time" || text == "parameters" || text == "even";
}

std::string check_cut(const std::string& text) {
  if (is_named_cut(text) || parse_cut(text))
    return "";
  return "time, parameters, even, or numbers of layers such as 5,4,4" +
         did_you_mean(text, {"time", "parameters", "even"});
}

std::string check_device(const std::string& text) {
  return text == "cpu" || text.rfind("cuda", 0) == 0
             ? ""
             : "cpu, cuda, or one device a stage such as cuda:0,cuda:1";
}

void add_data(OptionTable& table, Options& options) {
  table.group("Data");
  table.add("data", &options.data, "data set").one_of({"fashion-mnist", "text", "synthetic"});
  table
      .add(
          "data-dir",
          &options.data_dir,
          "its folder, or a file of text; none: where scripts/fetch_*.sh and the Debian package "
          "put it")
      .named("PATH");
  table.add("rows", &options.rows, "use only the first N training rows; 0: all (synthetic: 1024)");
  table.add(
      "eval-rows",
      &options.eval_rows,
      "use only the first N held-out rows; 0: all (synthetic: 256)");
  table.add("batch-size", &options.batch_size, "rows of a mini-batch").range(1);
  table.add("drop-last", &options.drop_last, "leave out the last mini-batch of an epoch if short");
  table.add("augment", &options.augment, "mirror and shift the training images at random");
  table.add("augment-shift", &options.augment_shift, "with --augment: pixels to shift by at most");
  table.add(
      "augment-cutout",
      &options.augment_cutout,
      "with --augment: edge of a square to blank out; 0: none");
  table.add("held-out", &options.held_out, "share of a text that is kept for evaluation")
      .range(0.001, 0.9);
}

void add_model(OptionTable& table, Options& options) {
  table.group("Model (each takes the options that it knows)");
  table.add("model", &options.model, "network").one_of(models::model_names());
  table.add("layers", &options.layers, "normal cells of AmoebaNet-D, blocks of a Transformer")
      .range(1, 100000);
  table.add("filters", &options.filters, "channels of AmoebaNet-D's or ResNet's first cells")
      .range(1);
  table.add("stem-stride", &options.stem_stride, "AmoebaNet-D: stride of the first convolution")
      .range(1, 2);
  table.add(
      "stem-reductions", &options.stem_reductions, "AmoebaNet-D: reductions before all cells");
  table.add("channels", &options.channels, "channels of the images").range(1);
  table.add("image-size", &options.image_size, "height and width of synthetic images").range(1);
  table.add("classes", &options.classes, "classes of the images").range(2);
  table.add(
      "small-images",
      &options.small_images,
      "ResNet: a first layer that keeps the size of the image");
  table.add("channels-last", &options.channels_last, "memory layout of images; faster on the CPU");
  table.add("vocabulary", &options.vocabulary, "Transformer: number of tokens").range(2);
  table.add("sequence", &options.sequence, "Transformer: tokens of a row").range(1);
  table.add("model-dim", &options.model_dim, "Transformer: width").range(1);
  table.add("feed-forward", &options.feed_forward, "Transformer: width of the feed-forward layers")
      .range(1);
  table.add("heads", &options.heads, "Transformer: attention heads").range(1);
  table.add(
      "clip-logits", &options.clip_logits, "Transformer: largest magnitude of a logit; 0: any");
  table.add("dropout", &options.dropout, "probability of dropout").range(0, 0.99);
  table.add("weights", &options.weights, "start from (train) or test (eval) this safetensors file")
      .named("FILE");
}

void add_pipeline(OptionTable& table, Options& options) {
  table.group("Pipeline");
  table.add("stages", &options.stages, "K: stages, each with a thread of its own").range(1, 4096);
  table
      .add(
          "micro-batches", &options.micro_batches, "M: micro-batches that a mini-batch is split to")
      .range(1, 65536);
  table.add("schedule", &options.schedule, "order of the work").one_of(plan::schedule_names());
  table.add("rematerialize", &options.rematerialize, "which micro-batches are computed again")
      .one_of({"always", "except_last", "never"});
  table
      .add(
          "cut",
          &options.cut,
          "layers of each stage: balanced by measured time, parameters, even numbers (time, "
          "parameters, even), or listed as 5,4,4")
      .named("CUT")
      .checked(check_cut);
  table.add("threads", &options.threads, "threads of each stage; bits depend on it").range(1, 1024);
  table.add("device", &options.device, "cpu, cuda (stage i on device i), or one device a stage")
      .named("DEVICES")
      .checked(check_device);
  table
      .add(
          "dtype",
          &options.dtype,
          "numbers to compute with (bfloat16: autocast; weights stay float32)")
      .one_of({"float32", "float64", "bfloat16"});
}

void add_training(OptionTable& table, Options& options) {
  table.group("Training");
  table.add(
      "steps",
      &options.steps,
      "stop after N updates, going through the data as often as it takes; 0: no such limit");
  table.add(
      "epochs",
      &options.epochs,
      "stop after N passes through the data; with --steps the smaller counts; neither: 1 epoch");
  table.add("max-minutes", &options.max_minutes, "stop training after this time; 0: no limit")
      .named("X");
  table.add("optimizer", &options.optimizer, "rule of the update")
      .one_of({"sgd", "momentum", "adam", "adamw", "rmsprop"});
  table.add("lr", &options.lr, "learning rate, at its peak");
  table.add("lr-schedule", &options.lr_schedule, "how it changes")
      .one_of({"constant", "linear", "cosine"});
  table.add("warmup-steps", &options.warmup_steps, "steps in which it rises from zero");
  table.add("lr-final", &options.lr_final, "share of --lr that linear and cosine end with")
      .range(0, 1);
  table.add("weight-decay", &options.weight_decay, "decay of the weights");
  table.add("momentum", &options.momentum, "of momentum and rmsprop").range(0, 0.9999);
  table.add("clip-norm", &options.clip_norm, "largest norm of all gradients; 0: any");
  table.add("accumulate", &options.accumulate, "mini-batches of an update").range(1);
  table.add("label-smoothing", &options.label_smoothing, "in the training loss").range(0, 0.99);
  table.add("seed", &options.seed, "key of everything random");
}

void add_output(OptionTable& table, Options& options) {
  table.group("Evaluation and output");
  table.add("eval", &options.eval, "evaluate on the held-out rows at the end");
  table.add(
      "eval-every", &options.eval_every, "evaluate every N epochs as well; 0: only at the end");
  table.add("log-every", &options.log_every, "a line every N steps where there is no terminal")
      .range(1);
  table
      .add(
          "metrics",
          &options.metrics,
          "write JSON lines: configuration, steps, evaluations, summary")
      .named("FILE");
  table
      .add(
          "output",
          &options.output,
          "write model.safetensors and config.toml there; also after an interrupt")
      .named("FOLDER");
  table.add(
      "self-check",
      &options.self_check,
      "first compare a pipelined step with plain autograd, bit for bit");
}

}  // namespace

std::optional<std::vector<int>> Options::explicit_cut() const {
  return is_named_cut(cut) ? std::nullopt : parse_cut(cut);
}

void Options::validate() const {
  const auto listed = explicit_cut();
  if (listed && static_cast<int64_t>(listed->size()) != stages)
    throw UsageError(detail::concatenate(
        "[config] `cut` lists ",
        listed->size(),
        " stages, `stages` is ",
        stages,
        "; make them agree"));
  if (augment && data != "fashion-mnist")
    throw UsageError("[config] `augment` is for fashion-mnist; `data` is `" + data + "`");
}

OptionTable make_option_table(Options& options) {
  OptionTable table;
  add_data(table, options);
  add_model(table, options);
  add_pipeline(table, options);
  add_training(table, options);
  add_output(table, options);
  return table;
}

bool read_options(
    const std::vector<std::string>& arguments,
    const Command& command,
    Options& options,
    OptionTable& table) {
  const Flags flags = parse_flags(table, arguments);
  if (flags.help) {
    std::cout << to_help(table, std::string(command.name), std::string(command.summary));
    return false;
  }
  if (!flags.config.empty())
    read_toml(flags.config, table);
  for (const FlagValue& flag : flags.values)
    table.find(flag.name)->set_from_text(flag.text, "[flags] `--" + flag.name + "`");
  options.validate();
  if (flags.print_config)
    std::cout << to_toml(table);
  return !flags.print_config;
}

}  // namespace gpipe::app

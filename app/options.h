#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/option_table.h"

namespace gpipe::app {

/// What the commands are told, as it stands in the file and in the flags. Members are documented by
/// their entries in make_option_table(), which are the reference.
struct Options {
  std::string data = "fashion-mnist";
  std::string data_dir;
  int64_t rows = 0;
  int64_t eval_rows = 0;
  int64_t batch_size = 128;
  bool drop_last = false;
  bool augment = false;
  int64_t augment_shift = 2;
  int64_t augment_cutout = 0;
  double held_out = 0.1;

  std::string model = "amoebanet-d";
  int64_t layers = 3;
  int64_t filters = 24;
  int64_t stem_stride = 2;
  int64_t stem_reductions = 0;
  int64_t channels = 1;
  int64_t image_size = 28;
  int64_t classes = 10;
  bool small_images = true;
  bool channels_last = true;
  int64_t vocabulary = 256;
  int64_t sequence = 128;
  int64_t model_dim = 128;
  int64_t feed_forward = 512;
  int64_t heads = 4;
  double clip_logits = 0;
  double dropout = 0;
  std::string weights;

  int64_t stages = 2;
  int64_t micro_batches = 8;
  std::string schedule = "gpipe";
  std::string rematerialize = "except_last";
  std::string cut = "time";
  int64_t threads = 1;
  std::string device = "cpu";
  std::string dtype = "float32";

  int64_t steps = 0;
  int64_t epochs = 0;
  double max_minutes = 0;
  std::string optimizer = "adamw";
  double lr = 1e-3;
  std::string lr_schedule = "constant";
  int64_t warmup_steps = 0;
  double lr_final = 0;
  double weight_decay = 0;
  double momentum = 0.9;
  double clip_norm = 0;
  int64_t accumulate = 1;
  double label_smoothing = 0;
  int64_t seed = 0;

  bool eval = true;
  int64_t eval_every = 1;
  int64_t log_every = 50;
  std::string metrics;
  std::string output;
  bool self_check = false;

  /// The numbers of layers where `cut` lists them; nothing where it names a way to balance.
  std::optional<std::vector<int>> explicit_cut() const;

  /// Conditions on several options at once. Throws UsageError.
  void validate() const;
};

/// The table of all options over the fields of `options`, which it writes to.
OptionTable make_option_table(Options& options);

/// Reads --config, then the flags over it, and validates. Where --help or --print-config asks for
/// no more than a text, prints it and returns false. Throws UsageError.
bool read_options(
    const std::vector<std::string>& arguments,
    const Command& command,
    Options& options,
    OptionTable& table);

}  // namespace gpipe::app

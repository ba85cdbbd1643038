#include "app/data_source.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "app/model.h"
#include "app/report.h"
#include "gpipe/data/bigram.h"
#include "gpipe/data/fashion_mnist.h"
#include "gpipe/data/loader.h"
#include "gpipe/data/prefetch.h"
#include "gpipe/data/synthetic.h"
#include "gpipe/data/text.h"

namespace gpipe::app {
namespace {

using DatasetPointer = std::shared_ptr<const data::Dataset>;

constexpr const char* kTextFolder = ".deps/text";
constexpr int64_t kSyntheticRows = 1024;
constexpr int64_t kSyntheticEvalRows = 256;

void set_sources(
    RunData& run, const Options& options, DatasetPointer train, DatasetPointer held_out) {
  const auto seed = static_cast<uint64_t>(options.seed);
  run.description = options.data + ", " + to_thousands(train->size()) + " rows for training, " +
                    to_thousands(held_out->size()) + " held out";
  run.train = std::make_unique<data::Prefetch>(std::make_unique<data::Loader>(
      std::move(train),
      data::LoaderOptions{
          .batch_size = options.batch_size,
          .shuffle = true,
          .drop_last = options.drop_last,
          .seed = seed}));
  run.held_out = std::make_unique<data::Loader>(
      std::move(held_out), data::LoaderOptions{.batch_size = options.batch_size});
}

RunData open_fashion_mnist(const Options& options) {
  if (options.channels != 1 || options.classes < data::FashionMnist::kClasses)
    throw UsageError(
        "[config] fashion-mnist has 1 channel and 10 classes; leave `channels` and "
        "`classes` at those");
  data::FashionMnistOptions images;
  if (!options.data_dir.empty())
    images.folder = options.data_dir;
  images.max_rows = options.rows;
  data::FashionMnistOptions test = images;
  test.train = false;
  test.max_rows = options.eval_rows;
  if (options.augment)
    images.augment = {
        .flip = true,
        .shift = options.augment_shift,
        .cutout = options.augment_cutout,
        .seed = static_cast<uint64_t>(options.seed)};
  RunData run;
  set_sources(
      run,
      options,
      std::make_shared<data::FashionMnist>(images),
      std::make_shared<data::FashionMnist>(test));
  return run;
}

/// The start of a text that gives `rows` rows; all of it for 0.
at::Tensor first_tokens(const at::Tensor& text, int64_t rows, int64_t tokens) {
  return rows == 0 ? text : text.narrow(0, 0, std::min(text.size(0), tokens));
}

RunData open_text(const Options& options) {
  if (options.vocabulary != data::Text::kVocabulary)
    throw UsageError("[config] a text has 256 tokens, its bytes; leave `vocabulary` at that");
  const std::string path = options.data_dir.empty() ? kTextFolder : options.data_dir;
  const data::Text text = data::read_text(path, {.held_out_share = options.held_out});
  const int64_t length = options.sequence;
  const auto train = first_tokens(text.train, options.rows, (options.rows + 1) * length);
  const auto held_out =
      first_tokens(text.held_out, options.eval_rows, options.eval_rows * length + 1);
  RunData run;
  run.is_sequence = true;
  run.bigram_loss = data::Bigram(train).cross_entropy(held_out);
  const data::WindowOptions windows{
      .length = length, .random_start = true, .seed = static_cast<uint64_t>(options.seed)};
  set_sources(
      run,
      options,
      std::make_shared<data::TextWindows>(train, windows),
      std::make_shared<data::TextCover>(held_out, length));
  return run;
}

std::shared_ptr<data::TensorDataset> make_synthetic(const Options& options, int64_t rows) {
  const auto seed = static_cast<uint64_t>(options.seed);
  if (is_sequence_model(options.model))
    return data::make_synthetic_tokens(
        {.rows = rows, .length = options.sequence, .vocabulary = options.vocabulary, .seed = seed});
  return data::make_synthetic_images(
      {.rows = rows,
       .channels = options.channels,
       .height = options.image_size,
       .width = options.image_size,
       .classes = options.classes,
       .seed = seed});
}

DatasetPointer part(const data::Batch& all, int64_t first, int64_t count) {
  data::Batch rows = all.narrow(first, count);
  return std::make_shared<data::TensorDataset>(std::move(rows.inputs), std::move(rows.targets));
}

/// Row i does not depend on their number, so the training rows are the same whatever is held out.
RunData open_synthetic(const Options& options) {
  const int64_t rows = options.rows > 0 ? options.rows : kSyntheticRows;
  const int64_t held_out = options.eval_rows > 0 ? options.eval_rows : kSyntheticEvalRows;
  const auto all = make_synthetic(options, rows + held_out)->all();
  RunData run;
  run.is_sequence = is_sequence_model(options.model);
  set_sources(run, options, part(all, 0, rows), part(all, rows, held_out));
  return run;
}

}  // namespace

RunData open_data(const Options& options) {
  const bool is_sequence = is_sequence_model(options.model);
  if (options.data != "synthetic" && is_sequence != (options.data == "text"))
    throw UsageError(
        "[config] the model `" + options.model + "` takes " + (is_sequence ? "text" : "images") +
        ", the data set `" + options.data + "` is " + (is_sequence ? "images" : "text"));
  if (options.data == "fashion-mnist")
    return open_fashion_mnist(options);
  return options.data == "text" ? open_text(options) : open_synthetic(options);
}

data::Batch to_dtype(data::Batch batch, c10::ScalarType dtype) {
  for (auto& input : batch.inputs)
    if (input.is_floating_point())
      input = input.to(dtype);
  return batch;
}

}  // namespace gpipe::app

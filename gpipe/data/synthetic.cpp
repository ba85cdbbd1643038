#include "gpipe/data/synthetic.h"

#include <ATen/ops/empty.h>

#include <cmath>

#include "gpipe/base/error.h"
#include "gpipe/data/random.h"

namespace gpipe::data {

namespace {

enum Part : uint64_t { kPattern, kImage, kRule, kSequence, kWeights, kRow };

KeyedRandom keyed(uint64_t seed, Part part, int64_t number) {
  return KeyedRandom{seed, kDrawSynthetic, part, static_cast<uint64_t>(number)};
}

void check_positive(int64_t value, const char* name) {
  GPIPE_CHECK(value >= 1, "[data] synthetic data with ", value, " ", name, "; use at least 1");
}

std::vector<float> make_normal(KeyedRandom random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values)
    value = random.normal();
  return values;
}

int64_t draw_below(KeyedRandom& random, int64_t bound) {
  return static_cast<int64_t>(random.below(static_cast<uint64_t>(bound)));
}

std::vector<int64_t> with_rows(int64_t rows, const std::vector<int64_t>& shape) {
  std::vector<int64_t> sizes{rows};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return sizes;
}

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    check_positive(size, "elements in a dimension");
    count *= size;
  }
  return count;
}

}  // namespace

std::shared_ptr<TensorDataset> make_synthetic_images(const SyntheticImageOptions& options) {
  check_positive(options.rows, "rows");
  check_positive(options.classes, "classes");
  const std::vector<int64_t> shape{options.channels, options.height, options.width};
  const int64_t pixels = count_of(shape);
  std::vector<std::vector<float>> patterns;
  for (int64_t label = 0; label < options.classes; ++label)
    patterns.push_back(make_normal(keyed(options.seed, kPattern, label), pixels));

  at::Tensor images = at::empty(with_rows(options.rows, shape), at::kFloat);
  at::Tensor labels = at::empty({options.rows}, at::kLong);
  auto* image = images.mutable_data_ptr<float>();
  auto* label = labels.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < options.rows; ++row) {
    KeyedRandom random = keyed(options.seed, kImage, row);
    label[row] = draw_below(random, options.classes);
    for (float pixel : patterns[static_cast<size_t>(label[row])])
      *image++ = pixel + options.noise * random.normal();
  }
  return std::make_shared<TensorDataset>(std::vector{images}, std::vector{labels});
}

std::shared_ptr<TensorDataset> make_synthetic_tokens(const SyntheticTokenOptions& options) {
  check_positive(options.rows, "rows");
  check_positive(options.length, "tokens in a sequence");
  check_positive(options.vocabulary, "tokens in the vocabulary");
  const std::vector<int64_t> successor =
      make_permutation(options.vocabulary, keyed(options.seed, kRule, 0).next(), 0);

  at::Tensor inputs = at::empty({options.rows, options.length}, at::kLong);
  at::Tensor targets = at::empty({options.rows, options.length}, at::kLong);
  auto* input = inputs.mutable_data_ptr<int64_t>();
  auto* target = targets.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < options.rows; ++row) {
    KeyedRandom random = keyed(options.seed, kSequence, row);
    int64_t token = draw_below(random, options.vocabulary);
    for (int64_t place = 0; place < options.length; ++place) {
      *input++ = token;
      const bool is_noise = random.uniform() < options.noise;
      token =
          is_noise ? draw_below(random, options.vocabulary) : successor[static_cast<size_t>(token)];
      *target++ = token;
    }
  }
  return std::make_shared<TensorDataset>(std::vector{inputs}, std::vector{targets});
}

std::shared_ptr<TensorDataset> make_synthetic_rows(const SyntheticRowOptions& options) {
  check_positive(options.rows, "rows");
  const int64_t width = count_of(options.input_shape);
  const int64_t outputs = count_of(options.target_shape);
  const auto weights = make_normal(keyed(options.seed, kWeights, 0), width * outputs);
  const float scale = 1.0F / std::sqrt(static_cast<float>(width));

  at::Tensor inputs = at::empty(with_rows(options.rows, options.input_shape), at::kFloat);
  at::Tensor targets = at::empty(with_rows(options.rows, options.target_shape), at::kFloat);
  auto* input = inputs.mutable_data_ptr<float>();
  auto* target = targets.mutable_data_ptr<float>();
  for (int64_t row = 0; row < options.rows; ++row, input += width) {
    KeyedRandom random = keyed(options.seed, kRow, row);
    for (int64_t i = 0; i < width; ++i)
      input[i] = random.normal();
    for (int64_t output = 0; output < outputs; ++output) {
      float sum = 0;
      for (int64_t i = 0; i < width; ++i)
        sum += weights[static_cast<size_t>(output * width + i)] * input[i];
      *target++ = scale * sum + options.noise * random.normal();
    }
  }
  return std::make_shared<TensorDataset>(std::vector{inputs}, std::vector{targets});
}

}  // namespace gpipe::data

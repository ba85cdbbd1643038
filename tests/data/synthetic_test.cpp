#include "gpipe/data/synthetic.h"

#include <ATen/ops/cdist.h>
#include <ATen/ops/stack.h>

#include "tests/data/testing.h"

namespace gpipe::data {
namespace {

using testing::HasSubstr;

TEST(SyntheticTest, ImagesCanBeToldApart) {
  const auto data = make_synthetic_images(
      {.rows = 300, .channels = 1, .height = 8, .width = 8, .classes = 3, .seed = 1});
  const at::Tensor images = data->all().inputs[0];
  const at::Tensor labels = data->all().targets[0];
  EXPECT_EQ(images.sizes(), (at::IntArrayRef{300, 1, 8, 8}));
  EXPECT_EQ(labels.scalar_type(), at::kLong);
  // The nearest of the class means of the first half, on the second half.
  std::vector<at::Tensor> means;
  for (int64_t label = 0; label < 3; ++label) {
    const at::Tensor mine = labels.narrow(0, 0, 150).eq(label).nonzero().flatten();
    EXPECT_GT(mine.numel(), 25);
    means.push_back(images.index_select(0, mine).mean(0).flatten());
  }
  const at::Tensor distances = at::cdist(images.narrow(0, 150, 150).flatten(1), at::stack(means));
  const at::Tensor hits = distances.argmin(1).eq(labels.narrow(0, 150, 150));
  EXPECT_GT(hits.sum().item<int64_t>(), 145);
}

TEST(SyntheticTest, TokensFollowARule) {
  const auto data = make_synthetic_tokens({.rows = 50, .length = 20, .vocabulary = 12, .seed = 3});
  const auto inputs = numbers_of(data->all().inputs[0]);
  const auto targets = numbers_of(data->all().targets[0]);
  std::vector<std::vector<int>> counts(12, std::vector<int>(12));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i % 20 > 0) {
      EXPECT_EQ(inputs[i], targets[i - 1]);
    }
    ++counts.at(static_cast<size_t>(inputs[i])).at(static_cast<size_t>(targets[i]));
  }
  int best = 0;
  for (const auto& row : counts)
    best += *std::ranges::max_element(row);
  EXPECT_GT(best, 850) << "of 1000, with a tenth of noise";
  EXPECT_LT(best, 1000);
}

TEST(SyntheticTest, RowsHaveAnyShapeAndALinearRule) {
  const auto data =
      make_synthetic_rows({.rows = 40, .input_shape = {2, 3}, .target_shape = {}, .seed = 5});
  const Batch& all = data->all();
  EXPECT_EQ(all.inputs[0].sizes(), (at::IntArrayRef{40, 2, 3}));
  EXPECT_EQ(all.targets[0].sizes(), (at::IntArrayRef{40}));
  // Least squares finds the rule exactly.
  const at::Tensor inputs = all.inputs[0].flatten(1).to(at::kDouble);
  const at::Tensor targets = all.targets[0].to(at::kDouble);
  const at::Tensor normal = inputs.t().matmul(inputs);
  const at::Tensor weights = normal.inverse().matmul(inputs.t()).matmul(targets);
  EXPECT_LT(inputs.matmul(weights).sub(targets).abs().max().item<double>(), 1e-5);
  EXPECT_GT(targets.abs().max().item<double>(), 0.5);
}

TEST(SyntheticTest, DependsOnTheSeedAndNotOnTheNumberOfRows) {
  const auto few = make_synthetic_images({.rows = 2, .height = 4, .width = 4, .seed = 7});
  const auto many = make_synthetic_images({.rows = 9, .height = 4, .width = 4, .seed = 7});
  const auto other = make_synthetic_images({.rows = 2, .height = 4, .width = 4, .seed = 8});
  EXPECT_TRUE(few->all().inputs[0].equal(many->all().inputs[0].narrow(0, 0, 2)));
  EXPECT_FALSE(few->all().inputs[0].equal(other->all().inputs[0]));
}

TEST(SyntheticTest, RefusesEmptySizes) {
  EXPECT_THAT(error_of([] { make_synthetic_images({.rows = 0}); }), HasSubstr("0 rows"));
  EXPECT_THAT(error_of([] { make_synthetic_images({.classes = 0}); }), HasSubstr("0 classes"));
  EXPECT_THAT(error_of([] { make_synthetic_rows({.input_shape = {0}}); }), HasSubstr("dimension"));
  EXPECT_THAT(error_of([] { make_synthetic_tokens({.length = 0}); }), HasSubstr("use at least 1"));
}

}  // namespace
}  // namespace gpipe::data

#include "gpipe/data/loader.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include "tests/data/testing.h"

namespace gpipe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<TensorDataset> make_numbers(int64_t rows) {
  return std::make_shared<TensorDataset>(std::vector{at::arange(rows, at::kLong)});
}

std::vector<int64_t> read_order(BatchSource& source) {
  std::vector<int64_t> order;
  for (const auto& batch : read_epoch(source))
    order.insert(order.end(), batch.begin(), batch.end());
  return order;
}

TEST(LoaderTest, DeliversAShortLastBatch) {
  Loader loader(make_numbers(10), {.batch_size = 4});
  EXPECT_EQ(loader.num_batches(), 3);
  const auto epoch =
      ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7), ElementsAre(8, 9));
  EXPECT_THAT(read_epoch(loader), epoch);
  EXPECT_EQ(loader.position(), (Position{.epoch = 1, .batch = 0}));
  EXPECT_THAT(read_epoch(loader), epoch) << "the next epoch";
}

TEST(LoaderTest, DropsAShortLastBatch) {
  Loader loader(make_numbers(10), {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(loader.num_batches(), 2);
  EXPECT_THAT(read_epoch(loader), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
}

TEST(LoaderTest, OrderDependsOnSeedAndEpochOnly) {
  const LoaderOptions options{.batch_size = 3, .shuffle = true, .seed = 5};
  Loader first(make_numbers(8), options);
  Loader second(make_numbers(8), options);
  std::vector<std::vector<int64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    orders.push_back(read_order(first));
    EXPECT_EQ(orders.back(), read_order(second)) << "epoch " << epoch;
    EXPECT_THAT(orders.back(), testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  EXPECT_NE(orders[0], orders[2]);

  Loader other(make_numbers(8), {.batch_size = 3, .shuffle = true, .seed = 6});
  EXPECT_NE(read_order(other), orders[0]);
  first.start_epoch(1);
  EXPECT_EQ(read_order(first), orders[1]) << "an epoch can be read again";
}

TEST(LoaderTest, ResumesInMidEpoch) {
  const LoaderOptions options{.batch_size = 3, .shuffle = true, .seed = 9};
  Loader whole(make_numbers(8), options);
  read_epoch(whole);
  whole.next();
  const Position saved = whole.position();
  EXPECT_EQ(saved, (Position{.epoch = 1, .batch = 1}));

  Loader resumed(make_numbers(8), options);
  resumed.seek(saved);
  EXPECT_EQ(read_epoch(resumed), read_epoch(whole));
  EXPECT_EQ(read_epoch(resumed), read_epoch(whole)) << "the epoch after";
}

TEST(LoaderTest, ResumesAtTheEndOfAnEpoch) {
  Loader loader(make_numbers(4), {.batch_size = 4});
  loader.next();
  const Position saved = loader.position();
  Loader resumed(make_numbers(4), {.batch_size = 4});
  resumed.seek(saved);
  EXPECT_FALSE(resumed.next().has_value());
  EXPECT_TRUE(resumed.next().has_value());
}

TEST(LoaderTest, RefusesWhatCannotBeLoaded) {
  const auto make = [](int64_t rows, LoaderOptions options) {
    return error_of([&] { Loader(make_numbers(rows), options); });
  };
  EXPECT_THAT(make(3, {.batch_size = 0}), HasSubstr("a batch size of 0"));
  EXPECT_THAT(make(0, {}), HasSubstr("no rows"));
  EXPECT_THAT(
      make(3, {.batch_size = 4, .drop_last = true}), HasSubstr("3 rows give no full batch of 4"));
  Loader loader(make_numbers(3), {.batch_size = 2});
  EXPECT_THAT(
      error_of([&] { loader.seek({.epoch = 1, .batch = 3}); }), HasSubstr("batch 3 of epoch 1"));
  EXPECT_EQ(loader.position(), Position{}) << "a refused position changes nothing";
}

TEST(RepeatTest, GoesOnOverEpochs) {
  Repeat source(std::make_unique<Loader>(make_numbers(3), LoaderOptions{.batch_size = 1}));
  std::vector<int64_t> seen;
  for (int step = 0; step < 10; ++step)
    seen.push_back(numbers_of(source.next()->inputs[0]).front());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 2, 0));
  EXPECT_EQ(source.position(), (Position{.epoch = 3, .batch = 1}));
}

TEST(TensorDatasetTest, SelectsRowsOfAnyShapeAndKind) {
  const auto images = at::arange(24, at::kFloat).view({2, 3, 4}).transpose(1, 2);
  const auto labels = at::arange(2, at::kByte);
  const TensorDataset dataset({images, at::zeros({2, 0})}, {labels});
  const std::vector<int64_t> numbers{1, 0, 1};
  const Batch batch = dataset.rows(numbers, 0);
  EXPECT_EQ(batch.rows(), 3);
  EXPECT_EQ(batch.inputs[0].sizes(), (at::IntArrayRef{3, 4, 3}));
  EXPECT_TRUE(batch.inputs[0][2].equal(images[1]));
  EXPECT_EQ(batch.inputs[1].sizes(), (at::IntArrayRef{3, 0}));
  EXPECT_THAT(numbers_of(batch.targets[0].to(at::kLong)), ElementsAre(1, 0, 1));
}

TEST(TensorDatasetTest, RefusesTensorsThatDoNotMatch) {
  EXPECT_THAT(error_of([] { TensorDataset({}); }), HasSubstr("without inputs"));
  EXPECT_THAT(
      error_of([] { TensorDataset({at::zeros({4})}, {at::zeros({3})}); }),
      HasSubstr("target 0 has 3 rows where input 0 has 4"));
  EXPECT_THAT(
      error_of([] { TensorDataset({at::zeros({})}); }), HasSubstr("at least one dimension"));
  EXPECT_THAT(
      error_of([] { make_numbers(3)->rows(std::vector<int64_t>{3}, 0); }),
      HasSubstr("no row 3 in a data set of 3"));
}

TEST(BatchTest, GivesViewsOfSomeRows) {
  const Batch batch{.inputs = {at::arange(5)}, .targets = {at::arange(5).add(10)}};
  const Batch part = batch.narrow(3, 2);
  EXPECT_EQ(part.rows(), 2);
  EXPECT_THAT(numbers_of(part.targets[0]), ElementsAre(13, 14));
  EXPECT_THAT(error_of([&] { batch.narrow(4, 2); }), HasSubstr("of a batch of 5 rows"));
  EXPECT_EQ(Batch{}.rows(), 0);
}

}  // namespace
}  // namespace gpipe::data

#include "gpipe/data/prefetch.h"

#include <ATen/ops/arange.h>

#include <atomic>
#include <stdexcept>

#include "gpipe/data/loader.h"
#include "tests/data/testing.h"

namespace gpipe::data {
namespace {

std::unique_ptr<Loader> make_loader(uint64_t seed = 1) {
  auto numbers = std::make_shared<TensorDataset>(std::vector{at::arange(10, at::kLong)});
  return std::make_unique<Loader>(
      numbers, LoaderOptions{.batch_size = 3, .shuffle = true, .seed = seed});
}

/// Throws at one batch of the first epoch; counts the calls.
class FailingSource : public Loader {
 public:
  FailingSource(int64_t bad_batch, std::atomic<int>& calls)
      : Loader(*make_loader()), bad_batch_(bad_batch), calls_(calls) {}

  std::optional<Batch> next() override {
    ++calls_;
    if (position() == Position{.epoch = 0, .batch = bad_batch_})
      throw std::runtime_error("batch cannot be read");
    return Loader::next();
  }

 private:
  int64_t bad_batch_;
  std::atomic<int>& calls_;
};

TEST(PrefetchTest, GivesTheSameBatchesAndPositions) {
  auto plain = make_loader();
  Prefetch prefetch(make_loader());
  EXPECT_EQ(prefetch.size(), 10);
  EXPECT_EQ(prefetch.num_batches(), 4);
  for (int call = 0; call < 13; ++call) {
    EXPECT_EQ(prefetch.position(), plain->position()) << "call " << call;
    const auto expected = plain->next();
    const auto batch = prefetch.next();
    ASSERT_EQ(batch.has_value(), expected.has_value()) << "call " << call;
    if (batch) {
      EXPECT_TRUE(batch->inputs[0].equal(expected->inputs[0])) << "call " << call;
    }
  }
}

TEST(PrefetchTest, ResumesAtThePositionOfTheConsumer) {
  Prefetch first(make_loader(), 3);
  first.next();
  const Position saved = first.position();
  EXPECT_EQ(saved, (Position{.epoch = 0, .batch = 1})) << "not where the thread is";
  Prefetch second(make_loader());
  second.seek(saved);
  EXPECT_EQ(read_epoch(second), read_epoch(first));
  second.seek(saved);
  EXPECT_EQ(read_epoch(second).size(), 3U) << "again, with a running thread";
}

TEST(PrefetchTest, PassesAnErrorOnInItsPlaceAndKeepsIt) {
  std::atomic<int> calls = 0;
  Prefetch prefetch(std::make_unique<FailingSource>(2, calls));
  EXPECT_TRUE(prefetch.next().has_value());
  EXPECT_TRUE(prefetch.next().has_value());
  EXPECT_THROW(prefetch.next(), std::runtime_error);
  EXPECT_THROW(prefetch.next(), std::runtime_error);
  EXPECT_EQ(prefetch.position(), (Position{.epoch = 0, .batch = 2}));
  EXPECT_EQ(calls, 3) << "nothing is read after an error";
  prefetch.seek({.epoch = 1, .batch = 0});
  EXPECT_EQ(read_epoch(prefetch).size(), 4U);
}

TEST(PrefetchTest, EndsAtAnyMoment) {
  std::atomic<int> calls = 0;
  for (int reads = 0; reads < 30; ++reads) {
    Prefetch prefetch(std::make_unique<FailingSource>(-1, calls), 1 + reads % 3);
    for (int read = 0; read < reads; ++read)
      prefetch.next();
  }
  Prefetch failed(std::make_unique<FailingSource>(0, calls));
  EXPECT_THROW(failed.next(), std::runtime_error);
}

TEST(PrefetchTest, RefusesADepthOfZero) {
  EXPECT_THAT(
      error_of([] { Prefetch(make_loader(), 0); }), testing::HasSubstr("a prefetch depth of 0"));
}

}  // namespace
}  // namespace gpipe::data

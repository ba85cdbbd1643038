#include "gpipe/base/channel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace gpipe {
namespace {

using namespace std::chrono_literals;

/// Long enough for a thread to park, and for one that should wait to be caught if it does not.
constexpr auto kWhile = 30ms;

template <class Result>
bool is_waiting(const std::future<Result>& result) {
  return result.wait_for(kWhile) == std::future_status::timeout;
}

TEST(ChannelTest, HandsOverInOrder) {
  Channel<int> channel;
  for (int value = 0; value < 5; ++value)
    EXPECT_TRUE(channel.push(value));
  EXPECT_EQ(channel.size(), 5u);
  for (int value = 0; value < 5; ++value)
    EXPECT_EQ(channel.pop(), value);
  EXPECT_EQ(channel.size(), 0u);
}

TEST(ChannelTest, CarriesValuesThatOnlyMove) {
  Channel<std::unique_ptr<int>> channel;
  channel.push(std::make_unique<int>(7));
  EXPECT_EQ(**channel.pop(), 7);
}

TEST(ChannelTest, PopWaitsForAPush) {
  Channel<int> channel;
  auto popped = std::async(std::launch::async, [&] { return channel.pop(); });
  EXPECT_TRUE(is_waiting(popped));
  channel.push(3);
  EXPECT_EQ(popped.get(), 3);
}

TEST(ChannelTest, PushWaitsForRoom) {
  Channel<int> channel(2);
  channel.push(1);
  channel.push(2);
  auto pushed = std::async(std::launch::async, [&] { return channel.push(3); });
  EXPECT_TRUE(is_waiting(pushed));
  EXPECT_EQ(channel.size(), 2u);
  EXPECT_EQ(channel.pop(), 1);
  EXPECT_TRUE(pushed.get());
  EXPECT_EQ(channel.pop(), 2);
  EXPECT_EQ(channel.pop(), 3);
}

TEST(ChannelTest, CloseWakesAllThatWaitForAValue) {
  Channel<int> channel;
  std::vector<std::future<std::optional<int>>> popped;
  for (int consumer = 0; consumer < 3; ++consumer)
    popped.push_back(std::async(std::launch::async, [&] { return channel.pop(); }));
  std::this_thread::sleep_for(kWhile);
  channel.close();
  for (auto& result : popped)
    EXPECT_EQ(result.get(), std::nullopt);
}

TEST(ChannelTest, CloseWakesAllThatWaitForRoom) {
  Channel<int> channel(1);
  channel.push(0);
  std::vector<std::future<bool>> pushed;
  for (int producer = 0; producer < 3; ++producer)
    pushed.push_back(std::async(std::launch::async, [&] { return channel.push(1); }));
  std::this_thread::sleep_for(kWhile);
  channel.close();
  for (auto& result : pushed)
    EXPECT_FALSE(result.get());
}

TEST(ChannelTest, CloseDropsWhatNobodyTook) {
  auto value = std::make_shared<int>(1);
  Channel<std::shared_ptr<int>> channel;
  channel.push(value);
  EXPECT_EQ(value.use_count(), 2);
  EXPECT_FALSE(channel.is_closed());
  channel.close();
  EXPECT_TRUE(channel.is_closed());
  EXPECT_EQ(value.use_count(), 1) << "the value outlived the channel's close";
  EXPECT_EQ(channel.pop(), std::nullopt);
  EXPECT_FALSE(channel.push(value));
  EXPECT_EQ(value.use_count(), 1);
  channel.close();
  EXPECT_EQ(channel.size(), 0u);
}

/// A value whose destructor uses the channel, as an error path may.
TEST(ChannelTest, CloseDestroysValuesOutsideOfItsLock) {
  Channel<std::shared_ptr<void>> channel;
  std::size_t seen = 99;
  channel.push(std::shared_ptr<void>(nullptr, [&](void*) { seen = channel.size(); }));
  channel.close();
  EXPECT_EQ(seen, 0u);
}

struct Load {
  int num_producers;
  int num_consumers;
  std::size_t capacity;
};

class ChannelLoadTest : public testing::TestWithParam<Load> {};

/// Under ThreadSanitizer this is the test that matters.
TEST_P(ChannelLoadTest, LosesAndDoublesNothing) {
  constexpr int kValues = 2000;
  auto [num_producers, num_consumers, capacity] = GetParam();
  Channel<int> channel(capacity);
  std::vector<std::future<std::vector<int>>> consumers;
  for (int consumer = 0; consumer < num_consumers; ++consumer)
    consumers.push_back(std::async(std::launch::async, [&] {
      std::vector<int> taken;
      for (auto value = channel.pop(); value && *value >= 0; value = channel.pop())
        taken.push_back(*value);
      return taken;
    }));
  std::vector<std::future<void>> producers;
  for (int producer = 0; producer < num_producers; ++producer)
    producers.push_back(std::async(std::launch::async, [&, producer, num = num_producers] {
      for (int value = producer; value < kValues; value += num)
        channel.push(value);
    }));
  for (auto& producer : producers)
    producer.get();
  for (int consumer = 0; consumer < num_consumers; ++consumer)
    channel.push(-1);
  std::vector<int> count(kValues, 0);
  for (auto& consumer : consumers) {
    for (int value : consumer.get())
      ++count[value];
  }
  EXPECT_EQ(count, std::vector<int>(kValues, 1));
}

INSTANTIATE_TEST_SUITE_P(
    Loads,
    ChannelLoadTest,
    testing::Values(
        Load{1, 1, Channel<int>::kUnbounded}, Load{1, 1, 1}, Load{4, 1, 3}, Load{3, 3, 2}),
    [](const auto& load) {
      std::string capacity = load.param.capacity == Channel<int>::kUnbounded
                                 ? "Unbounded"
                                 : std::to_string(load.param.capacity);
      return "From" + std::to_string(load.param.num_producers) + "To" +
             std::to_string(load.param.num_consumers) + "Capacity" + capacity;
    });

TEST(ChannelTest, KeepsTheOrderOfOneProducer) {
  Channel<int> channel(4);
  auto producer = std::async(std::launch::async, [&] {
    for (int value = 0; value < 5000; ++value)
      channel.push(value);
  });
  for (int value = 0; value < 5000; ++value)
    ASSERT_EQ(channel.pop(), value);
}

TEST(ChannelTest, ClosesWhileOthersPushAndPop) {
  for (int round = 0; round < 50; ++round) {
    Channel<int> channel(2);
    auto producer = std::async(std::launch::async, [&] {
      while (channel.push(1)) {
      }
    });
    auto consumer = std::async(std::launch::async, [&] {
      while (channel.pop()) {
      }
    });
    std::this_thread::yield();
    channel.close();
    producer.get();
    consumer.get();
  }
}

}  // namespace
}  // namespace gpipe

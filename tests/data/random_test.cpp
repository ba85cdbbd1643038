#include "gpipe/data/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gpipe::data {
namespace {

// The numbers of the same rules written in Python.
TEST(KeyedRandomTest, GivesTheNumbersOfItsKeyOnEveryMachine) {
  KeyedRandom first{1, 2, 3};
  EXPECT_EQ(first.next(), 0x214D4C07ECFEAAC5U);
  EXPECT_EQ(first.next(), 0x6FF419CB83DFE1E6U);
  EXPECT_THAT(make_permutation(8, 1, 0), testing::ElementsAre(2, 0, 7, 3, 4, 1, 5, 6));
}

TEST(KeyedRandomTest, DiffersWithEachPartOfTheKey) {
  const auto first = [](std::initializer_list<uint64_t> key) { return KeyedRandom(key).next(); };
  EXPECT_NE(first({1, 2}), first({2, 1}));
  EXPECT_NE(first({1}), first({1, 0}));
  EXPECT_NE(first({0}), first({0, 0}));
}

TEST(KeyedRandomTest, IsEvenBelowABound) {
  KeyedRandom random{7};
  std::vector<int> counts(3);
  for (int i = 0; i < 30000; ++i)
    ++counts.at(random.below(3));
  EXPECT_THAT(counts, testing::Each(testing::AllOf(testing::Gt(9600), testing::Lt(10400))));
}

TEST(KeyedRandomTest, NormalHasMeanZeroAndVarianceOne) {
  KeyedRandom random{11};
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.03);
}

TEST(KeyedRandomTest, PermutationHoldsEachNumberOnce) {
  auto order = make_permutation(1000, 3, 5);
  EXPECT_FALSE(std::ranges::is_sorted(order));
  std::ranges::sort(order);
  for (size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(order[i], static_cast<int64_t>(i));
  EXPECT_TRUE(make_permutation(0, 3, 5).empty());
}

}  // namespace
}  // namespace gpipe::data

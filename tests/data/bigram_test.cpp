#include "gpipe/data/bigram.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "gpipe/data/random.h"
#include "tests/data/testing.h"

namespace gpipe::data {
namespace {

using testing::HasSubstr;

at::Tensor make_text(const std::vector<int64_t>& tokens) {
  return at::tensor(tokens, at::kLong);
}

// Of the text 0 0 1 0 over the vocabulary {0, 1, 2}, by hand:
//   n(0) = 3, n(1) = 1, n = 4, so p(0) = 4/7, p(1) = 2/7, p(2) = 1/7
//   after 0: one 0 and one 1, so n(0) = 2 and u(0) = 2
//   after 1: one 0, so n(1) = 1 and u(1) = 1
TEST(BigramTest, CountsAsByHand) {
  const Bigram bigram(make_text({0, 0, 1, 0}), 3);
  EXPECT_DOUBLE_EQ(bigram.probability(0, 0), (1 + 2 * 4.0 / 7) / 4);
  EXPECT_DOUBLE_EQ(bigram.probability(0, 1), (1 + 2 * 2.0 / 7) / 4);
  EXPECT_DOUBLE_EQ(bigram.probability(0, 2), (0 + 2 * 1.0 / 7) / 4);
  EXPECT_DOUBLE_EQ(bigram.probability(1, 0), (1 + 4.0 / 7) / 2);
  EXPECT_DOUBLE_EQ(bigram.probability(2, 1), 2.0 / 7) << "nothing follows 2";
  const double expected = -(std::log(11.0 / 14) + std::log(15.0 / 28) + std::log(1.0 / 14)) / 3;
  EXPECT_NEAR(bigram.cross_entropy(make_text({1, 0, 0, 2})), expected, 1e-15);
}

TEST(BigramTest, ProbabilitiesSumToOne) {
  std::vector<int64_t> tokens;
  KeyedRandom random{3};
  for (int i = 0; i < 200; ++i)
    tokens.push_back(static_cast<int64_t>(random.below(16) * random.below(2)));
  const Bigram bigram(make_text(tokens), 20);
  for (int64_t previous = 0; previous < 20; ++previous) {
    double sum = 0;
    for (int64_t token = 0; token < 20; ++token) {
      EXPECT_GT(bigram.probability(previous, token), 0);
      sum += bigram.probability(previous, token);
    }
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

TEST(BigramTest, LearnsARuleAndTakesBytes) {
  const at::Tensor text = at::arange(1000).remainder(10).to(at::kByte);
  const Bigram bigram(text);
  EXPECT_LT(bigram.cross_entropy(text), 0.03);
  EXPECT_NEAR(Bigram(at::zeros({0}, at::kByte)).cross_entropy(text), std::log(256.0), 1e-12);
}

TEST(BigramTest, RefusesWhatItCannotCount) {
  EXPECT_THAT(
      error_of([] { Bigram(make_text({0, 3}), 3); }), HasSubstr("the token 3 lies outside"));
  EXPECT_THAT(error_of([] { Bigram(make_text({-1}), 3); }), HasSubstr("the token -1"));
  EXPECT_THAT(error_of([] { Bigram(make_text({0}), 0); }), HasSubstr("use 1 to 8192"));
  EXPECT_THAT(error_of([] { Bigram(at::zeros({2})); }), HasSubstr("one row of uint8 or int64"));
  const Bigram bigram(make_text({0, 1}), 3);
  EXPECT_THAT(
      error_of([&] { bigram.cross_entropy(make_text({0})); }), HasSubstr("give at least 2"));
}

}  // namespace
}  // namespace gpipe::data

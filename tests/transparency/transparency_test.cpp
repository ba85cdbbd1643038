#include "tests/transparency/transparency.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/transparency/networks.h"

namespace gpipe::testing {
namespace {

/// One network, M, order and dtype: compared with its reference for every K and re-materialization mode.
struct TransparencyCase {
  Network network;
  Training training;
  std::vector<int> stages;
};

std::ostream& operator<<(std::ostream& stream, const TransparencyCase& each) {
  return stream << each.network.name;
}

std::string transparency_case_name(const ::testing::TestParamInfo<TransparencyCase>& info) {
  const auto& [network, training, stages] = info.param;
  return network.name + "_M" + std::to_string(training.num_micro_batches) + "_" +
         (training.schedule == "gpipe" ? "FillDrain" : "OneFOneB") + "_" +
         (training.dtype == c10::kDouble ? "Double" : "Float") + "_T" +
         std::to_string(training.num_threads);
}

/// {networks} x M in {1, 2, 3, 5, 8} x schedules x dtypes; rows do not divide by M.
std::vector<TransparencyCase> transparency_cases(const std::vector<Network>& networks) {
  std::vector<TransparencyCase> cases;
  for (const Network& network : networks) {
    for (int num_micro_batches : {1, 2, 3, 5, 8}) {
      for (const char* schedule : {"gpipe", "1f1b"}) {
        for (c10::ScalarType dtype : {c10::kDouble, c10::kFloat}) {
          Training training{
              .num_micro_batches = num_micro_batches, .schedule = schedule, .dtype = dtype};
          cases.push_back({network, training, {1, 2, 3, 4}});
        }
      }
    }
  }
  return cases;
}

/// Every K and re-materialization mode has the bits of REF-MB: losses, gradients, weights after the steps, BatchNorm
/// statistics and other buffers; dropout through all of these.
class TransparencyTest : public ::testing::TestWithParam<TransparencyCase> {};

TEST_P(TransparencyTest, SameBitsAsReference) {
  const auto& [network, base, stages] = GetParam();
  const Outcome expected = train_reference(network, base);
  for (int num_stages : stages) {
    for (const auto mode :
         {plan::Rematerialize::Never,
          plan::Rematerialize::ExceptLast,
          plan::Rematerialize::Always}) {
      Training training = base;
      training.num_stages = num_stages;
      training.rematerialize = mode;
      EXPECT_EQ(first_difference(train_pipelined(network, training), expected), "")
          << "with K=" << num_stages << ", re-materialization " << plan::to_string(mode);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Networks,
    TransparencyTest,
    ::testing::ValuesIn(transparency_cases(
        {toy_network(), amoebanet_network(), resnet_network(), transformer_network()})),
    transparency_case_name);

/// Large enough for oneDNN's kernels, which small networks never reach: 16 rows and more a micro-batch, two threads.
std::vector<TransparencyCase> large_cases() {
  std::vector<TransparencyCase> cases;
  for (Network network :
       {toy_network(), amoebanet_network(), resnet_network(), transformer_network()}) {
    network.rows = {34, 35};
    cases.push_back(
        {network, {.num_micro_batches = 2, .dtype = c10::kFloat, .num_threads = 2}, {1, 2, 3}});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    Large, TransparencyTest, ::testing::ValuesIn(large_cases()), transparency_case_name);

/// The first stage holds all but one layer of each other; under autocast, too.
std::vector<TransparencyCase> far_cut_cases() {
  std::vector<TransparencyCase> cases;
  for (const Network& network :
       {toy_network(), amoebanet_network(), resnet_network(), transformer_network()}) {
    Training training{.num_micro_batches = 3, .dtype = c10::kFloat};
    training.has_far_cut = true;
    cases.push_back({network, training, {2, 3}});
    training.schedule = "1f1b";
    training.autocast = c10::kBFloat16;
    cases.push_back({network, training, {2, 3}});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    FarCut, TransparencyTest, ::testing::ValuesIn(far_cut_cases()), transparency_case_name);

TEST(TransparencyRepeatTest, TwentyThreadedRunsGiveOneSetOfBits) {
  const Network network = toy_network();
  const Training training{
      .num_stages = 4,
      .num_micro_batches = 5,
      .rematerialize = plan::Rematerialize::Always,
      .dtype = c10::kFloat};
  const Outcome first = train_pipelined(network, training);
  for (int run = 1; run < 20; ++run) {
    EXPECT_EQ(first_difference(train_pipelined(network, training), first), "") << "in run " << run;
  }
}

/// The comparison must be able to see a difference of one bit.
TEST(TransparencyRepeatTest, ADifferenceIsSeen) {
  const Network network = toy_network();
  Outcome outcome = train_pipelined(network, {.num_stages = 2, .num_micro_batches = 3});
  const Outcome same = train_reference(network, {.num_micro_batches = 3});
  EXPECT_EQ(first_difference(outcome, same), "");
  const Outcome other_order =
      train_reference(network, {.num_micro_batches = 3, .schedule = "1f1b"});
  EXPECT_NE(first_difference(outcome, other_order), "");
}

}  // namespace
}  // namespace gpipe::testing

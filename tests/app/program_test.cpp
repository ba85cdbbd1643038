#include "gpipe/core/safetensors.h"
#include "tests/app/program_runs.h"

namespace gpipe::app {
namespace {

using ::testing::HasSubstr;

TEST(ProgramPlanTest, HasALineAStageForACutOfTheUser) {
  const auto result =
      run_program(kSmall + Arguments{"--cut", "1,4,2", "--stages", "3", "--steps", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("\n    0  stem (1) "));
  EXPECT_THAT(result.output, HasSubstr(" (4) "));
  EXPECT_THAT(result.output, HasSubstr("\n    2  normal3.0 .. classifier (2) "));
}

TEST(ProgramPlanTest, AllWaysToBalanceGiveTheSameDigest) {
  std::vector<std::string> digests;
  for (const char* cut : {"time", "parameters", "even", "1,6"})
    digests.push_back(
        run_with_metrics(kSmall + Arguments{"--cut", cut, "--steps", "2"}).summary["digest"]);
  EXPECT_THAT(digests, ::testing::Each(digests.front()));
}

TEST(ProgramTransparencyTest, DigestIsTheSameForAllStagesAndModes) {
  std::string expected;
  for (const char* stages : {"1", "2", "3"}) {
    for (const char* mode : {"always", "except_last", "never"}) {
      const auto metrics = run_with_metrics(
          kSmall + Arguments{
                       "--steps",
                       "20",
                       "--micro-batches",
                       "4",
                       "--dropout",
                       "0.1",
                       "--clip-norm",
                       "1",
                       "--stages",
                       stages,
                       "--rematerialize",
                       mode});
      ASSERT_EQ(metrics.steps.size(), 20U);
      const std::string digest = metrics.summary["digest"];
      expected = expected.empty() ? digest : expected;
      EXPECT_EQ(digest, expected) << "K=" << stages << ", " << mode;
    }
  }
}

TEST(ProgramTransparencyTest, SchedulesOfTheSameOrderAgreeWithThemselves) {
  const auto digest = [](const char* stages) {
    return run_with_metrics(
               kSmall + Arguments{"--steps", "3", "--schedule", "1f1b", "--stages", stages})
        .summary["digest"];
  };
  EXPECT_EQ(digest("1"), digest("3"));
}

TEST(ProgramLossTest, OfTheFirstStepIsTheSameForAllMicroBatches) {
  std::vector<double> losses;
  for (const char* micro_batches : {"1", "2", "5"})
    losses.push_back(
        run_with_metrics({"train",       "--data",       "synthetic", "--model",
                          "transformer", "--rows",       "5",         "--eval-rows",
                          "2",           "--batch-size", "5",         "--layers",
                          "1",           "--model-dim",  "8",         "--heads",
                          "2",           "--sequence",   "6",         "--vocabulary",
                          "11",          "--dtype",      "float64",   "--micro-batches",
                          micro_batches})
            .steps.at(0)["loss"]);
  EXPECT_NEAR(losses[0], losses[1], 1e-12);
  EXPECT_NEAR(losses[0], losses[2], 1e-12);
}

TEST(ProgramStepsTest, ShortBatchesTrainUnlessDropped) {
  const Arguments ten = kSmall + Arguments{"--rows", "10", "--batch-size", "4", "--epochs", "2"};
  const auto all = run_with_metrics(ten);
  EXPECT_EQ(all.steps.size(), 6U);
  EXPECT_EQ(all.steps.at(5)["epoch"], 2);
  EXPECT_EQ(all.summary["rows"], 20);
  EXPECT_EQ(run_with_metrics(ten + Arguments{"--drop-last"}).steps.size(), 4U);
}

TEST(ProgramStepsTest, StepsWrapOverEpochsAndTheSmallerLimitCounts) {
  const auto wrapped = run_with_metrics(kSmall + Arguments{"--steps", "5"});
  ASSERT_EQ(wrapped.steps.size(), 5U);
  EXPECT_EQ(wrapped.steps.back()["epoch"], 3);
  EXPECT_EQ(run_with_metrics(kSmall + Arguments{"--steps", "3", "--epochs", "4"}).steps.size(), 3U);
  EXPECT_EQ(run_with_metrics(kSmall + Arguments{"--steps", "9", "--epochs", "2"}).steps.size(), 4U);
}

TEST(ProgramStepsTest, AccumulatedMiniBatchesCountAsOne) {
  const Arguments small = kSmall + Arguments{
                                       "--dtype",
                                       "float64",
                                       "--model",
                                       "transformer",
                                       "--model-dim",
                                       "8",
                                       "--heads",
                                       "2",
                                       "--sequence",
                                       "4",
                                       "--vocabulary",
                                       "11",
                                       "--micro-batches",
                                       "1"};
  const auto whole = run_with_metrics(small + Arguments{"--batch-size", "16", "--epochs", "3"});
  const auto parts = run_with_metrics(
      small + Arguments{"--batch-size", "6", "--accumulate", "3", "--epochs", "3"});
  ASSERT_EQ(whole.steps.size(), 3U);
  ASSERT_EQ(parts.steps.size(), 3U);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(whole.steps[i]["loss"], parts.steps[i]["loss"], 1e-9) << "step " << i;
}

TEST(ProgramFilesTest, WeightsAndConfigurationCanBeUsedAgain) {
  const std::string folder = make_folder("output");
  const auto trained = run_with_metrics(kSmall + Arguments{"--output", folder, "--steps", "4"});
  const std::string weights = folder + "/model.safetensors";
  EXPECT_EQ(load_safetensors(weights).metadata.at("digest"), trained.summary["digest"]);

  Arguments eval = kSmall + Arguments{"--weights", weights, "--stages", "3"};
  eval.front() = "eval";
  const auto evaluated = run_with_metrics(eval);
  ASSERT_EQ(evaluated.evaluations.size(), 1U);
  EXPECT_EQ(evaluated.evaluations[0]["loss"], trained.summary["evaluation"]["loss"]);
  EXPECT_EQ(evaluated.evaluations[0]["accuracy"], trained.summary["evaluation"]["accuracy"]);

  const auto again = run_with_metrics({"train", "--config", folder + "/config.toml"});
  EXPECT_EQ(again.summary["digest"], trained.summary["digest"]);
}

TEST(ProgramFilesTest, WeightsThatDoNotFitAreRefused) {
  const std::string folder = make_folder("misfit");
  run_with_metrics(kSmall + Arguments{"--output", folder, "--steps", "1"});
  const std::string weights = folder + "/model.safetensors";
  expect_failure(kSmall + Arguments{"--weights", weights, "--filters", "8"}, 1, "[");
  expect_failure(kSmall + Arguments{"--weights", folder + "/none"}, 1, folder + "/none");
}

}  // namespace
}  // namespace gpipe::app

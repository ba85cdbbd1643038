#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gpipe/core/safetensors.h"
#include "tests/app/process.h"

namespace gpipe::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Arguments = std::vector<std::string>;

Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// A run of a second or two: a small AmoebaNet-D on small synthetic images.
const Arguments kSmall = {
    "train", "--data",      "synthetic",  "--image-size", "16", "--rows",
    "16",    "--eval-rows", "8",          "--batch-size", "8",  "--layers",
    "3",     "--filters",   "4",          "--classes",    "3",  "--eval-every",
    "0",     "--cut",       "parameters", "--seed",       "7"};

std::string make_folder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "gpipe_program_test_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

/// What a run left in its metrics file.
struct Metrics {
  std::vector<nlohmann::json> steps;
  std::vector<nlohmann::json> evaluations;
  nlohmann::json configuration;
  nlohmann::json summary;
};

Metrics read_metrics(const std::string& path) {
  Metrics metrics;
  std::istringstream file(read_file(path));
  for (std::string line; std::getline(file, line);) {
    auto json = nlohmann::json::parse(line);
    const std::string kind = json["kind"];
    if (kind == "step")
      metrics.steps.push_back(json);
    if (kind == "evaluation")
      metrics.evaluations.push_back(json);
    if (kind == "configuration")
      metrics.configuration = json;
    if (kind == "summary")
      metrics.summary = json;
  }
  return metrics;
}

/// Runs the program, which must succeed, and reads its metrics.
Metrics run_with_metrics(const Arguments& arguments) {
  const std::string path = make_folder("metrics") + "/metrics.jsonl";
  const auto result = run_program(arguments + Arguments{"--metrics", path});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  return read_metrics(path);
}

void expect_failure(const Arguments& arguments, int exit_code, const std::string& message) {
  const auto result = run_program(arguments);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, exit_code) << result.output << result.error;
  EXPECT_THAT(result.error, HasSubstr(message));
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

TEST(ProgramExitCodeTest, HelpAndSuccessAreZero) {
  EXPECT_EQ(run_program({"--help"}).exit_code, 0);
  const auto help = run_program({"train", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, HasSubstr("--micro-batches N"));
  EXPECT_THAT(help.error, IsEmpty());
  const auto config = run_program({"train", "--lr", "0.5", "--print-config"});
  EXPECT_EQ(config.exit_code, 0);
  EXPECT_THAT(config.output, HasSubstr("\nlr = 0.5\n"));
}

TEST(ProgramExitCodeTest, WrongUseIsTwo) {
  expect_failure({}, 2, "Usage: gpipe COMMAND");
  expect_failure({"trainn"}, 2, "unknown command `trainn`; did you mean `train`?");
  expect_failure({"train", "--bacth-size", "3"}, 2, "did you mean `--batch-size`?");
  expect_failure({"train", "--config", "/nowhere.toml"}, 2, "/nowhere.toml");
  expect_failure({"train", "--model", "amobanet-d"}, 2, "did you mean `amoebanet-d`?");
  expect_failure({"eval"}, 2, "--weights");
  expect_failure(
      kSmall + Arguments{"--model", "transformer", "--data", "fashion-mnist"}, 2, "text");
}

TEST(ProgramExitCodeTest, StagesAndCutsThatDoNotFitAreTwo) {
  expect_failure(kSmall + Arguments{"--stages", "99"}, 2, "99 stages for the ");
  expect_failure(kSmall + Arguments{"--cut", "1,1"}, 2, "adds up to 2 layers");
  expect_failure(kSmall + Arguments{"--cut", "1,1,1"}, 2, "lists 3 stages, `stages` is 2");
}

TEST(ProgramExitCodeTest, MissingDataAndUnwritableFilesAreOne) {
  expect_failure({"train", "--data-dir", "/nowhere"}, 1, "/nowhere");
  expect_failure(
      {"train", "--data", "text", "--model", "transformer", "--data-dir", "/nowhere"},
      1,
      "/nowhere");
  expect_failure(kSmall + Arguments{"--output", "/proc/gpipe"}, 1, "/proc/gpipe");
  expect_failure(kSmall + Arguments{"--metrics", "/proc/gpipe"}, 1, "/proc/gpipe");
}

TEST(ProgramExitCodeTest, NonFiniteLossIsOneAndNamesStepAndPlace) {
  const auto result = run_program(
      kSmall +
      Arguments{"--optimizer", "sgd", "--lr", "1e38", "--steps", "20", "--log-every", "1"});
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.error, HasSubstr("[train] step "));
  EXPECT_THAT(result.error, HasSubstr("the loss is "));
  EXPECT_THAT(result.error, HasSubstr("micro-batch "));
}

TEST(ProgramSignalTest, InterruptKeepsWhatWasLearned) {
  const std::string folder = make_folder("interrupt");
  for (const int signal : {SIGINT, SIGTERM}) {
    std::filesystem::remove(folder + "/model.safetensors");
    Process process(
        kSmall + Arguments{"--steps", "1000000", "--log-every", "1", "--output", folder});
    ASSERT_TRUE(process.wait_for_text("step 3/1000000", std::chrono::seconds(60)));
    process.send(signal);
    const auto result = process.wait(std::chrono::seconds(20));
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.exit_code, 128 + signal) << result.error;
    EXPECT_THAT(result.output, HasSubstr(signal == SIGINT ? "stopped by SIGINT" : "SIGTERM"));
    const auto file = load_safetensors(folder + "/model.safetensors");
    EXPECT_FALSE(file.tensors.empty());
    EXPECT_THAT(result.output, HasSubstr(file.metadata.at("digest")));
  }
}

TEST(ProgramTimeTest, MaxMinutesStopsAndSaysSo) {
  const auto result =
      run_program(kSmall + Arguments{"--steps", "1000000", "--max-minutes", "0.02"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("stopped by --max-minutes"));
}

TEST(ProgramSelfCheckTest, PassesOnOurModels) {
  const auto result = run_program(kSmall + Arguments{"--self-check", "--steps", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("self-check: "));
}

}  // namespace
}  // namespace gpipe::app

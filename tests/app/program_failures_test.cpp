#include <signal.h>

#include "gpipe/core/safetensors.h"
#include "tests/app/program_runs.h"

namespace gpipe::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(ProgramExitCodeTest, DevicesAndFullDisksAreRefused) {
  expect_failure({"train", "--config", "/dev/zero"}, 2, "is not a file");
  expect_failure(kSmall + Arguments{"--metrics", "/dev/full", "--steps", "1"}, 1, "/dev/full");
}

TEST(ProgramExitCodeTest, TruncatedDataAreOne) {
  const std::string folder = make_folder("truncated");
  const std::filesystem::path source = "/usr/share/datasets/fashion-mnist";
  for (const auto& file : std::filesystem::directory_iterator(source)) {
    const auto target = folder / file.path().filename();
    std::filesystem::copy_file(file.path(), target);
    std::filesystem::resize_file(target, 5000);
  }
  expect_failure({"train", "--data-dir", folder}, 1, "images-idx3-ubyte");
}

TEST(ProgramJobTest, TheDefaultJobTrains) {
  const auto result = run_program(
      {"train",
       "--config",
       GPIPE_CONFIG_DIR "/fashion-mnist.toml",
       "--rows",
       "256",
       "--eval-rows",
       "64",
       "--steps",
       "2"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("digest"));
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
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::filesystem::remove(folder + "/model.safetensors");
    Process process(
        kSmall + Arguments{"--steps", "1000000", "--log-every", "1", "--output", folder});
    ASSERT_TRUE(process.wait_for_text("step 3/1000000", std::chrono::seconds(60)));
    process.send(signal);
    const auto result = process.wait(std::chrono::seconds(20));
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.exit_code, 128 + signal) << result.error;
    EXPECT_THAT(result.output, HasSubstr(std::string("stopped by SIG") + ::sigabbrev_np(signal)));
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

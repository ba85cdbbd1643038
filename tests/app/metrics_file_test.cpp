#include "app/metrics_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/options.h"
#include "gpipe/base/error.h"

namespace gpipe::app {
namespace {

std::vector<nlohmann::json> read_lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(MetricsFileTest, WritesOneJsonObjectALine) {
  const std::string path = ::testing::TempDir() + "metrics_file_test.jsonl";
  Options options;
  {
    MetricsFile file(path);
    file.configuration("train", make_option_table(options), {.threads = 3, .micro_batches = 5});
    file.step({.step = 1, .epoch = 1, .loss = 0.1, .accuracy = 0.5, .lr = 1e-3});
    file.evaluation({.step = 1, .loss = 2, .bigram_loss = 3});
    RunSummary summary;
    summary.digest = "ab";
    file.summary(summary);
  }
  const auto lines = read_lines(path);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0]["kind"], "configuration");
  EXPECT_EQ(lines[0]["options"]["batch-size"], options.batch_size);
  EXPECT_EQ(lines[0]["bits_depend_on"]["threads_per_stage"], 3);
  EXPECT_EQ(lines[1]["loss"], 0.1);
  EXPECT_EQ(lines[2]["bigram_nats_per_byte"], 3);
  EXPECT_EQ(lines[3]["digest"], "ab");
}

TEST(MetricsFileTest, LossesKeepAllTheirDigits) {
  const std::string path = ::testing::TempDir() + "metrics_digits_test.jsonl";
  const double loss = 0.1 + std::numeric_limits<double>::epsilon();
  MetricsFile(path).step({.loss = loss});
  EXPECT_EQ(read_lines(path).at(0)["loss"].get<double>(), loss);
}

TEST(MetricsFileTest, RefusesAPathThatCannotBeWritten) {
  try {
    MetricsFile file("/nowhere/metrics.jsonl");
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(), "[metrics] cannot write /nowhere/metrics.jsonl: No such file or directory");
  }
}

TEST(MetricsFileTest, AFullDiskIsReported) {
  MetricsFile file("/dev/full");
  EXPECT_THROW(file.step({}), Error);
}

}  // namespace
}  // namespace gpipe::app

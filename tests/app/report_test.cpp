#include "app/report.h"

#include <gtest/gtest.h>

namespace gpipe::app {
namespace {

TEST(ReportTest, Numbers) {
  EXPECT_EQ(to_thousands(0), "0");
  EXPECT_EQ(to_thousands(999), "999");
  EXPECT_EQ(to_thousands(1000), "1,000");
  EXPECT_EQ(to_thousands(1234567), "1,234,567");
  EXPECT_EQ(to_thousands(-123456), "-123,456");
  EXPECT_EQ(to_percent(0.8871), "88.7 %");
}

TEST(ReportTest, Durations) {
  EXPECT_EQ(to_duration(0), "0.0 s");
  EXPECT_EQ(to_duration(12.34), "12.3 s");
  EXPECT_EQ(to_duration(59.94), "59.9 s");
  EXPECT_EQ(to_duration(59.96), "1 min 00 s");
  EXPECT_EQ(to_duration(247), "4 min 07 s");
  EXPECT_EQ(to_duration(3599.9), "1 h 00 min");
  EXPECT_EQ(to_duration(7380), "2 h 03 min");
}

std::vector<StageRecord> two_stages() {
  return {
      {.layers = {"stem", "cell1", "cell2"},
       .parameters = 120113,
       .cost_share = 0.498,
       .busy_share = 0.871,
       .peak_bytes = 118 << 20},
      {.layers = {"head"}, .parameters = 970, .cost_share = 0.502, .busy_share = 0.9}};
}

TEST(ReportTest, PlanHasALineAStage) {
  EXPECT_EQ(
      plan_text(two_stages(), "time"),
      "stage  layers             parameters  share of time\n"
      "    0  stem .. cell2 (3)     120,113         49.8 %\n"
      "    1  head (1)                  970         50.2 %\n");
}

TEST(ReportTest, EvaluationOfImages) {
  EvalRecord record;
  record.loss = 0.31239;
  record.accuracy = 0.8871;
  record.rows = 10000;
  record.seconds = 4.04;
  EXPECT_EQ(evaluation_text(record), "test loss 0.3124, accuracy 88.71 %, 10,000 rows in 4.0 s\n");
}

TEST(ReportTest, EvaluationOfTextStandsBesideTheBigramModel) {
  EvalRecord record;
  record.loss = 1.5;
  record.bigram_loss = 2.4321;
  record.rows = 1;
  EXPECT_EQ(
      evaluation_text(record),
      "held-out loss 1.5000 nats per byte (bigram model 2.4321), accuracy 0.00 %, 1 rows in 0.0 "
      "s\n");
}

TEST(ReportTest, Summary) {
  RunSummary summary;
  summary.steps = 2345;
  summary.epochs = 5;
  summary.rows = 300000;
  summary.train_seconds = 252;
  summary.last_loss = 0.25;
  summary.stages = two_stages();
  summary.bubble = 0.125;
  summary.digest = "0123abcd";
  summary.stopped_by = "SIGINT";
  summary.weights_file = "out/model.safetensors";
  EXPECT_EQ(
      summary_text(summary),
      "trained   2,345 steps (epoch 5) in 4 min 12 s, 1,190 rows/s, bubble 12.5 %; stopped by "
      "SIGINT\n"
      "loss      0.250000 (last step)\n"
      "stage  layers             parameters    busy  peak memory\n"
      "    0  stem .. cell2 (3)     120,113  87.1 %      118 MiB\n"
      "    1  head (1)                  970  90.0 %          0 B\n"
      "weights   out/model.safetensors\n"
      "digest    0123abcd\n");
}

TEST(ReportTest, FingerprintNamesAllThatBitsDependOn) {
  EXPECT_EQ(
      fingerprint_text(
          {.libtorch_version = "2.11.0",
           .cpu_capability = "AVX2",
           .dtype = "float32",
           .device = "cpu",
           .schedule = "gpipe",
           .threads = 1,
           .micro_batches = 8,
           .seed = 7}),
      "bits depend on: LibTorch 2.11.0, AVX2, cpu, float32, 1 thread a stage, M=8, schedule gpipe, "
      "seed 7\n");
}

}  // namespace
}  // namespace gpipe::app

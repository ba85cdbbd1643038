#include "gpipe/core/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gpipe/core/local_transport.h"
#include "gpipe/plan/schedules.h"

namespace gpipe {
namespace {

/// A stage without tensors: forward adds its index + 1 to the micro-batch's value, backward subtracts it, and every step
/// of the protocol is checked.
class FakeStage : public StageTask<int> {
 public:
  FakeStage(int stage, int num_stages, int num_micro_batches)
      : stage_(stage),
        num_stages_(num_stages),
        values_(static_cast<size_t>(num_micro_batches), -1) {}

  int forward(int micro_batch, int input) override {
    fail_if_asked('F', micro_batch);
    if (stage_ == 0)
      input = micro_batch * 1000;
    values_[static_cast<size_t>(micro_batch)] = input + stage_ + 1;
    order += 'F' + std::to_string(micro_batch) + ' ';
    return values_[static_cast<size_t>(micro_batch)];
  }
  void recompute(int micro_batch) override {
    fail_if_asked('R', micro_batch);
    order += 'R' + std::to_string(micro_batch) + ' ';
  }
  int backward(int micro_batch, int gradient) override {
    fail_if_asked('B', micro_batch);
    if (stage_ == num_stages_ - 1)
      gradient = values_[static_cast<size_t>(micro_batch)];
    order += 'B' + std::to_string(micro_batch) + ' ';
    results.push_back(gradient - stage_ - 1);
    return gradient - stage_ - 1;
  }

  char fails_in = ' ';
  int fails_at = -1;
  std::string order;
  std::vector<int> results;

 private:
  void fail_if_asked(char op, int micro_batch) const {
    if (op == fails_in && micro_batch == fails_at)
      throw Error("stage " + std::to_string(stage_) + " fails");
  }

  int stage_;
  int num_stages_;
  std::vector<int> values_;
};

struct Fixture {
  Fixture(const plan::Schedule& schedule, plan::Rematerialize mode)
      : workers(schedule.num_ranks()),
        transport(schedule.num_ranks()),
        executor(
            plan::lower(schedule, mode),
            plan::stage_ranks(schedule),
            schedule.num_micro_batches,
            workers,
            transport) {
    for (int stage = 0; stage < schedule.num_stages; ++stage) {
      stages.push_back(
          std::make_unique<FakeStage>(stage, schedule.num_stages, schedule.num_micro_batches));
    }
  }

  plan::Timeline run() {
    std::vector<StageTask<int>*> tasks;
    for (auto& stage : stages)
      tasks.push_back(stage.get());
    return executor.run(tasks);
  }

  WorkerThreads workers;
  LocalTransport<int> transport;
  Executor<int> executor;
  std::vector<std::unique_ptr<FakeStage>> stages;
};

struct Shape {
  std::string schedule;
  int num_stages;
  int num_micro_batches;
};

class ExecutorTest : public ::testing::TestWithParam<Shape> {};

TEST_P(ExecutorTest, ValuesPassThroughAllStagesAndBack) {
  const auto& [name, num_stages, num_micro_batches] = GetParam();
  Fixture fixture(
      plan::make_schedule(name, num_stages, num_micro_batches), plan::Rematerialize::Always);
  for (int run = 0; run < 5; ++run) {
    const plan::Timeline timeline = fixture.run();
    EXPECT_GT(timeline.duration_seconds(), 0);
    EXPECT_EQ(timeline.ranks.size(), static_cast<size_t>(num_stages));
  }
  const auto& results = fixture.stages.front()->results;
  ASSERT_EQ(results.size(), 5U * static_cast<size_t>(num_micro_batches));
  for (int i = 0; i < num_micro_batches; ++i) {
    const int micro_batch = name == "gpipe" ? num_micro_batches - 1 - i : i;
    EXPECT_EQ(results[static_cast<size_t>(i)], micro_batch * 1000);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes,
    ExecutorTest,
    ::testing::Values(
        Shape{"gpipe", 1, 1},
        Shape{"gpipe", 1, 4},
        Shape{"gpipe", 3, 8},
        Shape{"gpipe", 4, 2},
        Shape{"1f1b", 1, 3},
        Shape{"1f1b", 3, 8},
        Shape{"1f1b", 4, 2},
        Shape{"1f1b", 8, 32}),
    [](const auto& each) {
      return (each.param.schedule == "gpipe" ? std::string("FillDrain") : std::string("OneFOneB")) +
             "_K" + std::to_string(each.param.num_stages) + "_M" +
             std::to_string(each.param.num_micro_batches);
    });

TEST(ExecutorOrderTest, EveryStageRunsItsListInOrder) {
  Fixture fixture(plan::make_fill_drain(2, 3), plan::Rematerialize::ExceptLast);
  fixture.run();
  EXPECT_EQ(fixture.stages[0]->order, "F0 F1 F2 B2 R1 B1 R0 B0 ");
  EXPECT_EQ(fixture.stages[1]->order, "F0 F1 F2 B2 R1 B1 R0 B0 ");
}

TEST(ExecutorOrderTest, StagesOfOneRankHandOverDirectly) {
  plan::Schedule schedule{.num_stages = 2, .num_micro_batches = 2, .ranks = {}};
  schedule.ranks.push_back({});
  for (const char* action : {"0F0", "1F0", "0F1", "1F1", "1B1", "0B1", "1B0", "0B0"}) {
    schedule.ranks[0].push_back(plan::action_from_string(action));
  }
  Fixture fixture(schedule, plan::Rematerialize::Never);
  fixture.run();
  EXPECT_EQ(fixture.stages[0]->results, (std::vector<int>{1000, 0}));
}

struct Failure {
  int stage;
  char op;
  int micro_batch;
};

class ExecutorFailureTest : public ::testing::TestWithParam<Failure> {};

TEST_P(ExecutorFailureTest, TheErrorReachesTheCallerAndTheNextRunWorks) {
  const auto [stage, op, micro_batch] = GetParam();
  Fixture fixture(plan::make_one_f_one_b(3, 8), plan::Rematerialize::Always);
  for (int round = 0; round < 3; ++round) {
    FakeStage& failing = *fixture.stages[static_cast<size_t>(stage)];
    failing.fails_in = op;
    failing.fails_at = micro_batch;
    try {
      fixture.run();
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), "stage " + std::to_string(stage) + " fails");
    }
    failing.fails_at = -1;
    for (auto& each : fixture.stages)
      each->results.clear();
    fixture.run();
    EXPECT_EQ(
        fixture.stages[0]->results,
        (std::vector<int>{0, 1000, 2000, 3000, 4000, 5000, 6000, 7000}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Places,
    ExecutorFailureTest,
    ::testing::Values(
        Failure{0, 'F', 0},
        Failure{0, 'F', 7},
        Failure{1, 'F', 3},
        Failure{2, 'F', 3},
        Failure{0, 'B', 0},
        Failure{1, 'B', 3},
        Failure{2, 'B', 7},
        Failure{0, 'R', 2},
        Failure{1, 'R', 3},
        Failure{2, 'R', 0}),
    [](const auto& each) {
      return "Stage" + std::to_string(each.param.stage) + "_" + each.param.op +
             std::to_string(each.param.micro_batch);
    });

TEST(ExecutorFailureTest, WhenTwoStagesFailOneErrorIsReported) {
  for (int round = 0; round < 20; ++round) {
    Fixture fixture(plan::make_fill_drain(3, 8), plan::Rematerialize::Never);
    for (int stage : {0, 2}) {
      fixture.stages[static_cast<size_t>(stage)]->fails_in = 'F';
      fixture.stages[static_cast<size_t>(stage)]->fails_at = 4;
    }
    EXPECT_THROW(fixture.run(), Error);
  }
}

TEST(WorkerThreadsTest, StartsEachThreadOnceAndRunsOnAll) {
  std::atomic<int> started{0};
  std::atomic<int> ran{0};
  {
    WorkerThreads workers(4, [&](int) { ++started; });
    for (int i = 0; i < 100; ++i)
      workers.run([&](int) { ++ran; });
  }
  EXPECT_EQ(started, 4);
  EXPECT_EQ(ran, 400);
}

}  // namespace
}  // namespace gpipe

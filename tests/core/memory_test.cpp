#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "gpipe/core/allocator.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using testing::normal;

class AllocatorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { use_metered_allocator(); }
};

at::Tensor empty_bytes(int64_t num_bytes) {
  return at::empty({num_bytes}, at::kByte);
}

TEST_F(AllocatorTest, CountsLiveAndPeakBytesExactly) {
  const auto account = make_account("exact");
  const AccountBytes before = bytes(*account);
  {
    ChargeTo charge(*account);
    at::Tensor a = empty_bytes(1000);
    EXPECT_EQ(bytes(*account).live, before.live + 1000);
    at::Tensor b = empty_bytes(64);
    b.reset();
    at::Tensor c = empty_bytes(1);
    EXPECT_EQ(bytes(*account).live, before.live + 1001);
    EXPECT_EQ(bytes(*account).peak, before.live + 1064);
    EXPECT_EQ(empty_bytes(0).numel(), 0);
    EXPECT_EQ(bytes(*account).live, before.live + 1001);
  }
  EXPECT_EQ(bytes(*account).live, before.live);
  EXPECT_EQ(bytes(*account).peak, before.live + 1064);
  reset_peak(*account);
  EXPECT_EQ(bytes(*account).peak, before.live);
}

TEST_F(AllocatorTest, ChargesNestAndEnd) {
  const auto outer = make_account("outer");
  const auto inner = make_account("inner");
  const int64_t outer_before = bytes(*outer).live;
  const int64_t inner_before = bytes(*inner).live;
  std::vector<at::Tensor> kept;
  ChargeTo charge(*outer);
  kept.push_back(empty_bytes(10));
  {
    ChargeTo nested(*inner);
    kept.push_back(empty_bytes(20));
  }
  kept.push_back(empty_bytes(40));
  std::thread([&] { kept.push_back(empty_bytes(80)); }).join();  // charges nobody
  EXPECT_EQ(bytes(*outer).live - outer_before, 50);
  EXPECT_EQ(bytes(*inner).live - inner_before, 20);
}

TEST_F(AllocatorTest, CreditsTheAccountWhicheverThreadFrees) {
  const auto account = make_account("threads");
  const int64_t before = bytes(*account).live;
  at::Tensor tensor;
  std::thread([&] {
    ChargeTo charge(*account);
    tensor = empty_bytes(5000);
  }).join();
  EXPECT_EQ(bytes(*account).live, before + 5000);
  std::thread([&] { tensor.reset(); }).join();
  EXPECT_EQ(bytes(*account).live, before);
}

TEST_F(AllocatorTest, TensorsOutliveTheirAccountsOwner) {
  at::Tensor tensor;
  {
    const auto account = make_account("short");
    ChargeTo charge(*account);
    tensor = torch::full({100}, 3.0);
  }
  const auto next = make_account("next");
  ChargeTo charge(*next);
  EXPECT_EQ(tensor.sum().item<double>(), 300);
  tensor.reset();
}

TEST_F(AllocatorTest, BlocksOfEverySizeAreAlignedAndApart) {
  const auto account = make_account("sizes");
  const int64_t before = bytes(*account).live;
  ChargeTo charge(*account);
  std::vector<at::Tensor> kept;
  int64_t sum = 0;
  for (int64_t size = 1; size < (int64_t{8} << 20); size = size * 9 / 8 + 1) {
    for (int64_t exact : {size, size + 63, (size + 63) / 64 * 64}) {
      kept.push_back(empty_bytes(exact));
      kept.back().fill_(static_cast<int64_t>(kept.size() % 251));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(kept.back().data_ptr()) % 64, 0);
      sum += exact;
    }
  }
  EXPECT_EQ(bytes(*account).live - before, sum);
  for (size_t i = 0; i < kept.size(); ++i) {
    ASSERT_TRUE(kept[i].eq(static_cast<int64_t>((i + 1) % 251)).all().item<bool>())
        << kept[i].numel() << " bytes";
  }
  kept.clear();
  EXPECT_EQ(bytes(*account).live, before);
}

TEST_F(AllocatorTest, ReusesFreedBlocks) {
  const auto account = make_account("reuse");
  ChargeTo charge(*account);
  const void* first = empty_bytes(100'000).data_ptr();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(empty_bytes(100'000).data_ptr(), first);
}

TEST_F(AllocatorTest, AnImpossibleRequestIsAnErrorAndNotCounted) {
  const auto account = make_account("large");
  const AccountBytes before = bytes(*account);
  ChargeTo charge(*account);
  EXPECT_NE(testing::error_of([] { empty_bytes(int64_t{1} << 50); }), "");
  EXPECT_EQ(bytes(*account).live, before.live);
  EXPECT_EQ(bytes(*account).peak, before.peak);
}

constexpr int64_t kWidth = 32;

/// Peak bytes of each stage in two steps of eight Linear layers.
std::vector<int64_t> peaks(plan::Rematerialize mode, int num_stages, int num_micro_batches) {
  Layers layers;
  for (int i = 0; i < 8; ++i) {
    layers.push_back(
        "linear" + std::to_string(i), [] { return torch::nn::Linear(kWidth, kWidth); });
    layers.push_back("tanh" + std::to_string(i), [](at::Tensor x) { return x.tanh(); });
  }
  Pipeline pipeline(
      layers,
      {.num_stages = num_stages,
       .num_micro_batches = num_micro_batches,
       .rematerialize = mode,
       .cut = std::vector<int>(static_cast<size_t>(num_stages), 16 / num_stages)});
  const auto x = torch::ones({2048, kWidth});
  std::vector<int64_t> found;
  pipeline.step(x, x, MSELoss());
  pipeline.step(x, x, MSELoss());
  for (const StageInfo& stage : pipeline.stages())
    found.push_back(stage.peak_bytes);
  return found;
}

TEST(MemoryTest, PeakFallsWithMoreMicroBatches) {
  use_metered_allocator();
  for (auto mode : {plan::Rematerialize::Always, plan::Rematerialize::ExceptLast}) {
    int64_t before = std::numeric_limits<int64_t>::max();
    for (int m : {1, 2, 4, 8, 16}) {
      const int64_t found = peaks(mode, 1, m)[0];
      EXPECT_LT(found, before) << to_string(mode) << " M=" << m;
      before = found;
    }
  }
  // With several stages the peak also depends on which of them is ahead of which.
  const auto whole = peaks(plan::Rematerialize::Always, 4, 1);
  const auto split = peaks(plan::Rematerialize::Always, 4, 16);
  for (size_t stage = 0; stage < 4; ++stage)
    EXPECT_LT(split[stage], whole[stage] * 3 / 4) << "stage " << stage;
}

TEST(MemoryTest, RematerializationNeedsLess) {
  use_metered_allocator();
  for (int k : {1, 4}) {
    for (int m : {4, 8}) {
      const auto always = peaks(plan::Rematerialize::Always, k, m);
      const auto never = peaks(plan::Rematerialize::Never, k, m);
      for (size_t stage = 0; stage < always.size(); ++stage)
        EXPECT_LT(always[stage], never[stage]) << "M=" << m << " stage " << stage;
    }
  }
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t count_entries(const char* folder) {
  int64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder))
    ++count;
  return count;
}

Layers small_layers() {
  Layers layers;
  layers.push_back("a", [] { return torch::nn::Linear(4, 8); });
  layers.push_back("norm", [] { return torch::nn::BatchNorm1d(8); });
  layers.push_back("b", [] { return torch::nn::Linear(8, 2); });
  return layers;
}

TEST(MemoryTest, StepsOfManyShapesDoNotGrow) {
  for (auto mode : testing::kModes) {
    Pipeline pipeline(
        small_layers(), {.num_stages = 3, .num_micro_batches = 2, .rematerialize = mode});
    std::vector<at::Tensor> losses;
    int64_t start = 0;
    for (int64_t step = 0; step < 600; ++step) {
      if (step == 100)
        start = resident_bytes();
      const int64_t rows = 4 + step % 10;
      losses.push_back(pipeline.step(torch::ones({rows, 4}), torch::ones({rows, 2}), MSELoss()));
      pipeline.zero_grad();
    }
    EXPECT_LT(resident_bytes() - start, int64_t{16} << 20) << to_string(mode);
  }
}

TEST(MemoryTest, PipelinesLeaveNothingBehind) {
  auto build_and_run = [](int times) {
    for (int i = 0; i < times; ++i) {
      Pipeline pipeline(small_layers(), {.num_stages = 3, .num_micro_batches = 2});
      pipeline.step(torch::ones({4, 4}), torch::ones({4, 2}), MSELoss());
    }
  };
  build_and_run(20);
  const int64_t threads = count_entries("/proc/self/task");
  const int64_t files = count_entries("/proc/self/fd");
  const int64_t memory = resident_bytes();
  build_and_run(200);
  EXPECT_EQ(count_entries("/proc/self/task"), threads);
  EXPECT_EQ(count_entries("/proc/self/fd"), files);
  EXPECT_LT(resident_bytes() - memory, int64_t{16} << 20);
}

TEST(MemoryTest, AStepLeavesNoActivations) {
  use_metered_allocator();
  for (auto mode : testing::kModes) {
    Pipeline pipeline(
        small_layers(), {.num_stages = 3, .num_micro_batches = 2, .rematerialize = mode});
    std::vector<std::vector<int64_t>> live;
    for (int step = 0; step < 3; ++step) {
      pipeline.step(torch::ones({64, 4}), torch::ones({64, 2}), MSELoss());
      live.emplace_back();
      for (const StageInfo& stage : pipeline.stages())
        live.back().push_back(stage.live_bytes);
    }
    EXPECT_EQ(live[2], live[1]) << to_string(mode);
    // What is left are the gradients of a stage, and less than a micro-batch's activations.
    EXPECT_LT(live[2][0] + live[2][1] + live[2][2], (4 * 8 + 8 + 16 + 18) * 4 + 1024);
  }
}

}  // namespace
}  // namespace gpipe

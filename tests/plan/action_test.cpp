#include "gpipe/plan/action.h"

#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

using testing::HasSubstr;

TEST(ActionTest, PrintsStageOpMicroBatch) {
  EXPECT_EQ(to_string(Action{Op::Forward, 2, 0}), "2F0");
  EXPECT_EQ(to_string(Action{Op::Backward, 0, 12}), "0B12");
  EXPECT_EQ(to_string(Action{Op::BackwardInput, 1, 3}), "1I3");
  EXPECT_EQ(to_string(Action{Op::BackwardWeight, 1, 3}), "1W3");
  EXPECT_EQ(to_string(Action{Op::Recompute, 10, 1}), "10R1");
  EXPECT_EQ(to_string(Action{Op::SendActivation, 0, 1}), "0SEND_F1");
  EXPECT_EQ(to_string(Action{Op::RecvActivation, 1, 1}), "1RECV_F1");
  EXPECT_EQ(to_string(Action{Op::SendGradient, 1, 1}), "1SEND_B1");
  EXPECT_EQ(to_string(Action{Op::RecvGradient, 0, 1}), "0RECV_B1");
}

class EveryOpTest : public testing::TestWithParam<int> {};

TEST_P(EveryOpTest, ReadsBackWhatIsPrinted) {
  Action action{static_cast<Op>(GetParam()), 17, 204};
  EXPECT_EQ(action_from_string(to_string(action)), action);
}

TEST_P(EveryOpTest, HasANameOfItsOwn) {
  for (int other = 0; other < GetParam(); ++other)
    EXPECT_NE(name_of(static_cast<Op>(other)), name_of(static_cast<Op>(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOpTest, testing::Range(0, kNumOps), [](const auto& op) {
  return std::string(to_string(static_cast<Op>(op.param)));
});

TEST(ActionTest, ComputeOpsAreTheFirstFive) {
  for (int op = 0; op < kNumOps; ++op)
    EXPECT_EQ(is_compute(static_cast<Op>(op)), op < 5) << to_string(static_cast<Op>(op));
}

class BadActionTest : public testing::TestWithParam<const char*> {};

TEST_P(BadActionTest, IsRefusedWithItsTextAndAnExample) {
  std::string text = error_of([] { action_from_string(GetParam()); });
  EXPECT_THAT(text, HasSubstr("`" + std::string(GetParam()) + "` is not an action"));
  EXPECT_THAT(text, HasSubstr("2F0"));
}

INSTANTIATE_TEST_SUITE_P(
    Texts,
    BadActionTest,
    testing::Values(
        "",
        "F",
        "2F",
        "F0",
        "20",
        "2X0",
        "2f0",
        "2F0 ",
        " 2F0",
        "-1F0",
        "2F-1",
        "2FF0",
        "2F0F",
        "2.0F1",
        "99999999999F0",
        "0F99999999999",
        "0SENDF0",
        "0SEND_0"));

}  // namespace
}  // namespace gpipe::plan

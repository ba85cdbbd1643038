#include "gpipe/plan/timeline.h"

#include <nlohmann/json.hpp>

#include "gpipe/plan/schedules.h"
#include "gpipe/plan/simulator.h"
#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

using testing::HasSubstr;

Span span(const char* action, double start_seconds, double end_seconds) {
  return {action_from_string(action), start_seconds, end_seconds};
}

Timeline simulated(
    const Schedule& schedule, double backward_seconds, Rematerialize mode = Rematerialize::Never) {
  return simulate(
             lower(schedule, mode), uniform_stage_costs(schedule.num_stages, 1, backward_seconds))
      .timeline;
}

TEST(TimelineTest, CountsOnlyComputeAsBusy) {
  Timeline timeline;
  timeline.ranks = {
      {span("0F0", 0, 1), span("0SEND_F0", 1, 1), span("0RECV_B0", 1, 3), span("0B0", 3, 5)},
      {span("1RECV_F0", 0, 1), span("1F0", 1, 2), span("1R0", 2, 2.5), span("1B0", 2.5, 3)}};
  EXPECT_DOUBLE_EQ(timeline.duration_seconds(), 5);
  EXPECT_DOUBLE_EQ(timeline.busy_seconds(0), 3);
  EXPECT_DOUBLE_EQ(timeline.busy_seconds(1), 2);
  EXPECT_DOUBLE_EQ(timeline.bubble_ratio(), 0.5);
}

TEST(TimelineTest, EmptyTimelineHasNoBubble) {
  EXPECT_EQ(Timeline().duration_seconds(), 0);
  EXPECT_EQ(Timeline().bubble_ratio(), 0);
  EXPECT_EQ((Timeline{{{}, {}}}).bubble_ratio(), 0);
  EXPECT_EQ((Timeline{{{span("0F0", 0, 0)}}}).bubble_ratio(), 0);
}

TEST(TimelineTextTest, IsAsDrawn) {
  EXPECT_EQ(to_text(simulated(make_fill_drain(4, 8), 1), 44), golden("timeline_gpipe_k4_m8.txt"));
  EXPECT_EQ(to_text(simulated(make_one_f_one_b(4, 4), 1), 28), golden("timeline_1f1b_k4_m4.txt"));
  EXPECT_EQ(
      to_text(simulated(make_fill_drain(3, 3), 2, Rematerialize::Always), 36),
      golden("timeline_gpipe_k3_m3_always.txt"));
}

TEST(TimelineTextTest, LabelsNeverLie) {
  Timeline timeline{{{span("0F12", 0, 2), span("0B3", 2, 3), span("0F123", 3, 7)}}};
  EXPECT_EQ(to_text(timeline, 7), "rank 0  F-BF123\nstep 7.00 s, bubble 0.0 %\n");
}

TEST(TimelineTextTest, NamesTheStageWhereARankHasSeveral) {
  Timeline timeline{{{span("0F0", 0, 3), span("1F0", 3, 6)}, {span("2F0", 6, 9)}}};
  EXPECT_EQ(
      to_text(timeline, 9), "rank 0  0F01F0...\nrank 1  ......F0-\nstep 9.00 s, bubble 50.0 %\n");
}

TEST(TimelineTextTest, LeavesOutWhatIsTooShortToSee) {
  Timeline timeline{{{span("0F0", 0, 0.01), span("0B0", 1, 10)}}};
  EXPECT_EQ(to_text(timeline, 10), "rank 0  .B0-------\nstep 10.0 s, bubble 9.9 %\n");
}

TEST(TimelineTextTest, AlignsRankNumbers) {
  Timeline timeline;
  timeline.ranks.assign(11, {span("0F0", 0, 1)});
  EXPECT_THAT(to_text(timeline, 2), HasSubstr("rank  9  F0\nrank 10  F0\n"));
}

TEST(TimelineTextTest, DrawsAnEmptyTimelineAndRefusesNoWidth) {
  EXPECT_EQ(to_text(Timeline(), 10), "step 0.00 ns, bubble 0.0 %\n");
  EXPECT_EQ(to_text(Timeline{{{}}}, 3), "rank 0  ...\nstep 0.00 ns, bubble 0.0 %\n");
  EXPECT_THAT(error_of([] { to_text(Timeline(), 0); }), HasSubstr("at least 1"));
}

TEST(TimelineTraceTest, HasAThreadForEachRankAndAnEventForEachSpan) {
  Timeline timeline{
      {{span("0F0", 0, 0.0015), span("0SEND_F0", 0.0015, 0.0015)},
       {span("1RECV_F0", 0, 0.0015), span("1F0", 0.0015, 0.00275)}}};
  auto events = nlohmann::json::parse(to_chrome_trace(timeline)).at("traceEvents");
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].at("ph"), "M");
  EXPECT_EQ(events[0].at("args").at("name"), "rank 0");
  EXPECT_EQ(events[3].at("args").at("name"), "rank 1");
  auto forward = events[5];
  EXPECT_EQ(forward.at("ph"), "X");
  EXPECT_EQ(forward.at("name"), "1F0");
  EXPECT_EQ(forward.at("cat"), "forward");
  EXPECT_EQ(forward.at("tid"), 1);
  EXPECT_DOUBLE_EQ(forward.at("ts"), 1500);
  EXPECT_DOUBLE_EQ(forward.at("dur"), 1250);
  EXPECT_EQ(forward.at("args").at("stage"), 1);
  EXPECT_EQ(forward.at("args").at("micro_batch"), 0);
}

TEST(TimelineTraceTest, EmptyTimelineIsJson) {
  EXPECT_TRUE(nlohmann::json::parse(to_chrome_trace(Timeline())).at("traceEvents").empty());
}

}  // namespace
}  // namespace gpipe::plan

#include "gpipe/base/nearest.h"

#include <gtest/gtest.h>

namespace gpipe {
namespace {

TEST(NearestTest, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("seed", "seed"), 0);
  EXPECT_EQ(edit_distance("sed", "seed"), 1) << "insertion";
  EXPECT_EQ(edit_distance("seeed", "seed"), 1) << "deletion";
  EXPECT_EQ(edit_distance("need", "seed"), 1) << "replacement";
  EXPECT_EQ(edit_distance("esed", "seed"), 1) << "swap of neighbours";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("Num-Stages", "num_stages"), 0) << "case and hyphens";
}

TEST(NearestTest, FindsWhatWasMeant) {
  std::vector<std::string> keys = {"stages", "seed", "schedule", "micro_batches"};
  EXPECT_EQ(nearest("sed", keys), "seed");
  EXPECT_EQ(nearest("sched", keys), "schedule");
  EXPECT_EQ(nearest("shcedule", keys), "schedule");
  EXPECT_EQ(nearest("microbatches", keys), "micro_batches");
  EXPECT_EQ(nearest("STAGE", keys), "stages");
}

TEST(NearestTest, TakesTheFirstOfEquals) {
  EXPECT_EQ(nearest("bat", {"cat", "hat"}), "cat");
  EXPECT_EQ(nearest("bat", {"hat", "cat"}), "hat");
}

TEST(NearestTest, GivesNothingWhereNoneIsNear) {
  EXPECT_EQ(nearest("learning_rate", {"seed", "stages"}), "");
  EXPECT_EQ(nearest("x", {"seed"}), "");
  EXPECT_EQ(nearest("seed", {}), "");
  EXPECT_EQ(nearest("", {"seed"}), "");
}

TEST(NearestTest, SuggestionForErrors) {
  EXPECT_EQ(did_you_mean("sed", {"seed"}), "; did you mean `seed`?");
  EXPECT_EQ(did_you_mean("learning_rate", {"seed"}), "");
}

}  // namespace
}  // namespace gpipe

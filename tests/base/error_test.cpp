#include "gpipe/base/error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace gpipe {
namespace {

TEST(ErrorTest, CheckThrowsItsPartsOnlyWhereTheConditionFails) {
  EXPECT_NO_THROW(GPIPE_CHECK(1 + 1 == 2, "[test] unused"));
  try {
    GPIPE_CHECK(1 + 1 == 3, "[test] ", 3, " stages for ", 2, " layers");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[test] 3 stages for 2 layers");
  }
}

TEST(ErrorTest, CheckEvaluatesItsPartsOnlyOnFailure) {
  int evaluations = 0;
  auto part = [&] { return ++evaluations; };
  GPIPE_CHECK(true, part());
  EXPECT_EQ(evaluations, 0);
  EXPECT_THROW(GPIPE_CHECK(false, part()), Error);
  EXPECT_EQ(evaluations, 1);
}

TEST(ErrorTest, AssertNamesConditionAndPlace) {
  try {
    GPIPE_ASSERT(2 < 1, "why ", 42);
    FAIL() << "did not throw";
  } catch (const InternalError& error) {
    std::string text = error.what();
    EXPECT_NE(text.find("2 < 1"), std::string::npos) << text;
    EXPECT_NE(text.find("error_test.cpp:"), std::string::npos) << text;
    EXPECT_NE(text.find("why 42"), std::string::npos) << text;
  }
}

TEST(FirstErrorTest, KeepsTheFirstAndForgetsItOnceThrown) {
  FirstError first;
  EXPECT_FALSE(first.has_error());
  EXPECT_NO_THROW(first.rethrow());
  EXPECT_TRUE(first.set(std::make_exception_ptr(Error("one"))));
  EXPECT_FALSE(first.set(std::make_exception_ptr(Error("two"))));
  EXPECT_TRUE(first.has_error());
  try {
    first.rethrow();
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "one");
  }
  EXPECT_FALSE(first.has_error());
  EXPECT_NO_THROW(first.rethrow());
}

TEST(FirstErrorTest, ExactlyOneOfManyThreadsIsFirst) {
  FirstError first;
  std::atomic<int> num_first = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] { num_first += first.set(std::make_exception_ptr(Error("x"))); });
  threads.clear();
  EXPECT_EQ(num_first, 1);
}

}  // namespace
}  // namespace gpipe

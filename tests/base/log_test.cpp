#include "gpipe/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace gpipe {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

class LogTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::Info); }
  void TearDown() override {
    set_log_level(LogLevel::Info);
    set_log_prefix("");
  }
};

template <class Write>
std::string written(Write&& write) {
  testing::internal::CaptureStderr();
  write();
  return testing::internal::GetCapturedStderr();
}

TEST_F(LogTest, WritesTimeLevelAndText) {
  EXPECT_THAT(
      written([] { log_warning("checkpoint took ", 12.5, " s"); }),
      MatchesRegex("[0-9]+:[0-9]+:[0-9]+\\.[0-9]+ warning checkpoint took 12.5 s\n"));
}

TEST_F(LogTest, PutsThePrefixBeforeTheText) {
  set_log_prefix("rank 3");
  EXPECT_THAT(written([] { log_error("lost"); }), HasSubstr(" error rank 3: lost\n"));
}

TEST_F(LogTest, DropsRecordsBelowTheLevel) {
  set_log_level(LogLevel::Warning);
  EXPECT_EQ(log_level(), LogLevel::Warning);
  std::string text = written([] {
    log_debug("d");
    log_info("i");
    log_warning("w");
    log_error("e");
  });
  EXPECT_THAT(text, MatchesRegex("[^ ]+ warning w\n[^ ]+ error e\n"));
}

TEST_F(LogTest, WritesEverythingAtDebug) {
  set_log_level(LogLevel::Debug);
  EXPECT_THAT(written([] { log_debug("d"); }), HasSubstr(" debug d\n"));
}

struct Counted {
  int* num_streamed;
  friend std::ostream& operator<<(std::ostream& out, const Counted& counted) {
    ++*counted.num_streamed;
    return out;
  }
};

TEST_F(LogTest, DoesNotFormatWhatItDrops) {
  int num_streamed = 0;
  log_debug(Counted{&num_streamed});
  EXPECT_EQ(num_streamed, 0);
  written([&] { log_info(Counted{&num_streamed}); });
  EXPECT_EQ(num_streamed, 1);
}

TEST_F(LogTest, KeepsARecordOnOneLine) {
  EXPECT_THAT(written([] { log_info("a\nb"); }), HasSubstr("a | b\n"));
}

TEST_F(LogTest, LevelsByName) {
  for (auto level : {LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error})
    EXPECT_EQ(log_level_from_string(to_string(level)), level);
  try {
    log_level_from_string("warn");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown level `warn`"));
    EXPECT_THAT(error.what(), HasSubstr("debug, info, warning or error"));
  }
  try {
    log_level_from_string("eror");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean `error`?"));
  }
}

/// Threads write and change settings at once, for ThreadSanitizer; the lines stay whole.
TEST_F(LogTest, MayBeUsedFromAnyThread) {
  std::string text = written([] {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 3; ++thread)
      threads.emplace_back([] {
        for (int record = 0; record < 50; ++record) {
          set_log_prefix("p");
          log_info("text");
        }
      });
  });
  int num_lines = 0;
  for (std::size_t begin = 0; begin < text.size(); ++num_lines) {
    std::size_t end = text.find('\n', begin);
    EXPECT_THAT(text.substr(begin, end - begin), MatchesRegex("[^ ]+ info p: text"));
    begin = end + 1;
  }
  EXPECT_EQ(num_lines, 150);
}

/// The variable is read once in a process, so each case needs its own.
TEST(LogDeathTest, LevelComesFromTheEnvironment) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  ::setenv("GPIPE_LOG", "error", 1);
  EXPECT_EXIT(std::exit(log_level() == LogLevel::Error ? 0 : 1), testing::ExitedWithCode(0), "");
  ::setenv("GPIPE_LOG", "loud", 1);
  EXPECT_EXIT(
      std::exit(log_level() == LogLevel::Info ? 0 : 1),
      testing::ExitedWithCode(0),
      "unknown level `loud`.*GPIPE_LOG");
  ::unsetenv("GPIPE_LOG");
}

}  // namespace
}  // namespace gpipe

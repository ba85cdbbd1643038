#include "gpipe/base/status_line.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/base/stream_file.h"

namespace gpipe {
namespace {

using namespace std::chrono_literals;

const std::string kErase = "\r\x1b[K";

TEST(ConsoleTest, WritesWholeLines) {
  StreamFile file;
  Console console(file.stream(), false);
  console.write_line("one");
  console.write_line("two\nlines");
  EXPECT_EQ(file.text(), "one\ntwo | lines\n");
}

TEST(ConsoleTest, HasNoStatusWithoutATerminal) {
  StreamFile file;
  Console console(file.stream(), false);
  console.set_status("50 %");
  console.write_line("record");
  EXPECT_EQ(file.text(), "record\n");
}

TEST(ConsoleTest, KeepsTheStatusBelowTheRecords) {
  StreamFile file;
  Console console(file.stream(), true);
  console.set_status("50 %");
  console.write_line("record");
  console.set_status("");
  console.write_line("last");
  EXPECT_EQ(file.text(), kErase + "50 %" + kErase + "record\n50 %" + kErase + "last\n");
}

TEST(ConsoleTest, CutsTheStatusToTheWidthBetweenCharacters) {
  StreamFile file;
  Console console(file.stream(), true);
  std::string two_bytes = "\xc3\xa9";
  std::string status;
  for (int column = 0; column < 100; ++column)
    status += two_bytes;
  console.set_status(status);
  EXPECT_EQ(file.text(), kErase + status.substr(0, 79 * two_bytes.size()));
}

TEST(ConsoleTest, RedrawsOnlyAChangedStatus) {
  StreamFile file;
  Console console(file.stream(), true);
  console.set_status("");
  console.set_status("a");
  console.set_status("a");
  EXPECT_EQ(file.text(), kErase + "a");
}

TEST(ConsoleTest, DoesNotMixTheLinesOfThreads) {
  StreamFile file;
  Console console(file.stream(), false);
  std::vector<std::jthread> threads;
  for (char letter : {'a', 'b', 'c'})
    threads.emplace_back([&console, letter] {
      for (int line = 0; line < 100; ++line)
        console.write_line(std::string(50, letter));
    });
  threads.clear();
  std::string text = file.text();
  ASSERT_EQ(text.size(), 3u * 100 * 51);
  for (std::size_t begin = 0; begin < text.size(); begin += 51)
    EXPECT_EQ(text.substr(begin, 51), std::string(50, text[begin]) + "\n");
}

TEST(StatusLineTest, IsClearedAtTheEndOfItsLife) {
  StreamFile file;
  Console console(file.stream(), true);
  {
    StatusLine status(console, 0ms);
    EXPECT_TRUE(status.is_visible());
    status.update("1 of 2");
    status.update("2 of 2");
  }
  EXPECT_EQ(file.text(), kErase + "1 of 2" + kErase + "2 of 2" + kErase);
}

TEST(StatusLineTest, DropsUpdatesThatComeTooSoon) {
  StreamFile file;
  Console console(file.stream(), true);
  StatusLine status(console, std::chrono::hours(1));
  status.update("first");
  status.update("dropped");
  status.clear();
  status.update("after clear");
  EXPECT_EQ(file.text(), kErase + "first" + kErase + kErase + "after clear");
}

TEST(StatusLineTest, IsSilentWithoutATerminal) {
  StreamFile file;
  Console console(file.stream(), false);
  {
    StatusLine status(console, 0ms);
    EXPECT_FALSE(status.is_visible());
    status.update("unseen");
  }
  EXPECT_EQ(file.text(), "");
}

}  // namespace
}  // namespace gpipe

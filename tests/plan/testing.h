#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "gpipe/base/error.h"
#include "gpipe/plan/lower.h"
#include "gpipe/plan/schedule.h"

namespace gpipe::plan {

/// The text of a file in tests/golden.
std::string golden(const std::string& name);

/// The text of the Error that `call` throws; fails the test where it throws none.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

/// `0F0 0F1`.
std::string to_line(const std::vector<Action>& actions);
/// One line a rank.
std::string to_lines(const std::vector<Program>& programs);
/// Inverse of to_lines.
std::vector<Program> programs_from(std::string_view lines);

/// A valid schedule in which nothing is regular: stages on any rank, each action anywhere its
/// dependencies allow, backwards whole or split, some recomputes explicit.
Schedule random_schedule(std::mt19937& random);

}  // namespace gpipe::plan

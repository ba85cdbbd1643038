#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/app/process.h"

namespace gpipe::app {

using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// A run of a second or two: a small AmoebaNet-D on small synthetic images.
inline const Arguments kSmall = {
    "train", "--data",      "synthetic",  "--image-size", "16", "--rows",
    "16",    "--eval-rows", "8",          "--batch-size", "8",  "--layers",
    "3",     "--filters",   "4",          "--classes",    "3",  "--eval-every",
    "0",     "--cut",       "parameters", "--seed",       "7"};

/// A folder of this process, which goes with it: test programs run side by side.
struct ProcessFolder {
  ProcessFolder()
      : path(::testing::TempDir() + "gpipe_program_test_" + std::to_string(::getpid())) {}
  ~ProcessFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

inline std::string make_folder(const std::string& name) {
  static const ProcessFolder process;
  const auto folder = process.path / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

/// What a run left in its metrics file.
struct Metrics {
  std::vector<nlohmann::json> steps;
  std::vector<nlohmann::json> evaluations;
  nlohmann::json configuration;
  nlohmann::json summary;
};

inline Metrics read_metrics(const std::string& path) {
  Metrics metrics;
  std::istringstream file(read_file(path));
  for (std::string line; std::getline(file, line);) {
    auto json = nlohmann::json::parse(line);
    const std::string kind = json["kind"];
    if (kind == "step")
      metrics.steps.push_back(json);
    if (kind == "evaluation")
      metrics.evaluations.push_back(json);
    if (kind == "configuration")
      metrics.configuration = json;
    if (kind == "summary")
      metrics.summary = json;
  }
  return metrics;
}

/// Runs the program, which must succeed, and reads its metrics.
inline Metrics run_with_metrics(const Arguments& arguments) {
  const std::string path = make_folder("metrics") + "/metrics.jsonl";
  const auto result = run_program(arguments + Arguments{"--metrics", path});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  return read_metrics(path);
}

/// Runs the program, which must end with this code and this in its message.
inline void expect_failure(const Arguments& arguments, int exit_code, const std::string& message) {
  const auto result = run_program(arguments);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, exit_code) << result.output << result.error;
  EXPECT_THAT(result.error, ::testing::HasSubstr(message));
}

}  // namespace gpipe::app

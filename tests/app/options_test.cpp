#include "app/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "app/flags.h"
#include "app/toml_config.h"

namespace gpipe::app {
namespace {

using ::testing::HasSubstr;

/// The message of the UsageError that `function` throws.
template <class F>
std::string usage_error(F function) {
  try {
    function();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::string toml_error(const std::string& text) {
  return usage_error([&] {
    Options options;
    auto table = make_option_table(options);
    read_toml_text(text, "x.toml", table);
    options.validate();
  });
}

std::string flag_error(const std::vector<std::string>& arguments) {
  return usage_error([&] {
    Options options;
    auto table = make_option_table(options);
    read_options(arguments, {"train", "", nullptr}, options, table);
  });
}

/// A value that is allowed and is not the default.
OptionValue other_value(const Option& option) {
  if (option.is_switch())
    return !std::get<bool>(option.default_value);
  if (const auto* whole = std::get_if<int64_t>(&option.default_value))
    return static_cast<double>(*whole) < option.at_most ? *whole + 1 : *whole - 1;
  if (const auto* number = std::get_if<double>(&option.default_value))
    return *number < 0.5 ? *number + 0.125 : *number / 3;
  if (option.name == "cut")
    return "5,4,4";
  if (option.name == "device")
    return "cuda:0,cuda:1";
  return option.choices.empty() ? "some \"text\"\\ \n\t" : option.choices.back();
}

void set_all(OptionTable& table) {
  for (Option& option : table.options())
    option.set(other_value(option), option.name);
}

TEST(OptionsTest, PrintedConfigReadsBackToTheSame) {
  Options written;
  auto table = make_option_table(written);
  set_all(table);
  const std::string text = to_toml(table);

  Options read;
  auto read_table = make_option_table(read);
  read_toml_text(text, "printed.toml", read_table);
  EXPECT_EQ(to_toml(read_table), text);
  EXPECT_EQ(read.cut, "5,4,4");
  EXPECT_EQ(read.weights, "some \"text\"\\ \n\t");
  EXPECT_EQ(read.lr, written.lr);
}

TEST(OptionsTest, DefaultsReadBackToTheSame) {
  Options options;
  auto table = make_option_table(options);
  const std::string text = to_toml(table);
  read_toml_text(text, "printed.toml", table);
  EXPECT_EQ(to_toml(table), text);
}

TEST(OptionsTest, EveryKeyHasAFlagADefaultAndALineInTheHelp) {
  Options options;
  auto table = make_option_table(options);
  const std::string help = to_help(table, "train", "trains");
  std::set<std::string> names;
  for (Option& option : table.options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name << " stands twice";
    EXPECT_EQ(option.value(), option.default_value) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    const std::string shown = option.is_switch() ? "--[no-]" + option.name + " "
                                                 : "--" + option.name + " " + option.value_name;
    EXPECT_THAT(help, HasSubstr("  " + shown));
    EXPECT_NO_THROW(option.set(option.default_value, option.name)) << option.name;
  }
}

TEST(OptionsTest, EveryKeyCanBeSetByItsFlag) {
  Options expected;
  auto expected_table = make_option_table(expected);
  set_all(expected_table);
  std::vector<std::string> arguments;
  for (const Option& option : expected_table.options()) {
    const OptionValue value = option.value();
    if (option.is_switch()) {
      arguments.push_back((std::get<bool>(value) ? "--" : "--no-") + option.name);
      continue;
    }
    arguments.push_back("--" + option.name);
    const auto* text = std::get_if<std::string>(&value);
    arguments.push_back(text != nullptr ? *text : to_toml(value));
  }

  Options options;
  auto table = make_option_table(options);
  for (const FlagValue& flag : parse_flags(table, arguments).values)
    table.find(flag.name)->set_from_text(flag.text, flag.name);
  EXPECT_EQ(to_toml(table), to_toml(expected_table));
}

TEST(OptionsTest, HelpLinesFitATerminal) {
  Options options;
  std::istringstream help(to_help(make_option_table(options), "train", "trains"));
  for (std::string line; std::getline(help, line);)
    EXPECT_LE(line.size(), 100U) << line;
}

TEST(TomlConfigTest, NamesFileLineAndNearestOfAnUnknownKey) {
  EXPECT_EQ(
      toml_error("# a job\nlr = 0.1\n\nbacth-size = 3\n"),
      "[config] x.toml:4: unknown key `bacth-size`; did you mean `batch-size`?");
  EXPECT_EQ(toml_error("zzzzzzzzzz = 1"), "[config] x.toml:1: unknown key `zzzzzzzzzz`");
}

TEST(TomlConfigTest, ReportsTheFirstErrorOfTheFile) {
  EXPECT_THAT(toml_error("zzzz = 1\naaaa = 2\n"), HasSubstr("x.toml:1: unknown key `zzzz`"));
}

TEST(TomlConfigTest, RefusesWrongTypes) {
  EXPECT_EQ(
      toml_error("\nsteps = \"many\""),
      "[config] x.toml:2: `steps` is \"many\"; it must be a whole number");
  EXPECT_EQ(
      toml_error("steps = 1.5"), "[config] x.toml:1: `steps` is 1.5; it must be a whole number");
  EXPECT_EQ(toml_error("lr = true"), "[config] x.toml:1: `lr` is true; it must be a number");
  EXPECT_EQ(
      toml_error("augment = 1"), "[config] x.toml:1: `augment` is 1; it must be true or false");
  EXPECT_EQ(toml_error("model = 3"), "[config] x.toml:1: `model` is 3; it must be text");
  EXPECT_THAT(toml_error("cut = [1, \"a\"]"), HasSubstr("x.toml:1: `cut` holds something"));
  EXPECT_THAT(toml_error("lr = 2020-01-01"), HasSubstr("date or time"));
  EXPECT_THAT(toml_error("[train]\nlr = 1"), HasSubstr("[train] is a section"));
}

TEST(TomlConfigTest, RefusesValuesOutOfRange) {
  EXPECT_EQ(
      toml_error("batch-size = 0"), "[config] x.toml:1: `batch-size` is 0; it must be at least 1");
  EXPECT_EQ(
      toml_error("dropout = 1.5"),
      "[config] x.toml:1: `dropout` is 1.5; it must be from 0 to 0.99");
  EXPECT_THAT(toml_error("lr = nan"), HasSubstr("`lr` is nan; it must be at least 0"));
  EXPECT_THAT(toml_error("lr = inf"), HasSubstr("`lr` is inf"));
}

TEST(TomlConfigTest, NamesTheNearestOfUnknownTexts) {
  EXPECT_EQ(
      toml_error("optimizer = \"adamm\""),
      "[config] x.toml:1: `optimizer` is `adamm`; it must be one of sgd, momentum, adam, adamw, "
      "rmsprop; did you mean `adam`?");
  EXPECT_THAT(toml_error("cut = \"tme\""), HasSubstr("did you mean `time`?"));
}

TEST(TomlConfigTest, SyntaxErrorsHaveTheirLine) {
  EXPECT_THAT(toml_error("lr = 1\nsteps = = 3\n"), HasSubstr("[config] x.toml:2: "));
  EXPECT_THAT(toml_error("lr = 1\nlr = 2\n"), HasSubstr("[config] x.toml:2: "));
}

TEST(TomlConfigTest, WholeNumbersAndListsAreConverted) {
  Options options;
  auto table = make_option_table(options);
  read_toml_text("lr = 1\ncut = [5, 4, 4]\n", "x.toml", table);
  EXPECT_EQ(options.lr, 1.0);
  EXPECT_EQ(options.explicit_cut(), (std::vector<int>{5, 4, 4}));
}

TEST(TomlConfigTest, MissingFileIsNamed) {
  const std::string error = flag_error({"--config", "/nowhere/x.toml"});
  EXPECT_EQ(error, "[config] /nowhere/x.toml: cannot be read: No such file or directory");
}

TEST(FlagsTest, UnknownFlagsAndArguments) {
  EXPECT_EQ(
      flag_error({"--bacth-size", "8"}),
      "[flags] unknown flag `--bacth-size`; did you mean `--batch-size`?");
  EXPECT_EQ(flag_error({"--sedd=8"}), "[flags] unknown flag `--sedd`; did you mean `--seed`?");
  EXPECT_THAT(flag_error({"configs/x.toml"}), HasSubstr("unexpected argument `configs/x.toml`"));
}

TEST(FlagsTest, WrongValues) {
  EXPECT_EQ(flag_error({"--lr", "2x"}), "[flags] `--lr` is `2x`; it must be a number");
  EXPECT_EQ(flag_error({"--lr", "-1"}), "[flags] `--lr` is -1; it must be at least 0");
  EXPECT_EQ(flag_error({"--steps", ""}), "[flags] `--steps` is ``; it must be a whole number");
  EXPECT_THAT(flag_error({"--steps", "99999999999999999999"}), HasSubstr("a whole number"));
  EXPECT_EQ(flag_error({"--lr"}), "[flags] `--lr` needs a value");
  EXPECT_EQ(flag_error({"--lr", "--steps", "3"}), "[flags] `--lr` needs a value");
  EXPECT_EQ(
      flag_error({"--augment=maybe"}), "[flags] `--augment` is `maybe`; it must be true or false");
  EXPECT_THAT(flag_error({"--dtype", "float23"}), HasSubstr("did you mean `float32`?"));
}

TEST(FlagsTest, WinOverTheFileAndTheLastCounts) {
  const std::string path = ::testing::TempDir() + "flags_test.toml";
  std::ofstream(path) << "lr = 0.5\nseed = 3\ndrop-last = true\n";
  Options options;
  auto table = make_option_table(options);
  const bool runs = read_options(
      {"--seed", "4", "--config", path, "--seed=5", "--no-drop-last"},
      {"train", "", nullptr},
      options,
      table);
  EXPECT_TRUE(runs);
  EXPECT_EQ(options.lr, 0.5);
  EXPECT_EQ(options.seed, 5);
  EXPECT_FALSE(options.drop_last);
}

TEST(OptionsTest, ChecksOptionsAgainstEachOther) {
  EXPECT_THAT(
      toml_error("cut = \"5,4,4\"\nstages = 2"), HasSubstr("lists 3 stages, `stages` is 2"));
  EXPECT_THAT(toml_error("data = \"text\"\naugment = true"), HasSubstr("`augment` is for fashion"));
}

TEST(OptionsTest, ExplicitCut) {
  Options options;
  EXPECT_FALSE(options.explicit_cut());
  for (const char* wrong : {"5,", ",5", "5,,4", "5;4", "0,3", "-1,3", "", "5,4 4"}) {
    auto table = make_option_table(options);
    EXPECT_THROW(table.find("cut")->set(std::string(wrong), "cut"), UsageError) << wrong;
  }
  options.cut = "1, 12 ,3";
  EXPECT_EQ(options.explicit_cut(), (std::vector<int>{1, 12, 3}));
}

}  // namespace
}  // namespace gpipe::app

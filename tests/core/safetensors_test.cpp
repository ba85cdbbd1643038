#include "gpipe/core/safetensors.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "gpipe/core/digest.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::bit_equal;
using testing::copies;
using testing::error_of;
using ::testing::HasSubstr;
using testing::normal;

/// A folder of its own, which goes with all that is in it.
class SafetensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "gpipe_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "file.safetensors") const {
    return (folder_ / name).string();
  }

  std::string bytes() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// The error of loading a file of these bytes.
  std::string error_of_bytes(const std::string& bytes) const {
    std::ofstream(path("bad"), std::ios::binary) << bytes;
    return error_of([&] { load_safetensors(path("bad")); });
  }

  /// ... of this header and this many bytes of data.
  std::string error_of_header(const std::string& header, size_t num_bytes) const {
    std::string text(8, '\0');
    const uint64_t length = header.size();
    std::memcpy(text.data(), &length, 8);
    return error_of_bytes(text + header + std::string(num_bytes, 'x'));
  }

  fs::path folder_;
};

TEST_F(SafetensorsTest, ReadsBackEveryDtype) {
  NamedTensors tensors;
  for (auto dtype :
       {at::kDouble,
        at::kFloat,
        at::kHalf,
        at::kBFloat16,
        at::kLong,
        at::kInt,
        at::kShort,
        at::kChar,
        at::kByte,
        at::kBool})
    tensors.emplace_back(c10::toString(dtype), (normal({3, 5}, 1) * 9).to(dtype));
  tensors.emplace_back("scalar", torch::tensor(2.5));
  tensors.emplace_back("empty", torch::zeros({0, 3}));
  tensors.emplace_back("transposed", normal({3, 5}, 2).t());
  tensors.emplace_back("graph", torch::ones({2}).requires_grad_() * 2);
  tensors.emplace_back("name with \"quotes\" and \u00fc", torch::ones({1}));
  save_safetensors(path(), tensors, {{"format", "pt"}, {"step", "17"}});
  const SafetensorsFile file = load_safetensors(path());
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(file.tensors[i].first, tensors[i].first);
    EXPECT_TRUE(bit_equal(file.tensors[i].second, tensors[i].second)) << tensors[i].first;
  }
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"step", "17"}}));
}

TEST_F(SafetensorsTest, WritesTheFormatToTheByte) {
  save_safetensors(path(), {{"a", torch::tensor({1, 2}, at::kByte)}});
  const std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const std::string text = bytes();
  const size_t length = static_cast<unsigned char>(text[0]);
  EXPECT_EQ(length % 8, 0);
  EXPECT_EQ(text.substr(8, header.size()), header);
  EXPECT_EQ(text.substr(8 + length), std::string("\x01\x02"));
  EXPECT_EQ(text.size(), 8 + length + 2);
}

TEST_F(SafetensorsTest, HoldsNoTensorsAtAllToo) {
  save_safetensors(path(), {});
  EXPECT_TRUE(load_safetensors(path()).tensors.empty());
}

TEST_F(SafetensorsTest, ReplacesAFileWholeOrNotAtAll) {
  save_safetensors(path(), {{"a", torch::ones({2})}});
  const std::string before = bytes();
  EXPECT_THAT(
      error_of([&] { save_safetensors(path(), {{"a", torch::ones({2}, at::kComplexFloat)}}); }),
      AllOf(HasSubstr("'a'"), HasSubstr("cannot hold")));
  EXPECT_THAT(
      error_of(
          [&] { save_safetensors(path(), {{"a", torch::ones({2})}, {"a", torch::ones({1})}}); }),
      HasSubstr("'a'"));
  EXPECT_EQ(bytes(), before);
  save_safetensors(path(), {{"b", torch::ones({3})}});
  EXPECT_EQ(load_safetensors(path()).tensors[0].first, "b");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  EXPECT_THAT(
      error_of([&] { save_safetensors(path("no/such/folder"), {}); }), HasSubstr("No such file"));
}

TEST_F(SafetensorsTest, RefusesAFileThatIsCutAnywhere) {
  save_safetensors(path(), {{"a", normal({4}, 1)}, {"b", normal({2}, 2)}});
  const std::string text = bytes();
  for (size_t length = 0; length < text.size(); ++length)
    ASSERT_THAT(error_of_bytes(text.substr(0, length)), HasSubstr("bad")) << length << " bytes";
  EXPECT_THAT(error_of_bytes(text + "x"), HasSubstr("belong to no tensor"));
  EXPECT_THAT(error_of([&] { load_safetensors(path("none")); }), HasSubstr("No such file"));
  EXPECT_THAT(error_of([&] { load_safetensors(folder_.string()); }), HasSubstr("[safetensors]"));
}

TEST_F(SafetensorsTest, RefusesMalformedHeaders) {
  const std::vector<std::string> headers{
      "",
      "[]",
      "{",
      R"({"a":1})",
      R"({"a":{}})",
      R"({"a":{"dtype":"F32","shape":[1]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":["0","4"]}})",
      R"({"a":{"dtype":"F32","shape":"1","data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})",
      R"({"__metadata__":{"a":1}})",
      R"({"__metadata__":[]})",
  };
  for (const std::string& header : headers)
    EXPECT_THAT(error_of_header(header, 4), HasSubstr("[safetensors]")) << header;
  EXPECT_THAT(error_of_bytes(std::string(64, '\xff')), HasSubstr("header longer than the file"));
}

TEST_F(SafetensorsTest, TakesHeadersInAnyOrder) {
  const std::string header = R"({"b":{"shape":[1],"data_offsets":[1,2],"dtype":"U8"},)"
                             R"("a":{"dtype":"U8","data_offsets":[0,1],"shape":[]}}   )";
  std::string text(8, '\0');
  text[0] = static_cast<char>(header.size());
  std::ofstream(path(), std::ios::binary) << text + header + "\x05\x06";
  const auto file = load_safetensors(path());
  ASSERT_EQ(file.tensors.size(), 2);
  EXPECT_EQ(file.tensors[0].first, "a");
  EXPECT_EQ(file.tensors[0].second.item<int>(), 5);
  EXPECT_EQ(file.tensors[1].second.item<int>(), 6);
}

Layers network(int64_t width, bool tracks = true, uint64_t seed = 1) {
  Layers layers;
  layers.push_back("a", [width] { return torch::nn::Linear(4, width); });
  layers.push_back("norm", [width, tracks] {
    return torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(width).track_running_stats(tracks));
  });
  layers.push_back("b", [width] { return torch::nn::Linear(width, 2); });
  layers.build(seed);
  return layers;
}

NamedTensors state_of(const Pipeline& pipeline) {
  NamedTensors all = pipeline.named_parameters();
  for (auto& buffer : pipeline.named_buffers())
    all.push_back(buffer);
  return all;
}

TEST_F(SafetensorsTest, MovesANetworkToAnotherCut) {
  for (bool tracks : {true, false}) {
    Pipeline source(network(8, tracks), {.num_stages = 3, .num_micro_batches = 2});
    source.step(normal({4, 4}, 1, at::kFloat), normal({4, 2}, 2, at::kFloat), MSELoss());
    save_safetensors(path(), state_of(source));
    Pipeline target(network(8, tracks, 2), {});
    EXPECT_NE(digest(target), digest(source));
    load_into(target, load_safetensors(path()).tensors);
    EXPECT_EQ(digest(target), digest(source));
  }
}

TEST_F(SafetensorsTest, NamesEveryDifferenceAndLoadsNothing) {
  const Pipeline source(network(8), {});
  Pipeline target(network(8, true, 2), {.num_stages = 2});
  NamedTensors tensors = state_of(source);
  tensors[0].second = torch::zeros({9, 4});
  tensors[1].second = tensors[1].second.to(at::kDouble);
  tensors[2].first = "norm.other";
  tensors.emplace_back("extra.buffer", torch::zeros({1}));
  const auto before = copies(state_of(target));
  const auto error = error_of([&] { load_into(target, tensors); });
  EXPECT_THAT(error, AllOf(HasSubstr("'a.weight'"), HasSubstr("[9, 4]"), HasSubstr("[8, 4]")));
  EXPECT_THAT(error, AllOf(HasSubstr("'a.bias'"), HasSubstr("double"), HasSubstr("float")));
  EXPECT_THAT(error, HasSubstr("'norm.weight' is not in the file"));
  EXPECT_THAT(error, HasSubstr("'norm.other' is not in the network"));
  EXPECT_THAT(error, HasSubstr("'extra.buffer' is not in the network"));
  EXPECT_TRUE(bit_equal(copies(state_of(target)), before));
}

}  // namespace
}  // namespace gpipe

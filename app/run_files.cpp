#include "app/run_files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "app/toml_config.h"
#include "gpipe/base/error.h"
#include "gpipe/core/safetensors.h"

namespace gpipe::app {

OutputFolder::OutputFolder(const std::string& path, const OptionTable& table) : path_(path) {
  if (path.empty())
    return;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  GPIPE_CHECK(!error, "[output] cannot make the folder ", path, ": ", error.message());
  const std::string file = path + "/config.toml";
  errno = 0;
  std::ofstream config(file, std::ios::trunc);
  config << to_toml(table) << std::flush;
  GPIPE_CHECK(config, "[output] cannot write ", file, ": ", std::strerror(errno));
}

std::string OutputFolder::save(
    const Pipeline& pipeline, const Options& options, const RunSummary& summary) {
  if (path_.empty())
    return "";
  NamedTensors tensors = pipeline.named_parameters();
  const NamedTensors buffers = pipeline.named_buffers();
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  const std::string file = path_ + "/model.safetensors";
  save_safetensors(
      file,
      tensors,
      {{"gpipe", GPIPE_VERSION},
       {"model", options.model},
       {"step", std::to_string(summary.steps)},
       {"digest", summary.digest}});
  return file;
}

void load_weights(const std::string& path, const Pipeline& pipeline) {
  if (!path.empty())
    load_into(pipeline, load_safetensors(path).tensors);
}

}  // namespace gpipe::app

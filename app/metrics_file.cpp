#include "app/metrics_file.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "gpipe/base/error.h"

namespace gpipe::app {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const OptionTable& table) {
  Json json = Json::object();
  for (const Option& option : table.options())
    std::visit([&](const auto* field) { json[option.name] = *field; }, option.target);
  return json;
}

Json to_json(const Fingerprint& fingerprint) {
  return {
      {"libtorch", fingerprint.libtorch_version},
      {"cpu_capability", fingerprint.cpu_capability},
      {"device", fingerprint.device},
      {"dtype", fingerprint.dtype},
      {"threads_per_stage", fingerprint.threads},
      {"micro_batches", fingerprint.micro_batches},
      {"schedule", fingerprint.schedule},
      {"seed", fingerprint.seed}};
}

Json to_json(const EvalRecord& record) {
  Json json = {
      {"kind", "evaluation"},
      {"step", record.step},
      {"epoch", record.epoch},
      {"loss", record.loss},
      {"accuracy", record.accuracy},
      {"rows", record.rows},
      {"seconds", record.seconds}};
  if (record.is_text()) {
    json["nats_per_byte"] = record.loss;
    json["bigram_nats_per_byte"] = *record.bigram_loss;
  }
  return json;
}

Json to_json(const StageRecord& stage) {
  return {
      {"layers", stage.layers},
      {"parameters", stage.parameters},
      {"cost_share", stage.cost_share},
      {"busy_share", stage.busy_share},
      {"peak_bytes", stage.peak_bytes}};
}

Json to_json(const std::vector<StageRecord>& stages) {
  Json list = Json::array();
  for (const auto& stage : stages)
    list.push_back(to_json(stage));
  return list;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path) : path_(path) {
  if (path.empty())
    return;
  errno = 0;
  file_.open(path, std::ios::trunc);
  GPIPE_CHECK(file_, "[metrics] cannot write ", path, ": ", std::strerror(errno));
}

void MetricsFile::configuration(
    const std::string& command, const OptionTable& table, const Fingerprint& fingerprint) {
  write(
      {{"kind", "configuration"},
       {"command", command},
       {"gpipe", GPIPE_VERSION},
       {"bits_depend_on", to_json(fingerprint)},
       {"options", to_json(table)}});
}

void MetricsFile::step(const StepRecord& record) {
  write(
      {{"kind", "step"},
       {"step", record.step},
       {"epoch", record.epoch},
       {"loss", record.loss},
       {"accuracy", record.accuracy},
       {"lr", record.lr},
       {"rows_per_second", record.rows_per_second},
       {"bubble", record.bubble}});
}

void MetricsFile::evaluation(const EvalRecord& record) {
  write(to_json(record));
}

void MetricsFile::summary(const RunSummary& summary) {
  Json json = {
      {"kind", "summary"},
      {"steps", summary.steps},
      {"epochs", summary.epochs},
      {"rows", summary.rows},
      {"train_seconds", summary.train_seconds},
      {"bubble", summary.bubble},
      {"digest", summary.digest},
      {"stopped_by", summary.stopped_by},
      {"weights", summary.weights_file},
      {"stages", to_json(summary.stages)}};
  if (summary.last_loss)
    json["loss"] = *summary.last_loss;
  if (summary.evaluation)
    json["evaluation"] = to_json(*summary.evaluation);
  write(json);
}

void MetricsFile::write(const Json& line) {
  if (path_.empty())
    return;
  errno = 0;
  file_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  GPIPE_CHECK(file_, "[metrics] cannot write ", path_, ": ", std::strerror(errno));
}

}  // namespace gpipe::app

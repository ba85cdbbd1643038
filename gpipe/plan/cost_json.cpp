#include <algorithm>
#include <nlohmann/json.hpp>

#include "gpipe/base/error.h"
#include "gpipe/base/nearest.h"
#include "gpipe/plan/cost.h"

namespace gpipe::plan {
namespace {

using Json = nlohmann::ordered_json;

/// Calls `visit(name, member)` for each member: the only list of them.
template <class Layer, class Visit>
void for_each_member(Layer& layer, Visit&& visit) {
  visit("name", layer.name);
  visit("forward_seconds", layer.forward_seconds);
  visit("backward_seconds", layer.backward_seconds);
  visit("parameters", layer.parameters);
  visit("parameter_bytes", layer.parameter_bytes);
  visit("output_bytes", layer.output_bytes);
  visit("activation_bytes", layer.activation_bytes);
}

template <class Table, class Visit>
void for_each_table_member(Table& table, Visit&& visit) {
  visit("micro_batch_rows", table.micro_batch_rows);
  visit("input_bytes", table.input_bytes);
}

void read(const Json& value, const std::string& where, std::string& text) {
  GPIPE_CHECK(value.is_string(), "[cost] ", where, " is ", value.dump(), "; write a string");
  text = value.get<std::string>();
}

void read(const Json& value, const std::string& where, double& number) {
  GPIPE_CHECK(
      value.is_number() && value.get<double>() >= 0,
      "[cost] ",
      where,
      " is ",
      value.dump(),
      "; write a number of at least 0");
  number = value.get<double>();
}

void read(const Json& value, const std::string& where, std::int64_t& number) {
  GPIPE_CHECK(
      value.is_number_integer() && value >= 0 && value <= std::numeric_limits<std::int64_t>::max(),
      "[cost] ",
      where,
      " is ",
      value.dump(),
      "; write a whole number of at least 0");
  number = value.get<std::int64_t>();
}

void check_object(
    const Json& json, const std::string& where, const std::vector<std::string>& members) {
  GPIPE_CHECK(json.is_object(), "[cost] ", where, " is ", json.dump(), "; write an object");
  for (const auto& [name, value] : json.items()) {
    bool is_known = std::find(members.begin(), members.end(), name) != members.end();
    GPIPE_CHECK(
        is_known, "[cost] unknown member `", name, "` of ", where, did_you_mean(name, members));
  }
}

LayerCost read_layer(const Json& json, const std::string& where) {
  LayerCost layer;
  std::vector<std::string> members;
  for_each_member(layer, [&](const char* name, auto&) { members.emplace_back(name); });
  check_object(json, where, members);
  GPIPE_CHECK(json.contains("name"), "[cost] ", where, " has no `name`; give it one");
  for_each_member(layer, [&](const char* name, auto& member) {
    if (json.contains(name))
      read(json[name], where + "." + name, member);
  });
  return layer;
}

Json parse(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(
        detail::concatenate("[cost] the cost table is not JSON: ", error.what(), "; correct it"));
  }
}

}  // namespace

std::string to_json(const CostTable& table) {
  Json json;
  for_each_table_member(table, [&](const char* name, const auto& member) { json[name] = member; });
  json["layers"] = Json::array();
  for (const LayerCost& layer : table.layers) {
    Json object;
    for_each_member(layer, [&](const char* name, const auto& member) { object[name] = member; });
    json["layers"].push_back(std::move(object));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

CostTable cost_table_from_json(std::string_view text) {
  Json json = parse(text);
  check_object(json, "the cost table", {"micro_batch_rows", "input_bytes", "layers"});
  GPIPE_CHECK(
      json.contains("layers") && json["layers"].is_array(),
      "[cost] the cost table has no array `layers`; give it one object a layer");
  CostTable table;
  for_each_table_member(table, [&](const char* name, auto& member) {
    if (json.contains(name))
      read(json[name], name, member);
  });
  GPIPE_CHECK(table.micro_batch_rows >= 1, "[cost] micro_batch_rows is 0; use at least 1");
  for (const Json& layer : json["layers"])
    table.layers.push_back(
        read_layer(layer, "layers[" + std::to_string(table.layers.size()) + "]"));
  return table;
}

}  // namespace gpipe::plan

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpipe/models/registry.h"

namespace gpipe::models {

/// Binds keys to the fields of an options struct: each add() makes a key known, and reads its value
/// where one is given.
class OptionFields {
 public:
  OptionFields(std::string model, ModelOptions given)
      : model_(std::move(model)), given_(std::move(given)) {}

  /// `field` holds the default, and keeps it unless the key is given. Throws Error for a text that
  /// is not wholly a value of the field's type.
  void add(const std::string& key, int64_t& field, const std::string& meaning);
  void add(const std::string& key, double& field, const std::string& meaning);
  void add(const std::string& key, bool& field, const std::string& meaning);

  /// Throws Error for a given key that none of the added ones is.
  void check_all_known() const;

  const std::vector<ModelKey>& keys() const { return keys_; }

 private:
  /// The given text, or null.
  const std::string* declare(
      const std::string& key, std::string default_value, const std::string& meaning);

  std::string model_;
  ModelOptions given_;
  std::vector<ModelKey> keys_;
};

}  // namespace gpipe::models

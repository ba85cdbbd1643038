#pragma once

#include <string>

#include "app/option_table.h"

namespace gpipe::app {

/// Reads a configuration file into the table's fields: one `key = value` an option, in any order;
/// keys that are not there keep their defaults. A list of whole numbers is taken for text with
/// commas (`cut = [5, 4, 4]`). Throws UsageError with file and line for what cannot be read, an
/// unknown key (with the nearest), or a value that is not allowed.
void read_toml(const std::string& path, OptionTable& table);

/// The same from text; `path` is for messages.
void read_toml_text(const std::string& text, const std::string& path, OptionTable& table);

/// What the fields hold now, as a file that read_toml() reads back to the same.
std::string to_toml(const OptionTable& table);

}  // namespace gpipe::app

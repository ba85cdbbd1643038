#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpipe {

/// The fewest letters to insert, delete, replace, or swap with their neighbour, that turn one word
/// into the other. Upper and lower case count as equal, and so do `-` and `_`.
int edit_distance(std::string_view left, std::string_view right);

/// The candidate that `word` was most likely meant to be: the one at the least edit distance, the
/// first of several; an abbreviation to three or more letters counts as one edit. Empty where none
/// is near: within a third of the longer word's letters, rounded up.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean `seed`?" for an error's text, or nothing where no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace gpipe

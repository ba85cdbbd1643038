#include "gpipe/base/nearest.h"

#include <algorithm>
#include <cctype>

namespace gpipe {
namespace {

char fold(char letter) {
  if (letter == '-')
    return '_';
  return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

bool is_abbreviation(std::string_view word, std::string_view candidate) {
  constexpr std::size_t kFewestLetters = 3;
  return word.size() >= kFewestLetters && word.size() < candidate.size() &&
         edit_distance(word, candidate.substr(0, word.size())) == 0;
}

int distance_to_candidate(std::string_view word, std::string_view candidate) {
  return is_abbreviation(word, candidate) ? 1 : edit_distance(word, candidate);
}

bool is_near(int distance, std::string_view left, std::string_view right) {
  std::size_t letters = std::max(left.size(), right.size());
  return distance <= static_cast<int>((letters + 2) / 3);
}

}  // namespace

int edit_distance(std::string_view left, std::string_view right) {
  auto differ = [&](std::size_t i, std::size_t j) { return fold(left[i]) != fold(right[j]); };
  // Rows of the table of distances between beginnings of the words: [letters of right + 1].
  std::vector<int> before_last(right.size() + 1);
  std::vector<int> last(right.size() + 1);
  std::vector<int> row(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j)
    row[j] = static_cast<int>(j);
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = static_cast<int>(i) + 1;
    for (std::size_t j = 0; j < right.size(); ++j) {
      row[j + 1] = std::min({last[j] + (differ(i, j) ? 1 : 0), last[j + 1] + 1, row[j] + 1});
      bool is_swap = i > 0 && j > 0 && !differ(i, j - 1) && !differ(i - 1, j);
      if (is_swap)
        row[j + 1] = std::min(row[j + 1], before_last[j - 1] + 1);
    }
  }
  return row.back();
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    int distance = distance_to_candidate(word, candidate);
    if (is_near(distance, word, candidate) && (!best || distance < best_distance)) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best ? *best : std::string();
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  std::string candidate = nearest(word, candidates);
  return candidate.empty() ? std::string() : "; did you mean `" + candidate + "`?";
}

}  // namespace gpipe

#include <iomanip>
#include <sstream>
#include <utility>

#include "gpipe/plan/timeline.h"

namespace gpipe::plan {
namespace {

void write_thread_name(std::ostream& json, std::size_t rank) {
  json << R"({"ph": "M", "pid": 0, "tid": )" << rank
       << R"(, "name": "thread_name", "args": {"name": "rank )" << rank << R"("}})";
}

void write_span(std::ostream& json, std::size_t rank, const Span& span) {
  constexpr double kMicroseconds = 1e6;
  json << R"({"ph": "X", "pid": 0, "tid": )" << rank << R"(, "name": ")" << to_string(span.action)
       << R"(", "cat": ")" << name_of(span.action.op) << R"(", "ts": )"
       << span.start_seconds * kMicroseconds << R"(, "dur": )"
       << (span.end_seconds - span.start_seconds) * kMicroseconds << R"(, "args": {"stage": )"
       << span.action.stage << R"(, "micro_batch": )" << span.action.micro_batch << "}}";
}

}  // namespace

std::string to_chrome_trace(const Timeline& timeline) {
  std::ostringstream json;
  json << std::fixed << std::setprecision(3) << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const char* separator = "\n";
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    json << std::exchange(separator, ",\n");
    write_thread_name(json, rank);
    for (const Span& span : timeline.ranks[rank]) {
      json << separator;
      write_span(json, rank, span);
    }
  }
  json << "\n]}\n";
  return json.str();
}

}  // namespace gpipe::plan

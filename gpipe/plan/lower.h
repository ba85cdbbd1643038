#pragma once

#include <string_view>
#include <vector>

#include "gpipe/plan/schedule.h"

namespace gpipe::plan {

/// Which micro-batches of a stage drop their graph after the forward and recompute it before the
/// backward (paper, 2.3).
enum class Rematerialize {
  Always,      ///< all
  ExceptLast,  ///< all but those whose backward directly follows their forward on the stage (the
               ///< last, in fill-drain)
  Never,       ///< none
};

std::string_view to_string(Rematerialize mode);
/// `always`, `except_last`, `never`; throws Error on any other text, naming the nearest.
Rematerialize rematerialize_from_string(std::string_view text);

/// Everything one rank does in a step, in order: compute, recompute, sends and receives.
using Program = std::vector<Action>;

/// Adds R where `mode` asks for it and the schedule has none, and the sends and receives between
/// ranks. Neighbouring stages of one rank hand over directly, without either. Throws as validate()
/// does.
///
/// All messages of one kind from one rank to another share a channel, first in, first out. The
/// sender decides its order: a send directly follows the action that makes its value, and the
/// receives of the channel stand in that order, each as late as it can be, before its consumer or
/// before a receive of the same channel that must come earlier. What a receive waits for has then
/// been sent before what its rank needs next, so programs with sends that do not wait are free of
/// deadlock wherever the schedule is. R stands before the receive of its gradient, and so runs
/// while the rank would wait for it:
///
///   RECV_F F SEND_F  ...  R RECV_B B SEND_B
std::vector<Program> lower(const Schedule& schedule, Rematerialize mode);

/// What a send waits for.
enum class Sends {
  Asynchronous,  ///< nothing: the value is taken and the rank goes on
  Rendezvous,    ///< its receive
};

/// Throws Error unless the compute actions of the programs are a valid schedule, every border
/// between ranks has its sends and receives and no other place has any, both sides of every channel
/// agree on the order, and the programs come to their end with such sends. lower() passes for every
/// schedule with Asynchronous sends, and for fill-drain with Rendezvous as well; 1F1B does not,
/// since there neighbours send to each other at the same time.
void validate_programs(const std::vector<Program>& programs, Sends sends = Sends::Asynchronous);

}  // namespace gpipe::plan

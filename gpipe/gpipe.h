#pragma once

/// The public headers, in reading order.
#include "gpipe/base/error.h"
#include "gpipe/core/allocator.h"
#include "gpipe/core/digest.h"
#include "gpipe/core/layer.h"
#include "gpipe/core/loss.h"
#include "gpipe/core/pipeline.h"
#include "gpipe/core/pipeline_optimizer.h"
#include "gpipe/core/profile.h"
#include "gpipe/core/safetensors.h"
#include "gpipe/core/self_check.h"
#include "gpipe/core/stage_error.h"
#include "gpipe/plan/partition.h"

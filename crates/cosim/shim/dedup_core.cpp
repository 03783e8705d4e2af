#include "Vdedup_core.h"
#include "dedup.h"

BENCH(dedup_core, Vdedup_core, DedupInputs, DedupOutputs)

#include "Vdedup_stubbed.h"
#include "dedup.h"

BENCH(dedup_stubbed, Vdedup_stubbed, StubbedInputs, DedupOutputs)

// What Verilator calls when an assertion fails: it is remembered, and the run goes on.
#include "bench.h"
#include <cstdio>

thread_local Failures failures;

void vl_stop(const char* filename, int linenum, const char* hier) {
    if (failures.count++ == 0) {
        std::snprintf(failures.place, sizeof(failures.place),
                      "%s:%d in %s", filename, linenum, hier);
    }
}

// Gives the failures of this thread since the last call.
extern "C" void take_failures(Failures* taken) {
    *taken = failures;
    failures = Failures{};
}

#include "Vsha3_256.h"
#include "bench.h"

struct Sha3Inputs {
    uint64_t in_word;
    uint8_t rst, in_valid, in_bytes, in_last, out_ready;
    void drive(Vsha3_256& model) const {
        model.in_word = in_word;
        model.rst = rst;
        model.in_valid = in_valid;
        model.in_bytes = in_bytes;
        model.in_last = in_last;
        model.out_ready = out_ready;
    }
};
struct Sha3Outputs {
    uint32_t out_digest[8];
    uint8_t in_ready, out_valid;
    void sample(Vsha3_256& model) {
        sample_words(model.out_digest, out_digest);
        in_ready = model.in_ready;
        out_valid = model.out_valid;
    }
};
BENCH(sha3_256, Vsha3_256, Sha3Inputs, Sha3Outputs)

#include "Vbch_encoder.h"
#include "bench.h"

struct BchInputs {
    uint64_t in_word;
    uint8_t rst, in_valid, out_ready;
    void drive(Vbch_encoder& model) const {
        model.in_word = in_word;
        model.rst = rst;
        model.in_valid = in_valid;
        model.out_ready = out_ready;
    }
};
struct BchOutputs {
    uint32_t out_parity[4];
    uint8_t in_ready, out_valid;
    void sample(Vbch_encoder& model) {
        sample_words(model.out_parity, out_parity);
        in_ready = model.in_ready;
        out_valid = model.out_valid;
    }
};
BENCH(bch_encoder, Vbch_encoder, BchInputs, BchOutputs)

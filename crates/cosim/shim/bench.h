// One model with its clock, as Rust sees it: made, ticked, dropped. The model's inputs are set
// before the rising edge and its outputs are read there, as a neighbouring register would.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <verilated.h>
#if VM_COVERAGE
#include <verilated_cov.h>
#endif
#if VM_TRACE
#include <memory>
#include <verilated_vcd_c.h>
#endif

// How many assertions failed on this thread, and where the first one stands.
struct Failures {
    uint32_t count;
    char place[256];
};
extern thread_local Failures failures;

template <class Model, class Inputs, class Outputs>
struct Bench {
    VerilatedContext context;
    Model model{use(context)};
#if VM_TRACE
    std::unique_ptr<VerilatedVcdC> trace;
#endif

    // A model is made, run and destroyed with the context that the thread uses: that of another
    // model may be gone already.
    static VerilatedContext* use(VerilatedContext& context) {
        Verilated::threadContextp(&context);
        return &context;
    }

    ~Bench() { use(context); }

    void tick(const Inputs* inputs, Outputs* outputs) {
        use(context);
        inputs->drive(model);
        model.clk = 0;
        model.eval();
        outputs->sample(model);
#if VM_TRACE
        if (trace) trace->dump(context.time());
#endif
        model.clk = 1;
        model.eval();
        context.timeInc(1);
    }

    // One sample a cycle, of what stands before the rising edge.
    void trace_to(const char* path) {
#if VM_TRACE
        context.traceEverOn(true);
        trace = std::make_unique<VerilatedVcdC>();
        model.trace(trace.get(), 99);
        trace->open(path);
#else
        (void)path;
#endif
    }

    void write_coverage(const char* path) {
#if VM_COVERAGE
        context.coveragep()->write(path);
#else
        (void)path;
#endif
    }
};

// The five functions of a model, by which its Rust half knows it.
#define BENCH(name, Model, Inputs, Outputs)                                                        \
    using Bench_##name = Bench<Model, Inputs, Outputs>;                                            \
    extern "C" void* name##_new() { return new Bench_##name; }                                     \
    extern "C" void name##_free(void* bench) { delete static_cast<Bench_##name*>(bench); }         \
    extern "C" void name##_tick(void* bench, const Inputs* inputs, Outputs* outputs) {             \
        static_cast<Bench_##name*>(bench)->tick(inputs, outputs);                                  \
    }                                                                                              \
    extern "C" void name##_coverage(void* bench, const char* path) {                               \
        static_cast<Bench_##name*>(bench)->write_coverage(path);                                   \
    }                                                                                              \
    extern "C" void name##_trace(void* bench, const char* path) {                                  \
        static_cast<Bench_##name*>(bench)->trace_to(path);                                         \
    }

// Wide ports are arrays of 32-bit words in Verilator and in Rust alike.
template <class Port, std::size_t N>
void drive_words(Port& port, const uint32_t (&words)[N]) {
    static_assert(sizeof(port) == sizeof(words), "a port is as wide as its field");
    std::memcpy(&port, words, sizeof(words));
}
template <class Port, std::size_t N>
void sample_words(const Port& port, uint32_t (&words)[N]) {
    static_assert(sizeof(port) == sizeof(words), "a port is as wide as its field");
    std::memcpy(words, &port, sizeof(words));
}

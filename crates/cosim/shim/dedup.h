// The ports of DedupCore, alike for the core and for its stubbed form.
#pragma once
#include "bench.h"

struct DedupInputs {
    uint32_t beat_data[16], response_data[16], instruction_digest[8], beat_digest[8];
    uint32_t cfg_count_max, cfg_bucket_mask, cfg_first_fresh, cfg_capacity, instruction_lba;
    uint16_t instruction_tag, instruction_pages;
    uint8_t rst, cfg_fsms, cfg_bloom, cfg_ready, mutant;
    uint8_t instruction_valid, instruction_op, beat_valid, result_ready, device_ready, data_ready;
    uint8_t ended_valid, ended_tag, read_ready, response_valid, response_id, write_ready;
    uint8_t write_done_valid, write_done_id;

    template <class Model>
    void drive(Model& model) const {
        drive_words(model.beat_data, beat_data);
        drive_words(model.response_data, response_data);
        drive_words(model.instruction_digest, instruction_digest);
        model.cfg_count_max = cfg_count_max;
        model.cfg_bucket_mask = cfg_bucket_mask;
        model.cfg_first_fresh = cfg_first_fresh;
        model.cfg_capacity = cfg_capacity;
        model.cfg_fsms = cfg_fsms;
        model.cfg_bloom = cfg_bloom;
        model.cfg_ready = cfg_ready;
        model.instruction_lba = instruction_lba;
        model.instruction_tag = instruction_tag;
        model.instruction_pages = instruction_pages;
        model.instruction_valid = instruction_valid;
        model.instruction_op = instruction_op;
        model.rst = rst;
        model.beat_valid = beat_valid;
        model.result_ready = result_ready;
        model.device_ready = device_ready;
        model.data_ready = data_ready;
        model.ended_valid = ended_valid;
        model.ended_tag = ended_tag;
        model.read_ready = read_ready;
        model.response_valid = response_valid;
        model.response_id = response_id;
        model.write_ready = write_ready;
        model.write_done_valid = write_done_valid;
        model.write_done_id = write_done_id;
    }
};

// What only the stubbed form has.
struct StubbedInputs : DedupInputs {
    template <class Model>
    void drive(Model& model) const {
        DedupInputs::drive(model);
        drive_words(model.beat_digest, beat_digest);
        model.mutant = mutant;
    }
};

struct DedupOutputs {
    uint32_t data_beat[16], write_data[16], result_digest[8], device_digest[8];
    uint32_t result_lba, result_index, result_count, device_index, device_count;
    uint32_t read_line, write_line, free_count;
    uint16_t result_tag, device_host_tag, write_words;
    uint8_t instruction_ready, beat_ready, result_valid, result_op, result_verdict;
    uint8_t device_valid, device_tag, device_kind, data_valid, data_last;
    uint8_t read_valid, read_id, read_region, write_valid, write_id, write_region;

    template <class Model>
    void sample(Model& model) {
        sample_words(model.data_beat, data_beat);
        sample_words(model.write_data, write_data);
        sample_words(model.result_digest, result_digest);
        sample_words(model.device_digest, device_digest);
        result_lba = model.result_lba;
        result_index = model.result_index;
        result_count = model.result_count;
        device_index = model.device_index;
        device_count = model.device_count;
        read_line = model.read_line;
        write_line = model.write_line;
        free_count = model.free_count;
        result_tag = model.result_tag;
        device_host_tag = model.device_host_tag;
        write_words = model.write_words;
        instruction_ready = model.instruction_ready;
        beat_ready = model.beat_ready;
        result_valid = model.result_valid;
        result_op = model.result_op;
        result_verdict = model.result_verdict;
        device_valid = model.device_valid;
        device_tag = model.device_tag;
        device_kind = model.device_kind;
        data_valid = model.data_valid;
        data_last = model.data_last;
        read_valid = model.read_valid;
        read_id = model.read_id;
        read_region = model.read_region;
        write_valid = model.write_valid;
        write_id = model.write_id;
        write_region = model.write_region;
    }
};

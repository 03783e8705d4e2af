// For simulation: DedupCore with a hash group that is told the digests (hash_group_stub), and with
// a known fault of choice. Its ports are those of dedup_core and these.
module dedup_stubbed #(
    parameter int FSMS = 8,
    parameter int ID_W = $clog2(FSMS + 1)
) (
    input  logic          clk,
    input  logic          rst,
    // What a driver sets during reset (dedup::config_t).
    input  logic [4:0]    cfg_fsms,
    input  logic          cfg_bloom,
    input  logic          cfg_ready,
    input  logic [31:0]   cfg_count_max,
    input  logic [24:0]   cfg_bucket_mask,
    input  logic [31:0]   cfg_first_fresh,
    input  logic [31:0]   cfg_capacity,
    // The host: instructions and the pages of writes in, results out in the order of instructions.
    input  logic          instruction_valid,
    output logic          instruction_ready,
    input  logic [1:0]    instruction_op,
    input  logic [15:0]   instruction_tag,
    input  logic [31:0]   instruction_lba,
    input  logic [15:0]   instruction_pages,
    input  logic [255:0]  instruction_digest,
    input  logic          beat_valid,
    output logic          beat_ready,
    input  logic [511:0]  beat_data,
    input  logic [255:0]  beat_digest,
    input  logic [4:0]    mutant,
    output logic          result_valid,
    input  logic          result_ready,
    output logic [1:0]    result_op,
    output logic [15:0]   result_tag,
    output logic [31:0]   result_lba,
    output logic [255:0]  result_digest,
    output logic [2:0]    result_verdict,
    output logic [31:0]   result_index,
    output logic [31:0]   result_count,
    // The storage device.
    output logic          device_valid,
    input  logic          device_ready,
    output logic [3:0]    device_tag,
    output logic [1:0]    device_kind,
    output logic [31:0]   device_index,
    output logic [31:0]   device_count,
    output logic [15:0]   device_host_tag,
    output logic [255:0]  device_digest,
    output logic          data_valid,
    input  logic          data_ready,
    output logic [511:0]  data_beat,
    output logic          data_last,
    input  logic          ended_valid,
    input  logic [3:0]    ended_tag,
    // Memory, by regions of lines of 512 bits.
    output logic          read_valid,
    input  logic          read_ready,
    output logic [ID_W-1:0] read_id,
    output logic [1:0]    read_region,
    output logic [31:0]   read_line,
    input  logic          response_valid,
    input  logic [ID_W-1:0] response_id,
    input  logic [511:0]  response_data,
    output logic          write_valid,
    input  logic          write_ready,
    output logic [ID_W-1:0] write_id,
    output logic [1:0]    write_region,
    output logic [31:0]   write_line,
    output logic [15:0]   write_words,
    output logic [511:0]  write_data,
    input  logic          write_done_valid,
    input  logic [ID_W-1:0] write_done_id,
    output logic [31:0]   free_count
);
  always_comb mutants::seeded = mutant;

  logic           digest_valid;
  logic           digest_ready;
  logic [255:0]   digest;
  logic           group_ready;
  logic           engine_ready;
  dedup::result_t result;
  dedup::command_t command;

  // A beat is taken by the hash group and the page writer together.
  assign beat_ready = group_ready && engine_ready;
  assign {result_op, result_tag, result_lba, result_digest, result_verdict, result_index,
          result_count} = result;
  assign {device_kind, device_index, device_count, device_host_tag, device_digest} = command;

  hash_group_stub #(.CORES(64), .LATENCY(3360)) hashes (
      .clk(clk), .rst(rst),
      .beat_valid(beat_valid && engine_ready), .beat_ready(group_ready), .beat_digest(beat_digest),
      .digest_valid(digest_valid), .digest_ready(digest_ready), .digest(digest));

  dedup_engine #(.FSMS(FSMS)) engine (
      .clk(clk), .rst(rst),
      .cfg({cfg_fsms, cfg_bloom, cfg_ready, cfg_count_max, cfg_bucket_mask, cfg_first_fresh,
            cfg_capacity}),
      .instruction_valid(instruction_valid), .instruction_ready(instruction_ready),
      .instruction({instruction_op, instruction_tag, instruction_lba, instruction_pages,
                    instruction_digest}),
      .beat_valid(beat_valid && group_ready), .beat_ready(engine_ready), .beat_data(beat_data),
      .digest_valid(digest_valid), .digest_ready(digest_ready), .digest(digest),
      .host_valid(result_valid), .host_ready(result_ready), .host_result(result),
      .device_valid(device_valid), .device_ready(device_ready), .device_tag(device_tag),
      .device_command(command),
      .data_valid(data_valid), .data_ready(data_ready), .data_beat(data_beat),
      .data_last(data_last), .ended_valid(ended_valid), .ended_tag(ended_tag),
      .read_valid(read_valid), .read_ready(read_ready), .read_id(read_id),
      .read_region(read_region), .read_line(read_line),
      .response_valid(response_valid), .response_id(response_id), .response_data(response_data),
      .write_valid(write_valid), .write_ready(write_ready), .write_id(write_id),
      .write_region(write_region), .write_line(write_line), .write_words(write_words),
      .write_data(write_data),
      .write_done_valid(write_done_valid), .write_done_id(write_done_id),
      .free_count(free_count));
endmodule

// DedupCore without its hash group: instructions, pages and digests in; results, device commands
// and memory requests out.
module dedup_engine #(
    parameter int FSMS = 8,
    parameter int PAGES = 128,
    parameter int TAGS = 16,
    parameter int ID_W = $clog2(FSMS + 1),
    parameter int TAG_W = $clog2(TAGS)
) (
    input  logic                clk,
    input  logic                rst,
    input  dedup::config_t      cfg,
    input  logic                instruction_valid,
    output logic                instruction_ready,
    input  dedup::instruction_t instruction,
    input  logic                beat_valid,
    output logic                beat_ready,
    input  logic [511:0]        beat_data,
    input  logic                digest_valid,
    output logic                digest_ready,
    input  logic [255:0]        digest,
    output logic                host_valid,
    input  logic                host_ready,
    output dedup::result_t      host_result,
    output logic                device_valid,
    input  logic                device_ready,
    output logic [TAG_W-1:0]    device_tag,
    output dedup::command_t     device_command,
    output logic                data_valid,
    input  logic                data_ready,
    output logic [511:0]        data_beat,
    output logic                data_last,
    input  logic                ended_valid,
    input  logic [TAG_W-1:0]    ended_tag,
    output logic                read_valid,
    input  logic                read_ready,
    output logic [ID_W-1:0]     read_id,
    output logic [1:0]          read_region,
    output logic [31:0]         read_line,
    input  logic                response_valid,
    input  logic [ID_W-1:0]     response_id,
    input  logic [511:0]        response_data,
    output logic                write_valid,
    input  logic                write_ready,
    output logic [ID_W-1:0]     write_id,
    output logic [1:0]          write_region,
    output logic [31:0]         write_line,
    output logic [15:0]         write_words,
    output logic [511:0]        write_data,
    input  logic                write_done_valid,
    input  logic [ID_W-1:0]     write_done_id,
    output logic [31:0]         free_count
);
  logic           lookup_valid;
  logic           lookup_ready;
  dedup::lookup_t lookup;
  logic           result_valid;
  logic           result_ready;
  dedup::result_t result;

  instruction_issuer issuer (
      .clk(clk), .rst(rst),
      .in_valid(instruction_valid), .in_ready(instruction_ready), .in_instruction(instruction),
      .digest_valid(digest_valid), .digest_ready(digest_ready), .digest(digest),
      .out_valid(lookup_valid), .out_ready(lookup_ready), .out_lookup(lookup));

  lookup_engine #(.FSMS(FSMS)) engine (
      .clk(clk), .rst(rst), .cfg(cfg),
      .in_valid(lookup_valid), .in_ready(lookup_ready), .in_lookup(lookup),
      .out_valid(result_valid), .out_ready(result_ready), .out_result(result),
      .read_valid(read_valid), .read_ready(read_ready), .read_id(read_id),
      .read_region(read_region), .read_line(read_line),
      .response_valid(response_valid), .response_id(response_id), .response_data(response_data),
      .write_valid(write_valid), .write_ready(write_ready), .write_id(write_id),
      .write_region(write_region), .write_line(write_line), .write_words(write_words),
      .write_data(write_data),
      .write_done_valid(write_done_valid), .write_done_id(write_done_id),
      .free_count(free_count));

  page_writer #(.PAGES(PAGES), .TAGS(TAGS)) writer (
      .clk(clk), .rst(rst),
      .beat_valid(beat_valid), .beat_ready(beat_ready), .beat_data(beat_data),
      .result_valid(result_valid), .result_ready(result_ready), .result(result),
      .host_valid(host_valid), .host_ready(host_ready), .host_result(host_result),
      .device_valid(device_valid), .device_ready(device_ready), .device_tag(device_tag),
      .device_command(device_command),
      .data_valid(data_valid), .data_ready(data_ready), .data_beat(data_beat),
      .data_last(data_last), .ended_valid(ended_valid), .ended_tag(ended_tag));
endmodule

// Pages wait here for their verdicts; the storage device hears only what it must do (the report's
// Page Writer).
//
//   beats -> buffer of PAGES pages --new ones--> device data
//   results -> hazards -> device commands, and the same results to the host
//
// A result becomes at most one command: a new page is put, a page of another count gets a new
// header, a page of no references is erased, a read page is got. Commands are issued in the order
// of results, up to TAGS at once, and the device may end them in any order. So a command waits for
// what is in flight on the same page, unless both leave its data alone: a read that the device has
// not ended holds back the erasure behind it. (The report leaves that to the driver.)
//
// Pages leave the buffer in their order, a new one as 64 beats, any other at once.
`include "mutants.svh"
module page_writer #(
    parameter int PAGES = 128,
    parameter int TAGS = 16,
    parameter int TAG_W = $clog2(TAGS)
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             beat_valid,
    output logic             beat_ready,
    input  logic [511:0]     beat_data,
    input  logic             result_valid,
    output logic             result_ready,
    input  dedup::result_t   result,
    output logic             host_valid,
    input  logic             host_ready,
    output dedup::result_t   host_result,
    output logic             device_valid,
    input  logic             device_ready,
    output logic [TAG_W-1:0] device_tag,
    output dedup::command_t  device_command,
    output logic             data_valid,
    input  logic             data_ready,
    output logic [511:0]     data_beat,
    output logic             data_last,
    input  logic             ended_valid,
    input  logic [TAG_W-1:0] ended_tag
);
  localparam int PAGE_W = $clog2(PAGES);
  localparam int BEAT_W = 6;
  localparam int HOST_W = dedup::RESULT_W;
  localparam int COMMAND_W = dedup::COMMAND_W;

  // The command of a result.
  logic            commands;
  logic            is_write;
  logic            keeps_page;
  dedup::command_t command;
  logic [1:0]      kind;
  always_comb begin
    commands = 1'b1;
    kind = dedup::PUT_HEADER;
    case (result.outcome.verdict)
      dedup::NEW: kind = dedup::PUT_PAGE;
      dedup::SHARED: kind = dedup::PUT_HEADER;
      dedup::ERASED: kind = dedup::ERASE_PAGE;
      dedup::FOUND: kind = dedup::GET_PAGE;
      default: commands = 1'b0;
    endcase
  end
  assign is_write = result.lookup.op == dedup::WRITE;
  assign keeps_page = result.outcome.verdict == dedup::NEW;
  assign command = {kind, result.outcome.index, result.outcome.count, result.lookup.tag,
                    result.lookup.digest};

  // What the device has not ended.
  logic [TAGS-1:0]    busy;
  logic [32*TAGS-1:0] busy_index;
  logic [2*TAGS-1:0]  busy_kind;
  logic               has_tag;
  logic [TAG_W-1:0]   free_tag;
  logic               hazard;

  function moves_data(input [1:0] of_kind);
    moves_data = of_kind == dedup::PUT_PAGE || of_kind == dedup::ERASE_PAGE;
  endfunction

  always_comb begin
    has_tag = 1'b0;
    free_tag = '0;
    hazard = 1'b0;
    for (int at = TAGS - 1; at >= 0; at = at - 1) begin
      if (!busy[at]) begin
        has_tag = 1'b1;
        free_tag = at[TAG_W-1:0];
      end else if (busy_index[32*at+:32] == command.index
          && (moves_data(kind) || moves_data(busy_kind[2*at+:2])) && !`MUTANT(13)) begin
        hazard = 1'b1;
      end
    end
  end

  // Queues, so that no side waits for another one's `ready`.
  logic host_room;
  logic device_room;
  logic fate_room;
  logic goes;
  logic unused;
  logic [2:0] unused_host_count;
  logic [2:0] unused_device_count;
  logic [PAGE_W:0] unused_fates_count;
  assign goes = result_valid && host_room && (!is_write || fate_room)
      && (!commands || (device_room && has_tag && !hazard));
  assign result_ready = goes;
  fifo #(.WIDTH(HOST_W), .DEPTH(4)) answers (
      .clk(clk), .rst(rst), .in_valid(goes), .in_ready(host_room), .in_data(result),
      .out_valid(host_valid), .out_ready(host_ready), .out_data(host_result),
      .count(unused_host_count));
  fifo #(.WIDTH(TAG_W + COMMAND_W), .DEPTH(4)) orders (
      .clk(clk), .rst(rst), .in_valid(goes && commands), .in_ready(device_room),
      .in_data({free_tag, command}),
      .out_valid(device_valid), .out_ready(device_ready), .out_data({device_tag, device_command}),
      .count(unused_device_count));
  assign unused = &{1'b0, unused_host_count, unused_device_count, unused_fates_count};

  genvar tag;
  generate
    for (tag = 0; tag < TAGS; tag = tag + 1) begin : tags
      always_ff @(posedge clk) begin
        if (rst) busy[tag] <= 1'b0;
        else if (goes && commands && free_tag == tag) begin
          busy[tag] <= 1'b1;
          busy_index[32*tag+:32] <= command.index;
          busy_kind[2*tag+:2] <= kind;
        end else if (ended_valid && ended_tag == tag) busy[tag] <= 1'b0;
      end
    end
  endgenerate

  // The buffer of pages.
  logic [511:0]      buffer [0:PAGES*64-1];
  logic [PAGE_W:0]   pages_held;          // begun and not left
  logic [PAGE_W-1:0] page_in;
  logic [BEAT_W-1:0] beat_in;
  logic [PAGE_W-1:0] page_out;
  logic [BEAT_W-1:0] beat_out;
  logic              page_begins;
  logic              page_leaves;
  logic              fate_valid;
  logic              fate_keeps;
  logic              beat_read;           // a beat is asked of the buffer
  logic              beat_comes;          // the one asked for a cycle ago
  logic              last_comes;
  logic [511:0]      beat_found;
  logic [2:0]        data_count;
  logic              data_room;

  assign beat_ready = beat_in != '0 || !pages_held[PAGE_W];
  assign page_begins = beat_valid && beat_ready && beat_in == '0;
  fifo #(.WIDTH(1), .DEPTH(PAGES)) fates (
      .clk(clk), .rst(rst), .in_valid(goes && is_write), .in_ready(fate_room),
      .in_data(keeps_page), .out_valid(fate_valid), .out_ready(page_leaves),
      .out_data(fate_keeps), .count(unused_fates_count));
  assign beat_read = fate_valid && fate_keeps && data_count + {2'b0, beat_comes} < 3'd4;
  assign page_leaves = fate_valid
      && (fate_keeps ? beat_read && beat_out == 6'd63 : !`MUTANT(14) || page_out[0]);

  always_ff @(posedge clk) begin
    if (beat_valid && beat_ready) buffer[{page_in, beat_in}] <= beat_data;
    beat_found <= buffer[{page_out, beat_out}];
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      page_in <= '0;
      beat_in <= '0;
      page_out <= '0;
      beat_out <= '0;
      pages_held <= '0;
      beat_comes <= 1'b0;
      last_comes <= 1'b0;
    end else begin
      if (beat_valid && beat_ready) begin
        beat_in <= beat_in + 1'b1;
        if (beat_in == 6'd63) page_in <= page_in + 1'b1;
      end
      if (beat_read) beat_out <= beat_out + 1'b1;
      if (page_leaves) page_out <= page_out + 1'b1;
      pages_held <= pages_held + {{PAGE_W{1'b0}}, page_begins} - {{PAGE_W{1'b0}}, page_leaves};
      beat_comes <= beat_read;
      last_comes <= beat_out == 6'd63;
    end
  end

  fifo #(.WIDTH(513), .DEPTH(4)) beats (
      .clk(clk), .rst(rst), .in_valid(beat_comes), .in_ready(data_room),
      .in_data({last_comes, beat_found}),
      .out_valid(data_valid), .out_ready(data_ready), .out_data({data_last, data_beat}),
      .count(data_count));

  always_ff @(posedge clk) begin
    if (!rst) begin
      beats_have_room: assert (!beat_comes || data_room);
      tags_end_once: assert (!ended_valid || busy[ended_tag]);
      pages_are_whole: assert (!fate_valid || pages_held != '0);
      pages_fit: assert (pages_held <= (PAGE_W + 1)'(PAGES));
    end
  end
endmodule

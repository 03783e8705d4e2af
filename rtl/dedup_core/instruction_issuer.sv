// Instructions in, look-ups out in the same order (the report's Instruction Decoder, Slicer and
// Issuer).
//
// The decoder drops what does nothing: nops, and writes of no page. A write of n pages is sliced
// into n look-ups of consecutive addresses, each of which waits for its digest from the hash group;
// an erasure or a read brings its digest and is issued at once.
`include "mutants.svh"
module instruction_issuer #(
    parameter int DEPTH = 16
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                in_valid,
    output logic                in_ready,
    input  dedup::instruction_t in_instruction,
    input  logic                digest_valid,
    output logic                digest_ready,
    input  logic [255:0]        digest,
    output logic                out_valid,
    input  logic                out_ready,
    output dedup::lookup_t      out_lookup
);
  logic                 acts;
  logic                 queue_ready;
  logic                 head_valid;
  logic                 head_leaves;
  dedup::instruction_t  head;
  logic                 is_write;
  logic                 issues;
  logic [15:0]          page;      // of the write at the head

  assign acts = in_instruction.op != dedup::NOP
      && !(in_instruction.op == dedup::WRITE && in_instruction.pages == 16'd0);
  assign in_ready = queue_ready || !acts;

  logic [$clog2(DEPTH):0] unused_count;
  fifo #(.WIDTH(dedup::INSTRUCTION_W), .DEPTH(DEPTH)) queue (
      .clk(clk), .rst(rst),
      .in_valid(in_valid && acts), .in_ready(queue_ready), .in_data(in_instruction),
      .out_valid(head_valid), .out_ready(head_leaves), .out_data(head), .count(unused_count));
  logic unused;
  assign unused = &{1'b0, unused_count};

  assign is_write = head.op == dedup::WRITE;
  assign out_valid = head_valid && (!is_write || digest_valid);
  assign issues = out_valid && out_ready;
  assign digest_ready = head_valid && is_write && out_ready;
  assign head_leaves = issues && (!is_write || page + 16'd1 == head.pages);
  assign out_lookup = {head.op, head.tag, head.lba + (`MUTANT(12) ? 32'd0 : {16'd0, page}),
                       is_write ? digest : head.digest};

  always_ff @(posedge clk) begin
    if (rst) page <= 16'd0;
    else if (issues) page <= head_leaves ? 16'd0 : page + 16'd1;
  end
endmodule

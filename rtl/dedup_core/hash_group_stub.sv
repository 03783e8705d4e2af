// For simulation: a hash group that is told the digests and takes as long as real cores do. A
// digest comes LATENCY cycles after the last beat of its page; CORES pages are in work at most.
module hash_group_stub #(
    parameter int CORES = 64,
    parameter int LATENCY = 3360
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         beat_valid,
    output logic         beat_ready,
    input  logic [255:0] beat_digest,   // of the page that the beat is of
    output logic         digest_valid,
    input  logic         digest_ready,
    output logic [255:0] digest
);
  logic [5:0]  beat;
  logic [31:0] cycle;
  logic        room;
  logic        held;
  logic [31:0] due;
  logic        unused;
  logic [$clog2(CORES):0] unused_count;

  assign beat_ready = room;
  assign digest_valid = held && cycle - due < 32'h8000_0000;
  assign unused = &{1'b0, unused_count};

  fifo #(.WIDTH(256 + 32), .DEPTH(CORES)) pages (
      .clk(clk), .rst(rst),
      .in_valid(beat_valid && beat == 6'd63), .in_ready(room),
      .in_data({cycle + LATENCY, beat_digest}),
      .out_valid(held), .out_ready(digest_valid && digest_ready), .out_data({due, digest}),
      .count(unused_count));

  always_ff @(posedge clk) begin
    if (rst) begin
      beat <= 6'd0;
      cycle <= 32'd0;
    end else begin
      cycle <= cycle + 32'd1;
      if (beat_valid && beat_ready) beat <= beat + 6'd1;
    end
  end
endmodule

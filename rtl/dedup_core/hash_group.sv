// CORES SHA3 cores that take pages in turn and give their digests in turn, so in the order of the
// pages. A core of 1,258 cycles a page needs 20 of them for a page each 64 cycles (a beat a cycle);
// the report's, of 3,360, needs 53 and has 64.
module hash_group #(
    parameter int CORES = 64
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         beat_valid,
    output logic         beat_ready,
    input  logic [511:0] beat_data,
    output logic         digest_valid,
    input  logic         digest_ready,
    output logic [255:0] digest
);
  localparam int CORE_W = $clog2(CORES);
  localparam logic [CORE_W-1:0] LAST = CORE_W'(CORES - 1);

  logic [CORE_W-1:0]    filling;
  logic [CORE_W-1:0]    draining;
  logic [5:0]           beat;
  logic [CORES-1:0]     readies;
  logic [CORES-1:0]     valids;
  logic [256*CORES-1:0] digests;

  assign beat_ready = readies[filling];
  assign digest_valid = valids[draining];
  assign digest = digests[256*draining+:256];

  genvar core;
  generate
    for (core = 0; core < CORES; core = core + 1) begin : lanes
      hash_lane lane (
          .clk(clk), .rst(rst),
          .beat_valid(beat_valid && filling == core), .beat_ready(readies[core]),
          .beat_data(beat_data),
          .digest_valid(valids[core]), .digest_ready(digest_ready && draining == core),
          .digest(digests[256*core+:256]));
    end
  endgenerate

  always_ff @(posedge clk) begin
    if (rst) begin
      filling <= '0;
      draining <= '0;
      beat <= 6'd0;
    end else begin
      if (beat_valid && beat_ready) begin
        beat <= beat + 6'd1;
        if (beat == 6'd63) filling <= filling == LAST ? '0 : filling + 1'b1;
      end
      if (digest_valid && digest_ready) draining <= draining == LAST ? '0 : draining + 1'b1;
    end
  end
endmodule

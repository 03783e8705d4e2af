// A queue with registers for its memory. DEPTH is a power of two. `out_data` is the oldest word
// while `out_valid`; a word that comes in is seen a cycle later.
module fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 4
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic                     in_valid,
    output logic                     in_ready,
    input  logic [WIDTH-1:0]         in_data,
    output logic                     out_valid,
    input  logic                     out_ready,
    output logic [WIDTH-1:0]         out_data,
    output logic [$clog2(DEPTH):0]   count
);
  localparam int PLACE_W = $clog2(DEPTH);

  logic [WIDTH-1:0]   words [0:DEPTH-1];
  logic [PLACE_W-1:0] oldest;
  logic [PLACE_W-1:0] next;
  logic               pushes;
  logic               pops;

  assign in_ready = !count[PLACE_W];
  assign out_valid = count != 0;
  assign out_data = words[oldest];
  assign pushes = in_valid && in_ready;
  assign pops = out_valid && out_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      oldest <= '0;
      next <= '0;
      count <= '0;
    end else begin
      if (pushes) next <= next + 1'b1;
      if (pops) oldest <= oldest + 1'b1;
      if (pushes && !pops) count <= count + 1'b1;
      if (pops && !pushes) count <= count - 1'b1;
    end
  end

  always_ff @(posedge clk) begin
    if (pushes) words[next] <= in_data;
  end
endmodule

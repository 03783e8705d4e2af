// Chooses one of N requests, and lets the one chosen last come last when it is accepted.
module round_robin #(
    parameter int N = 4
) (
    input  logic                 clk,
    input  logic                 rst,
    input  logic [N-1:0]         requests,
    input  logic                 accepted,
    output logic                 valid,
    output logic [$clog2(N)-1:0] chosen
);
  localparam int W = $clog2(N);

  logic [N-1:0] behind;   // those after the one chosen last
  logic [W-1:0] first_behind;
  logic [W-1:0] first_of_all;

  assign valid = requests != '0;
  assign chosen = (requests & behind) != '0 ? first_behind : first_of_all;

  always_comb begin
    first_behind = '0;
    first_of_all = '0;
    for (int at = N - 1; at >= 0; at = at - 1) begin
      if (requests[at] && behind[at]) first_behind = at[W-1:0];
      if (requests[at]) first_of_all = at[W-1:0];
    end
  end

  always_ff @(posedge clk) begin
    if (rst) behind <= '1;
    else if (valid && accepted) begin
      for (int at = 0; at < N; at = at + 1) behind[at] <= at[W-1:0] > chosen;
    end
  end
endmodule

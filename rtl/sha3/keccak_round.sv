// One round of Keccak-f[1600] (FIPS 202, section 3.2), without registers.
module keccak_round (
    input  logic [4:0]    round,
    input  logic [1599:0] lanes_in,
    output logic [1599:0] lanes_out
);
  // Rotations of rho by lane x + 5 * y, lane 24 first.
  localparam logic [149:0] RHO = {
    6'd14, 6'd56, 6'd61, 6'd2,  6'd18,
    6'd8,  6'd21, 6'd15, 6'd45, 6'd41,
    6'd39, 6'd25, 6'd43, 6'd10, 6'd3,
    6'd20, 6'd55, 6'd6,  6'd44, 6'd36,
    6'd27, 6'd28, 6'd62, 6'd1,  6'd0
  };

  logic [319:0]  parity;
  logic [1599:0] moved;
  logic [63:0]   constant_of_round;

  genvar x, y;
  generate
    for (x = 0; x < 5; x = x + 1) begin : theta_columns
      assign parity[64*x+:64] = lanes_in[64*x+:64] ^ lanes_in[64*(x+5)+:64]
          ^ lanes_in[64*(x+10)+:64] ^ lanes_in[64*(x+15)+:64] ^ lanes_in[64*(x+20)+:64];
    end
    for (x = 0; x < 5; x = x + 1) begin : columns
      logic [63:0] effect;
      assign effect = parity[64*((x+4)%5)+:64]
          ^ {parity[64*((x+1)%5)+:63], parity[64*((x+1)%5)+63]};
      for (y = 0; y < 5; y = y + 1) begin : rows
        localparam int LANE = x + 5 * y;
        localparam int TARGET = y + 5 * ((2 * x + 3 * y) % 5);
        localparam logic [6:0] TURN = {1'b0, RHO[6*LANE+:6]};
        logic [63:0] lane;
        assign lane = lanes_in[64*LANE+:64] ^ effect;
        assign moved[64*TARGET+:64] = (lane << TURN) | (lane >> (7'd64 - TURN));
        if (LANE == 0) begin : with_constant
          assign lanes_out[63:0] = moved[63:0] ^ (~moved[127:64] & moved[191:128])
              ^ constant_of_round;
        end else begin : without_constant
          assign lanes_out[64*LANE+:64] = moved[64*LANE+:64]
              ^ (~moved[64*((x+1)%5+5*y)+:64] & moved[64*((x+2)%5+5*y)+:64]);
        end
      end
    end
  endgenerate

  always_comb begin
    case (round)
      5'd0: constant_of_round = 64'h0000000000000001;
      5'd1: constant_of_round = 64'h0000000000008082;
      5'd2: constant_of_round = 64'h800000000000808a;
      5'd3: constant_of_round = 64'h8000000080008000;
      5'd4: constant_of_round = 64'h000000000000808b;
      5'd5: constant_of_round = 64'h0000000080000001;
      5'd6: constant_of_round = 64'h8000000080008081;
      5'd7: constant_of_round = 64'h8000000000008009;
      5'd8: constant_of_round = 64'h000000000000008a;
      5'd9: constant_of_round = 64'h0000000000000088;
      5'd10: constant_of_round = 64'h0000000080008009;
      5'd11: constant_of_round = 64'h000000008000000a;
      5'd12: constant_of_round = 64'h000000008000808b;
      5'd13: constant_of_round = 64'h800000000000008b;
      5'd14: constant_of_round = 64'h8000000000008089;
      5'd15: constant_of_round = 64'h8000000000008003;
      5'd16: constant_of_round = 64'h8000000000008002;
      5'd17: constant_of_round = 64'h8000000000000080;
      5'd18: constant_of_round = 64'h000000000000800a;
      5'd19: constant_of_round = 64'h800000008000000a;
      5'd20: constant_of_round = 64'h8000000080008081;
      5'd21: constant_of_round = 64'h8000000000008080;
      5'd22: constant_of_round = 64'h0000000080000001;
      default: constant_of_round = 64'h8000000080008008;
    endcase
  end
endmodule

// SHA3-256 (FIPS 202) of a message that comes in words of 64 bits.
//
// The state is one register of 1,600 bits, lane (x, y) at bit 64 * (x + 5 * y). Absorbing a word is
// a cycle, and so is a round of Keccak-f. A page of 4 KiB takes 512 words, 31 permutations of 24
// rounds and one cycle of padding: 1,257 cycles.
//
//   ABSORB --17th word--> PERMUTE --24 rounds--> ABSORB
//      '--last word, its padding in it--> PERMUTE --> DIGEST --taken--> ABSORB
//      '--last word, full--> PAD (by way of PERMUTE where the block is full) --> PERMUTE --> DIGEST
//
// Byte 0 of a word is bits 7:0, and byte 0 of the digest is bits 7:0. A message of no bytes is one
// word of `in_bytes` 0. There is no second buffer: absorbing and permuting take turns, which costs
// 40 % of the rate and saves 1,088 registers.
module sha3_256 (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [63:0]  in_word,
    input  logic [3:0]   in_bytes,   // bytes of the word that count: 8 in all but the last
    input  logic         in_last,
    output logic         out_valid,
    input  logic         out_ready,
    output logic [255:0] out_digest
);
  localparam logic [1:0] ABSORB = 2'd0;
  localparam logic [1:0] PAD = 2'd1;
  localparam logic [1:0] PERMUTE = 2'd2;
  localparam logic [1:0] DIGEST = 2'd3;

  localparam logic [4:0] LAST_LANE = 5'd16;   // of the rate of 1,088 bits
  localparam logic [4:0] LAST_ROUND = 5'd23;
  localparam logic [63:0] LAST_BIT = 64'h8000_0000_0000_0000;

  logic [1:0]    phase;
  logic [1:0]    phase_after;                 // of this permutation
  logic [4:0]    lane;
  logic [4:0]    round;
  logic [1599:0] state;
  logic [1599:0] permuted;

  keccak_round keccak (.round(round), .lanes_in(state), .lanes_out(permuted));

  // The bytes of a last word that count, and the first bits of the padding behind them.
  logic [63:0] kept;
  logic [63:0] padded;
  always_comb begin
    kept = in_word & ~(64'hffff_ffff_ffff_ffff << {in_bytes, 3'b000});
    padded = kept ^ (64'h06 << {in_bytes, 3'b000});
    if (in_bytes[3]) padded = in_word;
  end

  logic takes_word;
  logic is_padded;                            // this word ends the message and holds the padding
  assign takes_word = in_valid && in_ready;
  assign is_padded = in_last && !in_bytes[3];
  assign in_ready = phase == ABSORB;
  assign out_valid = phase == DIGEST;
  assign out_digest = state[255:0];

  // What is added to the block: at `lane`, and the closing bit at its end.
  logic        adds;
  logic [63:0] addend;
  logic        closes;
  always_comb begin
    adds = takes_word || phase == PAD;
    addend = phase == PAD ? 64'h06 : padded;
    closes = phase == PAD || (takes_word && is_padded);
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      phase <= ABSORB;
      phase_after <= ABSORB;
      lane <= 5'd0;
      round <= 5'd0;
    end else begin
      case (phase)
        ABSORB: begin
          if (takes_word) begin
            lane <= lane == LAST_LANE ? 5'd0 : lane + 5'd1;
            if (is_padded) begin
              phase <= PERMUTE;
              phase_after <= DIGEST;
            end else if (lane == LAST_LANE) begin
              phase <= PERMUTE;
              phase_after <= in_last ? PAD : ABSORB;
            end else if (in_last) begin
              phase <= PAD;
            end
          end
        end
        PAD: begin
          phase <= PERMUTE;
          phase_after <= DIGEST;
        end
        PERMUTE: begin
          round <= round == LAST_ROUND ? 5'd0 : round + 5'd1;
          if (round == LAST_ROUND) phase <= phase_after;
        end
        default: begin
          lane <= 5'd0;
          if (out_ready) phase <= ABSORB;
        end
      endcase
    end
  end

  // A new message begins with a state of zeros: cleared by reset and with each digest taken.
  genvar at;
  generate
    for (at = 0; at < 25; at = at + 1) begin : lanes
      always_ff @(posedge clk) begin
        if (rst || (out_valid && out_ready)) begin
          state[64*at+:64] <= 64'd0;
        end else if (phase == PERMUTE) begin
          state[64*at+:64] <= permuted[64*at+:64];
        end else if (adds && at < 17) begin
          state[64*at+:64] <= state[64*at+:64]
              ^ (lane == at ? addend : 64'd0)
              ^ (closes && at == 16 ? LAST_BIT : 64'd0);
        end
      end
    end
  endgenerate

  always_ff @(posedge clk) begin
    if (!rst) begin
      lane_is_in_rate: assert (lane <= LAST_LANE);
      round_is_one: assert (round <= LAST_ROUND);
      word_is_whole_or_last: assert (!in_valid || in_bytes == 4'd8 || (in_last && in_bytes < 4'd8));
    end
  end
endmodule

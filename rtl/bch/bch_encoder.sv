// Parity of BCH(4224, 4120, 8): what a flash controller keeps beside each sector of 512 bytes, and
// what EaD takes for a hint that sectors are equal (section 2.2 of its paper).
//
// A codeword is 24 spare bits, 4,096 bits of a sector and 104 bits of parity, the highest
// coefficient first. It comes as 65 words of 64 bits: five bytes of zeros, three spare bytes, and
// the sector. Zeros in front change no remainder, so all words are alike. Byte 0 of a word is bits
// 7:0, and its bit 7 comes first; parity[103] is the first bit of the parity.
//
// The register holds the remainder of what came so far, times x^104, by the generator. A word a
// cycle, 65 cycles a sector; the parity stands until it is taken.
module bch_encoder (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [63:0]  in_word,
    output logic         out_valid,
    input  logic         out_ready,
    output logic [103:0] out_parity
);
  // The product of the minimal polynomials of alpha^1, alpha^3 .. alpha^15 over GF(2^13) with
  // x^13 + x^4 + x^3 + x + 1; the coefficient of x^104 is left out.
  localparam logic [103:0] GENERATOR = 104'h15f914e07b0c138741c5c4fb23;
  localparam logic [6:0] LAST_WORD = 7'd64;

  logic [6:0]   word;
  logic [103:0] remainder;
  logic [103:0] next_remainder;

  assign in_ready = !out_valid;
  assign out_parity = remainder;

  always_comb begin
    next_remainder = remainder;
    for (int byte_at = 0; byte_at < 8; byte_at = byte_at + 1) begin
      for (int bit_at = 7; bit_at >= 0; bit_at = bit_at - 1) begin
        next_remainder = {next_remainder[102:0], 1'b0}
            ^ (next_remainder[103] ^ in_word[8*byte_at+bit_at] ? GENERATOR : 104'd0);
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst || (out_valid && out_ready)) begin
      word <= 7'd0;
      remainder <= 104'd0;
      out_valid <= 1'b0;
    end else if (in_valid && in_ready) begin
      word <= word + 7'd1;
      remainder <= next_remainder;
      out_valid <= word == LAST_WORD;
    end
  end

  always_ff @(posedge clk) begin
    if (!rst) parity_is_of_a_sector: assert (!out_valid || word == LAST_WORD + 7'd1);
  end
endmodule

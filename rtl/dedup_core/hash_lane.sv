// One SHA3 core with the buffer of one page: filled fast, 64 beats of 512 bits, and emptied slowly,
// 512 words of 64 bits. The core begins with the first beat; the next page may be filled when the
// core has taken the last word of this one.
module hash_lane (
    input  logic         clk,
    input  logic         rst,
    input  logic         beat_valid,
    output logic         beat_ready,
    input  logic [511:0] beat_data,
    output logic         digest_valid,
    input  logic         digest_ready,
    output logic [255:0] digest
);
  logic [511:0] page [0:63];
  logic [6:0]   filled;       // beats
  logic [8:0]   word;         // the next for the core
  logic [511:0] beat;
  logic         word_valid;
  logic         word_ready;
  logic         is_last;

  assign beat_ready = !filled[6];
  assign beat = page[word[8:3]];
  assign word_valid = {1'b0, word[8:3]} < filled;
  assign is_last = word == 9'd511;

  always_ff @(posedge clk) begin
    if (beat_valid && beat_ready) page[filled[5:0]] <= beat_data;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      filled <= 7'd0;
      word <= 9'd0;
    end else begin
      if (beat_valid && beat_ready) filled <= filled + 7'd1;
      if (word_valid && word_ready) begin
        word <= word + 9'd1;
        if (is_last) filled <= 7'd0;
      end
    end
  end

  // The core's byte 0 is lowest; a digest is a number whose byte 0 is highest.
  logic [255:0] lowest_first;
  sha3_256 core (
      .clk(clk), .rst(rst),
      .in_valid(word_valid), .in_ready(word_ready), .in_word(beat[64*word[2:0]+:64]),
      .in_bytes(4'd8), .in_last(is_last),
      .out_valid(digest_valid), .out_ready(digest_ready), .out_digest(lowest_first));
  genvar at;
  generate
    for (at = 0; at < 32; at = at + 1) begin : bytes
      assign digest[8*at+:8] = lowest_first[8*(31-at)+:8];
    end
  endgenerate
endmodule

// One look-up at a time in the hash table: a bucket's lock, its metadata, its list, and what Table
// 4.1 of the report says.
//
//   IDLE -start-> LOCK -granted-> BUCKET -> BUCKET_WAIT -+-> ENTRY -> ENTRY_WAIT -+-> EXECUTE
//                                              (filter or length say no) '--------|-----^
//                                                            (next entry)  ^------'
//   EXECUTE -new-> TAKE -> STORE -landed, lock released-> REPORT -> IDLE
//
// Lines of memory, words of 32 bits from the lowest:
//   bucket  0 head, 1 length, 2 Bloom filter          zeros are an empty bucket
//   entry   0..7 digest, 8 count, 9 index, 10 next    next counts only before the list's end
//
// Invariants: each entry's three bits are in its bucket's filter, so the filter has no false
// negatives. The filter is made anew where a write walked the whole list for nothing: so erased
// pages leave it. The lock is released after all writes have landed.
`include "mutants.svh"
module lookup_fsm #(
    parameter int SLOT_W = 4
) (
    input  logic              clk,
    input  logic              rst,
    input  logic              cfg_bloom,
    input  logic [31:0]       cfg_count_max,
    output logic              idle,
    input  logic              start,
    input  logic [1:0]        start_op,
    input  logic [255:0]      start_digest,
    input  logic [24:0]       start_bucket,
    input  logic [SLOT_W-1:0] start_slot,
    input  logic              granted,
    output logic              releases,
    output logic              read_valid,
    input  logic              read_ready,
    output logic [1:0]        read_region,
    output logic [31:0]       read_line,
    input  logic              response_valid,
    input  logic [351:0]      response_data,     // the words that are used
    output logic              write_valid,
    input  logic              write_ready,
    output logic [1:0]        write_region,
    output logic [31:0]       write_line,
    output logic [15:0]       write_words,
    output logic [511:0]      write_data,
    input  logic              write_done,
    output logic              take_request,
    input  logic              take_granted,
    input  logic [31:0]       take_index,
    input  logic              none_free,
    output logic              report_valid,
    input  logic              report_ready,
    output logic [SLOT_W-1:0] report_slot,
    output dedup::outcome_t   report_outcome
);
  localparam logic [3:0] IDLE = 4'd0;
  localparam logic [3:0] LOCK = 4'd1;
  localparam logic [3:0] BUCKET = 4'd2;
  localparam logic [3:0] BUCKET_WAIT = 4'd3;
  localparam logic [3:0] ENTRY = 4'd4;
  localparam logic [3:0] ENTRY_WAIT = 4'd5;
  localparam logic [3:0] EXECUTE = 4'd6;
  localparam logic [3:0] TAKE = 4'd7;
  localparam logic [3:0] STORE = 4'd8;
  localparam logic [3:0] REPORT = 4'd9;

  localparam logic [15:0] BUCKET_WORDS = 16'h0007;
  localparam logic [15:0] ENTRY_WORDS = 16'h07ff;
  localparam logic [15:0] COUNT_WORD = 16'h0100;
  localparam logic [15:0] NEXT_WORD = 16'h0400;

  function [31:0] filter_bits(input [14:0] first_bits);
    filter_bits = (32'd1 << first_bits[14:10]) | (32'd1 << first_bits[9:5])
        | (32'd1 << first_bits[4:0]);
  endfunction

  logic [3:0]        phase;
  logic [1:0]        op;
  logic [255:0]      digest;
  logic [24:0]       bucket;
  logic [SLOT_W-1:0] slot;
  // The bucket.
  logic [31:0]       head;
  logic [31:0]       length;
  logic [31:0]       filter;
  // The walk.
  logic [31:0]       current;
  logic [31:0]       previous;
  logic              has_previous;
  logic [31:0]       remaining;   // entries from `current` on
  logic [31:0]       rebuilt;     // the filter of the entries seen
  logic              found;
  logic              walked;      // to the end, for nothing
  logic [31:0]       count;
  logic [31:0]       next;
  // What is stored.
  logic [2:0]        verdict;
  logic [31:0]       index;
  logic              stores_entry;
  logic [31:0]       entry_line;
  logic [15:0]       entry_words;
  logic              stores_bucket;
  logic [1:0]        landing;     // writes that have not landed

  logic [31:0]  own_bits;
  logic [31:0]  entry_bits;
  logic [255:0] entry_digest;
  assign own_bits = filter_bits(digest[255:241]);
  assign entry_digest = response_data[255:0];
  assign entry_bits = filter_bits(entry_digest[255:241]);

  assign idle = phase == IDLE;
  assign read_valid = phase == BUCKET || phase == ENTRY;
  assign read_region = phase == BUCKET ? dedup::BUCKETS : dedup::ENTRIES;
  assign read_line = phase == BUCKET ? {7'd0, bucket} : current;
  assign take_request = phase == TAKE;
  assign report_valid = phase == REPORT;
  assign report_slot = slot;
  assign report_outcome = {verdict, index, count};

  logic stored;
  assign write_valid = phase == STORE && (stores_entry || stores_bucket);
  assign write_region = stores_entry ? dedup::ENTRIES : dedup::BUCKETS;
  assign write_line = stores_entry ? entry_line : {7'd0, bucket};
  assign write_words = stores_entry ? entry_words : BUCKET_WORDS;
  assign write_data = stores_entry ? {160'd0, next, index, count, digest}
      : {416'd0, filter, length, head};
  assign stored = phase == STORE && !stores_entry && !stores_bucket
      && (landing == 2'd0 || `MUTANT(5));
  assign releases = stored;

  // What EXECUTE decides.
  logic is_write;
  logic is_erase;
  logic is_pinned;      // a count that has come to its end, and says nothing any more
  logic raises;
  logic lowers;
  logic erases;
  logic inserts;
  assign is_write = op == dedup::WRITE;
  assign is_erase = op == dedup::ERASE;
  assign is_pinned = count == cfg_count_max && !`MUTANT(6);
  assign raises = is_write && found && !is_pinned;
  assign lowers = is_erase && found && !is_pinned && count != 32'd1;
  assign erases = is_erase && found && !is_pinned && count == 32'd1;
  assign inserts = is_write && !found && !none_free;

  always_ff @(posedge clk) begin
    if (rst) begin
      phase <= IDLE;
      landing <= 2'd0;
    end else begin
      landing <= landing + {1'b0, write_valid && write_ready} - {1'b0, write_done};
      case (phase)
        IDLE: if (start) begin
          phase <= LOCK;
          op <= start_op;
          digest <= start_digest;
          bucket <= start_bucket;
          slot <= start_slot;
          has_previous <= 1'b0;
          rebuilt <= 32'd0;
          found <= 1'b0;
          walked <= 1'b0;
          count <= 32'd0;
          index <= 32'd0;
        end
        LOCK: if (granted) phase <= BUCKET;
        BUCKET: if (read_ready) phase <= BUCKET_WAIT;
        BUCKET_WAIT: if (response_valid) begin
          head <= response_data[31:0];
          current <= response_data[31:0];
          length <= response_data[63:32];
          remaining <= response_data[63:32];
          filter <= response_data[95:64];
          if (response_data[63:32] == 32'd0
              || (cfg_bloom && (response_data[95:64] & own_bits) != own_bits)) begin
            phase <= EXECUTE;
          end else begin
            phase <= ENTRY;
          end
        end
        ENTRY: if (read_ready) phase <= ENTRY_WAIT;
        ENTRY_WAIT: if (response_valid) begin
          rebuilt <= rebuilt | entry_bits;
          next <= response_data[351:320];
          if (entry_digest == digest) begin
            found <= 1'b1;
            count <= response_data[287:256];
            index <= response_data[319:288];
            phase <= EXECUTE;
          end else if (remaining == 32'd1) begin
            walked <= 1'b1;
            phase <= EXECUTE;
          end else begin
            has_previous <= 1'b1;
            previous <= current;
            current <= response_data[351:320];
            remaining <= remaining - 32'd1;
            phase <= ENTRY;
          end
        end
        EXECUTE: begin
          phase <= inserts ? TAKE : STORE;
          entry_line <= current;
          entry_words <= COUNT_WORD;
          stores_entry <= raises || lowers;
          stores_bucket <= 1'b0;
          if (!found) verdict <= is_write ? (none_free ? dedup::FULL : dedup::NEW) : dedup::ABSENT;
          else if (op == dedup::READ) verdict <= dedup::FOUND;
          else verdict <= erases ? dedup::ERASED : dedup::SHARED;
          if (raises) count <= count + 32'd1;
          if (lowers) count <= count - 32'd1;
          if (erases) begin
            count <= 32'd0;
            length <= `MUTANT(7) ? length : length - 32'd1;
            if (length == 32'd1) filter <= 32'd0;
            stores_bucket <= 1'b1;
            if (has_previous) begin
              stores_entry <= !`MUTANT(8);
              entry_line <= previous;
              entry_words <= NEXT_WORD;
            end else begin
              head <= next;
            end
          end
        end
        TAKE: if (take_granted) begin
          phase <= STORE;
          index <= take_index;
          count <= 32'd1;
          next <= head;
          head <= take_index;
          length <= length + 32'd1;
          filter <= (walked ? rebuilt : filter) | (`MUTANT(9) && walked ? 32'd0 : own_bits);
          stores_entry <= 1'b1;
          entry_line <= take_index;
          entry_words <= ENTRY_WORDS;
          stores_bucket <= 1'b1;
        end
        STORE: begin
          if (write_valid && write_ready) begin
            if (stores_entry) stores_entry <= 1'b0;
            else stores_bucket <= 1'b0;
          end
          if (stored) phase <= REPORT;
        end
        default: if (report_ready) phase <= IDLE;
      endcase
    end
  end

  logic takes_entry;
  assign takes_entry = phase == ENTRY_WAIT && response_valid;
  always_ff @(posedge clk) begin
    if (!rst) begin
      filter_has_no_false_negative: assert (!takes_entry || (filter & entry_bits) == entry_bits);
      entry_is_in_use: assert (!takes_entry || response_data[287:256] != 32'd0);
      entry_knows_its_index: assert (!takes_entry || response_data[319:288] == current);
      memory_is_for_holders: assert (granted || !(read_valid || write_valid));
      writes_land_under_the_lock: assert (granted || landing == 2'd0);
      starts_idle: assert (!start || idle);
    end
  end
endmodule

// The free indices of entries and device pages alike (the report's Memory Manager).
//
//   give -> freed queue --------------------------> ready queue -> take
//             | ready queue full: lines of LINE        ^   ^
//             v                                        |   fresh counter
//           ring of lines in memory -> prefetched lines'
//
// An index that was never used comes from the counter. What is given back goes to the ready queue
// while that has room. Else it is packed into lines, which are spilled in bursts and prefetched in
// bursts when the ready queue is half empty. Reuse goes before fresh indices, so that a device
// stays as small as its pages. The order of indices is nobody's promise.
//
// A line is read only after its write was reported to have landed. Memory answers the reads, and
// reports the writes, of one client in their order.
`include "mutants.svh"
module free_indices #(
    parameter int INDEX_W = 32,
    parameter int LINE = 16,     // indices a line of memory
    parameter int DEPTH = 64,    // of each queue
    parameter int BURST = 2      // lines that are spilled and prefetched together
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic [INDEX_W-1:0]      cfg_first_fresh,
    input  logic [INDEX_W-1:0]      cfg_capacity,
    output logic [INDEX_W-1:0]      free_count,
    output logic                    take_valid,
    input  logic                    take,
    output logic [INDEX_W-1:0]      take_index,
    input  logic                    give_valid,
    output logic                    give_ready,
    input  logic [INDEX_W-1:0]      give_index,
    output logic                    read_valid,
    input  logic                    read_ready,
    output logic [INDEX_W-1:0]      read_line,
    input  logic                    response_valid,
    input  logic [LINE*INDEX_W-1:0] response_data,
    output logic                    write_valid,
    input  logic                    write_ready,
    output logic [INDEX_W-1:0]      write_line,
    output logic [LINE*INDEX_W-1:0] write_data,
    input  logic                    write_done
);
  localparam int LINE_LOG = $clog2(LINE);
  localparam int COUNT_W = $clog2(DEPTH) + 1;
  localparam int LINES_W = $clog2(BURST) + 1;
  localparam logic [LINE_LOG:0] FULL_LINE = (LINE_LOG + 1)'(LINE);
  localparam logic [LINES_W-1:0] BURST_LINES = LINES_W'(BURST);

  // Queues.
  logic               freed_valid;
  logic               freed_ready;
  logic [INDEX_W-1:0] freed_index;
  logic [COUNT_W-1:0] freed_count;
  logic               ready_in_valid;
  logic               ready_in_ready;
  logic [INDEX_W-1:0] ready_in_index;
  logic [COUNT_W-1:0] ready_count;

  fifo #(.WIDTH(INDEX_W), .DEPTH(DEPTH)) freed (
      .clk(clk), .rst(rst),
      .in_valid(give_valid), .in_ready(give_ready), .in_data(give_index),
      .out_valid(freed_valid), .out_ready(freed_ready), .out_data(freed_index),
      .count(freed_count));
  fifo #(.WIDTH(INDEX_W), .DEPTH(DEPTH)) ready (
      .clk(clk), .rst(rst),
      .in_valid(ready_in_valid), .in_ready(ready_in_ready), .in_data(ready_in_index),
      .out_valid(take_valid), .out_ready(take), .out_data(take_index),
      .count(ready_count));

  // Spilling: a line is packed without a pause once it is begun, so that none stays in part.
  logic                    spilling;
  logic [LINE_LOG:0]       packed_count;
  logic [LINE*INDEX_W-1:0] packed_line;
  logic                    packs;
  logic [INDEX_W-1:0]      ring_lines;     // lines of the ring: more than ever are in it
  logic [INDEX_W-1:0]      spill_at;
  logic [INDEX_W-1:0]      prefetch_at;
  logic [INDEX_W-1:0]      stored_lines;   // written and not read
  logic [INDEX_W-1:0]      landed_lines;   // those of them that have landed
  logic                    spills;
  logic                    prefetches;

  assign ring_lines = (cfg_capacity >> LINE_LOG) + 1'b1;
  assign packs = spilling && packed_count != FULL_LINE;
  assign write_valid = packed_count == FULL_LINE;
  assign write_line = spill_at;
  assign write_data = packed_line;
  assign spills = write_valid && write_ready;
  assign prefetches = read_valid && read_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      spilling <= 1'b0;
      packed_count <= '0;
      spill_at <= '0;
      prefetch_at <= '0;
      stored_lines <= '0;
      landed_lines <= '0;
    end else begin
      if (!spilling) spilling <= !ready_in_ready && freed_count >= COUNT_W'(BURST * LINE);
      else if (spills) spilling <= freed_count >= COUNT_W'(LINE);
      if (packs) begin
        packed_line <= {freed_index, packed_line[LINE*INDEX_W-1:INDEX_W]};
        packed_count <= packed_count + 1'b1;
      end else if (spills) begin
        packed_count <= '0;
      end
      if (spills) spill_at <= spill_at + 1'b1 == ring_lines ? '0 : spill_at + 1'b1;
      if (prefetches) prefetch_at <= prefetch_at + 1'b1 == ring_lines ? '0 : prefetch_at + 1'b1;
      stored_lines <= stored_lines + {{INDEX_W-1{1'b0}}, spills} - {{INDEX_W-1{1'b0}}, prefetches};
      landed_lines <= landed_lines + {{INDEX_W-1{1'b0}}, write_done}
          - {{INDEX_W-1{1'b0}}, prefetches};
    end
  end

  // Prefetching: lines asked for have a buffer before they are asked for.
  logic                    prefetching;
  logic [LINES_W-1:0]      asked_lines;      // asked for or held
  logic [LINES_W-1:0]      held_lines;
  logic [LINE*INDEX_W-1:0] held_line;
  logic [LINE_LOG-1:0]     unpacked_count;   // of the oldest line held
  logic                    unpacks;
  logic                    line_ends;

  assign read_valid = prefetching && landed_lines != '0 && asked_lines != BURST_LINES;
  assign read_line = prefetch_at;
  assign unpacks = held_lines != '0 && ready_in_ready;
  assign line_ends = unpacks && unpacked_count == LINE_LOG'(LINE - 1);

  logic buffer_ready;
  logic buffer_valid;
  logic [LINES_W-1:0] buffer_count;
  fifo #(.WIDTH(LINE * INDEX_W), .DEPTH(BURST)) prefetched (
      .clk(clk), .rst(rst),
      .in_valid(response_valid), .in_ready(buffer_ready), .in_data(response_data),
      .out_valid(buffer_valid), .out_ready(line_ends), .out_data(held_line),
      .count(buffer_count));
  assign held_lines = buffer_count;

  always_ff @(posedge clk) begin
    if (rst) begin
      prefetching <= 1'b0;
      asked_lines <= '0;
      unpacked_count <= '0;
    end else begin
      if (!prefetching) prefetching <= ready_count <= COUNT_W'(DEPTH / 2);
      else prefetching <= ready_in_ready && asked_lines != BURST_LINES;
      asked_lines <= asked_lines + {{LINES_W-1{1'b0}}, prefetches} - {{LINES_W-1{1'b0}}, line_ends};
      if (unpacks) unpacked_count <= unpacked_count + 1'b1;
    end
  end

  // What the ready queue gets: prefetched, freed, fresh.
  logic [INDEX_W-1:0] fresh;
  logic               takes_fresh;
  logic               passes_freed;

  assign passes_freed = held_lines == '0 && !spilling && freed_valid && ready_in_ready;
  assign takes_fresh = held_lines == '0 && !freed_valid && asked_lines == '0 && stored_lines == '0
      && fresh != cfg_capacity && ready_in_ready;
  assign freed_ready = packs || passes_freed;
  assign ready_in_valid = unpacks || passes_freed || takes_fresh;
  always_comb begin
    ready_in_index = fresh;
    if (passes_freed) ready_in_index = freed_index;
    if (unpacks) ready_in_index = held_line[INDEX_W*unpacked_count+:INDEX_W];
    if (unpacks && `MUTANT(4)) ready_in_index = held_line[INDEX_W-1:0];
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      fresh <= cfg_first_fresh;
      free_count <= cfg_capacity - cfg_first_fresh;
    end else begin
      if (takes_fresh) fresh <= fresh + 1'b1;
      free_count <= free_count + {{INDEX_W-1{1'b0}}, give_valid && give_ready}
          - {{INDEX_W-1{1'b0}}, take && take_valid};
    end
  end

  // Where all free indices are.
  logic [INDEX_W-1:0] whole_lines;
  logic [INDEX_W-1:0] accounted;
  always_comb begin
    whole_lines = stored_lines + {{INDEX_W-LINES_W{1'b0}}, asked_lines};
    accounted = (cfg_capacity - fresh) + {{INDEX_W-COUNT_W{1'b0}}, freed_count}
        + {{INDEX_W-COUNT_W{1'b0}}, ready_count} + (whole_lines << LINE_LOG)
        + {{INDEX_W-LINE_LOG-1{1'b0}}, packed_count} - {{INDEX_W-LINE_LOG{1'b0}}, unpacked_count};
  end

  always_ff @(posedge clk) begin
    if (!rst) begin
      indices_are_conserved: assert (accounted == free_count);
      packing_never_runs_dry: assert (!packs || freed_valid);
      lines_have_a_buffer: assert (!response_valid || buffer_ready);
      held_are_asked: assert (held_lines <= asked_lines && (held_lines != '0) == buffer_valid);
      landed_are_stored: assert (landed_lines <= stored_lines);
      ring_never_overflows: assert (stored_lines <= ring_lines);
    end
  end
endmodule

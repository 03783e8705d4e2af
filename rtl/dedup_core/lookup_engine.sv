// Look-ups in, results out in the same order, with FSMS of them at work (the report's Lookup
// Engine).
//
//   in -> dispatch -> FSM 0 .. FSMS-1 -> outcomes by slot -> retire in order -> out
//             |          | lock, memory, index
//             '-> bucket_locks, arbiters of memory, free_indices
//
// A look-up gets a slot when it is dispatched; slots retire in order, whatever order the FSMs end
// in. An index that was erased is given back when its erasure retires, not when it is executed: a
// write that comes earlier in the order must not take it, or the device would erase the new page.
//
// A write is dispatched beside others while there are more free indices than writes in flight, or
// none and no erasure in flight that would free one; else alone. So FULL is said exactly when one
// look-up after the other would say it.
`include "mutants.svh"
module lookup_engine #(
    parameter int FSMS = 8,
    parameter int SLOTS = 16,
    parameter int ID_W = $clog2(FSMS + 1)
) (
    input  logic             clk,
    input  logic             rst,
    input  dedup::config_t   cfg,
    input  logic             in_valid,
    output logic             in_ready,
    input  dedup::lookup_t   in_lookup,
    output logic             out_valid,
    input  logic             out_ready,
    output dedup::result_t   out_result,
    // Memory: reads and writes carry the client's number; the free list is client FSMS.
    output logic             read_valid,
    input  logic             read_ready,
    output logic [ID_W-1:0]  read_id,
    output logic [1:0]       read_region,
    output logic [31:0]      read_line,
    input  logic             response_valid,
    input  logic [ID_W-1:0]  response_id,
    input  logic [511:0]     response_data,
    output logic             write_valid,
    input  logic             write_ready,
    output logic [ID_W-1:0]  write_id,
    output logic [1:0]       write_region,
    output logic [31:0]      write_line,
    output logic [15:0]      write_words,
    output logic [511:0]     write_data,
    input  logic             write_done_valid,
    input  logic [ID_W-1:0]  write_done_id,
    output logic [31:0]      free_count
);
  localparam int SLOT_W = $clog2(SLOTS);
  localparam int FSM_W = $clog2(FSMS);
  localparam int OUTCOME_W = dedup::OUTCOME_W;
  localparam int CLIENTS = FSMS + 1;
  localparam logic [ID_W-1:0] LIST = ID_W'(FSMS);   // the free list's number

  // Dispatch.
  logic [FSMS-1:0]   idle;
  logic [FSM_W-1:0]  target;
  logic [FSM_W-1:0]  turn;        // of dispatch without `ready`
  logic              target_idle;
  logic              has_slot;
  logic              has_index;
  logic              dispatches;
  logic [24:0]       in_bucket;
  logic [SLOT_W:0]   in_flight;
  logic [SLOT_W:0]   writes_in_flight;
  logic [SLOT_W:0]   erasures_in_flight;
  logic              none_free;
  logic [SLOT_W-1:0] newest;      // the next slot
  logic [SLOT_W-1:0] oldest;

  assign in_bucket = in_lookup.digest[24:0] & cfg.bucket_mask;
  assign has_slot = !in_flight[SLOT_W];
  assign has_index = in_lookup.op != dedup::WRITE || in_flight == '0
      || free_count > {{31-SLOT_W{1'b0}}, writes_in_flight}
      || (none_free && erasures_in_flight == '0);
  assign in_ready = target_idle && has_slot && has_index;
  assign dispatches = in_valid && in_ready;

  always_comb begin
    target = turn;
    target_idle = idle[turn];
    if (cfg.ready) begin
      target = '0;
      target_idle = 1'b0;
      for (int at = FSMS - 1; at >= 0; at = at - 1) begin
        if (idle[at] && at[4:0] < cfg.fsms) begin
          target = at[FSM_W-1:0];
          target_idle = 1'b1;
        end
      end
    end
  end

  // FSMs.
  logic [FSMS-1:0]           releases;
  logic [FSMS-1:0]           granted;
  logic [CLIENTS-1:0]        reads;
  logic [2*CLIENTS-1:0]      read_regions;
  logic [32*CLIENTS-1:0]     read_lines;
  logic [CLIENTS-1:0]        writes;
  logic [2*CLIENTS-1:0]      write_regions;
  logic [32*CLIENTS-1:0]     write_lines;
  logic [16*CLIENTS-1:0]     write_masks;
  logic [512*CLIENTS-1:0]    write_datas;
  logic [FSMS-1:0]           takes;
  logic [FSMS-1:0]           reports;
  logic [SLOT_W*FSMS-1:0]    report_slots;
  logic [OUTCOME_W*FSMS-1:0] report_outcomes;
  logic [FSM_W-1:0]          taker;
  logic [FSM_W-1:0]          reporter;
  logic                      take_valid;
  logic [31:0]               take_index;
  assign none_free = free_count == 32'd0;

  genvar fsm;
  generate
    for (fsm = 0; fsm < FSMS; fsm = fsm + 1) begin : fsms
      lookup_fsm #(.SLOT_W(SLOT_W)) lookup (
          .clk(clk), .rst(rst), .cfg_bloom(cfg.bloom), .cfg_count_max(cfg.count_max),
          .idle(idle[fsm]), .start(dispatches && target == fsm), .start_op(in_lookup.op),
          .start_digest(in_lookup.digest),
          .start_bucket(in_bucket), .start_slot(newest),
          .granted(granted[fsm]), .releases(releases[fsm]),
          .read_valid(reads[fsm]), .read_ready(read_ready && read_id == fsm),
          .read_region(read_regions[2*fsm+:2]), .read_line(read_lines[32*fsm+:32]),
          .response_valid(response_valid && response_id == fsm),
          .response_data(response_data[351:0]),
          .write_valid(writes[fsm]), .write_ready(write_ready && write_id == fsm),
          .write_region(write_regions[2*fsm+:2]), .write_line(write_lines[32*fsm+:32]),
          .write_words(write_masks[16*fsm+:16]), .write_data(write_datas[512*fsm+:512]),
          .write_done(write_done_valid && write_done_id == fsm),
          .take_request(takes[fsm]), .take_granted(take_valid && takes[fsm] && taker == fsm),
          .take_index(take_index), .none_free(none_free),
          .report_valid(reports[fsm]), .report_ready(reporter == fsm),
          .report_slot(report_slots[SLOT_W*fsm+:SLOT_W]),
          .report_outcome(report_outcomes[OUTCOME_W*fsm+:OUTCOME_W]));
    end
  endgenerate

  always_comb begin
    taker = '0;
    reporter = '0;
    for (int at = FSMS - 1; at >= 0; at = at - 1) begin
      if (takes[at]) taker = at[FSM_W-1:0];
      if (reports[at]) reporter = at[FSM_W-1:0];
    end
  end

  bucket_locks #(.FSMS(FSMS), .BUCKET_W(25)) locks (
      .clk(clk), .rst(rst),
      .request_valid(dispatches), .request_fsm(target), .request_bucket(in_bucket),
      .releases(releases), .granted(granted));

  // Free indices.
  logic        gives;
  logic        give_ready;
  logic [31:0] give_index;
  free_indices indices (
      .clk(clk), .rst(rst), .cfg_first_fresh(cfg.first_fresh), .cfg_capacity(cfg.capacity),
      .free_count(free_count),
      .take_valid(take_valid), .take(takes != '0), .take_index(take_index),
      .give_valid(gives), .give_ready(give_ready), .give_index(give_index),
      .read_valid(reads[FSMS]), .read_ready(read_ready && read_id == LIST),
      .read_line(read_lines[32*FSMS+:32]),
      .response_valid(response_valid && response_id == LIST), .response_data(response_data),
      .write_valid(writes[FSMS]), .write_ready(write_ready && write_id == LIST),
      .write_line(write_lines[32*FSMS+:32]), .write_data(write_datas[512*FSMS+:512]),
      .write_done(write_done_valid && write_done_id == LIST));
  assign read_regions[2*FSMS+:2] = dedup::FREE_LIST;
  assign write_regions[2*FSMS+:2] = dedup::FREE_LIST;
  assign write_masks[16*FSMS+:16] = 16'hffff;

  // Memory. A request that is not accepted may be replaced by another one in the next cycle.
  round_robin #(.N(CLIENTS)) reading (
      .clk(clk), .rst(rst), .requests(reads), .accepted(read_ready),
      .valid(read_valid), .chosen(read_id));
  round_robin #(.N(CLIENTS)) writing (
      .clk(clk), .rst(rst), .requests(writes), .accepted(write_ready),
      .valid(write_valid), .chosen(write_id));
  assign read_region = read_regions[2*read_id+:2];
  assign read_line = read_lines[32*read_id+:32];
  assign write_region = write_regions[2*write_id+:2];
  assign write_line = write_lines[32*write_id+:32];
  assign write_words = write_masks[16*write_id+:16];
  assign write_data = write_datas[512*write_id+:512];

  // Slots.
  logic [dedup::LOOKUP_W-1:0] lookups [0:SLOTS-1];
  logic [OUTCOME_W-1:0]              outcomes [0:SLOTS-1];
  logic [SLOTS-1:0]                  done;
  logic                              retires;
  logic                              erased;

  assign out_result = {lookups[oldest], outcomes[oldest]};
  assign erased = out_result.outcome.verdict == dedup::ERASED;
  assign out_valid = in_flight != '0 && (done[oldest] || (`MUTANT(10) && done != '0))
      && (!erased || give_ready);
  assign retires = out_valid && out_ready;
  assign gives = retires && erased && !`MUTANT(11);
  assign give_index = out_result.outcome.index;

  logic [SLOT_W-1:0] reported_slot;
  assign reported_slot = report_slots[SLOT_W*reporter+:SLOT_W];
  always_ff @(posedge clk) begin
    if (dispatches) lookups[newest] <= in_lookup;
    if (reports != '0) outcomes[reported_slot] <= report_outcomes[OUTCOME_W*reporter+:OUTCOME_W];
  end

  logic write_enters;
  logic write_leaves;
  assign write_enters = dispatches && in_lookup.op == dedup::WRITE;
  assign write_leaves = retires && out_result.lookup.op == dedup::WRITE;
  logic erasure_enters;
  logic erasure_leaves;
  assign erasure_enters = dispatches && in_lookup.op == dedup::ERASE;
  assign erasure_leaves = retires && out_result.lookup.op == dedup::ERASE;
  always_ff @(posedge clk) begin
    if (rst) begin
      newest <= '0;
      oldest <= '0;
      done <= '0;
      turn <= '0;
      in_flight <= '0;
      writes_in_flight <= '0;
      erasures_in_flight <= '0;
    end else begin
      if (dispatches) begin
        newest <= newest + 1'b1;
        turn <= 5'(turn) + 5'd1 >= cfg.fsms ? '0 : turn + 1'b1;
      end
      if (retires) begin
        oldest <= oldest + 1'b1;
        done[oldest] <= 1'b0;
      end
      if (reports != '0) done[reported_slot] <= 1'b1;
      in_flight <= in_flight + {{SLOT_W{1'b0}}, dispatches} - {{SLOT_W{1'b0}}, retires};
      writes_in_flight <= writes_in_flight + {{SLOT_W{1'b0}}, write_enters}
          - {{SLOT_W{1'b0}}, write_leaves};
      erasures_in_flight <= erasures_in_flight + {{SLOT_W{1'b0}}, erasure_enters}
          - {{SLOT_W{1'b0}}, erasure_leaves};
    end
  end

  always_ff @(posedge clk) begin
    if (!rst) begin
      fsms_are_there: assert (cfg.fsms != '0 && cfg.fsms <= 5'(FSMS));
      retires_what_is_there: assert (!retires || done[oldest]);
      reports_once: assert (reports == '0 || !done[reported_slot]);
      takes_what_is_free: assert (takes == '0 || !none_free);
    end
  end
endmodule

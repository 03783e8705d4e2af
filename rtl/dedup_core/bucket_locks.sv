// One exclusive lock a bucket (the report's Lock Manager): strict two-phase locking with one lock.
//
// A look-up FSM asks once, when a look-up is given to it, and releases once, when its writes have
// landed. A request is granted a cycle later if nobody holds its bucket and nobody waits for it;
// else it is parked in a queue. Each cycle the head of the queue is granted if its bucket is free.
//
// Unlike the report's, a request never overtakes one that is parked for the same bucket. So
// look-ups of one bucket run in the order in which they were given out, and verdicts are those of
// one look-up after the other, whatever runs at once.
`include "mutants.svh"
module bucket_locks #(
    parameter int FSMS = 8,
    parameter int BUCKET_W = 25,
    parameter int FSM_W = $clog2(FSMS)
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                request_valid,
    input  logic [FSM_W-1:0]    request_fsm,
    input  logic [BUCKET_W-1:0] request_bucket,
    input  logic [FSMS-1:0]     releases,
    output logic [FSMS-1:0]     granted
);
  localparam logic [FSM_W-1:0] LAST_PLACE = FSM_W'(FSMS - 1);

  logic [FSMS-1:0]          parked;
  logic [FSMS*BUCKET_W-1:0] buckets;               // what each FSM holds or waits for
  logic [FSM_W-1:0]         queue [0:FSMS-1];      // the parked, the oldest at `head`
  logic [FSM_W-1:0]         head;
  logic [FSM_W-1:0]         tail;

  logic [FSM_W-1:0]    head_fsm;
  logic [BUCKET_W-1:0] head_bucket;
  logic                head_goes;
  logic                conflicts;

  assign head_fsm = queue[head];
  assign head_bucket = buckets[BUCKET_W*head_fsm+:BUCKET_W];

  always_comb begin
    conflicts = 1'b0;
    head_goes = parked != '0;
    for (int at = 0; at < FSMS; at = at + 1) begin
      if (buckets[BUCKET_W*at+:BUCKET_W] == request_bucket) begin
        if (granted[at] || (parked[at] && !`MUTANT(1))) conflicts = 1'b1;
      end
      if (granted[at] && buckets[BUCKET_W*at+:BUCKET_W] == head_bucket) begin
        if (!`MUTANT(2)) head_goes = 1'b0;
      end
    end
  end

  genvar fsm;
  generate
    for (fsm = 0; fsm < FSMS; fsm = fsm + 1) begin : holders
      logic asks;
      logic leaves_queue;
      assign asks = request_valid && request_fsm == fsm;
      assign leaves_queue = head_goes && head_fsm == fsm;
      always_ff @(posedge clk) begin
        if (rst) begin
          granted[fsm] <= 1'b0;
          parked[fsm] <= 1'b0;
        end else begin
          if (asks) buckets[BUCKET_W*fsm+:BUCKET_W] <= request_bucket;
          if (asks && conflicts) parked[fsm] <= 1'b1;
          else if (leaves_queue) parked[fsm] <= 1'b0;
          if (asks && !conflicts) granted[fsm] <= 1'b1;
          else if (leaves_queue && !(`MUTANT(3) && request_valid)) granted[fsm] <= 1'b1;
          else if (releases[fsm]) granted[fsm] <= 1'b0;
        end
      end
    end
  endgenerate

  always_ff @(posedge clk) begin
    if (rst) begin
      head <= '0;
      tail <= '0;
    end else begin
      if (head_goes) head <= head == LAST_PLACE ? '0 : head + 1'b1;
      if (request_valid && conflicts) begin
        queue[tail] <= request_fsm;
        tail <= tail == LAST_PLACE ? '0 : tail + 1'b1;
      end
    end
  end

  // How many are parked, by the flags; the queue must agree.
  logic [FSM_W:0] parked_count;
  logic [FSM_W:0] queued_count;
  logic           shares_a_bucket;
  always_comb begin
    parked_count = '0;
    shares_a_bucket = 1'b0;
    for (int at = 0; at < FSMS; at = at + 1) begin
      parked_count = parked_count + {{FSM_W{1'b0}}, parked[at]};
      for (int other = 0; other < at; other = other + 1) begin
        if (granted[at] && granted[other]
            && buckets[BUCKET_W*at+:BUCKET_W] == buckets[BUCKET_W*other+:BUCKET_W]) begin
          shares_a_bucket = 1'b1;
        end
      end
    end
    queued_count = {1'b0, tail} - {1'b0, head};
    if (tail < head || (tail == head && parked != '0)) begin
      queued_count = queued_count + (FSM_W+1)'(FSMS);
    end
  end

  always_ff @(posedge clk) begin
    if (!rst) begin
      one_holder_a_bucket: assert (!shares_a_bucket);
      no_parked_request_is_lost: assert (parked_count == queued_count);
      head_is_parked: assert (parked == '0 || parked[head_fsm]);
      nobody_holds_and_waits: assert ((parked & granted) == '0);
      only_holders_release: assert ((releases & ~granted) == '0);
      asks_once: assert (!request_valid || (!granted[request_fsm] && !parked[request_fsm]));
    end
  end
endmodule

// What is proved of bucket_locks for every sequence of requests and releases of a given length,
// by Yosys and z3 (`cargo xtask rtl prove`): the module's own assertions, and
//   - a request is granted or waits until it is granted, and nothing else is granted;
//   - of two requests for one bucket the one that came first is granted first;
//   - while somebody waits and nobody holds, somebody is granted next.
module bucket_locks_proof (
    input logic       clk,
    input logic       request_valid,
    input logic [1:0] request_fsm,
    input logic [1:0] request_bucket,
    input logic [2:0] releases
);
  logic       rst = 1'b1;
  logic [2:0] granted;
  always_ff @(posedge clk) rst <= 1'b0;

  bucket_locks #(.FSMS(3), .BUCKET_W(2)) locks (
      .clk(clk), .rst(rst), .request_valid(request_valid), .request_fsm(request_fsm),
      .request_bucket(request_bucket), .releases(releases), .granted(granted));

  // What each FSM does, as the proof sees it: nothing, waits, or holds.
  logic [2:0] waits = 3'd0;
  logic [2:0] holds = 3'd0;
  // Two of them, any two: whether `first` asked before `second` for the same bucket.
  (* anyconst *) logic [1:0] first;
  (* anyconst *) logic [1:0] second;
  (* anyconst *) logic [1:0] bucket;
  logic       first_waits = 1'b0;
  logic       second_waits_behind = 1'b0;
  logic       was_stuck = 1'b0;

  always_comb begin
    assume (first < 2'd3 && second < 2'd3 && first != second);
    if (rst) assume (!request_valid && releases == 3'd0);
    assume (!request_valid || request_fsm < 2'd3);
    assume (!request_valid || (!waits[request_fsm] && !granted[request_fsm]));
    assume ((releases & ~granted) == 3'd0);
  end

  always_ff @(posedge clk) begin
    if (!rst) begin
      for (int at = 0; at < 3; at = at + 1) begin
        if (granted[at]) waits[at] <= 1'b0;
        if (request_valid && request_fsm == at) waits[at] <= 1'b1;
        holds[at] <= granted[at] && !releases[at];
        if (releases[at]) waits[at] <= 1'b0;
      end
      if (request_valid && request_fsm == first) first_waits <= request_bucket == bucket;
      else if (granted[first]) first_waits <= 1'b0;
      if (request_valid && request_fsm == second) begin
        second_waits_behind <= request_bucket == bucket && first_waits && !granted[first];
      end else if (granted[first]) second_waits_behind <= 1'b0;
      was_stuck <= granted == 3'd0 && (waits & ~granted) != 3'd0 && !request_valid;
    end
  end

  always_ff @(posedge clk) begin
    if (!rst) begin
      granted_is_asked_for: assert ((granted & ~waits & ~holds) == 3'd0);
      holder_keeps_its_lock: assert ((holds & ~granted) == 3'd0);
      first_come_first_served: assert (!second_waits_behind || !granted[second]);
      somebody_goes_on: assert (!was_stuck || granted != 3'd0);
    end
  end
endmodule

// What is proved of free_indices for every sequence of takes, gives and delays of memory of a given
// length, by Yosys and z3: the module's own assertions, and
//   - an index that is taken, any one, is below the capacity and nobody else has it;
//   - free and taken indices come to the capacity.
// Queues and lines are small, so that spilling and prefetching begin within the length.
module free_indices_proof (
    input logic       clk,
    input logic       take,
    input logic       give_valid,
    input logic [3:0] give_index,
    input logic       read_ready,
    input logic       write_ready,
    input logic       answers,
    input logic       lands
);
  localparam logic [3:0] CAPACITY = 4'd12;
  localparam logic [3:0] FIRST_FRESH = 4'd11;   // so that nearly all are out, and spills are near

  logic rst = 1'b1;
  always_ff @(posedge clk) rst <= 1'b0;

  logic [3:0]  free_count;
  logic        take_valid;
  logic [3:0]  take_index;
  logic        give_ready;
  logic        read_valid;
  logic [3:0]  read_line;
  logic        response_valid;
  logic [7:0]  response_data;
  logic        write_valid;
  logic [3:0]  write_line;
  logic [7:0]  write_data;
  logic        write_done;

  free_indices #(.INDEX_W(4), .LINE(2), .DEPTH(4), .BURST(2)) indices (
      .clk(clk), .rst(rst), .cfg_first_fresh(FIRST_FRESH), .cfg_capacity(CAPACITY),
      .free_count(free_count), .take_valid(take_valid), .take(take), .take_index(take_index),
      .give_valid(give_valid), .give_ready(give_ready), .give_index(give_index),
      .read_valid(read_valid), .read_ready(read_ready), .read_line(read_line),
      .response_valid(response_valid), .response_data(response_data),
      .write_valid(write_valid), .write_ready(write_ready), .write_line(write_line),
      .write_data(write_data), .write_done(write_done));

  // Memory: a write lands, and a read is answered, whenever the solver likes. A read sees what had
  // landed when it was accepted.
  logic [7:0] lines [0:7];
  logic       landing = 1'b0;
  logic [3:0] landing_line;
  logic [7:0] landing_data;
  logic       answering = 1'b0;
  logic [7:0] answer;
  logic       response_seen = 1'b0;
  assign write_done = landing && lands;
  assign response_valid = answering && answers;
  assign response_data = answer;

  always_ff @(posedge clk) begin
    if (write_done) begin
      lines[landing_line[2:0]] <= landing_data;
      landing <= 1'b0;
    end
    if (write_valid && write_ready) begin
      landing <= 1'b1;
      landing_line <= write_line;
      landing_data <= write_data;
    end
    if (response_valid) begin
      answering <= 1'b0;
      response_seen <= 1'b1;
    end
    if (read_valid && read_ready) begin
      answering <= 1'b1;
      answer <= lines[read_line[2:0]];
    end
  end

  // One index, any one, is followed: whether it is out. Of the others only the number is.
  (* anyconst *) logic [3:0] followed;
  logic       is_out;
  logic [3:0] out_count;
  logic       is_taken;
  logic       is_given;
  assign is_taken = take && take_valid;
  assign is_given = give_valid && give_ready;
  always_ff @(posedge clk) begin
    if (rst) begin
      is_out <= followed < FIRST_FRESH;
      out_count <= FIRST_FRESH;
    end else begin
      if (is_taken && take_index == followed) is_out <= 1'b1;
      if (is_given && give_index == followed) is_out <= 1'b0;
      out_count <= out_count + {3'd0, is_taken} - {3'd0, is_given};
    end
  end

  always_comb begin
    if (rst) assume (!give_valid && !take && !read_ready && !write_ready);
    assume (followed < CAPACITY);
    assume (!give_valid || (give_index < CAPACITY && out_count != 4'd0));
    assume (!give_valid || give_index != followed || is_out);
    // One write and one read at a time: the engine's arbiter takes a next one later.
    assume (!landing || !write_ready);
    assume (!answering || !read_ready);
  end

  always_ff @(posedge clk) begin
    if (!rst) begin
      taken_once: assert (!is_taken || take_index != followed || !is_out);
      taken_below_capacity: assert (!is_taken || take_index < CAPACITY);
      free_and_taken_are_all: assert (free_count + out_count == CAPACITY);
      // Within the length an index comes back by way of memory.
      comes_back: cover (is_taken && take_index == followed && response_seen);
    end
  end
endmodule

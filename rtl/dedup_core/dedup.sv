// Words that the modules of DedupCore agree on: operations, verdicts, regions of memory, records.
//
// A digest is a number as SHA3-256 is written: byte 0 highest. Its first 15 bits are three places
// in a bucket's Bloom filter, its last 25 the bucket.
package dedup;
  // Operations (Table 4.1 of the report).
  localparam logic [1:0] NOP = 2'd0;
  localparam logic [1:0] WRITE = 2'd1;
  localparam logic [1:0] ERASE = 2'd2;
  localparam logic [1:0] READ = 2'd3;

  // Verdicts.
  localparam logic [2:0] NEW = 3'd0;     // write: no such page was there, an index was taken
  localparam logic [2:0] SHARED = 3'd1;  // write: one reference more; erase: one less, page stays
  localparam logic [2:0] ERASED = 3'd2;  // erase: the last reference; the index is free
  localparam logic [2:0] FOUND = 3'd3;   // read: where the page is
  localparam logic [2:0] ABSENT = 3'd4;  // erase, read: no such page (the report: illegal)
  localparam logic [2:0] FULL = 3'd5;    // write: a new page, and no index is free

  // Regions of memory, in lines of 512 bits.
  localparam logic [1:0] BUCKETS = 2'd0;   // a line a bucket: head, length, Bloom filter
  localparam logic [1:0] ENTRIES = 2'd1;   // a line a page: digest, count, index, next
  localparam logic [1:0] FREE_LIST = 2'd2; // sixteen free indices a line

  // What the storage device is told.
  localparam logic [1:0] PUT_PAGE = 2'd0;
  localparam logic [1:0] PUT_HEADER = 2'd1;
  localparam logic [1:0] ERASE_PAGE = 2'd2;
  localparam logic [1:0] GET_PAGE = 2'd3;

  // Bits of the records below, which Yosys 0.23 does not count.
  localparam int INSTRUCTION_W = 322;
  localparam int LOOKUP_W = 306;
  localparam int OUTCOME_W = 67;
  localparam int RESULT_W = 373;
  localparam int COMMAND_W = 338;

  typedef struct packed {
    logic [1:0]   op;
    logic [15:0]  tag;
    logic [31:0]  lba;
    logic [15:0]  pages;   // of a write; erase and read are of one page each
    logic [255:0] digest;  // of erase and read
  } instruction_t;

  typedef struct packed {
    logic [1:0]   op;
    logic [15:0]  tag;
    logic [31:0]  lba;
    logic [255:0] digest;
  } lookup_t;

  typedef struct packed {
    logic [2:0]  verdict;
    logic [31:0] index;    // of the page, in entries and on the device alike
    logic [31:0] count;    // references after the operation
  } outcome_t;

  typedef struct packed {
    lookup_t  lookup;
    outcome_t outcome;
  } result_t;

  typedef struct packed {
    logic [1:0]   kind;
    logic [31:0]  index;
    logic [31:0]  count;   // of the page's header, with the digest
    logic [15:0]  tag;
    logic [255:0] digest;
  } command_t;

  // What a driver sets before it ends the reset, and then leaves alone.
  typedef struct packed {
    logic [4:0]  fsms;         // look-ups at once; at most the parameter FSMS
    logic        bloom;        // new pages skip lists by the filters
    logic        ready;        // a look-up goes to any idle FSM; else to one after the other
    logic [31:0] count_max;    // a count that has come so far stays: its page is never erased
    logic [24:0] bucket_mask;  // of the last 25 bits of a digest
    logic [31:0] first_fresh;  // indices below it are in use already
    logic [31:0] capacity;     // indices there are
  } config_t;
endpackage

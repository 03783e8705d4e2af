//! A model with its clock, as its shim offers it: the only file with `unsafe`.
//!
//! A block is five C functions over a pointer that they alone understand, and two structs that both
//! sides lay out as C does. [`Bench`] owns the pointer: made by `new`, given back once by `free`. A
//! model is used by one thread at a time, and may be moved between ticks: a shim names its context
//! to Verilator whenever it makes, ticks or drops a model.
//!
//! An assertion of the RTL that fails is counted by its shim on this thread; [`Bench::tick`] takes
//! the count and panics with the place.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A block that was verilated: its ports and the functions of its shim.
pub trait Block {
    /// The ports that a test drives, in the layout of the shim.
    type Inputs;
    /// The ports that a test reads, in the layout of the shim.
    type Outputs: Default;
    /// The functions of the shim.
    const CALLS: Calls<Self::Inputs, Self::Outputs>;
}

/// What a shim exports for one block.
#[derive(Clone, Copy, Debug)]
pub struct Calls<Inputs, Outputs> {
    new: unsafe extern "C" fn() -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    tick: unsafe extern "C" fn(*mut c_void, *const Inputs, *mut Outputs),
    coverage: unsafe extern "C" fn(*mut c_void, *const c_char),
    trace: unsafe extern "C" fn(*mut c_void, *const c_char),
}

/// The folder that gets the counts of each model that is dropped; feature `coverage`.
const COVERAGE_FOLDER: &str = "COSIM_COVERAGE";

/// One instance of a block, with registers of its own.
#[derive(Debug)]
pub struct Bench<B: Block> {
    model: NonNull<c_void>,
    calls: Calls<B::Inputs, B::Outputs>,
    cycles: u64,
}

impl<B: Block> Bench<B> {
    /// A model whose registers hold anything: hold its reset for a cycle.
    ///
    /// # Panics
    /// Without memory.
    pub fn new() -> Self {
        let calls = B::CALLS;
        // SAFETY: the shim's `new` has no conditions, and gives a pointer of its own or throws.
        let made = unsafe { (calls.new)() };
        let model = NonNull::new(made).unwrap_or_else(|| panic!("a model has an address"));
        Self { model, calls, cycles: 0 }
    }

    /// Drives the inputs, reads the outputs just before the rising edge, and makes the edge.
    ///
    /// # Panics
    /// With the place of an assertion in the RTL that failed.
    pub fn tick(&mut self, inputs: &B::Inputs) -> B::Outputs {
        let mut outputs = B::Outputs::default();
        // SAFETY: `model` came from this block's `new` and is freed in `drop` only; both structs
        // are of the block, laid out as in C, and live through the call.
        unsafe { (self.calls.tick)(self.model.as_ptr(), inputs, &mut outputs) };
        self.cycles += 1;
        if let Some(failure) = failed_assertion() {
            panic!("cycle {}: assertion failed at {failure}", self.cycles);
        }
        outputs
    }

    /// Rising edges so far.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Writes every signal of each cycle from now on, as VCD, where the models were made with
    /// feature `trace`.
    ///
    /// # Panics
    /// Where `path` holds a zero byte.
    pub fn trace_to(&mut self, path: &Path) {
        let name = c_path(path);
        // SAFETY: as in `tick`; the name ends with a zero and lives through the call.
        unsafe { (self.calls.trace)(self.model.as_ptr(), name.as_ptr()) };
    }

    /// Writes which lines of the RTL ran, where the models were made with feature `coverage`.
    fn write_coverage(&mut self) {
        static WRITTEN: AtomicU32 = AtomicU32::new(0);
        let Some(folder) = std::env::var_os(COVERAGE_FOLDER) else { return };
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let file = format!("{}-{number}.dat", std::process::id());
        let name = c_path(&Path::new(&folder).join(file));
        // SAFETY: as in `trace_to`.
        unsafe { (self.calls.coverage)(self.model.as_ptr(), name.as_ptr()) };
    }
}

fn c_path(path: &Path) -> CString {
    let name = CString::new(path.as_os_str().as_encoded_bytes());
    name.unwrap_or_else(|_| panic!("a path has no zero byte"))
}

impl<B: Block> Default for Bench<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Block> Drop for Bench<B> {
    fn drop(&mut self) {
        // What a run that failed had covered counts for nothing.
        if !std::thread::panicking() {
            self.write_coverage();
        }
        // SAFETY: `model` came from this block's `new`, and nobody uses it any more.
        unsafe { (self.calls.free)(self.model.as_ptr()) };
    }
}

// SAFETY: a model holds no thread's own state; its shim tells Verilator the context in each call.
unsafe impl<B: Block> Send for Bench<B> {}

/// `Failures` of `shim/bench.h`.
#[repr(C)]
struct Failures {
    count: u32,
    place: [u8; 256],
}

fn failed_assertion() -> Option<String> {
    let mut failures = Failures { count: 0, place: [0; 256] };
    // SAFETY: the struct is that of the shim, and lives through the call.
    unsafe { take_failures(&mut failures) };
    let place = CStr::from_bytes_until_nul(&failures.place).unwrap_or_default();
    (failures.count > 0).then(|| place.to_string_lossy().into_owned())
}

/// Declares a block's functions and gives them to [`Bench`].
macro_rules! block {
    ($(#[$docs:meta])* $block:ident, $inputs:ident, $outputs:ident,
     $new:ident, $free:ident, $tick:ident, $coverage:ident, $trace:ident) => {
        $(#[$docs])*
        #[derive(Debug)]
        pub struct $block;

        unsafe extern "C" {
            fn $new() -> *mut c_void;
            fn $free(model: *mut c_void);
            fn $tick(model: *mut c_void, inputs: *const $inputs, outputs: *mut $outputs);
            fn $coverage(model: *mut c_void, path: *const c_char);
            fn $trace(model: *mut c_void, path: *const c_char);
        }

        impl Block for $block {
            type Inputs = $inputs;
            type Outputs = $outputs;
            const CALLS: Calls<$inputs, $outputs> =
                Calls { new: $new, free: $free, tick: $tick, coverage: $coverage, trace: $trace };
        }
    };
}

unsafe extern "C" {
    fn take_failures(taken: *mut Failures);
}

block!(
    /// `rtl/sha3/sha3_256.sv`.
    Sha3Block, Sha3Inputs, Sha3Outputs,
    sha3_256_new, sha3_256_free, sha3_256_tick, sha3_256_coverage, sha3_256_trace
);
block!(
    /// `rtl/bch/bch_encoder.sv`.
    Bch, BchInputs, BchOutputs,
    bch_encoder_new, bch_encoder_free, bch_encoder_tick, bch_encoder_coverage, bch_encoder_trace
);

block!(
    /// `rtl/dedup_core/dedup_stubbed.sv`: the core with a hash group that is told the digests.
    StubbedDedup, DedupInputs, DedupOutputs,
    dedup_stubbed_new, dedup_stubbed_free, dedup_stubbed_tick, dedup_stubbed_coverage,
    dedup_stubbed_trace
);
block!(
    /// `rtl/dedup_core/dedup_core.sv`: the whole core, with [`crate::CORES`] SHA3 cores.
    DedupCore, DedupInputs, DedupOutputs,
    dedup_core_new, dedup_core_free, dedup_core_tick, dedup_core_coverage, dedup_core_trace
);

/// Inputs of DedupCore. A real core has no `beat_digest` and no `mutant`.
#[expect(missing_docs, reason = "the names are those of the ports, which the RTL explains")]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DedupInputs {
    pub beat_data: [u32; 16],
    pub response_data: [u32; 16],
    pub instruction_digest: [u32; 8],
    pub beat_digest: [u32; 8],
    pub cfg_count_max: u32,
    pub cfg_bucket_mask: u32,
    pub cfg_first_fresh: u32,
    pub cfg_capacity: u32,
    pub instruction_lba: u32,
    pub instruction_tag: u16,
    pub instruction_pages: u16,
    pub rst: u8,
    pub cfg_fsms: u8,
    pub cfg_bloom: u8,
    pub cfg_ready: u8,
    pub mutant: u8,
    pub instruction_valid: u8,
    pub instruction_op: u8,
    pub beat_valid: u8,
    pub result_ready: u8,
    pub device_ready: u8,
    pub data_ready: u8,
    pub ended_valid: u8,
    pub ended_tag: u8,
    pub read_ready: u8,
    pub response_valid: u8,
    pub response_id: u8,
    pub write_ready: u8,
    pub write_done_valid: u8,
    pub write_done_id: u8,
}

/// Outputs of DedupCore.
#[expect(missing_docs, reason = "the names are those of the ports, which the RTL explains")]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DedupOutputs {
    pub data_beat: [u32; 16],
    pub write_data: [u32; 16],
    pub result_digest: [u32; 8],
    pub device_digest: [u32; 8],
    pub result_lba: u32,
    pub result_index: u32,
    pub result_count: u32,
    pub device_index: u32,
    pub device_count: u32,
    pub read_line: u32,
    pub write_line: u32,
    pub free_count: u32,
    pub result_tag: u16,
    pub device_host_tag: u16,
    pub write_words: u16,
    pub instruction_ready: u8,
    pub beat_ready: u8,
    pub result_valid: u8,
    pub result_op: u8,
    pub result_verdict: u8,
    pub device_valid: u8,
    pub device_tag: u8,
    pub device_kind: u8,
    pub data_valid: u8,
    pub data_last: u8,
    pub read_valid: u8,
    pub read_id: u8,
    pub read_region: u8,
    pub write_valid: u8,
    pub write_id: u8,
    pub write_region: u8,
}

/// Inputs of [`Sha3Block`]; the RTL says what each means.
#[expect(missing_docs, reason = "the names are those of the ports, which the RTL explains")]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sha3Inputs {
    pub in_word: u64,
    pub rst: bool,
    pub in_valid: bool,
    pub in_bytes: u8,
    pub in_last: bool,
    pub out_ready: bool,
}

/// Outputs of [`Sha3Block`].
#[expect(missing_docs, reason = "the names are those of the ports, which the RTL explains")]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sha3Outputs {
    pub out_digest: [u32; 8],
    pub in_ready: u8,
    pub out_valid: u8,
}

/// Inputs of [`Bch`].
#[expect(missing_docs, reason = "the names are those of the ports, which the RTL explains")]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BchInputs {
    pub in_word: u64,
    pub rst: bool,
    pub in_valid: bool,
    pub out_ready: bool,
}

/// Outputs of [`Bch`].
#[expect(missing_docs, reason = "the names are those of the ports, which the RTL explains")]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BchOutputs {
    pub out_parity: [u32; 4],
    pub in_ready: u8,
    pub out_valid: u8,
}

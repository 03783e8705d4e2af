//! Says why nothing was simulated, where that is so.

#[test]
fn the_hardware_is_simulated_or_the_reason_is_said() {
    if !cosim::VERILATOR {
        println!("{}", cosim::SKIPPED);
    }
}

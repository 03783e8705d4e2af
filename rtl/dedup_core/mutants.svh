// Known faults, each of which the co-simulation must find. `MUTANT(n)` is 0 in hardware; where
// TAMIS_MUTANTS is defined, a test bench chooses one by `mutants::seeded`.
`ifndef TAMIS_MUTANTS_SVH
`define TAMIS_MUTANTS_SVH
`ifdef TAMIS_MUTANTS
`define MUTANT(n) (mutants::seeded == n)
`else
`define MUTANT(n) 1'b0
`endif
`endif

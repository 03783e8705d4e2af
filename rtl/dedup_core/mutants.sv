// Which known fault a simulation has; see mutants.svh.
package mutants;
  logic [4:0] seeded;
endpackage

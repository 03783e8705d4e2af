//! A run of named steps: each told with its time, none hiding the next one's result, and one
//! closing line that counts them all.

use std::time::Instant;

use crate::failure::Failure;

/// What a step amounts to: most are one check, a test run is many.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    /// One check that held.
    pub(crate) const ONE: Counts = Counts { passed: 1, failed: 0 };

    /// What a program comes to whose tests these are. One that failed without a failed test to show
    /// for it, as a build does, is a failure.
    pub(crate) fn of(self, outcome: Result<(), Failure>) -> Result<Counts, Failure> {
        match outcome {
            Err(failure) if self.failed == 0 => Err(failure),
            _ => Ok(self),
        }
    }
}

/// The steps so far.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    told: Vec<String>,
    passed: u64,
    failed: u64,
}

impl Steps {
    /// Runs one step to its end, whatever it says.
    pub(crate) fn run(&mut self, name: &str, work: impl FnOnce() -> Result<Counts, Failure>) {
        println!("\n== {name}");
        let begun = Instant::now();
        let (word, counts) = match work() {
            Ok(counts) if counts.failed == 0 => ("passed", counts),
            Ok(counts) => ("FAILED", counts),
            Err(failure) => {
                println!("{failure}");
                ("FAILED", Counts { passed: 0, failed: 1 })
            }
        };
        self.passed += counts.passed;
        self.failed += counts.failed;
        let line = format!("{word:8} {:7.1} s  {name}", begun.elapsed().as_secs_f64());
        println!("== {line}");
        self.told.push(line);
    }

    /// Says that a step did not run, and why.
    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        println!("\n== skipped: {name}: {why}");
        self.told.push(format!("skipped             {name}: {why}"));
    }

    /// Prints all steps again and the closing line.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        println!();
        for line in &self.told {
            println!("{line}");
        }
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 { Ok(()) } else { Err(Failure::Told) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Steps};
    use crate::failure::Failure;

    #[test]
    fn a_failed_step_does_not_stop_the_next_and_fails_the_whole() {
        let mut steps = Steps::default();
        steps.run("bad", || Err(Failure::unmet("one", "two")));
        steps.run("good", || Ok(Counts { passed: 3, failed: 0 }));
        steps.skip("absent", "no such tool");
        assert_eq!((steps.passed, steps.failed), (3, 1));
        assert!(steps.finish().is_err());
    }

    #[test]
    fn skipping_alone_is_no_failure() {
        let mut steps = Steps::default();
        steps.run("good", || Ok(Counts::ONE));
        steps.skip("absent", "no such tool");
        assert!(steps.finish().is_ok());
    }
}

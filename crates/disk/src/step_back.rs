//! Threads that take what others leave of the processors.

/// From now on the calling thread has the lowest priority of all, for good: an ordinary user cannot
/// take that back. Where the system knows no priorities of threads it stays as it is.
pub fn step_back() {
    #[cfg(target_os = "linux")]
    {
        // Nothing is lost where it is refused but some of the others' time.
        let _ = rustix::process::setpriority_process(None, LOWEST);
    }
}

#[cfg(target_os = "linux")]
const LOWEST: i32 = 19;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{LOWEST, step_back};

    #[test]
    fn only_the_thread_that_calls_steps_back() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let before = priority();
        std::thread::spawn(move || {
            step_back();
            assert_eq!(priority(), LOWEST);
        })
        .join()
        .unwrap();
        assert_eq!(priority(), before);
    }
}

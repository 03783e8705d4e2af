//! What is not a die: the one hash engine, and the code engines and comparators, one a channel.
//! Each serves first what came first, so when it will be done is known at once.

#[derive(Clone, Debug)]
pub(super) struct Servers(Vec<u64>);

impl Servers {
    pub(super) fn new(count: u32) -> Self {
        Self(vec![0; count as usize])
    }

    /// Gives work to one of them; when it will be done.
    pub(super) fn ask(&mut self, which: u32, time_ns: u64, now_ns: u64) -> u64 {
        let free_ns = &mut self.0[which as usize];
        *free_ns = now_ns.max(*free_ns) + time_ns;
        *free_ns
    }

    /// Gives work to the one that is free first.
    pub(super) fn ask_any(&mut self, time_ns: u64, now_ns: u64) -> u64 {
        let first = (0..).zip(&self.0).min_by_key(|(_, free_ns)| **free_ns);
        let which = first.map_or(0, |(which, _)| which);
        self.ask(which, time_ns, now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::Servers;

    #[test]
    fn who_comes_later_is_served_later() {
        let mut servers = Servers::new(2);
        assert_eq!([0, 1].map(|now| servers.ask(0, 10, now)), [10, 20]);
        assert_eq!(servers.ask(0, 10, 50), 60);
        assert_eq!([50, 50, 50].map(|now| servers.ask_any(5, now)), [55, 60, 65]);
    }
}

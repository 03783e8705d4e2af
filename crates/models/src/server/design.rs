//! The ladder of designs that FIDR's Figure 14 climbs.

/// How a server does its reduction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Design {
    /// CIDR with chunks of 4 KiB and a table cache in software: FIDR's baseline.
    CidrPlus,
    /// Fingerprints in the NIC, no predictor, data from device to device.
    NicHashing,
    /// And the table cache's tree and SSD queues in an engine, with this number of updates at once.
    HardwareCache {
        /// Updates of the tree under way at once.
        updates: u32,
    },
}

impl Design {
    /// The engine with one update at a time.
    pub const ONE_UPDATE: Self = Self::HardwareCache { updates: 1 };
    /// FIDR as it stands.
    pub const FOUR_UPDATES: Self = Self::HardwareCache { updates: 4 };
    /// From the baseline up.
    pub const LADDER: [Self; 4] =
        [Self::CidrPlus, Self::NicHashing, Self::ONE_UPDATE, Self::FOUR_UPDATES];

    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CidrPlus => "CIDR+",
            Self::NicHashing => "+ NIC hashing, peer-to-peer",
            Self::HardwareCache { updates: 1 } => "+ hardware cache, one update",
            Self::HardwareCache { .. } => "+ four updates",
        }
    }

    /// Whether fingerprints are made before data leaves the NIC, so that nobody has to predict.
    #[must_use]
    pub fn hashes_in_nic(self) -> bool {
        self != Self::CidrPlus
    }

    /// Whether the tree and the table SSDs' queues are an engine's.
    #[must_use]
    pub fn has_table_engine(self) -> bool {
        matches!(self, Self::HardwareCache { .. })
    }
}

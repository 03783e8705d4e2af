//! Where the papers disagree with themselves, or their text is damaged.

use crate::row::Paper;

/// Paper by paper; EaD's are `flash`'s.
pub(super) const INCONSISTENCIES: [(Paper, &str); 12] = [
    (
        Paper::Fidr,
        "128 GB/s is called 1 Tbps, which is 125 GB/s; 75 GB/s is 60% of the latter (section 3.2).",
    ),
    (
        Paper::Fidr,
        "Memory management and scheduling take 85.2% of the CPU; its parts, 52.4 and 32.7, \
                   are 85.1 (section 3.2.2).",
    ),
    (
        Paper::Fidr,
        "68.8% of the table cache's CPU is for small structures (section 4.3); Table 2's \
                   43.9 and 24.7 are 68.6, and all of its lines 75.9.",
    ),
    (
        Paper::Fidr,
        "\"Almost linear\" scaling to four updates (section 7.4) is 63.8 for 27.1 GB/s: 2.35 \
                   times.",
    ),
    (
        Paper::Fidr,
        "The tree of Write-M carries 63.8 GB/s with four updates (section 7.4); the medium \
                   tree of Table 5 has 80, and the large one 64.",
    ),
    (
        Paper::Fidr,
        "704 GB for 176 million requests (Table 3) are 4000 bytes each, not 4096; so are \
                   200 MB/s of indices for 100 GB/s (section 5.6).",
    ),
    (
        Paper::Fidr,
        "The read of a batch is 700 us with the baseline (section 7.6.2); of which stages, it \
                   does not say.",
    ),
    (
        Paper::Cal,
        "The talk has 92% less CPU and 40% less power at 4.5 GB/s; the paper's abstract 93.6% \
                  and about 20%, for a slow baseline.",
    ),
    (Paper::Cidr, "The talk has 17 times the I/O for large chunks; FIDR's Figure 3, 17.5."),
    (
        Paper::DedupCore,
        "Hashing is said to add 15 us and to take 3360 cycles: that is a clock of \
                        224 MHz; at 250 MHz it is 13.4 us. The clock is not stated.",
    ),
    (Paper::DedupCore, "12.7 GB/s is called 100 Gbps, which is 12.5 GB/s."),
    (
        Paper::Multes,
        "Algorithm 1, Figures 1 to 7 and footnotes 1 to 6 are missing in the text that we \
                     have.",
    ),
];

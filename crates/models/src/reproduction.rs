//! The papers, reproduced: every row of every room of this crate, and the page made of them.
//!
//! ```text
//! open.rs    where papers disagree with themselves
//! page.rs    docs/reproduction.md, and the names of its plots
//! ```
//!
//! The page is committed. A test makes it again and compares, so an exact value that changes, or a
//! modelled one that leaves its tolerance, cannot go unnoticed.

mod open;
mod page;

use crate::parameter::Parameter;
use crate::row::Row;
use crate::{cidr, dedupcore, fidr, flash, multes, server, through_engine};

pub use page::{page, plots};

/// Every row, paper by paper.
#[must_use]
pub fn rows() -> Vec<Row> {
    [
        cidr::rows(),
        fidr::rows(),
        server::rows(),
        dedupcore::rows(),
        multes::rows(),
        flash::rows(),
        through_engine::rows(),
    ]
    .concat()
}

/// What the models are given, those that have parameters.
#[must_use]
pub fn parameters() -> Vec<&'static Parameter> {
    let mut all: Vec<&'static Parameter> = server::PARAMETERS.to_vec();
    all.extend(dedupcore::PARAMETERS);
    all.extend(flash::PARAMETERS);
    all.push(&fidr::COMPRESSION_FPGA_DOLLARS);
    all
}

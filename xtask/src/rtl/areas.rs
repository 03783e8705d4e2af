//! What Yosys makes of the hardware for UltraScale+: cells of each module, beside the report's.
//!
//! The whole core is too large to be synthesized in one piece: 64 lanes of a SHA3 core and its
//! buffer are alike. So one lane is synthesized, and the core around 64 empty places for lanes; the
//! sum stands in the table.

use std::ops::{Add, Mul};
use std::path::Path;

use super::{DEDUP_CORE, DEDUP_CORE_TOP, yosys};
use crate::failure::Failure;

/// Lanes of the hash group.
const LANES: u64 = 64;
/// LUTs and block RAMs of a u55c, by its data sheet.
const CARD: (u64, f64) = (1_303_680, 2016.0);
/// A module that is synthesized by itself, with the parameters it gets.
const SYNTHESIZED: [(&str, &str); 6] = [
    ("sha3_256", ""),
    ("bch_encoder", ""),
    ("lookup_fsm", ""),
    ("bucket_locks", "-chparam FSMS 6"),
    ("free_indices", ""),
    ("instruction_issuer", ""),
];
/// The core as the report has it.
const CORE_PARAMETERS: &str = "-chparam FSMS 6 -chparam CORES 64";

/// The cells of one module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Area {
    lut: u64,
    ff: u64,
    carry: u64,
    /// Of memory in LUTs, four or eight of them a cell.
    lut_ram: u64,
    /// Block RAMs of 36 Kbit.
    block_ram: f64,
}

/// The section of the page.
pub(super) fn section(root: &Path) -> Result<String, Failure> {
    let mut text = String::from("## Areas, Yosys 0.23 `synth_xilinx -family xcup`\n\n");
    text += "| module | LUT | FF | CARRY | cells of LUT RAM | block RAM of 36 Kbit |\n";
    text += "|---|---|---|---|---|---|\n";
    for (module, parameters) in SYNTHESIZED {
        text += &row(&format!("`{module}`"), synthesize(root, module, parameters, "")?);
    }
    let lane = synthesize(root, "hash_lane", "", "")?;
    let around = synthesize(root, "dedup_core", CORE_PARAMETERS, "blackbox hash_lane;")?;
    let lanes = lane * LANES;
    let whole = lanes + around;
    text += &row("`hash_lane`: a SHA3 core with the buffer of a page", lane);
    text += &row("`dedup_core`, 6 FSMs, without its lanes", around);
    text += &row(&format!("`dedup_core` with {LANES} lanes, added up"), whole);
    let share = |part: f64, all: f64| 100.0 * part / all;
    let (luts, block_rams) = CARD;
    text += &format!(
        "\nThe last row is {:.1} % of the LUTs and {:.1} % of the block RAMs of a u55c (1,303,680 \
         and 2,016); lanes have {:.0} % of its LUTs. A cell of LUT RAM takes eight LUTs more. The \
         report's whole system, with what moves its data over PCIe, has 42.3 % of the card's CLBs \
         and 16.3 % of its block RAMs, and its 64 SHA3 cores some 90 % of DedupCore. A CLB is \
         eight LUTs, of which a placed design leaves some unused, and Yosys is not Vivado: the \
         figures are not of one kind.\n",
        share(whole.lut as f64, luts as f64),
        share(whole.block_ram, block_rams),
        share(lanes.lut as f64, whole.lut as f64),
    );
    Ok(text)
}

fn row(name: &str, area: Area) -> String {
    let Area { lut, ff, carry, lut_ram, block_ram } = area;
    format!("| {name} | {lut} | {ff} | {carry} | {lut_ram} | {block_ram} |\n")
}

/// `emptied` is Yosys' command for what is left out.
fn synthesize(root: &Path, module: &str, parameters: &str, emptied: &str) -> Result<Area, Failure> {
    let sources = [DEDUP_CORE.as_slice(), &[DEDUP_CORE_TOP, "bch/bch_encoder.sv"]].concat();
    let script = format!(
        "read_verilog -sv -Idedup_core {}; hierarchy -top {module} {parameters}; {emptied} \
         chformal -remove; synth_xilinx -family xcup -noiopad -flatten -top {module}; stat",
        sources.join(" ")
    );
    Ok(Area::read(&yosys(root, &script)?))
}

impl Area {
    /// The last table of cells that Yosys told.
    fn read(told: &str) -> Self {
        let (_, last) = told.rsplit_once("Number of cells").unwrap_or(("", ""));
        let count = |starts: &str| -> u64 {
            let cells = last.lines().filter_map(|line| line.trim().split_once(' '));
            let matching = cells.filter(|(name, _)| name.starts_with(starts));
            matching.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
        };
        Self {
            lut: count("LUT"),
            ff: count("FD"),
            carry: count("CARRY"),
            lut_ram: count("RAM") - count("RAMB"),
            block_ram: count("RAMB36") as f64 + count("RAMB18") as f64 / 2.0,
        }
    }
}

impl Add for Area {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            lut: self.lut + other.lut,
            ff: self.ff + other.ff,
            carry: self.carry + other.carry,
            lut_ram: self.lut_ram + other.lut_ram,
            block_ram: self.block_ram + other.block_ram,
        }
    }
}

impl Mul<u64> for Area {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self {
            lut: self.lut * times,
            ff: self.ff * times,
            carry: self.carry * times,
            lut_ram: self.lut_ram * times,
            block_ram: self.block_ram * times as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Area;

    #[test]
    fn cells_of_the_last_table_are_counted_by_kind() {
        let told = "Number of cells: 1\n LUT2 9\n=== top ===\n Number of cells: 40\n CARRY4 3\n \
                    FDRE 10\n FDSE 2\n LUT2 4\n LUT6 5\n RAM32M 6\n RAMB18E2 1\n RAMB36E2 7\n";
        let expected = Area { lut: 9, ff: 12, carry: 3, lut_ram: 6, block_ram: 7.5 };
        assert_eq!(Area::read(told), expected);
        let twice = expected * 2 + Area::default();
        assert_eq!(twice, Area { lut: 18, ff: 24, carry: 6, lut_ram: 12, block_ram: 15.0 });
    }
}

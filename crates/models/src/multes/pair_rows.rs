//! Row K6, Figure 7: variants of a Parquet file beside it, by pages and by content.

use crate::row::Tolerance::{AtMost, Percent};
use crate::row::{Basis, Paper, Row};

use super::parquet_pair::Overhead;

/// What `models parquet-pair` counted last.
fn committed() -> Vec<Overhead> {
    serde_json::from_str(include_str!("figures.json")).unwrap_or_default()
}

/// All of them: for each variant its overheads by pages, and by content of 512 and 1,024 bytes.
pub(super) fn pair_rows() -> Vec<Row> {
    let found = committed();
    let variants: Vec<&[Overhead]> = found.chunks_exact(3).collect();
    let all = |holds: fn(&[Overhead]) -> bool| variants.iter().all(|variant| holds(variant));
    let of_all = |part: fn(&Overhead) -> usize, cut: usize| -> f64 {
        variants.iter().map(|variant| part(&variant[cut]) as f64).sum()
    };
    let new_percent = 100.0 * of_all(|it| it.new_bytes, 0) / of_all(Overhead::bytes, 0);
    let of_files = 100.0 * of_all(Overhead::bytes, 0) / of_all(|it| it.file_bytes, 0);
    let more = of_all(|it| it.metadata_bytes, 1) / of_all(|it| it.metadata_bytes, 2);
    let place = |id| (Paper::Multes, id, "Fig 7");
    let rows = vec![
        Row::statement(
            place("K6a"),
            "both variants of a made file take no more by pages than by content",
            all(|it| it[0].bytes() <= it[1].bytes().min(it[2].bytes())),
        ),
        Row::modelled(
            place("K6b"),
            "what they take, of their files: \"negligible\"",
            "%",
            (10.0, AtMost),
            of_files,
        )
        .note("a tenth is ours"),
        Row::modelled(
            place("K6c"),
            "new bytes in what they take: \"a quarter\"",
            "%",
            (25.0, AtMost),
            new_percent,
        ),
        Row::modelled(
            place("K6d"),
            "metadata by content of 512 bytes beside 1 KiB: \"almost doubling\"",
            "x",
            (2.0, Percent(20.0)),
            more,
        )
        .note(
            "a value ends at 1 KiB here, the prototype's longest, so chunks of 1 KiB on average \
             are often two; the paper has some 600 bytes and 1 KiB a value, and does not say how \
             its tool keeps chunks below the longest",
        ),
    ];
    let mut rows: Vec<Row> =
        rows.into_iter().map(|row| Row { basis: Basis::Predicted(Vec::new()), ..row }).collect();
    rows.push(Row::unknown(place("K6e"), "bytes stored of the Police data set"));
    rows
}

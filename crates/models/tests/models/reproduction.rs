//! What the reproduction claims: exact values stay, modelled ones stay in their tolerance or say
//! why not, nothing is filled in, and the committed page is what is made.

use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;

use models::reproduction::{page, parameters, plots};
use models::{Basis, Kind, Mark, Parameter, Row, Verdict};

/// Rows that are known to be apart; each has a note that says what the paper leaves out.
const APART: [&str; 7] = ["F6b", "K6d", "X6e", "X6f", "X7c", "X9b", "X10"];

/// Made once: some follow from runs of models.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(models::reproduction::rows);

#[test]
fn every_row_agrees_or_is_known_to_be_apart_and_says_why() {
    for row in ROWS.iter() {
        let is_apart = row.verdict() == Verdict::Apart;
        assert_eq!(is_apart, APART.contains(&row.id), "{row:#?}");
        assert!(!is_apart || (row.kind != Kind::Exact && row.note.len() > 80), "{row:#?}");
    }
}

#[test]
fn nothing_unknown_is_filled_in_and_nothing_measured_by_authors_is_ours() {
    for row in ROWS.iter() {
        match row.kind {
            Kind::Unknown => assert_eq!((row.stated, row.ours), (None, None), "{row:?}"),
            Kind::Physical => assert_eq!(row.ours, None, "{row:?}"),
            Kind::Exact | Kind::Modelled => {
                assert!(row.stated.is_some() && row.ours.is_some(), "{row:?}");
            }
        }
    }
}

#[test]
fn rows_have_names_of_their_own() {
    let mut ids = HashSet::new();
    assert!(ROWS.iter().all(|row| ids.insert((row.paper.name(), row.id))));
}

fn fits_of(row: &Row) -> &[&'static Parameter] {
    match &row.basis {
        Basis::FittedOn(fits) | Basis::Predicted(fits) => fits,
        Basis::ClosedForm | Basis::Engine => &[],
    }
}

#[test]
fn there_are_fewer_fits_than_rows_that_rest_on_them() {
    let all = &*ROWS;
    let is_fitted = |fit: &&'static Parameter| fit.mark == Mark::Fitted;
    for fit in parameters().into_iter().filter(is_fitted) {
        let served = all.iter().filter(|row| fits_of(row).contains(&fit)).count();
        assert!(served >= 2, "{fit:?} serves {served} rows: it says nothing");
    }
    for paper in models::Paper::ALL {
        let served: Vec<_> =
            all.iter().filter(|row| row.paper == paper && !fits_of(row).is_empty()).collect();
        let fits: HashSet<&str> = served
            .iter()
            .flat_map(|row| fits_of(row))
            .inspect(|fit| assert_eq!(fit.mark, Mark::Fitted, "{fit:?}"))
            .map(|fit| fit.name)
            .collect();
        assert!(served.is_empty() || fits.len() < served.len(), "{paper:?}: {fits:?}");
    }
    let known: HashSet<&str> = parameters().iter().map(|parameter| parameter.name).collect();
    let used = all.iter().flat_map(fits_of);
    assert!(used.into_iter().all(|fit| known.contains(fit.name)), "a fit that the page leaves out");
}

#[test]
fn the_committed_page_and_plots_are_what_is_made() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let remedy = "run `cargo run --release -p models -- reproduce` and look at what changed";
    let read = |name: &str| std::fs::read_to_string(docs.join(name)).expect(remedy);
    let made = page(&ROWS, &parameters());
    assert!(read("reproduction.md") == made, "docs/reproduction.md differs: {remedy}");
    for (name, svg) in plots().unwrap() {
        let committed = read(&format!("reproduction/{name}"));
        assert!(committed == svg, "{name} differs: {remedy}");
        assert!(made.contains(name), "the page does not show {name}");
    }
}

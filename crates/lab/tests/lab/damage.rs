//! Damage to stores: what is read is right or an error, and every hit that matters is found.

use lab::DamageTable;

#[test]
fn a_damaged_store_gives_right_bytes_or_errors_and_can_be_repaired() {
    let table = DamageTable::run(1, 150, |_| {}).unwrap();
    assert!(table.failures.is_empty(), "{:#?}\n{table}", table.failures);
    let total = table.total();
    assert_eq!(total.hits, 150);
    // A run in which nothing is hit, or nothing can be repaired, shows nothing.
    assert!(total.detected > 100 && total.repaired > 60 && total.with_losses > 3, "{table}");
    assert!(total.refused < total.detected / 10, "{table}");
}

#[test]
fn no_closed_store_is_lost_by_one_hit_on_the_superblock() {
    let table = DamageTable::run_wide(1, 30, |_| {}).unwrap();
    let superblock = table.rows.iter().filter(|(aim, _)| aim.starts_with("superblock"));
    let (hits, refused) = superblock
        .fold((0, 0), |(hits, refused), (_, row)| (hits + row.hits, refused + row.refused));
    assert!(hits > 2 && refused == 0, "{table}");
}

#[test]
fn a_store_that_goes_back_gives_no_later_bytes() {
    lab::go_back().unwrap();
}

#[test]
fn directories_that_did_not_outlive_a_crash_are_there_again() {
    lab::lose_directories().unwrap();
}

#[test]
fn a_store_that_is_hit_twice_gives_right_bytes_or_errors_and_loses_what_it_says() {
    let table = DamageTable::run_twice(1, 0..30, |_| {}).unwrap();
    assert!(table.failures.is_empty(), "{:#?}\n{table}", table.failures);
    let total = table.total();
    assert_eq!(total.hits, 30);
    assert!(total.detected > 20 && total.repaired > 15 && total.with_losses > 1, "{table}");
}

/// A scrub of this pair waited for ever for a page that a group had asked for beside a damaged one.
#[test]
fn what_was_asked_for_beside_a_damaged_page_comes() {
    let table = DamageTable::run_twice(71, 78..79, |_| {}).unwrap();
    assert!(table.failures.is_empty(), "{:#?}\n{table}", table.failures);
}

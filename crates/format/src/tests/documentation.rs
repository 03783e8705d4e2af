//! `docs/format.md` says what the code does: its tables are read and compared.

use super::layout::{constants, layouts};
use super::values::one_of_each_change;
use crate::catalog::VolumeKind;
use crate::detection::FingerprintKind;
use crate::record::Change;

const DOCUMENT: &str = include_str!("../../../../docs/format.md");

/// The lines under a heading, up to the next one.
fn section(title: &str) -> impl Iterator<Item = &'static str> {
    let is_heading = |line: &str| line.trim_start_matches('#').trim() == title;
    let mut lines = DOCUMENT.lines();
    let found = lines.any(|line| line.starts_with('#') && is_heading(line));
    assert!(found, "docs/format.md has no section {title:?}");
    lines.take_while(|line| !line.starts_with('#'))
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
}

/// Rows of the tables under a heading that start with a number.
fn numbered_rows(title: &str) -> Vec<Vec<String>> {
    let rows = section(title).filter(|line| line.starts_with('|')).map(cells);
    rows.filter(|cells| cells[0].parse::<usize>().is_ok()).collect()
}

#[test]
fn every_field_is_where_the_document_says() {
    for layout in layouts() {
        let told: Vec<(usize, usize, String)> = numbered_rows(layout.title)
            .iter()
            .map(|row| (row[0].parse().unwrap(), row[1].parse().unwrap(), row[2].clone()))
            .collect();
        assert_eq!(told, layout.rows(), "section {:?} of docs/format.md", layout.title);
    }
}

#[test]
fn constants_are_what_the_document_says() {
    let rows: Vec<_> =
        section("Numbers").filter(|line| line.starts_with("| `")).map(cells).collect();
    let told: Vec<(&str, u64)> =
        rows.iter().map(|row| (row[0].as_str(), row[1].parse().unwrap())).collect();
    assert_eq!(told, constants());
}

#[test]
fn kinds_of_fingerprints_are_what_the_document_says() {
    let told: Vec<(u8, String)> = numbered_rows("Kinds of fingerprints")
        .iter()
        .map(|row| (row[0].parse().unwrap(), row[1].clone()))
        .collect();
    let found: Vec<_> =
        FingerprintKind::ALL.iter().map(|kind| (*kind as u8, kind.name().to_owned())).collect();
    assert_eq!(told, found);
}

#[test]
fn changes_are_what_the_document_says() {
    let told: Vec<[String; 3]> = numbered_rows("Changes")
        .iter()
        .map(|row| [row[0].clone(), row[1].clone(), row[2].clone()])
        .collect();
    let found: Vec<[String; 3]> = one_of_each_change().iter().map(change_row).collect();
    assert_eq!(told, found);
}

/// Kind, name and length of a change, as the document writes them.
fn change_row(change: &Change) -> [String; 3] {
    let mut body = Vec::new();
    change.encode(&mut body);
    let debug = format!("{change:?}");
    let name = debug.split([' ', '(']).next().unwrap().to_owned();
    let length = match change {
        Change::Map { pbns, .. } => format!("{} + 6 n", body.len() - 6 * pbns.len()),
        Change::CreateVolume { name, domain, kind, .. }
            if domain.is_some() || *kind != VolumeKind::Block =>
        {
            let in_domain = domain.as_ref().map_or(0, |domain| domain.name.len());
            format!("{} + n + n", body.len() - name.len() - in_domain)
        }
        Change::CreateVolume { name, .. }
        | Change::RenameVolume { name, .. }
        | Change::TakeSnapshot { name, .. }
        | Change::CloneVolume { name, .. } => {
            format!("{} + n", body.len() - name.len())
        }
        Change::Carry { bytes, .. } => format!("{} + n", body.len() - bytes.len()),
        _ => body.len().to_string(),
    };
    [body[0].to_string(), name, length]
}

//! A batch in the order of keys has the answers of one that scans for each question.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::{any, proptest};

use super::map_index::MapIndex;
use crate::index::{Change, Index, Table};
use crate::values::pending::Pending;
use store::Durability;

fn key(number: u16) -> [u8; 2] {
    number.to_be_bytes()
}

proptest! {
    #[test]
    fn an_ordered_batch_finds_what_any_finds(
        stored in vec(0..600_u16, 0..400),
        steps in vec((0..650_u16, any::<Option<bool>>(), any::<bool>()), 1..120),
    ) {
        let index: Arc<dyn Index> = Arc::new(MapIndex::default());
        let set = |number: &u16| {
            let (key, value) = (key(*number).to_vec(), vec![0]);
            Change::Set { table: Table::Free, key, value }
        };
        index.apply(stored.iter().map(set).collect(), Durability::Acknowledged).unwrap();
        let (mut plain, mut ordered) = (Pending::new(&index), Pending::ordered(&index));
        for (number, change, is_other_table) in steps {
            let table = if is_other_table { Table::ToFree } else { Table::Free };
            let from = key(number);
            assert_eq!(plain.next(table, &from).unwrap(), ordered.next(table, &from).unwrap());
            for pending in [&mut plain, &mut ordered] {
                match change {
                    Some(true) => pending.set(table, &from, vec![1]),
                    Some(false) => pending.remove(table, &from),
                    None => (),
                }
            }
        }
    }
}

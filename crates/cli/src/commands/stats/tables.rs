//! The part of `tamis stats` that is about the three tables: what their cache gives, how
//! concentrated the accesses to them are, and which pages are hot by themselves.

use engine::{HeatFigures, HotPageFigures, TableFigures, TablesFigures};

use crate::size::human_count;
use crate::table::{Align, Table, wrapped};

/// Since the store was opened, and lately where it is about heat.
pub(super) fn tables(tables: &TablesFigures) -> String {
    let mut table = Table::with_heading([
        ("TABLE", Align::Left),
        ("HITS", Align::Right),
        ("", Align::Right),
        ("MISSES", Align::Right),
        ("PAGES", Align::Right),
        ("DIRTY", Align::Right),
        ("HOT 1%", Align::Right),
        ("10%", Align::Right),
    ]);
    for (name, figures) in
        [("Hash-PBN", &tables.hash_pbn), ("PBN-PBA", &tables.pbn_pba), ("maps", &tables.maps)]
    {
        let TableFigures { hits, misses, cached_pages, dirty_pages, heat, .. } = figures;
        let (hit_ratio, [hottest, tenth]) = (hit_ratio(figures), shares(heat));
        let [hits, misses, cached, dirty] =
            [hits, misses, cached_pages, dirty_pages].map(|count| human_count(*count));
        table.row([name.to_owned(), hits, hit_ratio, misses, cached, dirty, hottest, tenth]);
    }
    format!("{table}{}", hot_pages(&tables.hash_pbn.heat))
}

fn hit_ratio(figures: &TableFigures) -> String {
    if figures.lookups == 0 { String::new() } else { percent(figures.hit_ratio) }
}

/// Parts of the accesses in the hottest pages; a dash where there were none.
fn shares(heat: &HeatFigures) -> [String; 2] {
    let shares = [heat.hottest_1_percent_ratio, heat.hottest_10_percent_ratio];
    shares.map(|share| if heat.pages == 0 { "-".to_owned() } else { percent(share) })
}

/// One line, where there is anything to say.
fn hot_pages(heat: &HeatFigures) -> String {
    let named = |page: &HotPageFigures| {
        let what = if page.is_young { "page of young entries" } else { "bucket" };
        format!("{what} {} {}", human_count(page.number), percent(page.ratio))
    };
    match &heat.hot_pages[..] {
        [] => String::new(),
        pages => {
            let named: Vec<String> = pages.iter().map(named).collect();
            wrapped(&format!("hot in the Hash-PBN table: {}", named.join(", "))) + "\n"
        }
    }
}

fn percent(ratio: f64) -> String {
    format!("{:.1}%", ratio * 100.0)
}

#[cfg(test)]
mod tests {
    use engine::{HeatFigures, HotPageFigures, TableFigures, TablesFigures};

    use super::tables;

    #[test]
    fn each_table_says_what_its_cache_gives_and_how_hot_it_is() {
        let heat = HeatFigures {
            pages: 1000,
            hottest_1_percent_ratio: 0.415,
            hottest_10_percent_ratio: 0.62,
            hot_pages: vec![
                HotPageFigures { number: 1234, is_young: false, ratio: 0.31 },
                HotPageFigures { number: 7, is_young: true, ratio: 0.02 },
            ],
        };
        let hash_pbn = TableFigures {
            lookups: 1000,
            hits: 990,
            misses: 10,
            hit_ratio: 0.99,
            cached_pages: 40,
            dirty_pages: 4,
            heat,
            ..TableFigures::default()
        };
        let told = tables(&TablesFigures { hash_pbn, ..TablesFigures::default() });
        let lines: Vec<Vec<&str>> =
            told.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["Hash-PBN", "990", "99.0%", "10", "40", "4", "41.5%", "62.0%"]);
        assert_eq!(lines[2], ["PBN-PBA", "0", "0", "0", "0", "-", "-"]);
        let hot = "hot in the Hash-PBN table: bucket 1,234 31.0%, page of young entries 7 2.0%";
        assert_eq!(told.lines().last(), Some(hot));
    }

    #[test]
    fn where_no_page_is_hot_by_itself_none_is_named() {
        let told = tables(&TablesFigures::default());
        assert_eq!(told.lines().count(), 4);
    }
}

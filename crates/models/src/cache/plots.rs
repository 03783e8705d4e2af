//! The study as plots: which figures make which lines and bars.

use super::plan::CACHED_PERCENT;
use super::policies::PolicyKind;
use super::record::{Question, Record};
use super::run::Design;
use super::sharing::Sharing;
use super::study::Study;
use charts::{Form, Panel, PlotError, Series, SeriesLabelPosition, svg};

const DESIGNS: [Design; 2] = [Design::Plain, Design::Gathered];
/// Beside whom rooms are shared, and what the plot of it says.
const SHARING_COMPANY: [(&str, &str); 3] = [
    ("", "Sharing the room between the tables: one stream"),
    ("random reads", "The same beside random reads of another store's size"),
    ("far duplicates", "The same beside far duplicates"),
];
const ROOM: &str = "room of the cache, % of all pages of the tables";

impl Study {
    /// The name of each plot's file, and the SVG in it.
    ///
    /// # Errors
    /// [`PlotError`] when one cannot be drawn.
    pub fn plots(&self) -> Result<Vec<(String, String)>, PlotError> {
        let workloads = self.workloads();
        let mut plots = Vec::new();
        let ways = SHARING_COMPANY.map(|(beside, title)| self.sharing_bars(beside, title));
        if ways.iter().all(|panel| !panel.series.is_empty()) {
            plots.push(("sharing.svg".to_owned(), svg(&ways)?));
        }
        if !self.runs.iter().any(|run| run.question != Question::Sharing) {
            return Ok(plots);
        }
        for workload in &workloads {
            let panels = DESIGNS.map(|design| self.hits(workload, design));
            plots.push((format!("hits-{}.svg", file_name(workload)), svg(&panels)?));
        }
        let io = [self.io("read", &workloads), self.io("written", &workloads)];
        plots.push(("io.svg".to_owned(), svg(&io)?));
        plots.push(("filters.svg".to_owned(), svg(&[self.filter_lines()])?));
        let locality = DESIGNS.map(|design| self.locality(design, &workloads));
        plots.push(("locality.svg".to_owned(), svg(&locality)?));
        let fairness = DESIGNS.map(|design| self.fairness_bars(design));
        plots.push(("fairness.svg".to_owned(), svg(&fairness)?));
        Ok(plots)
    }

    fn workloads(&self) -> Vec<&str> {
        self.hot_buckets.iter().map(|row| row.workload.as_str()).collect()
    }

    /// The runs of a question with this design and policy, in their order.
    fn of(&self, question: Question, design: Design, policy: PolicyKind) -> Vec<&Record> {
        let is_meant = |run: &&Record| {
            (run.question, run.design, run.policy) == (question, design.name(), policy.name())
        };
        self.runs.iter().filter(is_meant).collect()
    }

    fn hits(&self, workload: &str, design: Design) -> Panel {
        let mut x_names = Vec::new();
        let mut series = Vec::new();
        for (color, policy) in PolicyKind::ALL.into_iter().enumerate() {
            let mut runs = self.of(Question::Size, design, policy);
            runs.retain(|run| run.workload == workload);
            x_names = runs.iter().map(|run| run.cached_percent.to_string()).collect();
            let values = runs.iter().map(|run| Some(run.hit_percent)).collect();
            let name = policy.name().to_owned();
            series.push(Series { name, color, dashed: false, values });
        }
        let lowest = series.iter().flat_map(|series| &series.values).flatten();
        let lowest = lowest.fold(100.0_f64, |lowest, &value| lowest.min(value));
        Panel {
            title: format!("{workload}: hits, {} Hash-PBN table", design.name()),
            x_title: ROOM.to_owned(),
            y_title: "look-ups of a page that find it cached, %".to_owned(),
            x_names,
            y: (lowest / 10.0 - 0.1).floor().max(0.0) * 10.0..100.0,
            y_named_max: f64::INFINITY,
            y_is_logarithmic: false,
            form: Form::Lines,
            series,
            legend: SeriesLabelPosition::LowerRight,
        }
    }

    /// Pages of the Hash-PBN table for each new chunk, LRU.
    fn io(&self, way: &str, workloads: &[&str]) -> Panel {
        let mut x_names = Vec::new();
        let mut series = Vec::new();
        for design in DESIGNS {
            for (color, workload) in workloads.iter().enumerate() {
                let mut runs = self.of(Question::Size, design, PolicyKind::Lru);
                runs.retain(|run| run.workload == *workload);
                x_names = runs.iter().map(|run| run.cached_percent.to_string()).collect();
                let per_new = |run: &&Record| match way {
                    "read" => run.hash_reads_per_write * run.writes as f64 / run.new_chunks as f64,
                    _ => run.hash_writes_per_new,
                };
                let values = runs.iter().map(|run| Some(per_new(run))).collect();
                let name = format!("{workload}, {}", design.name());
                series.push(Series { name, color, dashed: design == Design::Gathered, values });
            }
        }
        Panel {
            title: format!("Pages of the Hash-PBN table {way} for each new chunk, LRU"),
            x_title: ROOM.to_owned(),
            y_title: format!("pages {way} / new chunk (logarithmic; none at the foot)"),
            x_names,
            y: 0.0003..10.0,
            y_named_max: f64::INFINITY,
            y_is_logarithmic: true,
            form: Form::Lines,
            series,
            legend: SeriesLabelPosition::LowerLeft,
        }
    }

    fn filter_lines(&self) -> Panel {
        let filters: Vec<_> = self.filters.iter().filter(|filter| filter.bits > 0).collect();
        let values = |percents: Vec<f64>| percents.into_iter().map(Some).collect();
        let lines: [(&str, Vec<f64>); 4] = [
            (
                "blocked Bloom, one block a bucket (measured)",
                filters.iter().map(|filter| filter.measured_percent).collect(),
            ),
            (
                "Bloom over everything (formula)",
                filters.iter().map(|filter| filter.bloom_formula_percent).collect(),
            ),
            ("xor (formula)", filters.iter().map(|filter| filter.xor_formula_percent).collect()),
            (
                "ribbon (formula)",
                filters.iter().map(|filter| filter.ribbon_formula_percent).collect(),
            ),
        ];
        let series = lines.into_iter().enumerate().map(|(color, (name, percents))| Series {
            name: name.to_owned(),
            color,
            dashed: color > 0,
            values: values(percents),
        });
        Panel {
            title: "New chunks that a filter sends to a bucket".to_owned(),
            x_title: "bits of the filter for each entry".to_owned(),
            y_title: "wrong answers, % of new chunks (logarithmic)".to_owned(),
            x_names: filters.iter().map(|filter| filter.bits.to_string()).collect(),
            y: 0.001..100.0,
            y_named_max: f64::INFINITY,
            y_is_logarithmic: true,
            form: Form::Lines,
            series: series.collect(),
            legend: SeriesLabelPosition::UpperRight,
        }
    }

    /// Pages read with directories and without, LRU.
    fn locality(&self, design: Design, workloads: &[&str]) -> Panel {
        let reads = |question| {
            let runs = self.of(question, design, PolicyKind::Lru);
            let usual = runs.into_iter().filter(|run| run.cached_percent == CACHED_PERCENT);
            usual.map(|run| Some(100.0 * run.hash_reads_per_write)).collect()
        };
        let bars: [(&str, Vec<Option<f64>>); 2] = [
            ("buckets and young entries alone", reads(Question::Size)),
            ("with directories brought in", reads(Question::Locality)),
        ];
        Panel {
            title: format!(
                "Locality: pages read, {} table, {CACHED_PERCENT}% cached, LRU",
                design.name()
            ),
            x_title: "workload".to_owned(),
            y_title: "pages of the Hash-PBN table read / 100 writes".to_owned(),
            x_names: workloads.iter().map(|name| (*name).to_owned()).collect(),
            y: 0.0..top(bars.iter().flat_map(|(_, values)| values)),
            y_named_max: f64::INFINITY,
            y_is_logarithmic: false,
            form: Form::Bars,
            series: bars_of(bars.into_iter().map(|(name, values)| (name.to_owned(), values))),
            legend: SeriesLabelPosition::UpperLeft,
        }
    }

    /// Pages of the Hash-PBN table that each way to share the room reads, by what the common room
    /// reads.
    fn sharing_bars(&self, beside: &str, title: &str) -> Panel {
        let runs = self.runs.iter().filter(|run| run.question == Question::Sharing);
        let runs: Vec<&Record> = runs.filter(|run| run.beside == beside).collect();
        let is_common = |run: &&&Record| run.sharing == Sharing::Common.name();
        let common: Vec<&&Record> = runs.iter().filter(is_common).collect();
        let reads = |sharing: Sharing| {
            let ways = runs.iter().filter(move |run| run.sharing == sharing.name());
            let ways = ways.zip(&common).map(|(run, common)| {
                let reads = common.hash_reads_per_write;
                (reads > 0.0).then(|| 100.0 * run.hash_reads_per_write / reads)
            });
            (sharing.name().to_owned(), ways.collect::<Vec<_>>())
        };
        let bars = Sharing::ALL.map(reads).into_iter().filter(|(_, values)| !values.is_empty());
        Panel {
            title: title.to_owned(),
            x_title: "workload, and room of the cache".to_owned(),
            y_title: "pages of the Hash-PBN table read, common = 100 (logarithmic)".to_owned(),
            x_names: common
                .iter()
                .map(|run| format!("{} {}%", run.workload, run.cached_percent))
                .collect(),
            y: 1.0..30_000.0,
            y_named_max: 1000.0,
            y_is_logarithmic: true,
            form: Form::Bars,
            series: bars_of(bars),
            legend: SeriesLabelPosition::UpperLeft,
        }
    }

    fn fairness_bars(&self, design: Design) -> Panel {
        let first = self.of(Question::Fairness, design, PolicyKind::Lru);
        let workload = first.first().map_or("", |run| run.workload.as_str());
        let bars = first.iter().enumerate().map(|(place, run)| {
            let hits = |policy| {
                let run = self.of(Question::Fairness, design, policy);
                run.get(place).map(|run| run.hit_percent)
            };
            (beside(place, run.beside), PolicyKind::ALL.map(hits).to_vec())
        });
        Panel {
            title: format!(
                "Fairness: hits of {workload} beside a neighbour, {} table",
                design.name()
            ),
            x_title: format!("policy; room for twice {CACHED_PERCENT}% of {workload}'s tables"),
            y_title: "look-ups of a page that find it cached, %".to_owned(),
            x_names: PolicyKind::ALL.map(|policy| policy.name().to_owned()).to_vec(),
            y: 0.0..160.0,
            y_named_max: 100.0,
            y_is_logarithmic: false,
            form: Form::Bars,
            series: bars_of(bars),
            legend: SeriesLabelPosition::UpperLeft,
        }
    }
}

/// The first three runs are those with, or without, a neighbour that writes new chunks.
fn beside(place: usize, beside: &str) -> String {
    let of = if place < 3 { "new chunks" } else { "far duplicates" };
    match beside {
        "nobody" | "nobody; half of the cache" => format!("{of}: {beside}"),
        _ => format!("{of}: asking"),
    }
}

fn bars_of(bars: impl Iterator<Item = (String, Vec<Option<f64>>)>) -> Vec<Series> {
    let named = bars.enumerate();
    named.map(|(color, (name, values))| Series { name, color, dashed: false, values }).collect()
}

/// A round number with room for a legend above the highest bar.
fn top<'a>(values: impl Iterator<Item = &'a Option<f64>>) -> f64 {
    let highest = values.flatten().fold(0.0_f64, |highest, &value| highest.max(value));
    (highest * 1.35 / 5.0).ceil().max(1.0) * 5.0
}

/// The name of a trace as part of a file's.
fn file_name(workload: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    workload.chars().map(plain).collect()
}

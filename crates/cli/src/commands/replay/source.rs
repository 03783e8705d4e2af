//! Where requests come from: a trace, or a workload that is made as it goes.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use traces::{Request, Skipped, TraceReader, Workload};

use crate::args::ReplayArgs;
use crate::error::{CliError, PlaceError};
use crate::progress::Unit;
use crate::size::human_count;

/// Requests of a workload when nobody says how many.
const REQUESTS_DEFAULT: u64 = 1_000_000;
const READ_BYTES: usize = 1 << 20;

/// The requests of one replay, in order.
pub(super) struct Source {
    kind: SourceKind,
    requests_max: u64,
    requests: u64,
}

enum SourceKind {
    Trace { reader: TraceReader<Box<dyn BufRead>>, size_bytes: Option<u64> },
    Made(Workload),
}

impl Source {
    /// As `args` say; a trace is opened anew at each call.
    pub(super) fn open(args: &ReplayArgs) -> Result<Self, CliError> {
        if let Some(kind) = args.workload {
            let requests_max = args.requests.unwrap_or(REQUESTS_DEFAULT);
            let made = Workload::new(kind, requests_max, args.seed);
            return Ok(Self { kind: SourceKind::Made(made), requests_max, requests: 0 });
        }
        let (input, size_bytes) = match &args.trace {
            Some(path) if path.as_os_str() != "-" => open_file(path)?,
            _ => (Box::new(BufReader::with_capacity(READ_BYTES, io::stdin())) as _, None),
        };
        let kind = SourceKind::Trace { reader: TraceReader::new(input), size_bytes };
        let requests_max = args.requests.unwrap_or(u64::MAX);
        Ok(Self { kind, requests_max, requests: 0 })
    }

    /// The next request, if there is one; false at the end.
    pub(super) fn read(&mut self, request: &mut Request) -> Result<bool, CliError> {
        if self.requests == self.requests_max {
            return Ok(false);
        }
        let found = match &mut self.kind {
            SourceKind::Made(workload) => {
                workload.request(self.requests, request);
                true
            }
            SourceKind::Trace { reader, .. } => {
                reader.read(request).map_err(CliError::TraceUnreadable)?
            }
        };
        self.requests += u64::from(found);
        Ok(found)
    }

    /// The workload, when it is one.
    pub(super) fn workload(&self) -> Option<&Workload> {
        match &self.kind {
            SourceKind::Made(workload) => Some(workload),
            SourceKind::Trace { .. } => None,
        }
    }

    /// What of it was no request.
    pub(super) fn skipped(&self) -> Skipped {
        match &self.kind {
            SourceKind::Trace { reader, .. } => reader.skipped().clone(),
            SourceKind::Made(_) => Skipped::default(),
        }
    }

    /// What is counted on the way to its end, how much of it there is, and how much was done.
    pub(super) fn progress(&self) -> (Unit, Option<u64>, u64) {
        match &self.kind {
            SourceKind::Made(_) => (Unit::Steps, Some(self.requests_max), self.requests),
            _ if self.requests_max < u64::MAX => {
                (Unit::Steps, Some(self.requests_max), self.requests)
            }
            SourceKind::Trace { reader, size_bytes } => (Unit::Bytes, *size_bytes, reader.bytes()),
        }
    }

    /// What it is, for people.
    pub(super) fn name(&self, args: &ReplayArgs) -> String {
        match (&self.kind, &args.trace) {
            (SourceKind::Made(workload), _) => format!(
                "{}, {} requests, seed {}",
                workload.kind().name(),
                human_count(workload.requests()),
                args.seed
            ),
            (_, Some(path)) => path.display().to_string(),
            (_, None) => "standard input".to_owned(),
        }
    }
}

type Input = (Box<dyn BufRead>, Option<u64>);

fn open_file(path: &Path) -> Result<Input, CliError> {
    let failed = |source| PlaceError::unreadable(path, source);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let size_bytes = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(BufReader::with_capacity(READ_BYTES, file)), size_bytes))
}

//! Why something was not done, by what a Python program can do about it.
//!
//! ```text
//! errors of the rooms ──> Refused { kind, sentence } ──> the class of this name in tamis.errors
//! ```
//!
//! The classes are Python's, because some of them are kinds of `FileNotFoundError` and the like as
//! well, so that libraries know them.

use buckets::{BucketsError, CopyError};
use objects::bucket::BucketError;
use objects::index::IndexError;
use objects::values::ValueError;
use pyo3::prelude::{PyAnyMethods, PyErr, Python};
use store::{CloseError, CreateError, OpenError, RequestError};

/// A class of `tamis.errors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    NotFound,
    Exists,
    NotEmpty,
    NoSpace,
    QuotaExceeded,
    ReadOnly,
    InUse,
    Damaged,
    ConditionFailed,
    BadArgument,
    Closed,
    Forked,
    Failed,
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::Exists => "Exists",
            Self::NotEmpty => "NotEmpty",
            Self::NoSpace => "NoSpace",
            Self::QuotaExceeded => "QuotaExceeded",
            Self::ReadOnly => "ReadOnly",
            Self::InUse => "InUse",
            Self::Damaged => "Damaged",
            Self::ConditionFailed => "ConditionFailed",
            Self::BadArgument => "BadArgument",
            Self::Closed => "Closed",
            Self::Forked => "Forked",
            Self::Failed => "Failed",
        }
    }
}

/// What is raised.
#[derive(Debug)]
pub(crate) struct Refused {
    kind: Kind,
    sentence: String,
}

impl Refused {
    pub(crate) fn new(kind: Kind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }

    pub(crate) fn bad_argument(sentence: impl Into<String>) -> Self {
        Self::new(Kind::BadArgument, sentence)
    }

    pub(crate) fn closed() -> Self {
        Self::new(Kind::Closed, "it is closed")
    }

    pub(crate) fn no_object(bucket: &str, key: &[u8]) -> Self {
        let key = String::from_utf8_lossy(key);
        Self::new(Kind::NotFound, format!("bucket {bucket} has no object {key}"))
    }

    /// The same, told of an object.
    pub(crate) fn of(self, bucket: &str, key: &[u8]) -> Self {
        let key = String::from_utf8_lossy(key);
        Self { sentence: format!("{bucket}/{key}: {}", self.sentence), ..self }
    }

    /// The same for an object that was not put: with `if_absent`, since the key has one.
    pub(crate) fn of_put(self, if_absent: bool, bucket: &str, key: &[u8]) -> Self {
        let kind = match self.kind {
            Kind::ConditionFailed if if_absent => Kind::Exists,
            kind => kind,
        };
        Self { kind, ..self }.of(bucket, key)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }
}

impl From<Refused> for PyErr {
    fn from(refused: Refused) -> Self {
        let Refused { kind, sentence } = refused;
        Python::attach(|py| {
            let class = py.import("tamis.errors").and_then(|all| all.getattr(kind.class()));
            match class.and_then(|class| class.call1((sentence,))) {
                Ok(error) => PyErr::from_value(error),
                Err(error) => error,
            }
        })
    }
}

impl From<RequestError> for Refused {
    fn from(error: RequestError) -> Self {
        Self::new(kind_of_request(&error), error.to_string())
    }
}

impl From<BucketsError> for Refused {
    fn from(error: BucketsError) -> Self {
        let kind = match &error {
            BucketsError::NoSuchBucket { .. } => Kind::NotFound,
            BucketsError::Exists { .. } => Kind::Exists,
            BucketsError::BadName { .. }
            | BucketsError::ChunkSize { .. }
            | BucketsError::Replication { .. } => Kind::BadArgument,
            BucketsError::NotEmpty { .. } => Kind::NotEmpty,
            BucketsError::InUse { .. } | BucketsError::IsReplica { .. } => Kind::InUse,
            BucketsError::NotRepaired { .. } => Kind::Damaged,
            BucketsError::Closing => Kind::Closed,
            BucketsError::Bucket(error) => kind_of_bucket(error),
            BucketsError::Request(error) => kind_of_request(error),
            BucketsError::Machine(_) => Kind::Failed,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<BucketError> for Refused {
    fn from(error: BucketError) -> Self {
        Self::new(kind_of_bucket(&error), error.to_string())
    }
}

impl From<CopyError> for Refused {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Source(error) => error.into(),
            CopyError::Target(error) => error.into(),
        }
    }
}

impl From<OpenError> for Refused {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::NoStore { .. } => Kind::NotFound,
            OpenError::InUse { .. } => Kind::InUse,
            OpenError::Contents(engine::OpenError::Memory { .. }) => Kind::BadArgument,
            OpenError::Contents(engine::OpenError::Io(_))
            | OpenError::Files(_)
            | OpenError::Machine(_) => Kind::Failed,
            OpenError::Contents(_) => Kind::Damaged,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<CreateError> for Refused {
    fn from(error: CreateError) -> Self {
        let kind = match &error {
            CreateError::Plan(_) => Kind::BadArgument,
            CreateError::Files(_) | CreateError::Write(_) | CreateError::Machine(_) => Kind::Failed,
            CreateError::Open(_) => Kind::Failed,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<CloseError> for Refused {
    fn from(error: CloseError) -> Self {
        Self::new(Kind::Failed, error.to_string())
    }
}

fn kind_of_request(error: &RequestError) -> Kind {
    match error {
        RequestError::NoSpace | RequestError::DeviceFull { .. } => Kind::NoSpace,
        RequestError::QuotaExceeded { .. } => Kind::QuotaExceeded,
        RequestError::ReadOnly { .. } | RequestError::StoreReadOnly => Kind::ReadOnly,
        RequestError::NoSuchVolume { .. } => Kind::NotFound,
        RequestError::VolumeExists { .. } => Kind::Exists,
        RequestError::HasSnapshots { .. } => Kind::NotEmpty,
        RequestError::InUse { .. }
        | RequestError::RequestsUnderWay { .. }
        | RequestError::SnapshotUnderWay { .. }
        | RequestError::RollingBack { .. } => Kind::InUse,
        RequestError::Damaged { .. } | RequestError::DamagedTable { .. } => Kind::Damaged,
        RequestError::BadName { .. }
        | RequestError::BadDomain { .. }
        | RequestError::NotAVolume { .. }
        | RequestError::NotASnapshot { .. }
        | RequestError::NoVolumes
        | RequestError::TooManySnapshots { .. } => Kind::BadArgument,
        RequestError::NotCopied { reason, .. } => kind_of_request(reason),
        RequestError::Closing => Kind::Closed,
        _ => Kind::Failed,
    }
}

fn kind_of_bucket(error: &BucketError) -> Kind {
    match error {
        BucketError::Index(error) => kind_of_index(error),
        BucketError::Value(error) => kind_of_value(error),
        BucketError::DamagedEntry(_) => Kind::Damaged,
        BucketError::ConditionFailed { .. } => Kind::ConditionFailed,
        BucketError::QuotaExceeded { .. } => Kind::QuotaExceeded,
        BucketError::NoSuchObject | BucketError::NoSuchUpload { .. } => Kind::NotFound,
        _ => Kind::BadArgument,
    }
}

fn kind_of_index(error: &IndexError) -> Kind {
    match error {
        IndexError::Volume(error) => kind_of_request(error),
        IndexError::Damaged(_) => Kind::Damaged,
        IndexError::NoBucket(_) | IndexError::Unfinished => Kind::NotFound,
        IndexError::ReadOnly => Kind::ReadOnly,
        _ => Kind::BadArgument,
    }
}

fn kind_of_value(error: &ValueError) -> Kind {
    match error {
        ValueError::Index(error) => kind_of_index(error),
        ValueError::Volume(error) => kind_of_request(error),
        ValueError::NoAddresses { .. } => Kind::NoSpace,
        ValueError::TooLong => Kind::BadArgument,
        ValueError::TooDeep => Kind::Failed,
        _ => Kind::Damaged,
    }
}

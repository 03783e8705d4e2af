//! Why a footer says nothing.

use segments::thrift::Unread;

/// Why a footer was not read. But for [`FooterError::NoColumn`], its reader can still read the
/// file as bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FooterError {
    /// The file does not end as one.
    #[error("the object is no Parquet file: it does not end as one")]
    NotParquet,
    /// It is damaged, encrypted, or has its columns in other files.
    #[error("the footer of the Parquet file is damaged, or of a kind that is not read here")]
    Damaged,
    /// It has more of something than is read.
    #[error("the Parquet file has a longer footer, or more columns or row groups, than is read")]
    TooLarge,
    /// Nothing in the schema has this name.
    #[error("the table has no column {name}")]
    NoColumn {
        /// The name.
        name: String,
    },
}

impl From<Unread> for FooterError {
    fn from(_: Unread) -> Self {
        Self::Damaged
    }
}

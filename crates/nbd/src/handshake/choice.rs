//! What there is to choose from, as negotiation sees it: the volumes of an engine, or a test's
//! list.

/// One export, as a client is told of it.
pub trait Export {
    /// The name that it is listed under.
    fn name(&self) -> String;
    /// Its size.
    fn size_bytes(&self) -> u64;
    /// Whether writes are refused.
    fn read_only(&self) -> bool;
    /// The size of requests that is served best.
    fn preferred_bytes(&self) -> u32;
}

/// What a client may choose from.
pub trait Exports {
    /// An export that was chosen.
    type Export: Export;

    /// The names of all exports.
    ///
    /// # Errors
    /// [`NotServed::Closing`] when the server is going away.
    fn list(&self) -> Result<Vec<String>, NotServed>;

    /// The export of this name; the empty name is that of the default export.
    ///
    /// # Errors
    /// [`NotServed`] says why there is none.
    fn open(&self, name: &str) -> Result<Self::Export, NotServed>;

    /// Names of snapshots of a volume, without the volume's, for who lists what there is; of very
    /// many not all.
    fn snapshots(&self, _volume: &str) -> Vec<String> {
        Vec::new()
    }

    /// Takes a place for the client that has chosen an export, until its connection ends.
    ///
    /// # Errors
    /// [`NotServed::Full`] when there is none.
    fn admit(&self) -> Result<(), NotServed> {
        Ok(())
    }
}

/// Why a client does not get an export.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotServed {
    /// None has this name.
    #[error("there is no export of this name")]
    Unknown,
    /// There is no default export, for there is more than one.
    #[error("there are several exports: choose one by name")]
    Several,
    /// All places are taken.
    #[error(
        "the server has all the {connections_max} connections that it serves at one time: try \
         again later"
    )]
    Full {
        /// How many there are.
        connections_max: usize,
    },
    /// The server is going away.
    #[error("the server is being shut down")]
    Closing,
}

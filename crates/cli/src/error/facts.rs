//! Errors in JSON: what `--json` prints of a command that failed, to standard error.
//! `docs/reference/json.md` describes it; the names here are promised there.

use std::path::Path;

use admin::json::Json;
use serde_json::{Map, Value, json};

use super::{CliError, Exit, PlaceError};

impl Exit {
    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::InUse => "in_use",
            Self::Damage => "damage",
            Self::NoSpace => "no_space",
            Self::Exists => "exists",
            Self::Repaired => "repaired",
            Self::RepairedWithLosses => "repaired_with_losses",
            Self::NearlyFull => "nearly_full",
        }
    }
}

/// A path as text, as messages have it.
fn text(path: &Path) -> String {
    path.display().to_string()
}

impl CliError {
    /// The error as a document has it: its kind, its exit code, its sentence, and its facts.
    pub(crate) fn to_json(&self) -> Value {
        let (kind, exit_code) = match self {
            Self::Interrupted { .. } | Self::CutOff { .. } => ("interrupted", self.code()),
            _ => (self.exit().name(), self.code()),
        };
        let mut error = Map::new();
        error.insert("kind".into(), kind.into());
        error.insert("exit_code".into(), exit_code.into());
        error.insert("message".into(), self.to_string().into());
        error.extend(self.facts());
        Value::Object(error)
    }

    /// What the sentence is about, by the names that results have for it.
    fn facts(&self) -> Map<String, Value> {
        let facts = match self {
            Self::Request(error) => {
                let mut facts = serde_json::to_value(Json(error)).unwrap_or_default();
                if let Some(reason) = facts.as_object_mut().and_then(|of| of.remove("error")) {
                    facts["reason"] = reason;
                }
                facts
            }
            Self::NoVolume { store, name, present } => {
                json!({ "store": text(store), "name": name, "nearest": present.names })
            }
            Self::NoChunk { volume, size_bytes, chunk_bytes, .. } => {
                json!({ "volume": volume, "size_bytes": size_bytes, "chunk_bytes": chunk_bytes })
            }
            Self::ServedNoCheck { store, pid } | Self::ServedAlready { store, pid } => {
                json!({ "store": text(store), "pid": pid })
            }
            Self::NoStore { store }
            | Self::StoreExists { store }
            | Self::InUse { store }
            | Self::ScrubRunning { store } => json!({ "store": text(store) }),
            Self::OutputExists { path }
            | Self::OutputInUse { path }
            | Self::OutputFailed { path, .. } => json!({ "path": text(path) }),
            Self::Place(
                PlaceError::NoParent { path }
                | PlaceError::NoFile { path }
                | PlaceError::StoreIsFile { path }
                | PlaceError::Twice { path },
            ) => json!({ "path": text(path) }),
            Self::VolumeHoldsData { name, mapped_bytes } => {
                json!({ "name": name, "mapped_bytes": mapped_bytes })
            }
            Self::ChunkDamaged { volume, lba } => json!({ "volume": volume, "lba": lba }),
            Self::DamageFound { problems }
            | Self::DamageLeft { problems }
            | Self::Repaired { problems } => json!({ "problems": problems }),
            _ => Value::Null,
        };
        match facts {
            Value::Object(facts) => facts,
            _ => Map::new(),
        }
    }
}

/// A command line that is not understood, as a document has it.
pub(crate) fn usage_to_json(message: &str) -> Value {
    json!({ "kind": Exit::Usage.name(), "exit_code": Exit::Usage as u8, "message": message })
}

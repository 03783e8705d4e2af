//! What the server does with a request: it asks the engine.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{CollectPosition, CollectRequest, NewVolume, RequestError, VolumeKind, control};

use crate::protocol::{
    CompressionSetting, Grown, GrowthWish, Refusal, RefusalKind, Request, Response, Status,
};
use crate::server::Service;

/// What the server says of itself. It can be set after the server has started: the control socket
/// is opened first, so that whoever gets through an NBD door finds it open.
#[derive(Clone, Debug, Default)]
pub struct SharedStatus(Arc<Mutex<Status>>);

impl SharedStatus {
    /// What is said from now on.
    pub fn set(&self, status: Status) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    fn get(&self) -> Status {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes the store that is served larger, its files first.
pub type Grower = Box<dyn Fn(GrowthWish) -> Result<Grown, Refusal> + Send + Sync>;

/// Answers requests from a running engine.
pub struct EngineService {
    client: engine::Client,
    status: SharedStatus,
    /// One growth at a time: a second would plan from what the first is about to change.
    grower: Mutex<Option<Grower>>,
}

impl EngineService {
    /// Over `client`; `status` is told to whoever asks.
    #[must_use]
    pub fn new(client: engine::Client, status: SharedStatus) -> Self {
        Self { client, status, grower: Mutex::default() }
    }

    /// The same, with a way to make the store larger.
    #[must_use]
    pub fn with_grower(self, grower: Grower) -> Self {
        Self { grower: Mutex::new(Some(grower)), ..self }
    }

    fn grow(&self, wish: GrowthWish) -> Response {
        let grower = self.grower.lock().unwrap_or_else(PoisonError::into_inner);
        match grower.as_ref().map_or_else(|| Err(cannot_grow()), |grow| grow(wish)) {
            Ok(grown) => Response::Grown(grown),
            Err(refusal) => Response::Refused(refusal),
        }
    }

    fn set_compression(&self, setting: CompressionSetting) -> Result<Response, RequestError> {
        let Some(compression) = setting.to_compression() else {
            return Ok(Response::Refused(unknown_codec()));
        };
        self.client.ask(control::SetCompression { compression })?;
        Ok(Response::Done)
    }

    fn collect(
        &self,
        position: Option<CollectPosition>,
        recompress: Option<CompressionSetting>,
    ) -> Result<Response, RequestError> {
        let known = recompress.map(CompressionSetting::to_compression);
        if known == Some(None) {
            return Ok(Response::Refused(unknown_codec()));
        }
        let step = self.client.ask(CollectRequest { position, recompress: known.flatten() })?;
        Ok(Response::Collected { step: Box::new(step) })
    }

    fn create(&self, request: Request) -> Result<Response, RequestError> {
        let new = match request {
            Request::CreateVolumeIn { name, size_bytes, read_only, domain } => {
                let (domain, kind) = (Some(domain), VolumeKind::Block);
                NewVolume { name, size_bytes, read_only, domain, kind }
            }
            Request::CreateVolumeOfKind { name, size_bytes, read_only, domain, kind } => {
                NewVolume { name, size_bytes, read_only, domain, kind }
            }
            other => return self.carry_out(other),
        };
        Ok(Response::Volume { volume: self.client.ask(new)? })
    }

    fn resize(&self, name: &str, bytes: u64, may_shrink: bool) -> Result<Response, RequestError> {
        Ok(Response::Volume {
            volume: self.client.ask(control::ResizeVolume {
                name: name.to_owned(),
                size_bytes: bytes,
                may_shrink,
            })?,
        })
    }

    fn roll_back(&self, snapshot: &str, id: Option<u32>) -> Result<Response, RequestError> {
        Ok(Response::Volume {
            volume: self.client.ask(control::Rollback { snapshot: snapshot.to_owned(), id })?,
        })
    }

    fn list_volumes(
        &self,
        after: Option<String>,
        most: Option<u32>,
    ) -> Result<Response, RequestError> {
        // One more says whether there is more.
        let wanted = most.map_or(usize::MAX, |most| (most as usize).saturating_add(1));
        let volumes =
            self.client.ask(control::ListVolumes { after: after.clone(), most: wanted })?;
        Ok(Response::page(volumes, after, most))
    }

    fn carry_out(&self, request: Request) -> Result<Response, RequestError> {
        let client = &self.client;
        let changed = |volume| Response::Volume { volume };
        let response = match request {
            Request::Status => Response::Status(self.status.get()),
            Request::ListVolumes { after, most } => self.list_volumes(after, most)?,
            Request::CreateVolume { name, size_bytes, read_only } => {
                changed(client.create_volume(&name, size_bytes, read_only)?)
            }
            create @ (Request::CreateVolumeIn { .. } | Request::CreateVolumeOfKind { .. }) => {
                self.create(create)?
            }
            Request::EnlargeVolume { name, size_bytes } => self.resize(&name, size_bytes, false)?,
            Request::ResizeVolume { name, size_bytes, may_shrink } => {
                self.resize(&name, size_bytes, may_shrink)?
            }
            Request::RenameVolume { name, new_name } => {
                changed(client.rename_volume(&name, &new_name)?)
            }
            Request::SetQuota { name, quota_bytes } => {
                changed(client.set_quota(&name, quota_bytes)?)
            }
            Request::SetDedup { name, dedup } => changed(client.set_dedup(&name, dedup)?),
            Request::DeleteVolume(request) | Request::DeleteThis(request) => {
                client.ask(request)?;
                Response::Done
            }
            Request::TakeSnapshots(request) if request.volumes.is_empty() => {
                Response::Refused(no_volumes())
            }
            Request::TakeSnapshots(request) => {
                client.ask(request)?;
                Response::Done
            }
            Request::CloneVolume { snapshot, name } => {
                changed(client.clone_volume(&snapshot, &name)?)
            }
            Request::RollBackToThis { snapshot, id } => self.roll_back(&snapshot, Some(id))?,
            Request::Rollback { snapshot, id } => self.roll_back(&snapshot, id)?,
            Request::Collect { position, recompress } => self.collect(position, recompress)?,
            Request::Compression => Response::Compression {
                compression: client.ask(control::GetCompression {})?.into(),
            },
            Request::SetCompression { compression } => self.set_compression(compression)?,
            Request::Grow(wish) => self.grow(wish),
            Request::Explain { volume, address } => {
                let explanation = Box::new(client.explain(&volume, address)?);
                Response::Explanation { explanation }
            }
            Request::Difference { step } => {
                Response::Difference { step: Box::new(client.ask(step)?) }
            }
            Request::Weigh { step } => Response::Weight { step: Box::new(client.ask(step)?) },
            Request::Scrub { step } => Response::Scrub { step: Box::new(client.ask(step)?) },
            Request::Stats => Response::Stats { stats: Box::new(client.stats()?) },
        };
        Ok(response)
    }
}

fn cannot_grow() -> Refusal {
    let sentence = "whoever serves the store does not know where its files are".to_owned();
    Refusal { kind: RefusalKind::Failed, sentence }
}

fn no_volumes() -> Refusal {
    let sentence = "name the volumes of which snapshots are to be taken".to_owned();
    Refusal { kind: RefusalKind::BadRequest, sentence }
}

fn unknown_codec() -> Refusal {
    Refusal {
        kind: RefusalKind::BadRequest,
        sentence: "the server of the store does not know this codec: use the same release of \
                   tamis for both"
            .to_owned(),
    }
}

impl Service for EngineService {
    fn answer(&self, request: Request) -> Response {
        self.carry_out(request).unwrap_or_else(|error| Response::Refused(error.into()))
    }
}

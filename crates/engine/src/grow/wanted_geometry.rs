//! What the geometry says before something is recorded that needs it, and the geometry that says
//! so.

use format::catalog::VolumeKind;
use format::detection::Detection;
use format::domain::DomainSecret;
use format::features::Features;
use format::superblock::Geometry;

use crate::control::NewVolume;
use crate::door::error::RequestError;
use crate::grow::enlarging::Then;

/// Whether the geometry says all that a volume needs of it.
pub(crate) fn allows(geometry: &Geometry, volume: &NewVolume) -> bool {
    let Geometry { detection, features, .. } = geometry;
    let knows_kind =
        volume.kind == VolumeKind::Block || features.incompatible & Features::BUCKETS != 0;
    knows_kind && (volume.domain.is_none() || detection.secret.is_some())
}

/// Whether the geometry says that volumes may have codecs.
pub(crate) fn knows_codecs(geometry: &Geometry) -> bool {
    geometry.features.incompatible & Features::VOLUME_CODECS != 0
}

/// Whether the geometry says that volumes may have reservations.
pub(crate) fn knows_reservations(geometry: &Geometry) -> bool {
    geometry.features.incompatible & Features::VOLUME_RESERVATIONS != 0
}

/// Whether the geometry says what has to be said before this.
pub(crate) fn may_be_recorded(geometry: &Geometry, then: &Then) -> bool {
    match then {
        Then::Make(volume, _) => allows(geometry, volume),
        Then::LeaveAside(..) | Then::GoOn => geometry.detection.asides,
        Then::HaveCodec(..) => knows_codecs(geometry),
        Then::Reserve(_) => knows_reservations(geometry),
    }
}

/// The geometry with what has to be said before this, in the version that knows of it.
///
/// # Errors
/// [`RequestError::NoSecret`]: the first keyed domain needs a secret, and there is none.
pub(crate) fn geometry_with(
    geometry: &Geometry,
    then: &Then,
    secret: Option<DomainSecret>,
) -> Result<Geometry, RequestError> {
    let wanted = match then {
        Then::Make(volume, _) => geometry_for(geometry, volume, secret)?,
        Then::LeaveAside(..) | Then::GoOn => {
            let detection = Detection { asides: true, ..geometry.detection };
            Geometry { detection, ..geometry.clone() }
        }
        Then::HaveCodec(..) => with_feature(geometry, Features::VOLUME_CODECS),
        Then::Reserve(_) => with_feature(geometry, Features::VOLUME_RESERVATIONS),
    };
    Ok(in_its_version(wanted))
}

/// The geometry without a data zone.
pub(crate) fn geometry_without(geometry: &Geometry, zone: u16) -> Geometry {
    let features = geometry.features.without_zone(zone);
    in_its_version(Geometry { features, ..geometry.clone() })
}

fn geometry_for(
    geometry: &Geometry,
    volume: &NewVolume,
    secret: Option<DomainSecret>,
) -> Result<Geometry, RequestError> {
    let mut geometry = geometry.clone();
    if volume.domain.is_some() && geometry.detection.secret.is_none() {
        geometry.detection.secret = Some(secret.ok_or(RequestError::NoSecret)?);
    }
    if volume.kind != VolumeKind::Block {
        geometry.features = geometry.features.with_incompatible(Features::BUCKETS);
    }
    Ok(geometry)
}

fn with_feature(geometry: &Geometry, feature: u64) -> Geometry {
    let features = geometry.features.with_incompatible(feature);
    Geometry { features, ..geometry.clone() }
}

fn in_its_version(geometry: Geometry) -> Geometry {
    let version = geometry.version.max(geometry.least_version());
    Geometry { version, ..geometry }
}

//! How the types of the engine are said in JSON: over the control socket and by `--json`.
//!
//! The engine knows no JSON. Each of its types that is said has its form here, once: structs by the
//! names of their fields ([`record`]), enums by a mirror that the compiler compares with them
//! ([`mirror`]). A field that is added to the engine's type is an error here until it has a form.
//! [`serialize`] and [`deserialize`] let fields of others' types have the form
//! (`#[serde(with = "admin::json")]`).

mod problems;
mod refusals;
mod stats;
mod steps;
mod verbs;

use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

/// What has a form in JSON.
pub trait ToJson {
    /// Says it.
    ///
    /// # Errors
    /// Those of the serializer.
    fn to_json<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;
}

/// What is read from JSON.
pub trait FromJson: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// Those of the deserializer, and what cannot be such a value.
    fn from_json<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;
}

/// For `#[serde(with = "admin::json")]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: ToJson, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    value.to_json(to)
}

/// For `#[serde(with = "admin::json")]`.
///
/// # Errors
/// Those of the deserializer, and what cannot be such a value.
pub fn deserialize<'de, T: FromJson, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::from_json(from)
}

/// A value that is said in its form.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: ToJson> Serialize for Json<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.to_json(to)
    }
}

impl<'de, T: FromJson> Deserialize<'de> for Json<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::from_json(from).map(Self)
    }
}

impl<T: ToJson> ToJson for &T {
    fn to_json<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (*self).to_json(to)
    }
}

impl<T: ToJson> ToJson for &[T] {
    fn to_json<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(Json))
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn to_json<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.as_slice().to_json(to)
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let values = Vec::<Json<T>>::deserialize(from)?;
        Ok(values.into_iter().map(|Json(value)| value).collect())
    }
}

impl<T: ToJson> ToJson for Option<T> {
    fn to_json<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.as_ref().map(Json).serialize(to)
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn from_json<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Option::<Json<T>>::deserialize(from)?.map(|Json(value)| value))
    }
}

/// Types that are said as serde says them.
macro_rules! plain {
    ($($type:ty),* $(,)?) => {
        $(impl $crate::json::ToJson for $type {
            fn to_json<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(self, to)
            }
        }

        impl $crate::json::FromJson for $type {
            fn from_json<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                serde::Deserialize::deserialize(from)
            }
        })*
    };
}
pub(crate) use plain;

plain!((), bool, u8, u16, u32, u64, usize, i8, f64, String, [u32; 2], [u64; 2], Range<u64>);

/// Structs of the engine, by the names of their fields, in the order in which they are said. A
/// field has another name behind `as`, which it has where other documents say the same. A field
/// `if some` is left out while it is None, one `if true` while it is false; one behind `;` is
/// not said.
macro_rules! record {
    ($($type:ident {
        $($field:ident $(as $said:ident)? $(if $when:ident)?),+ $(,)? $(; $unsaid:ident)?
    })*) => {
        $(impl $crate::json::ToJson for $type {
            fn to_json<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                const FIELDS: &[&str] = &[$($crate::json::record!(@name $field $(, $said)?)),+];
                let mut fields = to.serialize_struct(stringify!($type), FIELDS.len())?;
                $($crate::json::record!(
                    @say fields, $crate::json::record!(@name $field $(, $said)?), self.$field
                    $(, $when)?
                );)+
                fields.end()
            }
        }

        impl $crate::json::FromJson for $type {
            fn from_json<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let mut fields = $crate::json::Fields::read(from)?;
                Ok(Self {
                    $($field: $crate::json::record!(
                        @read fields, $crate::json::record!(@name $field $(, $said)?) $(, $when)?
                    ),)+
                    $($unsaid: Default::default(),)?
                })
            }
        })*
    };
    (@name $field:ident) => {
        stringify!($field)
    };
    (@name $field:ident, $said:ident) => {
        stringify!($said)
    };
    (@say $fields:ident, $name:expr, $self:ident.$field:ident) => {
        $fields.serialize_field($name, &$crate::json::Json(&$self.$field))?
    };
    (@say $fields:ident, $name:expr, $self:ident.$field:ident, some) => {
        if $self.$field.is_some() {
            $crate::json::record!(@say $fields, $name, $self.$field);
        }
    };
    (@say $fields:ident, $name:expr, $self:ident.$field:ident, true) => {
        if $self.$field {
            $crate::json::record!(@say $fields, $name, $self.$field);
        }
    };
    (@read $fields:ident, $name:expr) => {
        $fields.take($name)?
    };
    (@read $fields:ident, $name:expr, $when:ident) => {
        $fields.take_if_there($name)?
    };
}
pub(crate) use record;

/// The fields of a struct that is read.
struct Fields(Map<String, Value>);

impl Fields {
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Map::deserialize(from).map(Self)
    }

    fn take<T: FromJson, E: de::Error>(&mut self, name: &'static str) -> Result<T, E> {
        let value = self.0.remove(name).ok_or_else(|| E::missing_field(name))?;
        T::from_json(value).map_err(|error| E::custom(format_args!("{name}: {error}")))
    }

    fn take_if_there<T: FromJson + Default, E: de::Error>(
        &mut self,
        name: &'static str,
    ) -> Result<T, E> {
        if self.0.contains_key(name) { self.take(name) } else { Ok(T::default()) }
    }
}

/// Enums and the few structs that serde is told more of, by a mirror with the same fields.
macro_rules! mirror {
    ($($type:ident as $mirror:ident),* $(,)?) => {
        $(impl $crate::json::ToJson for $type {
            fn to_json<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $mirror::serialize(self, to)
            }
        }

        impl $crate::json::FromJson for $type {
            fn from_json<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $mirror::deserialize(from)
            }
        })*
    };
}
pub(crate) use mirror;

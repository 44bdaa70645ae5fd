//! Maps whose keys stand once: the usual reader would keep the last of two, and nobody would know.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A map as it is read.
pub(super) struct Keyed<K, V>(BTreeMap<K, V>);

/// Reads a map; a key that stands twice is refused.
pub(super) fn once<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + fmt::Display,
    V: Deserialize<'de>,
{
    Keyed::deserialize(deserializer).map(|Keyed(map)| map)
}

/// The same for a map of maps.
pub(super) fn once_in_each<'de, D, K, L, V>(deserializer: D) -> Result<BTreeMap<K, BTreeMap<L, V>>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + fmt::Display,
    L: Deserialize<'de> + Ord + fmt::Display,
    V: Deserialize<'de>,
{
    let maps: BTreeMap<K, Keyed<L, V>> = once(deserializer)?;
    Ok(maps.into_iter().map(|(key, Keyed(map))| (key, map)).collect())
}

impl<'de, K: Deserialize<'de> + Ord + fmt::Display, V: Deserialize<'de>> Deserialize<'de> for Keyed<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<K, V>(PhantomData<(K, V)>);

        impl<'de, K: Deserialize<'de> + Ord + fmt::Display, V: Deserialize<'de>> Visitor<'de> for Reader<K, V> {
            type Value = Keyed<K, V>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keyed<K, V>, A::Error> {
                let mut read = BTreeMap::new();
                while let Some(key) = map.next_key::<K>()? {
                    if read.contains_key(&key) {
                        return Err(A::Error::custom(format!("duplicate field `{key}`")));
                    }
                    read.insert(key, map.next_value()?);
                }
                Ok(Keyed(read))
            }
        }

        deserializer.deserialize_map(Reader(PhantomData))
    }
}

//! Keys of OpenCL devices.

use super::OpenClMemory;
use crate::devices::keys::Key;

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "memory",
        expected: "shared, or copied",
        read: |spec, text| {
            let memory = OpenClMemory::ALL.into_iter().find(|memory| memory.name() == text)?;
            spec.opencl_settings_mut()?.memory = Some(memory);
            Some(())
        },
        write: |spec| spec.opencl_settings()?.memory.map(|memory| memory.name().to_owned()),
        of: |_| true,
    },
    Key {
        name: "persistent",
        expected: "on, or off",
        read: |spec, text| {
            let is_off = ["on", "off"].into_iter().position(|name| name == text)? == 1;
            spec.opencl_settings_mut()?.no_persistent = is_off;
            Some(())
        },
        write: |spec| spec.opencl_settings()?.no_persistent.then(|| "off".to_owned()),
        of: |_| true,
    },
];

/// Divides the text after `opencl:` into what selects the device and the keys. A device's name may have commas, and a `=`
/// after a word that is no key.
pub(super) fn divided(text: &str) -> (String, Vec<&str>) {
    let is_key = |part: &&str| {
        let key = part.split_once('=').map(|(key, _)| key.trim());
        key.is_some_and(|key| KEYS.iter().any(|known| known.name == key))
    };
    let (keys, which): (Vec<&str>, Vec<&str>) = text.split(',').partition(is_key);
    (which.join(",").trim().to_owned(), keys)
}

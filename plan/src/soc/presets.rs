//! Built-in presets.

/// Name and TOML text of each preset.
pub const PRESETS: [(&str, &str); 8] = [
    ("sd8gen3", include_str!("../../presets/sd8gen3.toml")),
    ("ideal", include_str!("../../presets/ideal.toml")),
    ("fast-gpu", include_str!("../../presets/fast-gpu.toml")),
    ("sd8elite", include_str!("../../presets/sd8elite.toml")),
    ("k9300", include_str!("../../presets/k9300.toml")),
    ("a18", include_str!("../../presets/a18.toml")),
    ("orin", include_str!("../../presets/orin.toml")),
    ("fsd", include_str!("../../presets/fsd.toml")),
];

/// Name and TOML text of each preset that consists of devices with rates of their own, in the form of `lapwing calibrate`.
pub const MACHINES: [(&str, &str); 3] = [
    ("core-ultra-5-125h", include_str!("../../presets/core-ultra-5-125h.toml")),
    ("laptop", include_str!("../../presets/laptop.toml")),
    ("phone", include_str!("../../presets/phone.toml")),
];

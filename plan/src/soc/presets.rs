//! Built-in presets.

/// Name and TOML text of each preset.
pub const PRESETS: [(&str, &str); 3] = [
    ("sd8gen3", include_str!("../../presets/sd8gen3.toml")),
    ("ideal", include_str!("../../presets/ideal.toml")),
    ("fast-gpu", include_str!("../../presets/fast-gpu.toml")),
];

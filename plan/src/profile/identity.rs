//! The identity of a profile: the program, machine, model and devices that were measured.

use super::data::{Machine, Profile};
use super::error::ProfileError;

/// The program, machine, model and devices for which a profile is valid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Version of the program; another version has other kernels.
    pub program: String,
    /// The machine.
    pub machine: Machine,
    /// The model.
    pub model: String,
    /// Maximum rows of a chunk.
    pub chunk_rows: usize,
    /// Name and description of each device.
    pub devices: Vec<(String, String)>,
}

impl Identity {
    /// A file name of letters, digits, `.`, `-` and `_`: the model name and an FNV-1a hash of the
    /// machine, devices and chunk size. It does not depend on the program version, so that a stale
    /// profile is found, refused and measured again.
    pub fn file_name(&self) -> String {
        let text = format!("{:?}", (&self.machine, &self.model, self.chunk_rows, &self.devices));
        file_name(&self.model, &text)
    }
}

/// A file name: the model's name, and an FNV-1a hash of what else the file depends on.
pub(crate) fn file_name(model: &str, text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let model: String = model.chars().map(plain).take(80).collect();
    format!("{model}-{hash:016x}.json")
}

impl Profile {
    /// Checks that the profile has this identity.
    ///
    /// # Errors
    /// [`ProfileError::Mismatch`] with the first field that differs.
    pub fn check_identity(&self, here: &Identity) -> Result<(), ProfileError> {
        let devices = self.devices.iter().map(|d| (d.name.clone(), d.description.clone()));
        let devices: Vec<(String, String)> = devices.collect();
        let list = |devices: &[(String, String)]| {
            let each = devices.iter().map(|(name, what)| format!("{name}: {what}"));
            each.collect::<Vec<_>>().join("; ")
        };
        let (a, b) = (&self.machine, &here.machine);
        let pairs = [
            ("program", self.program.clone(), here.program.clone()),
            ("machine.cpu", a.cpu.clone(), b.cpu.clone()),
            ("machine.cores", a.cores.to_string(), b.cores.to_string()),
            ("machine.isa", a.isa.clone(), b.isa.clone()),
            ("machine.os", a.os.clone(), b.os.clone()),
            ("model", self.model.clone(), here.model.clone()),
            ("chunk_rows", self.chunk_rows.to_string(), here.chunk_rows.to_string()),
            ("devices", list(&devices), list(&here.devices)),
        ];
        match pairs.into_iter().find(|(_, found, here)| found != here) {
            None => Ok(()),
            Some((field, found, here)) => {
                Err(ProfileError::Mismatch { field: field.to_owned(), found, here })
            }
        }
    }
}

//! A profile belongs to what is used of a device, not to the words that choose it.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use lapwing::devices::DeviceSpec;
use lapwing::profile::{Identity, Limits};
use lapwing::{Engine, EngineBuilder};
use lapwing_kernels::opencl::{OpenClInfo, find};

use crate::support::needs_driver;

fn builder(device: &str) -> EngineBuilder {
    let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/tiny/llama.gguf");
    Engine::builder().model(tiny).devices(DeviceSpec::list(device).expect("a device"))
}

fn of(builder: &EngineBuilder) -> Identity {
    builder.identity().expect("an identity")
}

/// Whether the default is in place, as far as the driver says.
fn is_in_place(device: &OpenClInfo) -> bool {
    device.shared_kind().is_some()
}

#[test]
fn each_use_of_a_device_has_a_profile_of_its_own_in_whatever_words() {
    needs_driver!(has_opencl);
    let device = find("").expect("a device");
    let (shared, nvidia) = (is_in_place(&device), device.may_be_persistent());
    let plain = builder("gpu=opencl");
    let number = format!("gpu=opencl:{}", device.index);
    let cases = [
        ("gpu=opencl", true),
        (&number, true),
        ("gpu=opencl:persistent=on", true),
        ("gpu=opencl:persistent=off", !nvidia),
        ("gpu=opencl:memory=copied", !shared),
        ("gpu=opencl:memory=copied,persistent=off", !shared && !nvidia),
    ];
    for (text, is_same) in cases {
        assert_eq!(of(&builder(text)) == of(&plain), is_same, "{text}");
        let names = [&builder(text), &plain].map(|builder| of(builder).file_name());
        assert_eq!(names[0] == names[1], is_same, "{text}");
    }
    if shared {
        assert_eq!(of(&builder("gpu=opencl:memory=shared")), of(&plain));
        // Only the first of two devices is in place, and the other one copies.
        let two = of(&builder("a=opencl+b=opencl"));
        let insists = of(&builder("a=opencl+b=opencl:memory=shared"));
        for (identity, used) in [(two, ["shared", "copied"]), (insists, ["copied", "shared"])] {
            for ((name, what), used) in identity.devices.iter().zip(used) {
                let wanted = format!("{name}=opencl:memory={used} on ");
                assert!(what.starts_with(&wanted), "{what}");
                assert!(what.contains(&device.name) && what.contains(&device.driver), "{what}");
            }
        }
        // More tokens than half of the memory holds.
        let large = plain.clone().cache_tokens(usize::try_from(device.memory / 16).expect("bytes"));
        assert!(of(&large).devices[0].1.contains("keys and values copied"), "{:?}", of(&large));
        assert_ne!(of(&large), of(&plain));
    }
}

#[test]
fn a_profile_of_copies_does_not_predict_what_is_in_place() {
    needs_driver!(has_opencl);
    let shared = is_in_place(&find("").expect("a device"));
    // One op of each kind is measured.
    let limits = Limits { runs: 1, per_op: Duration::ZERO, per_device: Duration::ZERO };
    let measure = |device: &str| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl");
        let builder = builder(device).packed_cache(folder);
        let profile = builder.clone().measure_blocking(limits, &mut |_| ControlFlow::Continue(()));
        let profile = profile.expect("a profile");
        profile.check_identity(&of(&builder)).expect("its own identity");
        (builder, profile)
    };
    let (copied, profile) = measure("gpu=opencl:memory=copied");
    let (plain, plain_profile) = measure("gpu=opencl");
    copied.clone().profile(profile.clone()).build_blocking().map(drop).expect("its own profile");
    plain.clone().profile(plain_profile).build_blocking().map(drop).expect("its own profile");
    if shared {
        let error = plain.profile(profile).build_blocking().map(drop).expect_err("another use");
        let text = error.to_string();
        assert!(text.contains("memory=copied") && text.contains("memory=shared"), "{text}");
    }
}

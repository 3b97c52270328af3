//! What idle processors do meanwhile: the deeper they sleep, the later they wake who is due on them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};

use crate::os::fork::Withheld;
use crate::os::shared::{Needed, Shared};

/// Where the kernel takes what wake-ups may be late by, for as long as the file is open.
pub const LATENCY_FILE: &str = "/dev/cpu_dma_latency";

/// What is asked of real processors, in microseconds: they may sleep as lightly as wakes them in time.
pub const LIGHT_SLEEP_US: u32 = 10;

/// While this lives, idle processors sleep so lightly that who is due on them is not late. Those of a virtual machine wait for work instead of
/// giving themselves back to their host, which may take milliseconds to return them. The kernel forgets it with the process, however that ends; a child that it forks has nothing of it.
pub(crate) struct Awake {
    _needed: Needed<Withheld>,
}

static AWAKE: Shared<Withheld> = Shared::of_one_process(drop);

impl Awake {
    /// # Errors
    ///
    /// The kernel's: as a rule it lets only root ask.
    pub(crate) fn ask() -> io::Result<Self> {
        let needed = AWAKE.need(|| {
            let mut file = OpenOptions::new().write(true).open(LATENCY_FILE)?;
            file.write_all(&tolerated_us(is_virtual()).to_ne_bytes())?;
            Ok::<_, io::Error>(Withheld::new(file.into()))
        });
        Ok(Self { _needed: needed? })
    }
}

/// With 0 no processor sleeps at all, which costs power, and the other half of a core its share of it.
const fn tolerated_us(is_virtual: bool) -> u32 {
    if is_virtual { 0 } else { LIGHT_SLEEP_US }
}

/// Whether what sleeps is given back to a host. Who cannot tell has a processor of its own.
fn is_virtual() -> bool {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    is_flagged(&read("/proc/cpuinfo"))
        || read("/sys/devices/system/cpu/cpuidle/current_driver").trim() == "haltpoll"
}

/// Whether `/proc/cpuinfo` says that the processors are a hypervisor's.
pub(crate) fn is_flagged(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    let mut flags = flags.flat_map(str::split_ascii_whitespace);
    flags.any(|flag| flag == "hypervisor")
}

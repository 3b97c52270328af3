//! What a call of the signal processing costs on the study's machine. Charged in the twin; live it takes what it takes.
//!
//! These are inputs: that a twin's modem uses 14.7 % of the processor is a check of consistency, not a result.

use laxity_model::Service;

use super::phase::Phase;

/// Service charged for the calls of the modem's driver; what passes an interrupt on to them costs [`Overheads`](crate::card::Overheads).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// A call that abandons its block (assumed: like the handler, it looks at the card and returns).
    pub abandoned: Service,
    /// Ring detection, every 2.5 ms (a reading: within the 0.1 ms that §5.4 would reserve for it).
    pub on_hook: Service,
    /// Tones, every 12.5 ms (calibrated by figure 9: a quarter of the data mode).
    pub dialing: Service,
    /// The one call that recognises the answer and prepares the equalizers: 3.3 ms (quoted: the repeatable worst case while
    /// connecting, §6.2.2; that it is this call is our reading).
    pub recognition: Service,
    /// Training and data: 1.84 ms (quoted: the average of §6.6, 14.7 % of 12.5 ms).
    pub data: Service,
}

impl Costs {
    /// The study's machine, a 450 MHz Pentium II.
    pub const STUDY: Self = Self {
        abandoned: Service::from_nanos(5_400),
        on_hook: Service::from_micros(60),
        dialing: Service::from_micros(460),
        recognition: Service::from_micros(3_300),
        data: Service::from_micros(1_840),
    };

    /// The same machine while transfers are timed (tables 1 to 3), when nothing is logged: 1.778 ms a call instead of 1.84 (calibrated: 1/7 works
    /// and 2/14 hardly does if a call, with the clock's ticks in it, needs just the 14.29 % that both of them give).
    ///
    /// The 1.84 ms are elapsed time (§6.1) of a kernel that logs: about 10 MB a minute at 549 ns an event, the driver's own register values
    /// among them (§3.2.1), and without logging it "offers the same performance as a regular kernel". 10 MB a minute are 2083 octets in
    /// 12.5 ms: with 18 or 19 octets an event, 110 to 116 of them, which take 60 to 64 µs; 62 are missing. How long an event is the study does not say.
    pub const UNLOGGED: Self = Self {
        data: Service::from_micros(1_778),
        ..Self::STUDY
    };

    /// One call of the signal processing in this phase; `recognised` if it found the answer tone's end.
    pub const fn call(&self, phase: Phase, recognised: bool) -> Service {
        match phase {
            _ if recognised => self.recognition,
            Phase::OnHook | Phase::Ended => self.on_hook,
            Phase::Dialing => self.dialing,
            Phase::Training | Phase::Connected => self.data,
        }
    }
}

//! `[devices.*]`: the soft modems, their lines and their phases.

use laxity_devices::modem::FarProfile;
use laxity_devices::pump::LineConfig;

use super::Placing;
use super::reader::{FREQUENCY, LEVEL, LOAD, OFFSET, SPAN, Section};
use super::sections::{DURATIONS, Names, named, processor, set};
use super::types::{HostSpec, LengthSpec, PhaseOverrides, ResolvedDevice};
use super::units::{self, format_span};

/// `[devices.*]`.
pub(super) fn devices(
    root: &Section<'_>,
    host: &HostSpec,
    lengths: &[(&str, &LengthSpec)],
) -> Names<ResolvedDevice> {
    named(root, "devices", |section, name| {
        section.allow(&["kind", "processor", "load", "line", "standard", "phases"]);
        section.require("kind", "\"soft-modem\"");
        section.choice("kind", &[("soft-modem", ())])?;
        let phases = phases(section);
        for (name, length) in lengths {
            check_limit(root, section, name, length, phases);
        }
        Some(ResolvedDevice {
            name: name.to_owned(),
            processor: processor(section, host),
            placing: Placing::Deferred,
            load: load(section),
            line: line(section),
            far: far(section)?,
            phases,
        })
    })
}

/// Whether a run is long enough to reach the connection.
fn check_limit(
    root: &Section<'_>,
    section: &Section<'_>,
    name: &str,
    length: &LengthSpec,
    overrides: PhaseOverrides,
) {
    let before = overrides.or(length.phases).before_connection();
    if before < length.limit {
        return;
    }
    let own = root.section(name, "");
    let place = own
        .filter(|own| own.has("limit"))
        .map_or_else(|| section.place_of("phases"), |own| own.place_of("limit"));
    let cause = format!(
        "a {name} run is over after {}, and {} connects after {} only",
        format_span(length.limit),
        section.path,
        format_span(before)
    );
    let remedy = format!("write a longer `limit` under [{name}], or shorter phases");
    root.findings.error(&place, cause, remedy);
}

fn load(section: &Section<'_>) -> units::Load {
    // 14.7 % of a 450 MHz Pentium II (§6.2.3).
    let study = units::Load {
        share: units::Share { ppm: 147_000 },
        tolerance: units::Share { ppm: 7_000 },
    };
    let Some(found) = section.quantity("load", &LOAD) else {
        return study;
    };
    if found.value.share.ppm == 0 {
        let cause = "`load` must be more than zero";
        section.wrong("load", cause, "write for example: load = \"14.7 %\"");
    }
    found.value
}

fn phases(section: &Section<'_>) -> PhaseOverrides {
    let Some(section) = section.section("phases", &format!("`phases` of {}", section.path)) else {
        return PhaseOverrides::default();
    };
    section.allow(&["on_hook", "dialing", "training"]);
    let span = |key| {
        let found = section.quantity_in(key, &SPAN, &DURATIONS, format_span);
        found.map(|found| found.value)
    };
    PhaseOverrides {
        on_hook: span("on_hook"),
        dialing: span("dialing"),
        training: span("training"),
    }
}

/// `standard = "v22bis"`: what the modem speaks.
fn far(section: &Section<'_>) -> Option<FarProfile> {
    let Some(found) = section.choice("standard", &[("study", false), ("v22bis", true)]) else {
        return (!section.has("standard")).then_some(FarProfile::PLAIN);
    };
    if !found.value {
        return Some(FarProfile::PLAIN);
    }
    #[cfg(feature = "v22bis")]
    return Some(FarProfile::V22BIS);
    #[cfg(not(feature = "v22bis"))]
    {
        let cause = "this laxity was built without V.22bis";
        let remedy = "build it with `--features v22bis`, or leave `standard` out";
        section.wrong("standard", cause, remedy);
        None
    }
}

fn line(section: &Section<'_>) -> LineConfig {
    let mut line = LineConfig::default();
    let Some(section) = section.section("line", &format!("`line` of {}", section.path)) else {
        return line;
    };
    section.allow(&["snr_down", "snr_up", "clock_offset", "carrier_offset"]);
    let level = |key, place: &mut f64| {
        let show = |mdb: u64| format!("\"{} dB\"", mdb / 1_000);
        let found = section.quantity_in(key, &LEVEL, &(1_000..=120_000), show);
        set(
            place,
            found.map(|found| found.map(|mdb| mdb as f64 / 1_000.0)),
        );
    };
    level("snr_down", &mut line.snr_down_db);
    level("snr_up", &mut line.snr_up_db);
    let offset = |key, quantity, most: i64, unit, place: &mut f64| {
        let show = |thousandths: i64| format!("\"{} {unit}\"", thousandths / 1_000);
        let found = section.quantity_in(key, quantity, &(-most..=most), show);
        set(
            place,
            found.map(|found| found.map(|size| size as f64 / 1_000.0)),
        );
    };
    let (clock, carrier) = (&mut line.clock_ppm, &mut line.carrier_offset_hz);
    offset("clock_offset", &OFFSET, 500_000, "ppm", clock);
    offset("carrier_offset", &FREQUENCY, 10_000, "Hz", carrier);
    line
}

//! Why a reserved device lost what nothing excuses, as far as it was seen: somebody held its processor, its holder received less than was reserved, what runs
//! above may take all of that, a call took longer than that serves, or nobody knows.

use std::collections::BTreeMap;

use laxity::observe::Loss;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::verify::contract::Phase;
use laxity_model::{Grade, Reservation, Service, Span};

use super::modes::{Mode, Modem, modes};
use super::served::Place;
use crate::report::value::count;
use crate::scenario::units::{format_reservation, format_span};
use crate::scenario::{ResolvedDevice, ResolvedVariant, TwinProfile, devices};

/// What a device has reserved, and what that is worth where it runs.
pub(super) struct Held {
    reservation: Reservation,
    /// `None` where nothing of it is sure.
    supply: Option<Box<dyn SupplyBound>>,
    /// So long after its interrupt a call must be complete.
    due: Span,
    /// A modem's calls, each of which is due as its phase has it: in a twin they deliver their output in pieces.
    modes: Vec<Mode>,
}

impl Held {
    /// Of a device in a variant, where that runs; `None` if it has nothing reserved, and of one whose numbers are too large to be reckoned with.
    pub(super) fn of(
        variant: &ResolvedVariant,
        device: &ResolvedDevice,
        (twin, tick): (Option<TwinProfile>, Span),
    ) -> Option<Self> {
        let request = device.placing.request()?;
        let place = Place::of(variant, device, (twin, tick));
        let is_modem = device.device.kind() == devices::KINDS[0];
        let modes = is_modem.then(|| modes(variant.start, Modem::of(device, twin)));
        // When it must be complete does not depend on how long a call is.
        let analysed = device.device.analysed(Service::from_nanos(1)).ok()?;
        let limits = [analysed.input_limit(), analysed.output_limit()];
        Some(Self {
            reservation: request.reservation,
            supply: place.kept(request.enforcer, request.reservation),
            due: limits.into_iter().flatten().min()?,
            modes: modes.unwrap_or_default(),
        })
    }

    /// So long after its interrupt a call of a phase must be complete: a modem that learns the line is called as one that is connected.
    fn due(&self, phase: &Phase) -> Span {
        let mut modes = self.modes.iter();
        let mode = modes.find(|mode| mode.name == phase.name());
        let mode = mode.or(self.modes.last());
        mode.map_or(self.due, |mode| mode.due)
    }
}

/// Why something was lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// Somebody held the processor for so long that it explains why this took so long.
    Held,
    /// Its holder received less than was reserved.
    Short,
    /// A call took longer than is served in time.
    Long,
    /// Calls that each would be served in time came too close one after the other.
    Many,
    /// What runs above may take all that was reserved.
    Above,
    /// It had no reservation yet.
    Before,
    /// It had not begun, and nobody saw why.
    Unknown,
}

impl Held {
    fn cause(&self, loss: &Loss) -> Cause {
        if !loss.reserved {
            return Cause::Before;
        }
        let Some(supply) = &self.supply else {
            return Cause::Above;
        };
        let [had, longest] = loss.service.unwrap_or_default();
        let took = loss.took();
        // What a window is sure of cannot be reckoned in numbers that large: then nobody knows.
        let lasts = |service| Some(supply.window_for(service).ok()? + loss.halted);
        // What was taken from its holder meanwhile comes later.
        let taken = Service::from_nanos(loss.held.as_nanos());
        let [Some(within), Some(with_hold)] = [had, had + taken].map(lasts) else {
            return Cause::Unknown;
        };
        if took > within && took <= with_hold {
            Cause::Held
        } else if loss.service.is_none() {
            Cause::Unknown
        } else if took > within {
            Cause::Short
        } else if longest > supply.least_service(self.due(&loss.phase)) {
            Cause::Long
        } else {
            Cause::Many
        }
    }

    /// In words, of a loss that has this cause; `unkept`: a grade that says that somebody may take the reservation away, and who.
    fn words(&self, cause: Cause, loss: &Loss, unkept: Option<&Grade>) -> String {
        let reserved = format_reservation(self.reservation);
        let [had, longest] = loss.service.unwrap_or_default();
        let (within, while_in) = (loss.took(), during(&loss.phase));
        let due = self.due(&loss.phase);
        let supply = self.supply.as_ref();
        let least = supply.map_or(Service::ZERO, |supply| supply.least_service(due));
        let lasts = supply.and_then(|supply| supply.window_for(had).ok());
        let unkept = unkept.and_then(|grade| Some(format!("{grade}: {}", grade.reason()?)));
        match cause {
            Cause::Held => format!("somebody held the processor for {}", rounded(loss.held)),
            Cause::Short => format!(
                "less was received than reserved: {} in {}, which {reserved} gives in {} at the latest",
                rounded(had.as_dedicated_span()),
                rounded(within),
                rounded(lasts.unwrap_or(Span::MAX)),
            ),
            Cause::Long => format!(
                "a call of {}{while_in}, where {reserved} serves one of {} in time: within {} of its interrupt",
                rounded(longest.as_dedicated_span()),
                rounded(least.as_dedicated_span()),
                rounded(due),
            ),
            Cause::Many => format!(
                "calls{while_in} that took {} together, the longest {}: more than {reserved} serves so close one after the other",
                rounded(had.as_dedicated_span()),
                rounded(longest.as_dedicated_span()),
            ),
            Cause::Above => match unkept {
                Some(why) => format!("nothing of {reserved} was sure, which was {why}"),
                None => format!("nothing of {reserved} was sure, as what runs above may take it"),
            },
            Cause::Before => "it had no reservation yet".to_owned(),
            Cause::Unknown => match unkept {
                Some(why) => format!("it had not begun, and the reservation was {why}"),
                None => "nobody saw why".to_owned(),
            },
        }
    }

    /// Whether each of these was a call longer than is served in time, so that nothing that was reserved was missing, and than what was planned for in its
    /// phase: what fails a shorter one is a proposal that was too small. `false` of none.
    pub(super) fn is_outgrown<'a>(
        &self,
        losses: impl Iterator<Item = &'a Loss>,
        planned: impl Fn(&Phase) -> Service,
    ) -> bool {
        let is_longer = |loss: &Loss| {
            let [_, longest] = loss.service.unwrap_or_default();
            self.cause(loss) == Cause::Long && longest > planned(&loss.phase)
        };
        each(losses, is_longer)
    }

    /// Why that was lost by one whose reservations had these grades, in a sentence; `None` of nothing.
    pub(super) fn causes<'a>(
        &self,
        losses: impl Iterator<Item = &'a Loss>,
        grades: &[(String, Grade)],
    ) -> Option<String> {
        let grades = grades.iter().map(|(_, grade)| grade);
        let unkept = grades.max_by_key(|grade| grade.rank());
        let mut all: BTreeMap<Cause, Vec<&Loss>> = BTreeMap::new();
        for loss in losses {
            all.entry(self.cause(loss)).or_default().push(loss);
        }
        let each = all.into_iter().filter_map(|(cause, losses)| {
            let worst = losses.iter().max_by_key(|loss| loss.amount)?;
            let samples: u64 = losses.iter().map(|loss| loss.amount).sum();
            let times = losses.len() as u64;
            let often = match times {
                1 => String::new(),
                _ => format!(" {} times, such as", count(times)),
            };
            let halted = match losses.iter().any(|loss| !loss.halted.is_zero()) {
                true => ", besides what a halt of the machine excuses",
                false => "",
            };
            let words = self.words(cause, worst, unkept);
            let noun = if samples == 1 { "sample" } else { "samples" };
            Some(format!("{} {noun}{often}: {words}{halted}", count(samples)))
        });
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| each.join("; "))
    }
}

/// Whether in each of these a call took a quarter more than is `usual` while there is all to do, and nothing was missing of what its device asked for but a tenth:
/// the machine was slower than anybody could foresee, and whoever had the processor for himself would have lost the same. `false` of none.
pub(super) fn outgrew_usual<'a>(losses: impl Iterator<Item = &'a Loss>, usual: Service) -> bool {
    each(losses, |loss| {
        let [had, longest] = loss.service.unwrap_or_default();
        let had = had.as_dedicated_span();
        let is_whole = loss.took() <= had + had / 10 + loss.halted;
        longest > usual + usual / 4 && is_whole
    })
}

/// Whether all of them are so; `false` of none.
fn each<'a>(losses: impl Iterator<Item = &'a Loss>, is_so: impl Fn(&Loss) -> bool) -> bool {
    let mut losses = losses.peekable();
    losses.peek().is_some() && losses.all(is_so)
}

/// Of a device without phases nothing.
fn during(phase: &Phase) -> String {
    match *phase == Phase::RUN {
        true => String::new(),
        false => format!(" while {}", phase.name()),
    }
}

/// To a hundredth of a millisecond.
fn rounded(span: Span) -> String {
    format_span(span.rounded(Span::from_micros(10)))
}

#[cfg(test)]
mod tests {
    use laxity_devices::modem::{CardClock, Costs};
    use laxity_model::Instant;
    use laxity_model::analysis::supply::ExplicitDeadline;

    use super::*;
    use crate::scenario::Start;

    fn held() -> Held {
        let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8));
        let reservation = two_of_eight.expect("valid");
        Held {
            reservation,
            supply: Some(Box::new(ExplicitDeadline::continuous(reservation))),
            due: Span::from_micros(12_500),
            modes: Vec::new(),
        }
    }

    fn loss(amount: u64, took_ms: u64, service_us: Option<[u64; 2]>) -> Loss {
        Loss {
            amount,
            phase: Phase::DIALING,
            span: [
                Instant::from_millis(100),
                Instant::from_millis(100 + took_ms),
            ],
            service: service_us.map(|both| both.map(Service::from_micros)),
            halted: Span::ZERO,
            held: Span::ZERO,
            reserved: true,
        }
    }

    fn told(losses: &[Loss]) -> String {
        held().causes(losses.iter(), &[]).unwrap_or_default()
    }

    #[test]
    fn what_was_lost_is_told_with_what_was_seen_to_cause_it() {
        // 5.4 ms of 2/8 are complete after 22 ms; in 12.5 ms 2 ms are sure, then 4.5 ms of the next pause have passed.
        let long = loss(6, 18, Some([5_400, 5_400]));
        let serves = "6 samples: a call of 5.4ms while dialing, where 2ms/8ms serves one of 2ms in time: within 12.5ms of its interrupt";
        assert_eq!(told(std::slice::from_ref(&long)), serves);
        let starved = loss(300, 40, Some([1_800, 1_800]));
        assert_eq!(
            told(&[starved]),
            "300 samples: less was received than reserved: 1.8ms in 40ms, which 2ms/8ms gives in 7.8ms at the latest"
        );
        let many = loss(9, 20, Some([5_400, 1_900]));
        let many = told(&[many]);
        assert!(many.contains("5.4ms together, the longest 1.9ms"), "{many}");
        assert_eq!(told(&[loss(1, 20, None)]), "1 sample: nobody saw why");
        assert_eq!(told(&[]), "");
        let taken = Loss {
            held: Span::from_millis(17),
            ..loss(40, 30, Some([1_000, 1_000]))
        };
        let all = told(&[long.clone(), taken, long]);
        let somebody = "40 samples: somebody held the processor for 17ms; ";
        assert!(all.starts_with(somebody), "{all}");
        assert!(all.contains("12 samples 2 times, such as: a call"), "{all}");
    }

    /// A proposal is broken by what was received, or by what it was made for, and not by what was asked for beyond that.
    #[test]
    fn calls_outgrow_a_reservation_only_where_nothing_of_it_was_missing() {
        let long = || loss(6, 18, Some([5_400, 5_400]));
        let planned = |_: &Phase| Service::from_micros(2_500);
        let outgrown = |losses: &[Loss]| held().is_outgrown(losses.iter(), planned);
        assert!(outgrown(&[long(), long()]));
        let starved = loss(300, 40, Some([1_800, 1_800]));
        assert!(!outgrown(&[long(), starved]));
        assert!(!outgrown(&[long(), loss(9, 20, Some([5_400, 1_900]))]));
        // 2 ms were measured, and a quarter more was to be served: laxity reserved too little for this one.
        assert!(!outgrown(&[long(), loss(6, 14, Some([2_400, 2_400]))]));
        assert!(outgrown(&[loss(6, 14, Some([2_600, 2_600]))]));
        assert!(!outgrown(&[]));
    }

    /// Whoever reserved nothing answers for its losses but where a processor of its own would not have been enough.
    #[test]
    fn calls_outgrow_a_whole_processor_where_nothing_of_it_was_missing() {
        let outgrown = |longest: &[u64], usual| {
            let losses = longest.iter();
            let losses = losses.map(|long| loss(101, 44, Some([40_000, *long])));
            let losses: Vec<_> = losses.collect();
            outgrew_usual(losses.iter(), Service::from_micros(usual))
        };
        assert!(outgrown(&[17_900, 8_200], 1_840));
        assert!(!outgrown(&[17_900, 2_200], 1_840));
        // Of what was kept from the processor for most of the time nobody knows.
        let starved = loss(9_000, 4_000, Some([60_000, 17_900]));
        let usual = Service::from_micros(1_840);
        assert!(!outgrew_usual([starved].iter(), usual));
        // Who asks for more than there is loses by what it asks for.
        assert!(!outgrown(&[17_900, 17_900], 16_000));
        assert!(!outgrown(&[], 1_840));
    }

    #[test]
    fn a_hold_is_told_only_where_it_explains_what_was_lost() {
        let short = |loss| Loss {
            held: Span::from_micros(300),
            ..loss
        };
        // Overloaded by itself for three seconds, in which it had all that was reserved.
        let overloaded = told(&[short(loss(40_000, 3_000, Some([750_000, 5_400])))]);
        let long = "samples: a call of 5.4ms";
        assert!(overloaded.contains(long), "{overloaded}");
        let starved = told(&[short(loss(300, 40, Some([1_800, 1_800])))]);
        assert!(starved.contains("less was received"), "{starved}");
        assert_eq!(
            told(&[short(loss(300, 40, None))]),
            "300 samples: nobody saw why"
        );
        let never = Loss {
            held: Span::from_millis(35),
            ..loss(300, 40, None)
        };
        assert!(told(&[never]).contains("held the processor for 35ms"));
    }

    /// Who can take the processor is named beside what never began.
    #[test]
    fn what_had_not_begun_is_told_with_who_outranks_the_reservation() {
        let grades = [
            ("modem".to_owned(), Grade::Enforced),
            (
                "modem".to_owned(),
                Grade::Unenforced {
                    reason: "ranked above: rogue".into(),
                },
            ),
        ];
        let told = held().causes([loss(2_916, 108, None)].iter(), &grades);
        let named = "2916 samples: it had not begun, and the reservation was unenforced: ranked above: rogue";
        assert_eq!(told.as_deref(), Some(named));
        let kept = held().causes([loss(9, 108, None)].iter(), &grades[..1]);
        assert_eq!(kept.as_deref(), Some("9 samples: nobody saw why"));
    }

    /// Under work that may take all of it, nothing that it received is less than was sure.
    #[test]
    fn of_a_reservation_that_is_worth_nothing_is_told_who_runs_above() {
        let nothing = Held {
            supply: None,
            ..held()
        };
        let losses = [loss(300, 40, Some([1_800, 1_800])), loss(9, 40, None)];
        let reason = "ranked above the slot on its processor: above".to_owned();
        let grades = [("modem".to_owned(), Grade::Unenforced { reason })];
        let told = nothing.causes(losses.iter(), &grades);
        let named = "309 samples 2 times, such as: nothing of 2ms/8ms was sure, which was unenforced: ranked above the slot on its processor: above";
        assert_eq!(told.as_deref(), Some(named));
        let told = nothing.causes(losses.iter(), &[]).unwrap_or_default();
        assert!(told.ends_with("as what runs above may take it"), "{told}");
    }

    /// In the twin a call delivers its output while it goes on, and its last piece is due later than the first.
    #[test]
    fn a_call_in_pieces_is_due_when_its_last_piece_is() {
        let modem = |pieces| Modem {
            costs: Costs::STUDY,
            clock: CardClock::default(),
            pieces,
        };
        let told = |pieces, longest_us| {
            let held = Held {
                modes: modes(Start::OnHook, modem(pieces)),
                ..held()
            };
            let long = loss(6, 18, Some([5_400, longest_us]));
            held.causes([long].iter(), &[]).unwrap_or_default()
        };
        let whole = told(1, 3_300);
        assert!(
            whole.contains("serves one of 2ms in time: within 12.5ms"),
            "{whole}"
        );
        // The last of eight is due seven of them later; in 23.33 ms 5.33 ms are sure.
        let pieces = told(8, 3_300);
        assert!(
            pieces.contains("5.4ms together, the longest 3.3ms"),
            "{pieces}"
        );
        let long = told(8, 5_400);
        assert!(
            long.contains("serves one of 5.33ms in time: within 23.33ms"),
            "{long}"
        );
    }

    #[test]
    fn what_came_before_the_reservation_is_no_matter_of_it() {
        let on_hook = Loss {
            reserved: false,
            ..loss(1_160, 101, Some([190, 190]))
        };
        assert_eq!(told(&[on_hook]), "1160 samples: it had no reservation yet");
    }

    #[test]
    fn a_halt_is_no_service_that_was_kept_back() {
        let halted = Loss {
            halted: Span::from_millis(30),
            ..loss(8, 40, Some([2_500, 2_500]))
        };
        let told = told(&[halted]);
        assert!(told.contains("a call of 2.5ms"), "{told}");
        assert!(
            told.ends_with("besides what a halt of the machine excuses"),
            "{told}"
        );
    }
}

//! A reservation of a tenth of a millisecond while the modem is on hook, changed when it dials: what Jones and Saroiu §5.4 of
//! "Predictability Requirements of a Soft Modem" would have done, had their reservations been finer than a millisecond.

use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Holes, Made, Round, Runner, Said, Study, Text};
use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::runner::RunError;
use laxity_model::{HostError, Reservation, Span};

use crate::call::{self, Seen, Setup, Way};
use crate::or;
use crate::served::Served;

static TEXT: LazyLock<Text> = LazyLock::new(|| Text::parse(include_str!("../data/on-hook.toml")));

/// Calls of each kind in the twin.
const TWIN_CALLS: u32 = 8;
/// Calls of each kind on this machine.
const LIVE_CALLS: u32 = 2;
/// An on-hook call should be done before the next interrupt.
const ON_HOOK_PERIOD: Span = Span::from_micros(2_500);

/// The experiment.
pub struct OnHook;

impl Study for OnHook {
    type Case = Setup;
    type Seen = Seen;

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Setup>, RunError> {
        let calls = match round.live {
            false => made.request.repeats.unwrap_or(TWIN_CALLS).clamp(1, 1_000),
            true => LIVE_CALLS,
        };
        let setup = |way, rogue, n: u32| Setup {
            way,
            confined: false,
            rogue,
            recognition_within: None,
            on_hook: Span::from_secs(2),
            seed: made.request.seed.wrapping_add(u64::from(n)),
            length: Span::from_secs(30),
        };
        let kinds = [false, true].into_iter();
        let kinds = kinds.flat_map(|rogue| Way::ALL.map(|way| (way, rogue)));
        let setups = kinds.flat_map(|(way, rogue)| (0..calls).map(move |n| setup(way, rogue, n)));
        Ok(setups.collect())
    }

    fn name(&self, setup: &Setup) -> String {
        setup.way.name().into()
    }

    fn run(&self, setup: &Setup, host: &mut Runner<'_>) -> Result<Seen, HostError> {
        call::run(host, setup)
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        let (twin, live) = (&made.twin[..], &made.live[..]);
        for (place, trials, origin) in [
            ("In the twin", twin, Origin::Simulated),
            ("On this machine", live, Origin::Measured),
        ] {
            let rows = kinds(trials).map(|calls| row(calls, origin));
            draft.table("calls", "calls", &[("place", &place)], rows);
            tell(draft, place, trials);
        }
        claim_of_twin(draft, twin);
        if made.request.live {
            let said = made.said(|setup| setup.way == Way::Growing);
            claim_of_live(draft, live, said);
        }
        Ok(())
    }

    fn text(&self) -> &'static Text {
        &TEXT
    }
}

/// A call, and what was seen of it.
type Call = (Setup, Seen);

/// The calls of each kind.
fn kinds(calls: &[Call]) -> impl Iterator<Item = &[Call]> {
    calls.chunk_by(|(a, _), (b, _)| (a.way, a.rogue) == (b.way, b.rogue))
}

/// The calls whose reservation is changed when they dial.
fn growing(calls: &[Call]) -> Vec<&Seen> {
    let of = calls.iter().filter(|(setup, _)| setup.way == Way::Growing);
    of.map(|(_, seen)| seen).collect()
}

fn longest<'a>(of: impl Iterator<Item = &'a Vec<Served>>) -> Option<Span> {
    of.filter_map(|calls| Seen::longest(calls)).max()
}

/// A row of the table: the calls of one kind together.
fn row(calls: &[Call], origin: Origin) -> Row {
    let (setup, _) = &calls[0];
    let beside = match setup.rogue {
        true => "two spinners and a rogue",
        false => "two spinners",
    };
    let seen = || calls.iter().map(|(_, seen)| seen);
    let damage = |kind: usize| seen().map(|seen| seen.damage[kind]).sum::<u64>();
    let answers = |kind: usize| seen().map(|seen| seen.answers[kind]).sum::<u64>();
    let reserved = setup.way.on_hook().map_or(0, Reservation::share_ppm);
    let mut row = origin.row([
        format!("{}, beside {beside}", setup.way.name()).into(),
        calls.len().into(),
    ]);
    row.push(Origin::Charged.cell(Value::share(reserved)));
    let longest = [
        longest(seen().map(|seen| &seen.on_hook)),
        longest(seen().map(|seen| &seen.off_hook)),
    ];
    row.extend(longest.map(|longest| origin.cell(longest?)));
    row.extend(origin.row([
        damage(0).into(),
        damage(1).into(),
        damage(2).into(),
        answers(0).into(),
        answers(1).into(),
        seen().filter(|seen| seen.file_arrived).count().into(),
    ]));
    row
}

/// What came of the changes, in a sentence; nothing if there were no calls.
fn tell(draft: &mut Draft<'_>, place: &str, calls: &[Call]) {
    let growing = growing(calls);
    if growing.is_empty() {
        return;
    }
    let sum = |of: fn(&Seen) -> u64| growing.iter().map(|seen| of(seen)).sum::<u64>();
    let told: Holes<'_> = &[
        ("place", &place),
        ("calls", &growing.len()),
        ("granted", &sum(|seen| seen.answers[0])),
        ("refused", &sum(|seen| seen.answers[1])),
        ("lost", &sum(|seen| seen.damage[0] + seen.damage[1])),
        (
            "longest",
            &or(longest(growing.iter().map(|seen| &seen.on_hook)), "none"),
        ),
    ];
    draft.say("told", told);
}

fn claim_of_twin(draft: &mut Draft<'_>, calls: &[Call]) {
    let changed = growing(calls);
    let count = changed.len();
    let all = |holds: fn(&Seen) -> bool| count > 0 && changed.iter().all(|seen| holds(seen));
    let is_whole = all(|seen| seen.is_whole() && seen.file_arrived);
    let whole = if is_whole {
        "all whole"
    } else {
        "not all whole"
    };
    let on_hook: usize = changed.iter().map(|seen| seen.on_hook.len()).sum();
    let latest = longest(changed.iter().map(|seen| &seen.on_hook));
    let outranked = calls
        .iter()
        .filter(|(setup, _)| setup.way == Way::Thread && setup.rogue);
    let hindered = longest(outranked.map(|(_, seen)| &seen.on_hook));
    let seen: Holes<'_> = &[
        ("calls", &count),
        ("whole", &whole),
        ("longest", &or(latest, "none")),
        ("on-hook", &on_hook),
        ("longest-outranked", &or(hindered, "none")),
    ];
    draft.claim("whole", is_whole, seen);
    draft.claim("granted", all(|seen| seen.answers == [1, 0]), seen);
    let within = ON_HOOK_PERIOD * 2;
    let is_prompt = latest.is_some_and(|latest| latest <= within);
    draft.claim("prompt", is_prompt, seen);
    let is_hindered = hindered.is_some_and(|hindered| hindered > within);
    draft.claim("outranked", is_hindered, seen);
}

/// A call that lost nothing but what the machine's own halts excuse leaves open whether samples are lost; no halt excuses that a change is refused.
fn claim_of_live(draft: &mut Draft<'_>, calls: &[Call], said: Said) {
    let changed = growing(calls);
    let broken = changed.iter().filter(|seen| !seen.is_whole());
    let broken = broken.count();
    let excused = changed.iter().filter(|seen| seen.is_excused()).count();
    let granted = changed.iter().filter(|seen| seen.answers[0] == 1).count();
    let nothing_else = !changed.is_empty() && changed.len() == excused;
    let said = said.but(nothing_else.then(|| TEXT.say("excused", &[])));
    let held = broken == excused && granted == changed.len() && !changed.is_empty();
    let seen: Holes<'_> = &[
        ("calls", &changed.len()),
        ("changed", &granted),
        ("broken", &broken),
        ("excused", &excused),
    ];
    // What no halt excuses is beyond doubt.
    let is_broken = |seen: &&Seen| seen.undisturbed_damage > 0 || seen.answers[1] > 0;
    let is_certain = changed.iter().any(is_broken);
    draft.claim_here("live", (held, is_certain), seen, &said);
}

#[cfg(test)]
mod tests {
    use laxity_lab::bench::{Request, judge};
    use laxity_lab::report::Report;

    use super::*;
    use crate::{disturbed, told_and_open};

    /// What is claimed of these live calls, each with the samples that it lost and those of them that no halt excuses, where so much of each was disturbed.
    fn held(calls: &[(u64, u64)], disturbed_ppm: u32) -> Vec<bool> {
        let report = judged(calls, [1, 0], disturbed_ppm);
        report
            .checks
            .iter()
            .filter_map(|check| check.held)
            .collect()
    }

    /// The same with these answers to each call: granted and refused.
    fn judged(calls: &[(u64, u64)], answers: [u64; 2], disturbed_ppm: u32) -> Report {
        let request = Request {
            live: true,
            ..Request::default()
        };
        let setup = Setup {
            way: Way::Growing,
            confined: false,
            rogue: false,
            recognition_within: None,
            on_hook: Span::ZERO,
            seed: 1,
            length: Span::ZERO,
        };
        let seen = |(lost, undisturbed_damage): &(u64, u64)| Seen {
            on_hook: vec![Served::default()],
            off_hook: Vec::new(),
            damage: [*lost, 0, 0],
            answers,
            file_arrived: true,
            undisturbed_damage: *undisturbed_damage,
        };
        let made = Made {
            live: calls.iter().map(|call| (setup, seen(call))).collect(),
            said: vec![disturbed(disturbed_ppm); calls.len()],
            ..Made::nothing(&request)
        };
        judge(&OnHook, &made).expect("nothing is analysed")
    }

    #[test]
    fn no_halt_excuses_a_refusal() {
        for (calls, disturbed_ppm) in [([(5, 0)], 0), ([(0, 0)], 10_001), ([(5, 0)], 10_001)] {
            let refused = judged(&calls, [0, 1], disturbed_ppm);
            assert_eq!(
                refused.checks.last().and_then(|check| check.held),
                Some(false)
            );
            assert_eq!(told_and_open(&refused), (5, 0));
        }
    }

    #[test]
    fn a_claim_about_nothing_does_not_hold() {
        assert_eq!(held(&[], 0), [false; 5]);
        let excused = judged(&[(5, 0)], [1, 0], 0);
        assert_eq!(
            told_and_open(&excused),
            (4, 1),
            "nothing tells, so nothing is claimed of live calls"
        );
    }

    #[test]
    fn what_the_machine_lost_itself_is_no_loss_of_the_change() {
        assert!(held(&[(5, 0), (0, 0)], 10_000)[4]);
        assert!(!held(&[(5, 1), (0, 0)], 10_000)[4]);
        assert!(!held(&[(0, 0), (5, 5)], 10_000)[4]);
    }

    #[test]
    fn where_too_much_was_disturbed_nothing_is_claimed_but_what_is_beyond_doubt() {
        assert_eq!(held(&[(5, 0), (0, 0)], 10_001).len(), 4);
        assert!(!held(&[(0, 0), (5, 5)], 10_001)[4]);
    }
}

//! Reservations that follow the load (Jones, Saroiu §5.4): a device whose work doubles and halves again, with each policy of
//! [`laxity_model::adaptive`] and with the best reservation that stays.
//!
//! * [`driver`]: the device's thread; [`trial`]: a run of it.

pub mod driver;
#[cfg(test)]
mod tests;
pub mod trial;

use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Holes, Made, Round, Runner, Said, Study, Text};
use laxity_lab::report::{Axis, Chart, Mark, Origin, Point, Row, Series, Value, nanos};
use laxity_lab::runner::RunError;
use laxity_model::adaptive::Policy;
use laxity_model::{HostError, Service, Span};

use driver::Load;
use trial::{GRAIN, MOST, Outcome, Setup, WINDOW, Way, settings};

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/adaptive.toml")));

/// The work of a job: the study's 1.84 ms (§6.6), and twice that.
pub const WORK: Service = Service::from_micros(1_840);
/// Each load lasts so long in the twin.
pub const STRETCH: Span = Span::from_secs(30);
/// The same on this machine.
pub const LIVE_STRETCH: Span = Span::from_secs(5);
/// So long is a load constant where nothing should change.
pub const CONSTANT_FOR: Span = Span::from_secs(240);
/// What another holder has of each 8 ms where admission is tried.
pub const OTHER: Service = Service::from_micros(4_500);
/// The bound on settling.
const SOON: Span = Span::from_secs(2);

/// The experiment.
pub struct Adaptive;

/// A setup for one of the figures.
#[derive(Clone, Debug)]
pub struct Case {
    /// The figure that it is made for.
    pub figure: &'static str,
    /// What is run.
    pub setup: Setup,
    /// How long.
    pub length: Span,
}

impl Study for Adaptive {
    type Case = Case;
    type Seen = Outcome;

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Case>, RunError> {
        let request = made.request;
        let mut cases = Vec::new();
        let mut add = |figure, ways: Vec<Way>| {
            let of = ways.into_iter().map(|way| case(figure, way, request.seed));
            cases.extend(of);
        };
        if round.live {
            if request.wants("live") {
                add("live", vec![Way::Fixed(best_fixed(made) + GRAIN)]);
                add("live", policies());
            }
            return Ok(cases);
        }
        if request.wants("steps") || (request.wants("live") && request.live) {
            // All that there are, for the best of them; what the policies begin with is among them.
            let grains = 1..=MOST.as_nanos() / GRAIN.as_nanos();
            let fixed = grains.map(|grains| Way::Fixed(GRAIN * grains));
            add("search", fixed.collect());
        }
        for figure in ["steps", "constant", "admission"] {
            if request.wants(figure) {
                add(figure, policies());
            }
        }
        Ok(cases)
    }

    fn name(&self, case: &Case) -> String {
        format!("{}, {}", case.figure, case.setup.way.name())
    }

    fn run(&self, case: &Case, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
        trial::run(host, &case.setup, case.length)
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        let of = |figure| {
            made.twin
                .iter()
                .filter(move |(case, _)| case.figure == figure)
        };
        let fixed = |held| of("search").find(|(case, _)| case.setup.way == Way::Fixed(held));
        let mut steps: Vec<&Trial> = of("steps").collect();
        if !steps.is_empty() {
            let compared = [best_fixed(made), at_start()];
            steps.splice(0..0, compared.into_iter().filter_map(fixed));
        }
        steps.iter().for_each(|trial| tell(draft, trial));
        draft.say("in-time", &[]);
        stepped(draft, "steps", &steps, STRETCH);
        let rows = of("constant").map(|trial| common(trial, Origin::Simulated));
        draft.table("constant", "constant", &[], rows);
        let rows = of("admission").map(beside_another);
        draft.table("admission", "admission", &[], rows);
        let live: Vec<&Trial> = made.live.iter().collect();
        stepped(draft, "live", &live, LIVE_STRETCH);
        let best = steps.first().map_or(0, |(_, best)| best.mean_share_ppm);
        for trial in &made.twin {
            check(draft, trial, best, &Said::default());
        }
        for trial in &made.live {
            let said = made.said(|case| case.setup.way == trial.0.setup.way);
            check(draft, trial, best, &said);
        }
        Ok(())
    }

    fn text(&self) -> &'static Text {
        &TEXT
    }
}

type Trial = (Case, Outcome);

/// Once, twice and once the work.
fn steps(stretch: Span) -> Load {
    Load {
        stretch,
        means: vec![WORK, WORK * 2, WORK],
        noise_percent: 10,
    }
}

/// What the policies begin with: enough for the lower load and its noise, as a maker would choose.
fn at_start() -> Service {
    settings(MOST).needed(WORK + WORK / 10)
}

/// Each policy, from what is enough at first.
fn policies() -> Vec<Way> {
    let policies = Policy::ALL.into_iter();
    let ways = policies.map(|policy| Way::Adaptive(policy, at_start()));
    ways.collect()
}

fn case(figure: &'static str, way: Way, seed: u64) -> Case {
    let stretch = match figure {
        "live" => LIVE_STRETCH,
        _ => STRETCH,
    };
    let mut setup = Setup {
        way,
        load: steps(stretch),
        other: Service::ZERO,
        seed,
    };
    let mut length = stretch * 3;
    match figure {
        "constant" => {
            (setup.load.means, length) = (vec![WORK], CONSTANT_FOR);
            setup.seed += 1;
        }
        "admission" => setup.other = OTHER,
        _ => {}
    }
    Case {
        figure,
        setup,
        length,
    }
}

/// The least reservation with which, and above which, no job was late in the twin.
fn best_fixed(made: &Made<'_, Adaptive>) -> Service {
    let tried = made.twin.iter().rev();
    let clean = tried
        .filter(|(case, _)| case.figure == "search")
        .take_while(|(_, outcome)| outcome.late + outcome.lost == 0);
    let held = clean.map(|(case, _)| case.setup.way.held());
    held.min().unwrap_or(MOST)
}

/// What came of a policy, or of a fixed reservation, in a sentence.
fn tell(draft: &mut Draft<'_>, (case, outcome): &Trial) {
    let share = outcome.mean_share_ppm / 10_000;
    let served = TEXT.say("served", &[("share", &share), ("late", &outcome.late)]);
    let followed = |from, up| {
        let after = outcome.followed(from, from + STRETCH, up);
        after.map_or("not followed".into(), |after| {
            format!(
                "followed after {}",
                after.rounded_down(Span::from_millis(1))
            )
        })
    };
    match case.setup.way {
        Way::Fixed(_) => {
            let way = case.setup.way.name();
            draft.say("fixed", &[("way", &way), ("served", &served)]);
        }
        Way::Adaptive(policy, _) => {
            let (up, down) = (followed(STRETCH, true), followed(STRETCH * 2, false));
            let said: Holes<'_> = &[
                ("policy", &policy.name()),
                ("up", &up),
                ("down", &down),
                ("served", &served),
            ];
            draft.say("adaptive", said);
        }
    }
}

/// What all tables begin with.
fn common((case, outcome): &Trial, origin: Origin) -> Row {
    let mut row = Origin::Charged.row([case.setup.way.name().into()]);
    row.extend(origin.row([
        outcome.jobs.into(),
        outcome.late.into(),
        outcome.lost.into(),
        Value::share(outcome.mean_share_ppm),
        outcome.changes.len().into(),
    ]));
    row
}

fn beside_another(trial: &Trial) -> Row {
    let mut row = common(trial, Origin::Simulated);
    let other = trial.1.other_ppm.unwrap_or(0);
    row.extend(Origin::Simulated.row([trial.1.refused.into(), Value::share(other)]));
    row
}

/// Runs over a load that doubles and halves again: a table and a drawing.
fn stepped(draft: &mut Draft<'_>, figure: &str, trials: &[&Trial], stretch: Span) {
    let origin = match figure {
        "live" => Origin::Measured,
        _ => Origin::Simulated,
    };
    let row = |trial: &&Trial| {
        let mut row = common(trial, origin);
        let up = trial.1.settled(stretch, stretch * 2);
        let down = trial.1.settled(stretch * 2, stretch * 3);
        let later = up.later_changes.max(down.later_changes);
        row.extend(match trial.0.setup.way {
            Way::Fixed(_) => vec![None; 3],
            Way::Adaptive(..) => {
                let after = [up, down].map(|step| step.after.and_then(|after| origin.cell(after)));
                after.into_iter().chain([origin.cell(later)]).collect()
            }
        });
        row
    };
    draft.table(figure, "steps", &[], trials.iter().map(row));
    if !trials.is_empty() {
        draft.chart(figure, chart(trials, stretch));
    }
}

fn chart(trials: &[&Trial], stretch: Span) -> Chart {
    let load = steps(stretch);
    let corners = (0..3).flat_map(|n| {
        let mean = load.mean(stretch * n);
        [point(stretch * n, mean), point(stretch * (n + 1), mean)]
    });
    let work = Series::new("work of a job", Mark::Line, corners.collect());
    let held = trials.iter().map(|(case, outcome)| {
        let points = held(case.setup.way.held(), outcome, stretch * 3);
        Series::new(case.setup.way.name(), Mark::Line, points)
    });
    let axes = (Axis::time("time"), Axis::time("processor time"));
    let series = std::iter::once(work).chain(held).collect();
    Chart::new(TEXT.say("chart", &[]), axes, series)
}

fn point(at: Span, service: Service) -> Point {
    (nanos(at), nanos(service.as_dedicated_span()))
}

/// What was held, with a corner before and after each change.
fn held(mut service: Service, outcome: &Outcome, end: Span) -> Vec<Point> {
    let mut points = vec![point(Span::ZERO, service)];
    for (at, next) in &outcome.changes {
        points.extend([point(*at, service), point(*at, *next)]);
        service = *next;
    }
    points.push(point(end, service));
    points
}

fn soon(after: Option<Span>) -> bool {
    after.is_some_and(|after| after <= SOON)
}

/// Whether so many of the steps, that up and that down, were followed soon enough; and whether one was not though the machine went on.
fn all_followed(outcome: &Outcome, stretch: Span, steps: usize) -> (bool, bool) {
    let steps = [(stretch, true), (stretch * 2, false)]
        .into_iter()
        .take(steps);
    let missed = steps.filter(|(from, up)| !soon(outcome.followed(*from, *from + stretch, *up)));
    let missed: Vec<(Span, bool)> = missed.collect();
    let mut from = missed.iter().map(|(from, _)| *from);
    let is_certain = from.any(|from| outcome.is_undisturbed(from, from + SOON));
    (missed.is_empty(), is_certain)
}

/// What is claimed of a policy in one of the figures; `best` is the mean share of the best fixed reservation, and its live runs `said` this of themselves.
fn check(draft: &mut Draft<'_>, (case, outcome): &Trial, best: u64, said: &Said) {
    let Way::Adaptive(policy, _) = case.setup.way else {
        return;
    };
    let (stretch, is_in_time) = (case.setup.load.stretch, policy == Policy::InTime);
    let up = outcome.settled(stretch, stretch * 2);
    let down = outcome.settled(stretch * 2, stretch * 3);
    let later = up.later_changes.max(down.later_changes);
    let followed = |from: Span, up| outcome.followed(from, from + stretch, up);
    let (more, less) = (followed(stretch, true), followed(stretch * 2, false));
    let words = |after: Option<Span>| after.map_or("never".into(), |after| after.to_string());
    let changes = outcome.changes.len() as u64;
    let most_changes = outcome.most_changes(Span::ZERO, CONSTANT_FOR);
    let held = outcome.changes.iter().map(|(_, service)| *service);
    let most_held = held.max().unwrap_or_else(at_start);
    let other = outcome.other_ppm.unwrap_or(0);
    let seen: Holes<'_> = &[
        ("policy", &policy.name()),
        ("way", &case.setup.way.name()),
        ("up", &words(up.after)),
        ("down", &words(down.after)),
        ("later", &later),
        ("mean", &outcome.mean_share_ppm),
        ("best", &best),
        ("most-changes", &most_changes),
        ("changes", &changes),
        ("span", &CONSTANT_FOR),
        ("most-held", &most_held),
        ("refused", &outcome.refused),
        ("other", &other),
        ("more", &words(more)),
        ("less", &words(less)),
        ("jobs", &outcome.jobs),
        ("late", &outcome.late),
        ("lost", &outcome.lost),
    ];
    match case.figure {
        "steps" => {
            draft.claim("up", soon(up.after), seen);
            if !is_in_time {
                draft.claim("down", soon(down.after) && later <= 1, seen);
                draft.claim("less", outcome.mean_share_ppm < best, seen);
            }
        }
        "constant" => {
            let in_all = changes <= CONSTANT_FOR / Span::from_secs(10) && outcome.jobs > 0;
            match is_in_time {
                true => draft.claim("calm-in-time", in_all && most_changes <= 3, seen),
                false => draft.claim("calm", in_all && most_changes <= 1, seen),
            }
        }
        "admission" => {
            let is_within = most_held + OTHER <= WINDOW.as_full_service();
            draft.claim("admitted", is_within && other >= 990_000, seen);
        }
        // On this machine the load is followed up, and down by those who can tell.
        _ => {
            let (key, steps) = [("live", 2), ("live-in-time", 1)][usize::from(is_in_time)];
            draft.claim_here(key, all_followed(outcome, stretch, steps), seen, said);
        }
    }
}

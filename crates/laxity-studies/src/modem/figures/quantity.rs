//! What a figure compares: what the study prints of a number, what the twin makes of it, and by which criterion they agree.

use laxity_lab::report::{Compared, Origin, Value, Verdict};
use laxity_model::base::time::Beside;
use serde::Deserialize;

use super::reading::{BUCKET, Reading, Runs, said};

/// As printed.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Printed {
    /// In the unit of what is read.
    Number(u64),
    Words(String),
}

/// When the twin agrees.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Criterion {
    /// It is within so many percent of what is printed, or of something else that the twin has.
    Within { percent: u64, of: Option<Reading> },
    /// Something is so.
    So(So),
}

/// It, or `of` in its stead, lies between two numbers; and above the first of the others, if it is to be `more`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct So {
    words: String,
    /// What was seen: `{seen}`, and of the others `{first}` and `{second}`.
    seen: String,
    of: Option<Reading>,
    least: Option<u64>,
    most: Option<u64>,
    #[serde(default)]
    more: bool,
    #[serde(default)]
    others: Vec<Reading>,
}

/// A row of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quantity {
    pub(super) figure: String,
    name: String,
    of: Reading,
    paper: Option<Printed>,
    /// Where it is printed.
    source: Option<String>,
    /// Where the twin's comes from; `None`: it is not told.
    twin: Option<Origin>,
    /// What is this in the twin, to a bucket of a histogram, shows only what was put in.
    charged_if: Option<Reading>,
    #[serde(default = "measured")]
    live: Origin,
    judged: Option<Criterion>,
    /// What is remarked if they do not agree.
    otherwise: Option<String>,
}

const fn measured() -> Origin {
    Origin::Measured
}

impl Quantity {
    /// The runs that it is read from.
    pub(super) fn runs(&self) -> Vec<&str> {
        let others: Vec<&Reading> = match &self.judged {
            Some(Criterion::Within { of, .. }) => of.iter().collect(),
            Some(Criterion::So(so)) => so.of.iter().chain(&so.others).collect(),
            None => Vec::new(),
        };
        let all = others.into_iter().chain(&self.charged_if);
        all.chain([&self.of]).flat_map(Reading::runs).collect()
    }

    /// The row; `None` where neither host has anything to tell. What was seen on this machine is judged by the same criterion as the twin's, beside it; what
    /// was put in there is not.
    pub(super) fn compared(&self, twin: &Runs<'_>, live: &Runs<'_>) -> Option<Compared> {
        let here = self.of.seen(live);
        if self.twin.is_none() && here.is_none() {
            return None;
        }
        let charged = self.charged_if.as_ref().and_then(|of| of.number(twin));
        let both = charged.zip(self.of.number(twin));
        let is_charged =
            both.is_some_and(|(charged, own)| charged.abs_diff(own) <= BUCKET.as_nanos());
        let origin = match is_charged {
            true => Some(Origin::Charged),
            false => self.twin,
        };
        let printed = self.paper.as_ref().map(|paper| match paper {
            Printed::Number(number) => self.of.value(*number),
            Printed::Words(words) => words.as_str().into(),
        });
        Some(Compared {
            paper: printed.and_then(|value| Origin::Quoted.cell(value)),
            twin: origin.and_then(|origin| origin.cell(self.of.seen(twin)?)),
            live_verdict: match (&here, self.live) {
                (Some(_), Origin::Measured) => self.verdict_here(live),
                _ => Verdict::Alone,
            },
            live: here.and_then(|value| self.live.cell(value)),
            verdict: origin.map_or(Verdict::Alone, |origin| self.verdict(twin, origin)),
            ..Compared::new(&self.name)
        })
    }

    /// What is to be said where the twin does not agree.
    pub(super) fn remark(&self, row: &Compared) -> Option<String> {
        let seen = row
            .twin
            .as_ref()
            .map(|cell| words(&cell.value, std::iter::empty()))?;
        let disagrees = matches!(row.verdict, Verdict::Disagrees(_));
        let remark = self.otherwise.as_ref().filter(|_| disagrees)?;
        Some(remark.replace("{seen}", &seen))
    }

    /// What was seen on this machine, judged if enough of it was undisturbed.
    fn verdict_here(&self, live: &Runs<'_>) -> Verdict {
        let runs = self.runs().into_iter().filter_map(|run| live.get(run));
        match said(runs.flatten().copied()).doubt() {
            Some(why) if self.judged.is_some() => Verdict::Inconclusive(why),
            _ => self.verdict(live, Origin::Measured),
        }
    }

    fn verdict(&self, twin: &Runs<'_>, origin: Origin) -> Verdict {
        let Some(criterion) = &self.judged else {
            return Verdict::Alone;
        };
        match criterion {
            Criterion::So(so) => so.judge(&self.of, twin, origin),
            Criterion::Within { percent, of } => {
                let wanted = match (of, &self.paper) {
                    (Some(other), _) => other.number(twin),
                    (None, Some(Printed::Number(number))) => Some(*number),
                    (None, _) => None,
                };
                let both = wanted.zip(self.of.number(twin));
                both.map_or_else(
                    || Verdict::Disagrees("never".into()),
                    |both| within(both, *percent, origin),
                )
            }
        }
    }
}

/// Where the study prints what is compared of a figure: each place with what stands there.
pub(super) fn sources<'a>(quantities: impl Iterator<Item = &'a Quantity>) -> Option<String> {
    let mut places: Vec<(&str, Vec<&str>)> = Vec::new();
    for quantity in quantities {
        let Some(source) = &quantity.source else {
            continue;
        };
        match places.iter_mut().find(|(place, _)| place == source) {
            Some((_, names)) => names.push(&quantity.name),
            None => places.push((source, vec![&quantity.name])),
        }
    }
    let places = places.iter();
    let words = places.map(|(place, names)| format!("{} ({place})", names.join("; ")));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("; "))
}

impl So {
    fn judge(&self, reading: &Reading, twin: &Runs<'_>, origin: Origin) -> Verdict {
        let beyond = self.others.first().filter(|_| self.more);
        let least = match beyond {
            Some(other) => other.number(twin).map(|number| number + 1),
            None => Some(self.least.unwrap_or(0)),
        };
        let number = self.of.as_ref().unwrap_or(reading).number(twin);
        let agrees = number.zip(least).is_some_and(|(number, least)| {
            (least..=self.most.unwrap_or(u64::MAX)).contains(&number)
        });
        let holes = ["{seen}", "{first}", "{second}"];
        let readings = [reading].into_iter().chain(&self.others);
        let values: Vec<Option<Value>> = readings.map(|reading| reading.seen(twin)).collect();
        let told = holes.into_iter().zip(&values);
        let told = told.fold(self.seen.clone(), |told, (hole, value)| {
            let seen = value
                .as_ref()
                .map(|value| words(value, values.iter().flatten()));
            told.replace(hole, seen.as_deref().unwrap_or("nothing"))
        });
        judge(agrees, &self.words, &told, origin)
    }
}

/// A value in the words of a verdict, told from the others there.
fn words<'v>(value: &Value, others: impl Iterator<Item = &'v Value>) -> String {
    match value {
        Value::Span(span) => {
            let others = others.filter_map(|other| match other {
                Value::Span(other) => Some(other.as_nanos()),
                _ => None,
            });
            others.fold(span.beside(*span), Beside::and).to_string()
        }
        Value::Text(words) => words.clone(),
        Value::Count(number) | Value::Ratio(number) | Value::BitRate(number) => number.to_string(),
        Value::Share(ppm) => ppm.to_string(),
        Value::Attempts(attempts) => attempts.succeeded.to_string(),
    }
}

/// Whether the twin's value is within so many percent of the one that is wanted.
fn within((wanted, twin): (u64, u64), percent: u64, origin: Origin) -> Verdict {
    let (wanted, twin) = (i128::from(wanted), i128::from(twin));
    let permille = (twin - wanted) * 1_000 / wanted.max(1);
    let sign = if permille < 0 { '-' } else { '+' };
    let agrees = (twin - wanted).abs() * 100 <= wanted * i128::from(percent);
    // What is beyond the limit by less than is shown does not look like it.
    let hair = !agrees && permille.unsigned_abs() == u128::from(percent) * 10;
    let off = permille.unsigned_abs() + u128::from(hair);
    let difference = format!("{sign}{}.{} %", off / 10, off % 10);
    judge(agrees, &format!("within {percent} %"), &difference, origin)
}

/// A verdict by any criterion, with what was seen. What was put in or chosen is consistent at best.
pub(super) fn judge(agrees: bool, criterion: &str, seen: &str, origin: Origin) -> Verdict {
    match (agrees, origin) {
        (false, _) => Verdict::Disagrees(format!("not {criterion}: {seen}")),
        (true, Origin::Charged) => Verdict::Consistent(format!("{criterion}: {seen}; put in")),
        (true, Origin::Calibrated) => Verdict::Consistent(format!("{criterion}: {seen}; chosen")),
        (true, _) => Verdict::Agrees(format!("{criterion}: {seen}")),
    }
}

#[cfg(test)]
mod tests {
    use laxity::study::Profile;
    use laxity_devices::modem::Costs;
    use laxity_devices::modem::card::Setting;

    use super::super::super::transfers::Place;
    use super::super::PLAN;
    use super::super::readings::Series;
    use super::super::readings::tests::seen;
    use super::super::tests::of;
    use super::*;
    use crate::disturbed;

    #[test]
    fn a_verdict_knows_what_was_put_in() {
        let near = |origin| within((1_000, 1_149), 15, origin);
        assert_eq!(
            near(Origin::Simulated),
            Verdict::Agrees("within 15 %: +14.9 %".into())
        );
        assert!(matches!(near(Origin::Charged), Verdict::Consistent(_)));
        assert!(matches!(near(Origin::Calibrated), Verdict::Consistent(_)));
        assert_eq!(
            within((100_000, 115_001), 15, Origin::Simulated),
            Verdict::Disagrees("not within 15 %: +15.1 %".into())
        );
        let far = within((1_000, 849), 15, Origin::Charged);
        assert_eq!(far, Verdict::Disagrees("not within 15 %: -15.1 %".into()));
    }

    #[test]
    fn what_was_measured_is_judged_by_itself() {
        let row = |figure: &str, name: &str, run, series, points: [(u64, u64); 2]| {
            let mut quantities = PLAN.quantities.iter();
            let quantity = quantities.find(|of| of.figure == figure && of.name.starts_with(name));
            let [twin, live] = points.map(|point| seen(series, &[point]));
            let [twin, live] = [&twin, &live].map(|readings| Runs::from([(run, vec![readings])]));
            let row = quantity.expect("it is compared").compared(&twin, &live);
            row.expect("both hosts have it")
        };
        // The study: 5.313 ms. What this machine shows does not stand under the twin's verdict.
        let gaps = [(9_000, 5_000), (9_000, 3_320)];
        let row_of_gaps = row(
            "figure-11",
            "largest gap",
            "callback-int",
            Series::Gaps,
            gaps,
        );
        assert!(matches!(row_of_gaps.verdict, Verdict::Agrees(_)));
        let live = &row_of_gaps.live_verdict;
        assert!(matches!(live, Verdict::Disagrees(_)), "{live:?}");
        // Of a run of which more than 1 % was disturbed there is no verdict.
        let judged = |disturbed_ppm| {
            let mut readings = seen(Series::Gaps, &[(9_000, 5_000)]);
            readings.said = disturbed(disturbed_ppm);
            let live = Runs::from([("callback-int", vec![&readings])]);
            let mut quantities = PLAN.quantities.iter();
            let quantity =
                quantities.find(|of| of.figure == "figure-11" && of.name == row_of_gaps.quantity);
            let row = quantity
                .expect("it is compared")
                .compared(&Runs::new(), &live);
            row.expect("it was seen here").live_verdict
        };
        assert!(matches!(judged(10_000), Verdict::Agrees(_)));
        assert!(matches!(judged(10_001), Verdict::Inconclusive(_)));
        // How long a live call is on hook is chosen here.
        let on_hook = row(
            "figure-1",
            "on hook",
            "int",
            Series::Phases,
            [(2_000, 2_000); 2],
        );
        assert_eq!(on_hook.live_verdict, Verdict::Alone);
    }

    /// What samples pile up in while a call waits, and how long it takes, is calculated from the cost of a call and the pause of its reservation, both of which were
    /// put in: so neither is a result of the twin's, nor ever said to agree.
    #[test]
    fn figures_14_and_15_show_the_sum_of_what_was_put_in() {
        let reservation = Place::try_from("RES 2/8".to_owned()).map(|place| place.reservation());
        let reservation = reservation.expect("a place").expect("a reservation");
        let call = Costs::STUDY.data.as_dedicated_span();
        let pause = reservation.period() - reservation.service().as_dedicated_span();
        let sum = (call + pause).as_nanos();
        let seen = ["int", "res"].map(|name| of(Profile::WIN2000_PII450, name, None, 0).1);
        let [int, res] = &seen;
        let twin = Runs::from([("int", vec![int]), ("res", vec![res])]);
        let row = |figure: &str, name: &str| {
            let mut quantities = PLAN.quantities.iter();
            let quantity = quantities.find(|of| of.figure == figure && of.name.starts_with(name));
            let row = quantity.and_then(|of| of.compared(&twin, &Runs::new()));
            row.expect("the twin has it")
        };
        let longest = row("figure-15", "longest");
        let pending = row("figure-14", "most samples pending");
        for row in [&longest, &pending] {
            let origin = row.twin.as_ref().map(|cell| cell.origin);
            assert_eq!(origin, Some(Origin::Charged), "{row:?}");
            assert!(matches!(row.verdict, Verdict::Consistent(_)), "{row:?}");
        }
        // A handler, a tick and two switches come on top.
        let Some(Value::Span(longest)) = longest.twin.map(|cell| cell.value) else {
            panic!("a span");
        };
        let besides = longest.as_nanos().checked_sub(sum);
        assert!(besides.is_some_and(|besides| besides < 20_000), "{longest}");
        let expected = Value::Count(sum * Setting::CONNECTED.rate_hz / 1_000_000_000);
        assert_eq!(pending.twin.map(|cell| cell.value), Some(expected));
    }

    /// What the quantity of this name is in a run in which only this was seen.
    fn read(name: &str, run: &'static str, series: Series, points: &[(u64, u64)]) -> Option<u64> {
        let mut quantities = PLAN.quantities.iter();
        let quantity = quantities.find(|quantity| quantity.name.starts_with(name));
        let readings = seen(series, points);
        let runs = Runs::from([(run, vec![&readings])]);
        quantity.expect("it is compared").of.number(&runs)
    }

    #[test]
    fn a_point_is_scattered_if_no_block_lasts_so_long() {
        let scattered = |took| read("scattered", "int", Series::Intervals, &[(20_000, took)]);
        let usual = [2_500, 12_500, 13_125, 11_250, 12_520];
        assert_eq!(usual.map(scattered), [Some(0); 5]);
        assert_eq!([15_900, 19_400, 5_000].map(scattered), [Some(1); 3]);
    }

    #[test]
    fn what_is_quoted_says_where_it_is_printed() {
        for quantity in &PLAN.quantities {
            let source = quantity.source.as_deref();
            assert_eq!(quantity.paper.is_some(), source.is_some(), "{quantity:?}");
            let is_known = source.is_none_or(|at| at.starts_with('§') || at.starts_with("slide"));
            assert!(is_known, "{quantity:?}");
        }
    }

    #[test]
    fn a_key_that_is_none_is_an_error_that_names_it() {
        let row = |of: &str, judged: &str| {
            let row = format!(
                r#"{{"figure": "figure-2", "name": "typical", "of": {of}, "judged": {judged}}}"#
            );
            serde_json::from_str::<Quantity>(&row).map_err(|error| error.to_string())
        };
        let read = r#"{"run": "int", "series": "handler", "statistic": "median"}"#;
        let within = r#"{"within": {"percent": 5}}"#;
        assert!(row(read, within).is_ok());
        let wrong = read.replace("\"run\"", "\"phase\": [\"training\"], \"run\"");
        let deeper = read.replace("\"run\"", &format!("\"less\": {wrong}, \"run\""));
        for wrong in [wrong, deeper] {
            let error = row(&wrong, within).expect_err("it has no such key");
            assert!(error.contains("`phase`"), "{error}");
        }
        let wrong = within.replace("percent\": 5", "percent\": 5, \"least\": 1");
        let error = row(read, &wrong).expect_err("it has no such key");
        assert!(error.contains("`least`"), "{error}");
        let without_run = read.replace("\"run\": \"int\",", "");
        let error = row(&without_run, within).expect_err("it is of no run");
        assert!(error.contains("`run`"), "{error}");
    }

    #[test]
    fn two_ticks_are_near_two_milliseconds() {
        let near =
            |gaps: &[(u64, u64)]| read("share near 2 ms", "callback-absent", Series::Gaps, gaps);
        let mut gaps = vec![(5_000, 976); 99];
        gaps.push((5_000, 1_953));
        assert_eq!(near(&gaps), Some(10_000));
        assert_eq!(near(&[]), None);
    }
}

//! A stretch of one run as lanes: who had the processor, when each activity ran, where its slots were.

use std::collections::BTreeMap;

use laxity_model::{ActivityId, EventKind, Instant, Span};

use super::draw::{legend, width};
use super::scale::Scale;
use super::svg::{BELOW, Svg, escape, number};
use super::{Axis, Mark, value};
use crate::evidence::lanes::{self, Drawn, Edge, Label, Lane};
use crate::evidence::trace::Trace;
use crate::layout::cut;

/// A stretch of one run. Times are nanoseconds since its begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    /// Which run it is of.
    pub caption: String,
    /// When the stretch began, in nanoseconds since the run did.
    since: u64,
    length: u64,
    /// The threads that have a colour of their own: name and class.
    threads: Vec<(String, &'static str)>,
    lanes: Vec<LaneView>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct LaneView {
    name: String,
    slices: Vec<Slice>,
    /// When the application recorded something.
    points: Vec<u64>,
    /// A level's values, each from when on.
    levels: Vec<(u64, u64)>,
}

impl LaneView {
    /// Its name, and of a level what the top of the lane stands for.
    fn label(&self) -> String {
        match largest(&self.levels) {
            None => cut(&self.name, NAME),
            Some(largest) => {
                let end = format!(", max {largest}");
                cut(&self.name, NAME.saturating_sub(end.len())) + &end
            }
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Slice {
    from: u64,
    to: u64,
    class: &'static str,
    name: String,
}

/// The classes that say what something is; activities that are neither handlers nor calls have colours in the order they are shown.
const KINDS: [(&str, &str); 5] = [
    ("interrupt", "s1"),
    ("deferred", "s2"),
    ("time slot", "slot"),
    ("anyone else", "crowd"),
    ("disturbed", "disturbed"),
];
const THREADS: [&str; 4] = ["s0", "s3", "s4", "s5"];

impl Timeline {
    /// A stretch that shows the device at its daily work: it begins just before the first interrupt in the run's last quarter. `activities`
    /// have a lane of their own; the others show on the processors' lanes only.
    #[must_use]
    pub fn representative(trace: &Trace, length: Span, activities: &[ActivityId]) -> Self {
        let last = trace.last_instant();
        let whole = last.saturating_since(trace.start);
        let late = Instant::from_nanos(last.as_nanos() - whole.as_nanos() / 4);
        let latest = last.as_nanos().saturating_sub(length.as_nanos());
        let is_late = |event: &&laxity_model::Event| {
            event.at >= late && event.kind == EventKind::InterruptEnter
        };
        let interrupt = trace.events.iter().find(is_late).map_or(late, |e| e.at);
        let lead = length.as_nanos() / 40;
        let from = interrupt.as_nanos().saturating_sub(lead).min(latest);
        let from = Instant::from_nanos(from).max(trace.start);
        Self::cut_out(trace, (from, length), activities)
    }

    fn cut_out(trace: &Trace, (from, length): (Instant, Span), shown: &[ActivityId]) -> Self {
        let to = from.checked_add(length).unwrap_or(Instant::MAX);
        let classes = classes(trace, shown);
        let mut rows: BTreeMap<Lane, LaneView> = BTreeMap::new();
        let mut open: BTreeMap<Lane, (Instant, Label)> = BTreeMap::new();
        let since = |at: Instant| at.clamp(from, to).saturating_since(from).as_nanos();
        lanes::draw(trace, &mut |Drawn { at, lane, edge }| {
            if let Lane::Activity(a) | Lane::Slots(a) = lane
                && !shown.contains(&a)
            {
                return;
            }
            let inside = from <= at && at <= to;
            match edge {
                Edge::Begin(label, _) => {
                    open.insert(lane, (at, label));
                }
                Edge::End => {
                    if let Some((begun, label)) = open.remove(&lane)
                        && begun < to
                        && at >= from
                    {
                        rows.entry(lane).or_default().slices.push(Slice {
                            from: since(begun),
                            to: since(at),
                            class: class(&classes, lane, label),
                            name: label.name(trace).into_owned(),
                        });
                    }
                }
                Edge::Point(Label::Mark(_), _) if inside => {
                    rows.entry(lane).or_default().points.push(since(at));
                }
                Edge::Level(value) if inside => {
                    let levels = &mut rows.entry(lane).or_default().levels;
                    levels.push((since(at), value));
                }
                Edge::Point(..) | Edge::Level(_) => {}
            }
        });
        let mut lanes: Vec<_> = rows.into_iter().collect();
        lanes.sort_by_key(|(lane, _)| lane.rank(trace));
        let named = lanes.into_iter().map(|(lane, view)| LaneView {
            name: lane.name(trace).into_owned(),
            ..view
        });
        let threads = classes.iter().filter(|(_, class)| THREADS.contains(class));
        let threads = threads.map(|(thread, class)| {
            let name = Lane::Activity(*thread).name(trace).into_owned();
            (name, *class)
        });
        Self {
            caption: trace.name.clone(),
            since: from.saturating_since(trace.start).as_nanos(),
            length: length.as_nanos(),
            threads: threads.collect(),
            lanes: named.collect(),
        }
    }
}

/// The class of each activity, the same on a processor's lane and on its own: by what it is, then by its place among those shown.
fn classes(trace: &Trace, shown: &[ActivityId]) -> BTreeMap<ActivityId, &'static str> {
    let mut classes = BTreeMap::new();
    for event in &trace.events {
        let class = match event.kind {
            EventKind::InterruptEnter => "s1",
            EventKind::DeferredEnter => "s2",
            _ => continue,
        };
        classes.entry(event.activity).or_insert(class);
    }
    let threads = shown.iter().filter(|shown| !classes.contains_key(shown));
    let threads: Vec<_> = threads.copied().zip(THREADS).collect();
    classes.extend(threads);
    classes
}

fn class(classes: &BTreeMap<ActivityId, &'static str>, lane: Lane, label: Label) -> &'static str {
    let activity = match (lane, label) {
        (_, Label::SLOT) => return "slot",
        (_, Label::DISTURBED | Label::CRAWLED | Label::HELD) => return "disturbed",
        (_, Label::Occupant(activity)) | (Lane::Activity(activity), _) => activity,
        _ => return "crowd",
    };
    classes.get(&activity).copied().unwrap_or("crowd")
}

const WIDTH: f64 = 1040.0;
/// A lane's name has this room, and more if it needs more, up to so many characters.
const LEFT: f64 = 146.0;
const NAME: usize = 48;
const RIGHT: f64 = 1022.0;
const LANE: f64 = 25.0;
const BAR: f64 = 16.0;
/// Nothing is drawn narrower than this, so that a handler of 5 µs shows in 60 ms.
const THINNEST: f64 = 0.8;
/// Slices of the same kind that are closer than this are drawn as one.
const INDISTINCT: f64 = 0.2;

/// A drawing for a page that has the style of all drawings.
pub(super) fn inline(shown: &Timeline) -> String {
    let mut svg = Svg::default();
    let all = shown.lanes.iter().flat_map(|lane| &lane.slices);
    let occurs = |class: &str| all.clone().any(|slice| slice.class == class);
    let threads = shown.threads.iter();
    let threads = threads.map(|(name, class)| (name.as_str(), *class));
    let colours = threads.chain(KINDS).filter(|(_, class)| occurs(class));
    let bars = Some(Mark::Bars { width: 0 });
    let colours = colours.map(|(name, class)| (name, class.to_owned(), bars));
    let names: Vec<String> = shown.lanes.iter().map(LaneView::label).collect();
    let left = names
        .iter()
        .map(|name| 10.0 + width(name))
        .fold(LEFT, f64::max);
    let top = legend(&mut svg, colours, (0.0, WIDTH)) + 4.0;
    let base = top + LANE * shown.lanes.len() as f64;
    let [since, length] =
        [shown.since, shown.length].map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
    let mut axis = Axis::time("time since the run began");
    axis.range = Some((since, since.saturating_add(length)));
    let scale = Scale::new(&axis, &[], false, 13, (left, RIGHT));
    for (x, text) in scale.ticks(13) {
        svg.path(
            "grid",
            format_args!("M{} {}V{}", number(x), number(top), number(base)),
        );
        svg.group("x", "", |svg| svg.text("", (x, base + 14.0), &text));
    }
    let name = format!("{}, {}", axis.label, scale.unit_name());
    svg.text("name right", (RIGHT, base + 31.0), &name);
    let per_nano = (RIGHT - left) / shown.length.max(1) as f64;
    for (row, (lane, name)) in shown.lanes.iter().zip(&names).enumerate() {
        let y = top + LANE * row as f64;
        svg.text("name right", (left - 10.0, y + 16.0), name);
        let line = number(y + LANE - 2.0);
        svg.path("grid", format_args!("M{} {line}H{RIGHT}", number(left)));
        let place = format!(
            r#"lanes" transform="translate({} {})"#,
            number(left),
            number(y + 3.5)
        );
        svg.group(&place, "", |svg| {
            slices(svg, &lane.slices, per_nano);
            points(svg, &lane.points, per_nano);
            level(svg, &lane.levels, per_nano, RIGHT - left);
        });
    }
    let words = format!("{} of {}", value::nanos(shown.length), shown.caption);
    Svg::whole((WIDTH, base + BELOW), &words, None, &svg)
}

/// What is drawn of a lane: `per_nano` pixels a nanosecond, from the left and top of its bars.
fn slices(svg: &mut Svg, slices: &[Slice], per_nano: f64) {
    let mut slices = slices.iter().peekable();
    while let Some(slice) = slices.next() {
        let (mut to, mut joined, mut time) = (slice.to, 1, slice.to - slice.from);
        while let Some(next) = slices.next_if(|next| {
            let gap = next.from.saturating_sub(to) as f64 * per_nano;
            next.name == slice.name && next.class == slice.class && gap < INDISTINCT
        }) {
            joined += 1;
            time += next.to - next.from;
            to = next.to;
        }
        let x = number(slice.from as f64 * per_nano);
        let width = number(((to - slice.from) as f64 * per_nano).max(THINNEST));
        let times = if joined > 1 {
            format!("{joined} × ")
        } else {
            String::new()
        };
        let (class, name) = (slice.class, escape(&slice.name));
        svg.push(format_args!(
            r#"<rect class="{class}" x="{x}" width="{width}" height="{BAR}"><title>{times}{name}, {}</title></rect>"#,
            value::nanos(time)
        ));
    }
}

fn points(svg: &mut Svg, points: &[u64], per_nano: f64) {
    let mut path = Svg::default();
    for at in points {
        path.push(format_args!("M{} -3v4", number(*at as f64 * per_nano)));
    }
    if !path.is_empty() {
        svg.path("axis", path);
    }
}

fn largest(levels: &[(u64, u64)]) -> Option<u64> {
    levels.iter().map(|(_, value)| *value).max()
}

/// A level as steps, its largest value at the top of the lane.
fn level(svg: &mut Svg, levels: &[(u64, u64)], per_nano: f64, right: f64) {
    let Some(largest) = largest(levels) else {
        return;
    };
    let mut path = Svg::default();
    for (at, value) in levels {
        let x = number(*at as f64 * per_nano);
        let height = BAR * *value as f64 / largest.max(1) as f64;
        let level = number(BAR - height);
        if path.is_empty() {
            path.push(format_args!("M{x} {level}"));
        } else {
            path.push(format_args!("H{x}V{level}"));
        }
    }
    path.push(format_args!("H{}", number(right)));
    // In no colour of the legend: its lane is named for it.
    svg.path("axis", path);
}

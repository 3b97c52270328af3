//! A stretch of one run as lanes of inline SVG: who had the processor, when each activity ran, where its slots were.

use std::collections::BTreeMap;
use std::fmt::Write;

use laxity_model::{ActivityId, EventKind, Instant, Span};

use super::chart::escape;
use super::format;
use crate::evidence::lanes::{self, Drawn, Edge, Label, Lane};
use crate::evidence::trace::Trace;

/// What to show of a run.
#[derive(Clone, Debug)]
pub struct TimelineView<'a> {
    /// The run.
    pub trace: &'a Trace,
    /// From when.
    pub from: Instant,
    /// For how long.
    pub length: Span,
    /// The activities with a lane of their own; the others show on the processors' lanes only.
    pub activities: Vec<ActivityId>,
}

impl<'a> TimelineView<'a> {
    /// A stretch that shows the device at its daily work: it begins just before the first interrupt in the run's last quarter.
    #[must_use]
    pub fn representative(trace: &'a Trace, length: Span, activities: Vec<ActivityId>) -> Self {
        let last = trace.last_instant();
        let whole = last.saturating_since(trace.start);
        let quarter = Span::from_nanos(whole.as_nanos() / 4);
        let late = Instant::from_nanos(last.as_nanos() - quarter.as_nanos());
        let latest = last.as_nanos().saturating_sub(length.as_nanos());
        let interrupt = trace
            .events
            .iter()
            .find(|e| e.at >= late && e.kind == EventKind::InterruptEnter)
            .map_or(late, |e| e.at);
        let lead = length.as_nanos() / 40;
        let from = interrupt.as_nanos().saturating_sub(lead).min(latest);
        Self {
            trace,
            from: Instant::from_nanos(from).max(trace.start),
            length,
            activities,
        }
    }

    fn to(&self) -> Instant {
        self.from.checked_add(self.length).unwrap_or(Instant::MAX)
    }

    fn shows(&self, lane: Lane) -> bool {
        match lane {
            Lane::Processor(_) | Lane::Disturbed(_) | Lane::Level(_) => true,
            Lane::Activity(a) | Lane::Slots(a) => self.activities.contains(&a),
        }
    }
}

const WIDTH: f64 = 1040.0;
const LEFT: f64 = 136.0;
const RIGHT: f64 = 1032.0;
const TOP: f64 = 26.0;
const LANE: f64 = 25.0;
const BAR: f64 = 16.0;
/// Nothing is drawn narrower than this, so that a handler of 5 µs shows in 60 ms.
const THINNEST: f64 = 0.8;
/// Slices of the same kind that are closer than this are drawn as one.
const INDISTINCT: f64 = 0.2;

/// A slice in the window, in nanoseconds since its begin.
struct Slice {
    from: u64,
    to: u64,
    label: Label,
}

/// What is in the window, lane by lane.
#[derive(Default)]
struct Window {
    slices: BTreeMap<Lane, Vec<Slice>>,
    points: BTreeMap<Lane, Vec<(u64, Label)>>,
    levels: BTreeMap<Lane, Vec<(u64, u64)>>,
}

fn cut_out(view: &TimelineView<'_>) -> Window {
    let mut window = Window::default();
    let mut open: BTreeMap<Lane, (Instant, Label)> = BTreeMap::new();
    let (from, to) = (view.from, view.to());
    let since = |at: Instant| at.clamp(from, to).saturating_since(from).as_nanos();
    lanes::draw(view.trace, &mut |Drawn { at, lane, edge }| {
        if !view.shows(lane) {
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
                    let (from, to) = (since(begun), since(at));
                    let slices = window.slices.entry(lane).or_default();
                    slices.push(Slice { from, to, label });
                }
            }
            Edge::Point(label @ Label::Mark(_), _) if inside => {
                let points = window.points.entry(lane).or_default();
                points.push((since(at), label));
            }
            Edge::Level(value) if inside => {
                let levels = window.levels.entry(lane).or_default();
                levels.push((since(at), value));
            }
            Edge::Point(..) | Edge::Level(_) => {}
        }
    });
    window
}

/// The window as one SVG picture.
pub(super) fn render(view: &TimelineView<'_>) -> String {
    let window = cut_out(view);
    let mut lanes: Vec<Lane> = window
        .slices
        .keys()
        .chain(window.levels.keys())
        .copied()
        .collect();
    lanes.sort_by_key(|lane| order(view.trace, *lane));
    let height = TOP + LANE * lanes.len() as f64 + 4.0;
    let mut svg = format!(
        r#"<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{} of {}">"#,
        format::nanos(view.length.as_nanos()),
        escape(&view.trace.name)
    );
    let scale = (RIGHT - LEFT) / view.length.as_nanos().max(1) as f64;
    let styles = styles(view);
    time_axis(&mut svg, view, scale, height);
    for (row, lane) in lanes.iter().enumerate() {
        let y = TOP + LANE * row as f64;
        push(
            &mut svg,
            format_args!(
                r#"<text class="lane" x="{:.0}" y="{:.1}" text-anchor="end">{}</text><path class="grid" d="M{LEFT} {:.1}H{RIGHT}"/>"#,
                LEFT - 10.0,
                y + 16.0,
                escape(&name(view.trace, *lane)),
                y + LANE - 2.0
            ),
        );
        if let Some(slices) = window.slices.get(lane) {
            let style_of = |label| style(&styles, *lane, label).to_string();
            draw_slices(&mut svg, view.trace, slices, style_of, scale, y);
        }
        if let Some(points) = window.points.get(lane) {
            draw_points(&mut svg, points, scale, y);
        }
        if let Some(levels) = window.levels.get(lane) {
            draw_level(&mut svg, levels, scale, y);
        }
    }
    svg.push_str("</svg>");
    svg
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes all");
}

/// A processor first, then what was placed on it, levels last.
fn order(trace: &Trace, lane: Lane) -> (u16, u16, u16) {
    let home = |a: ActivityId| trace.activities.get(a.index()).map_or(0, |h| h.processor);
    match lane {
        Lane::Processor(p) => (p.0, 0, 0),
        Lane::Disturbed(p) => (p.0, 0, 1),
        Lane::Slots(a) => (home(a), a.0.saturating_add(1), 0),
        Lane::Activity(a) => (home(a), a.0.saturating_add(1), 1),
        Lane::Level(mark) => (u16::MAX, mark.0, 0),
    }
}

fn name(trace: &Trace, lane: Lane) -> String {
    match lane {
        Lane::Processor(p) => format!("processor {p}"),
        Lane::Disturbed(_) => "disturbed".into(),
        Lane::Activity(a) => trace.activity_name(a).into_owned(),
        Lane::Slots(a) => format!("{} slots", trace.activity_name(a)),
        Lane::Level(mark) => trace.mark_name(mark).into_owned(),
    }
}

fn time_axis(svg: &mut String, view: &TimelineView<'_>, scale: f64, height: f64) {
    let step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]
        .map(|ms| ms * 1_000_000)
        .into_iter()
        .find(|step| view.length.as_nanos() / step <= 13)
        .unwrap_or(view.length.as_nanos().max(1));
    let start = view.from.saturating_since(view.trace.start).as_nanos();
    let mut at = start.next_multiple_of(step);
    while at <= start + view.length.as_nanos() {
        let x = LEFT + (at - start) as f64 * scale;
        push(
            svg,
            format_args!(
                r#"<path class="grid" d="M{x:.1} {:.0}V{height:.0}"/><text x="{x:.1}" y="12" text-anchor="middle">{}</text>"#,
                TOP - 8.0,
                at / 1_000_000
            ),
        );
        at += step;
    }
    push(
        svg,
        format_args!(
            r#"<text x="{:.0}" y="12" text-anchor="end">ms</text>"#,
            LEFT - 10.0
        ),
    );
}

/// The style of each activity, the same on a processor's lane and on its own: by what it is, then by its place among those shown.
fn styles(view: &TimelineView<'_>) -> BTreeMap<ActivityId, String> {
    const HUES: usize = 4;
    let mut styles = BTreeMap::new();
    for event in &view.trace.events {
        let style = match event.kind {
            EventKind::InterruptEnter => "int",
            EventKind::DeferredEnter => "dpc",
            _ => continue,
        };
        styles
            .entry(event.activity)
            .or_insert_with(|| style.to_string());
    }
    let mut hues = (0..HUES).map(|hue| format!("run{hue}"));
    for activity in &view.activities {
        if !styles.contains_key(activity)
            && let Some(hue) = hues.next()
        {
            styles.insert(*activity, hue);
        }
    }
    styles
}

fn style(styles: &BTreeMap<ActivityId, String>, lane: Lane, label: Label) -> &str {
    let activity = match (lane, label) {
        (_, Label::Slot) => return "slot",
        (_, Label::Disturbed) => return "dist",
        (_, Label::Occupant(activity)) | (Lane::Activity(activity), _) => activity,
        _ => return "crowd",
    };
    styles.get(&activity).map_or("crowd", String::as_str)
}

fn draw_slices(
    svg: &mut String,
    trace: &Trace,
    slices: &[Slice],
    style_of: impl Fn(Label) -> String,
    scale: f64,
    y: f64,
) {
    let mut shown = slices.iter().peekable();
    while let Some(slice) = shown.next() {
        let (from, mut to, mut joined, mut time) = (slice.from, slice.to, 1, slice.to - slice.from);
        while let Some(next) = shown.next_if(|next| {
            next.label == slice.label && next.from.saturating_sub(to) as f64 * scale < INDISTINCT
        }) {
            joined += 1;
            time += next.to - next.from;
            to = next.to;
        }
        let (x, width) = (
            LEFT + from as f64 * scale,
            ((to - from) as f64 * scale).max(THINNEST),
        );
        let who = match slice.label {
            Label::Occupant(activity) => trace.activity_name(activity).into_owned(),
            Label::Interrupt => "interrupt".into(),
            Label::Deferred => "deferred".into(),
            Label::Slot => "slot".into(),
            Label::Disturbed => "disturbed".into(),
            _ => "running".into(),
        };
        let times = if joined > 1 {
            format!("{joined} × ")
        } else {
            String::new()
        };
        push(
            svg,
            format_args!(
                r#"<rect class="{}" x="{x:.1}" y="{:.1}" width="{width:.1}" height="{BAR}"><title>{times}{}, {}</title></rect>"#,
                style_of(slice.label),
                y + 3.5,
                escape(&who),
                format::nanos(time)
            ),
        );
    }
}

fn draw_points(svg: &mut String, points: &[(u64, Label)], scale: f64, y: f64) {
    let mut path = String::new();
    for (at, _) in points {
        let x = LEFT + *at as f64 * scale;
        push(&mut path, format_args!("M{x:.1} {:.1}v4", y + 0.5));
    }
    push(svg, format_args!(r#"<path class="mark" d="{path}"/>"#));
}

/// A level as steps, its largest value at the top of the lane.
fn draw_level(svg: &mut String, levels: &[(u64, u64)], scale: f64, y: f64) {
    let largest = levels.iter().map(|(_, value)| *value).max().unwrap_or(0);
    let mut path = String::new();
    for (at, value) in levels {
        let x = LEFT + *at as f64 * scale;
        let height = BAR * *value as f64 / largest.max(1) as f64;
        let level = y + 3.5 + BAR - height;
        if path.is_empty() {
            push(&mut path, format_args!("M{x:.1} {level:.1}"));
        } else {
            push(&mut path, format_args!("H{x:.1}V{level:.1}"));
        }
    }
    push(
        svg,
        format_args!(
            r#"<path class="level" d="{path}H{RIGHT}"/><text x="{:.0}" y="{:.1}">max {largest}</text>"#,
            LEFT + 4.0,
            y + 12.0
        ),
    );
}

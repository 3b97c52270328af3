//! A network's plan for people.

use super::{ChannelPlan, HopPlan, NetworkPlan};
use crate::layout::{Align, Fit, Grid, TimeUnit, load, wrap_to};

/// The plan for people, in lines of so many characters.
#[must_use]
pub fn render(plan: &NetworkPlan, width: usize) -> String {
    let mut text = String::new();
    let refused = plan
        .channels
        .iter()
        .filter(|one| one.refused.is_some())
        .count();
    let answer = match (plan.admitted, plan.channels.len()) {
        (true, _) => "admitted".to_owned(),
        (false, all) => format!("REFUSED ({refused} of {all})"),
    };
    let head = format!("{} ({} channels): {answer}", plan.file, plan.channels.len());
    wrap_to(width, "", &head, &mut text);
    text.push('\n');
    text.push_str(&hops(plan, width));
    for channel in &plan.channels {
        more(channel, width, &mut text);
    }
    text.push('\n');
    text.push_str(&links(plan, width));
    text.push('\n');
    for note in &plan.notes {
        wrap_to(width, "note: ", note, &mut text);
    }
    text
}

/// Each hop of each channel that is granted.
fn hops(plan: &NetworkPlan, width: usize) -> String {
    let heads = [
        ("channel", Align::Left),
        ("from", Align::Left),
        ("over", Align::Left),
        ("at least", Align::Right),
        ("granted", Align::Right),
        ("buffers", Align::Right),
    ];
    let heads = heads.map(|(head, align)| (head.to_owned(), align));
    let mut grid = Grid::new(heads, Fit::Words(width));
    for channel in &plan.channels {
        for hop in &channel.hops {
            let HopPlan {
                host,
                link,
                least_ns,
                delay_ns,
                buffers,
            } = hop;
            let [name, host, link] = [&channel.name, host, link].map(Clone::clone);
            let [least, delay] = [*least_ns, *delay_ns].map(up);
            grid.row([name, host, link, least, delay, buffers.to_string()]);
        }
        let sum = |of: fn(&HopPlan) -> u64| channel.hops.iter().map(of).sum();
        if channel.hops.len() > 1 {
            let least = up(sum(|hop| hop.least_ns));
            let delay = up(sum(|hop| hop.delay_ns));
            let to = format!("to {}", channel.to);
            grid.row([String::new(), to, String::new(), least, delay]);
        }
    }
    grid.render()
}

/// What else is to be said of a channel.
fn more(channel: &ChannelPlan, width: usize, text: &mut String) {
    let name = &channel.name;
    if let Some(refused) = &channel.refused {
        let head = format!(
            "`{name}` is refused at `{}`, over `{}`: {}",
            refused.host, refused.link, refused.reason
        );
        text.push('\n');
        wrap_to(width, "", &head, text);
        for nearest in &refused.nearest {
            wrap_to(width, "  would be granted: ", nearest, text);
        }
    } else if let Some(why) = &channel.unenforced {
        text.push('\n');
        wrap_to(width, "", &format!("`{name}` is unenforced: {why}"), text);
    }
}

fn links(plan: &NetworkPlan, width: usize) -> String {
    let heads = [
        ("link", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        ("granted", Align::Right),
    ];
    let heads = heads.map(|(head, align)| (head.to_owned(), align));
    let mut grid = Grid::new(heads, Fit::Words(width));
    for link in &plan.links {
        let [name, from, to] = [&link.name, &link.from, &link.to].map(Clone::clone);
        grid.row([name, from, to, load(link.share_ppm)]);
    }
    grid.render()
}

/// A time, rounded up, with its unit.
fn up(nanos: u64) -> String {
    let unit = TimeUnit::for_largest(nanos);
    format!("{} {}", unit.up(nanos), unit.name())
}

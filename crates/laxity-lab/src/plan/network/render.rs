//! A network's plan for people.

use super::{ChannelPlan, CostPlan, NetworkPlan, RefusedPlan};
use crate::each_once::each_once;
use crate::layout::{Align, Fit, Grid, TOGETHER, TimeUnit, load, wrap_to};

/// The plan for people, in lines of so many characters.
#[must_use]
pub fn render(plan: &NetworkPlan, width: usize) -> String {
    let mut text = String::new();
    let refused = plan.channels.iter().filter(|one| one.refused.is_some());
    let refused = refused.count();
    let answer = match (plan.admitted, plan.channels.len()) {
        (true, _) => "admitted".to_owned(),
        (false, _) if refused == 0 => "REFUSED".to_owned(),
        (false, all) => format!("REFUSED ({refused} of {all})"),
    };
    let channels = match plan.channels.len() {
        1 => "1 channel".to_owned(),
        count => format!("{count} channels"),
    };
    let head = format!("{} ({channels}): {answer}", plan.file);
    wrap_to(width, "", &head, &mut text);
    if !plan.channels.is_empty() {
        text.push('\n');
        text.push_str(&table(plan, width));
    }
    for channel in &plan.channels {
        more(channel, width, &mut text);
    }
    let silent = plan.links.iter().filter_map(|link| link.refused.as_ref());
    for refused in each_once(silent) {
        let who = format!(
            "signalling over `{}`",
            refused.link.as_deref().unwrap_or("")
        );
        refusal(&who, refused, width, &mut text);
    }
    text.push('\n');
    text.push_str(&links(plan, width));
    text.push('\n');
    text.push_str(&hosts(plan, width));
    text.push('\n');
    costs(&plan.costs, width, &mut text);
    text.push('\n');
    for note in &plan.notes {
        wrap_to(width, "note: ", note, &mut text);
    }
    text
}

fn grid<const N: usize>(heads: [(&str, Align); N], width: usize) -> Grid {
    let heads = heads.map(|(head, align)| (head.to_owned(), align));
    Grid::new(heads, Fit::Words(width))
}

/// Each channel, with a line for each host on its way.
fn table(plan: &NetworkPlan, width: usize) -> String {
    let heads = [
        ("channel", Align::Left),
        ("by", Align::Left),
        ("processor", Align::Right),
        ("over", Align::Left),
        ("link", Align::Right),
        ("buffers", Align::Right),
        ("sum\n<= within", Align::Right),
        ("grade", Align::Left),
    ];
    let mut grid = grid(heads, width);
    for channel in &plan.channels {
        let (grade, sum) = match (channel.sum_ns, &channel.unenforced) {
            (None, _) => ("refused", format!("<= {}", up(channel.within_ns))),
            (Some(_), Some(_)) => ("unenforced", sum(channel)),
            (Some(_), None) => ("enforced", sum(channel)),
        };
        let hops = channel.hops.iter();
        let column = |cell: fn(&super::HopPlan) -> String| {
            let cells: Vec<String> = hops.clone().map(cell).collect();
            cells.join("\n")
        };
        grid.row([
            channel.name.clone(),
            column(|hop| hop.host.clone()),
            column(|hop| up(hop.processor_ns)),
            column(|hop| hop.link.clone().unwrap_or_default()),
            column(|hop| hop.link_ns.map(up).unwrap_or_default()),
            column(|hop| hop.buffers.to_string()),
            sum,
            grade.to_owned(),
        ]);
    }
    grid.render()
}

/// What all hosts and wires take, beside what was asked for.
fn sum(channel: &ChannelPlan) -> String {
    let sum = channel.sum_ns.unwrap_or_default();
    let wires = match channel.propagation_ns {
        0 => String::new(),
        wires => format!("\nwires {}", up(wires)),
    };
    format!("{}\n<= {}{wires}", up(sum), up(channel.within_ns))
}

/// What else is to be said of a channel.
fn more(channel: &ChannelPlan, width: usize, text: &mut String) {
    let name = &channel.name;
    if let Some(refused) = &channel.refused {
        refusal(&format!("`{name}`"), refused, width, text);
    } else if let Some(why) = &channel.unenforced {
        text.push('\n');
        wrap_to(width, "", &format!("`{name}` is unenforced: {why}"), text);
    }
}

fn refusal(who: &str, refused: &RefusedPlan, width: usize, text: &mut String) {
    let head = format!(
        "{who} is refused by {}: {}",
        refused.place(),
        refused.reason
    );
    text.push('\n');
    wrap_to(width, "", &head, text);
    for nearest in &refused.nearest {
        wrap_to(width, "  would be granted: ", nearest, text);
    }
}

fn links(plan: &NetworkPlan, width: usize) -> String {
    let heads = [
        ("link", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        ("granted", Align::Right),
        ("signalling heard in", Align::Right),
    ];
    let mut grid = grid(heads, width);
    for link in &plan.links {
        let [name, from, to] = [&link.name, &link.from, &link.to].map(Clone::clone);
        let heard = link.signalling_ns.map_or("never".to_owned(), up);
        grid.row([name, from, to, load(link.share_ppm), heard]);
    }
    grid.render()
}

fn hosts(plan: &NetworkPlan, width: usize) -> String {
    let heads = [
        ("host", Align::Left),
        ("processor granted", Align::Right),
        ("buffers", Align::Right),
    ];
    let mut grid = grid(heads, width);
    for host in &plan.hosts {
        let buffers = format!("{} of {}", host.buffers, host.buffers_of);
        grid.row([host.name.clone(), load(host.share_ppm), buffers]);
    }
    grid.render()
}

/// What processors are charged, by where that is from.
fn costs(costs: &[CostPlan], width: usize, text: &mut String) {
    let sources = each_once(costs.iter().map(|cost| (cost.calibrated, &cost.from)));
    for (calibrated, from) in sources {
        let same = costs.iter().filter(|cost| &cost.from == from);
        let of: Vec<String> = same.map(charged).collect();
        let whence = match calibrated {
            true => format!("calibrated ({from})"),
            false => format!("assumed ({from})"),
        };
        let of = of.join("; ");
        let words = format!("A host's processor is charged what is {whence}: {of}.");
        wrap_to(width, "", &words, text);
    }
}

fn charged(cost: &CostPlan) -> String {
    match (cost.cost_ns, cost.byte_ps) {
        (Some(nanos), _) => format!("{} {}", cost.of, up(nanos)),
        (None, picos) => format!("{} {}{TOGETHER}ps", cost.of, picos.unwrap_or_default()),
    }
}

/// A time, rounded up, with its unit.
fn up(nanos: u64) -> String {
    let unit = TimeUnit::for_largest(nanos);
    format!("{}{TOGETHER}{}", unit.up(nanos), unit.name())
}

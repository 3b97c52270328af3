//! Plans of networks of hosts: what is granted adds up, and what is said to be granted instead of what is refused is.

use laxity_lab::machine_file::Known;
use laxity_lab::plan::network::{HopPlan, NetworkPlan, Resource, plan, render};
use laxity_lab::scenario::{is_network, parse_network};

use crate::golden::assert_told;

const SHIPPED: &str = include_str!("../../../../docs/network.toml");

fn planned(text: &str) -> NetworkPlan {
    let network = parse_network(text, "network.toml").expect("this is right");
    plan(&network, "network.toml", &Known::Nothing).expect("all numbers fit")
}

#[test]
fn each_channel_of_the_shipped_network_has_its_time_spread_over_its_hops() {
    let plan = planned(SHIPPED);
    assert!(plan.admitted);
    for channel in &plan.channels {
        let own = |hop: &HopPlan| hop.processor_ns + hop.link_ns.unwrap_or(0);
        let sum: u64 = channel.hops.iter().map(own).sum();
        assert_eq!(channel.sum_ns, Some(sum + channel.propagation_ns));
        assert_eq!(channel.sum_ns, Some(channel.within_ns), "{channel:?}");
        for hop in &channel.hops {
            assert!(0 < hop.least_ns && hop.least_ns <= own(hop), "{hop:?}");
            assert!(hop.buffers > 0);
        }
        assert_eq!(channel.unenforced, None);
    }
    let ways = plan.channels.iter().map(|channel| {
        let hops = channel.hops.iter();
        let hops = hops.map(|hop| format!("{}:{}", hop.host, hop.link.as_deref().unwrap_or("")));
        hops.collect::<Vec<_>>().join(" ")
    });
    let ways: Vec<String> = ways.collect();
    assert_eq!(
        ways,
        [
            "base:backbone relay:mast robot:",
            "robot:mast relay:backbone base:"
        ]
    );
    // Each direction of a link by itself.
    let links = plan
        .links
        .iter()
        .map(|link| (link.name.as_str(), link.from.as_str()));
    let links: Vec<_> = links.collect();
    let expected = [
        ("mast", "robot"),
        ("mast", "relay"),
        ("backbone", "relay"),
        ("backbone", "base"),
    ];
    assert_eq!(links, expected);
    let shown = render(&plan, 100);
    assert!(
        shown.contains("network.toml (2 channels): admitted"),
        "{shown}"
    );
}

/// Beside one camera another one that is to be there sooner than its own message takes beside the first's.
#[test]
fn what_is_offered_for_a_refused_channel_is_granted() {
    let second = |changed: &str| {
        let camera = SHIPPED.find("[channels.camera]").unwrap();
        let users = SHIPPED.find("[users.operator]").unwrap();
        let key = changed.split(' ').next().unwrap();
        let lines = SHIPPED[camera..users]
            .replace("camera", "second")
            .replace("33ms", "1.7ms");
        let lines = lines.lines().map(|line| match line.starts_with(key) {
            true => changed,
            false => line,
        });
        let lines: Vec<&str> = lines.collect();
        format!(
            "{}{}
{}",
            &SHIPPED[..users],
            lines.join(
                "
"
            ),
            &SHIPPED[users..]
        )
    };
    let plan = planned(&second("burst = 3"));
    assert!(!plan.admitted);
    let channel = plan
        .channels
        .iter()
        .find(|one| one.name == "second")
        .unwrap();
    let why = channel.refused.as_ref().unwrap();
    assert_eq!(
        (why.host.as_str(), why.link.as_deref()),
        ("robot", Some("mast"))
    );
    assert_eq!(why.resource, Resource::Link);
    assert!(channel.hops.is_empty() && !why.reason.is_empty());
    let offers = why
        .nearest
        .iter()
        .filter(|one| one.contains(" = ") && !one.starts_with("as it"));
    let offers: Vec<&String> = offers.collect();
    assert!(
        offers.iter().any(|one| one.starts_with("within = ")),
        "{why:?}"
    );
    assert!(
        offers.iter().any(|one| one.starts_with("max = ")),
        "{why:?}"
    );
    for offer in offers {
        assert!(planned(&second(offer)).admitted, "{offer}");
    }
    // The others have what they have without it.
    let without = planned(SHIPPED);
    assert_eq!(plan.channels[..2], without.channels[..]);
    let shown = render(&plan, 100);
    assert!(shown.contains("REFUSED (1 of 3)"), "{shown}");
    assert!(shown.contains("would be granted: within = "), "{shown}");
}

#[test]
fn over_a_link_that_no_node_has_a_part_of_a_channel_is_unenforced() {
    let text = SHIPPED.replace("own = \"class\"                     #", "#");
    assert_ne!(text, SHIPPED);
    let plan = planned(&text);
    assert!(plan.admitted);
    for channel in &plan.channels {
        let why = channel.unenforced.as_deref().unwrap_or_default();
        assert!(why.contains("`mast`"), "{why}");
    }
    assert!(render(&plan, 100).contains("`control` is unenforced"));
}

/// Where, of what and how much is missing, and what would be granted: as a person sees it.
#[test]
fn each_refused_network_says_what_is_short() {
    assert_told("refused-networks", 10, |text, name| {
        let network = parse_network(text, name).expect(name);
        let plan = plan(&network, name, &Known::Nothing).expect(name);
        assert!(!plan.admitted, "{name}");
        render(&plan, 100)
    });
}

/// To the next kbit/s, and nothing less.
#[test]
fn the_rate_at_which_a_link_has_room_for_signalling_is_told() {
    let slow = include_str!("../refused-networks/nothing-but-a-slow-link.toml");
    let at = |rate: &str| planned(&slow.replace("250 kbit/s", rate));
    let told = at("250 kbit/s").links[0].refused.clone().unwrap();
    assert_eq!(told.nearest, ["[links.radio] rate = \"1784 kbit/s\""]);
    assert!(at("1784 kbit/s").admitted && !at("1783 kbit/s").admitted);
}

#[test]
fn a_network_is_told_from_a_scenario_by_its_sections() {
    assert!(is_network(SHIPPED));
    assert!(is_network("[hosts.robot\nkey = 1"));
    assert!(!is_network(include_str!(
        "../../../../scenarios/video-and-ftp.toml"
    )));
    assert!(!is_network("[variants.one]\n[hosts.robot]\n"));
    assert!(!is_network(""));
}

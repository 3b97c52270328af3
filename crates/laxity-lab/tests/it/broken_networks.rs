//! Every broken description of a network in `broken-networks/` gets the diagnostics that stand beside it, and the one that is shipped is read as it is meant.
//!
//! `broken-networks/<name>.toml` is the input, `broken-networks/<name>.txt` what a person sees.

use laxity_lab::scenario::channels::digest::{Difference, Digest, Part};
use laxity_lab::scenario::channels::{Late, Link, Network, Own};
use laxity_lab::scenario::{Diagnostic, Severity, Style, parse_network};
use laxity_model::Span;
use laxity_model::channels::source::Excess;
use proptest::prelude::*;

use crate::golden::{assert_told, explained};

const SHIPPED: &str = include_str!("../../../../docs/network.toml");

fn good(text: &str) -> Network {
    parse_network(text, "network.toml").unwrap_or_else(|errors| {
        let rendered: Vec<_> = errors.iter().map(ToString::to_string).collect();
        panic!("{}", rendered.join("\n\n"))
    })
}

fn errors(text: &str) -> Vec<Diagnostic> {
    parse_network(text, "network.toml").expect_err("this is broken")
}

#[test]
fn every_broken_network_is_explained() {
    assert_told("broken-networks", 60, |text, name| {
        let found = parse_network(text, name).expect_err(name);
        explained(text, name, &found)
    });
}

#[test]
fn the_shipped_network_is_read_as_it_is_meant() {
    let network = good(SHIPPED);
    let names: Vec<&str> = network
        .hosts
        .iter()
        .map(|host| host.name.as_str())
        .collect();
    assert_eq!(names, ["robot", "relay", "base"]);
    assert!(network.hosts[1].key.to_string().starts_with("5dab087e"));
    let mast = &network.links[0];
    assert_eq!((mast.between, mast.rate), ([0, 1], 100_000_000));
    assert_eq!((mast.own, mast.overhead, mast.seal), (Own::Class, 24, true));
    let [control, camera] = network.channels.as_slice() else {
        panic!("{:?}", network.channels);
    };
    let [robot, relay] = ["192.0.2.1:27768", "192.0.2.2:27768"].map(|at| at.parse().unwrap());
    assert_eq!(mast.at, Some([robot, relay]));
    assert_eq!(mast.ends(0), Some([robot, relay]));
    assert_eq!((mast.ends(1), mast.ends(2)), (Some([relay, robot]), None));
    assert_eq!((mast.mtu, mast.propagation), (1_500, Span::ZERO));
    // Back, over the links as they are named, the last of them first.
    assert_eq!((control.from, control.to), (2, 0));
    assert_eq!((&control.route, &camera.route), (&vec![1, 0], &vec![0, 1]));
    assert_eq!(
        (control.max, control.rate),
        (64, (1_000, Span::from_secs(1)))
    );
    assert_eq!((control.burst, control.within), (1, Span::from_millis(10)));
    assert_eq!(
        (control.over, control.late),
        (Excess::DropOldest, Late::Discard)
    );
    assert_eq!((camera.over, camera.late), (Excess::Shape, Late::Deliver));
    assert_eq!((control.bits(), camera.bits()), (512_000, 4_800_000));
    let [operator, driver] = network.users.as_slice() else {
        panic!("{:?}", network.users);
    };
    assert_eq!((operator.uid, operator.host), (1_000, Some(2)));
    assert_eq!((&operator.open, &operator.listen), (&vec![0], &vec![1]));
    assert_eq!((driver.channels, driver.rate), (Some(1), Some(5_000_000)));
}

/// As the wire has it: an IPv4 link, sealed, on Ethernet; one of IPv6, not sealed, of another MTU. Where no addresses are said, what takes more is counted.
#[test]
fn packets_are_as_large_as_the_narrowest_link_takes() {
    let of = |changes: &[(&str, &str)]| {
        let text = changes.iter().fold(SHIPPED.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        let network = good(&text);
        let beside = network.links.iter().map(Link::beside);
        (network.payload().get(), beside.collect::<Vec<_>>())
    };
    assert_eq!(of(&[]), (1_408, vec![106 + 24, 106 + 24]));
    let at = "at = [\"198.51.100.1\", \"198.51.100.2\"]\n";
    assert_eq!(of(&[(at, "")]), (1_388, vec![130, 126 + 24]));
    let narrow = [(
        at,
        "at = [\"fd00::1\", \"[fd00::2]:7000\"]\nseal = false\nmtu = \"1280 B\"\noverhead = \"0 B\"\n",
    )];
    assert_eq!(of(&narrow), (1_280 - 100, vec![130, 114]));
    let jumbo = "\"192.0.2.2\"]\nmtu = \"9000 B\"\n";
    assert_eq!(of(&[("\"192.0.2.2\"]", jumbo)]).0, 1_408);
}

#[test]
fn nothing_follows_from_a_line_that_could_not_be_read() {
    for (line, slip) in [
        (
            "between = [\"robot\", \"relay\"]",
            "between = [\"robot\", \"rely\"]",
        ),
        ("rate = \"100 Mbit/s\"", "rate = \"100 Mbit\""),
        ("from = \"base\"", "from = \"bas\""),
        ("rate = \"30/s\"", "rate = \"30\""),
    ] {
        let text = SHIPPED.replacen(line, slip, 1);
        assert_ne!(text, SHIPPED);
        let found = errors(&text);
        let expected = SHIPPED.lines().position(|one| one.contains(line)).unwrap() + 1;
        let lines: Vec<usize> = found.iter().map(|one| one.line).collect();
        assert_eq!(lines, [expected], "{slip}: {found:?}");
    }
}

/// The parts of the shipped network, the last first, with what a default says written out, and no comment.
fn turned() -> String {
    let parts = SHIPPED.split("\n[").skip(1);
    let mut parts: Vec<String> = parts.map(|part| format!("[{part}\n")).collect();
    parts.reverse();
    let text: String = parts.concat();
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let text: Vec<&str> = lines.map(str::trim).collect();
    text.join("\n")
        .replace(
            "rate = \"1 Gbit/s\"",
            "rate = \"1000 Mbit/s\"\nseal = true\noverhead = \"24 B\"",
        )
        .replace("burst = 3", "burst = 3\nover = \"shape\"")
        .replace("\"1000/s\"", "\"1 every 1ms\"")
        .replace("via = [\"mast\", \"backbone\"]", "")
        .replace("[\"relay\", \"base\"]", "[\"base\", \"relay\"]")
        .replace(
            "[\"198.51.100.1\", \"198.51.100.2\"]",
            "[\"198.51.100.2:27768\", \"198.51.100.1\"]\nmtu = \"1500 B\"\npropagation = \"0s\"",
        )
}

#[test]
fn files_that_mean_the_same_have_one_digest() {
    let [ours, theirs] = [SHIPPED, &turned()].map(|text| Digest::of(&good(text)));
    assert_eq!(ours.differences(&theirs), []);
    assert_eq!(ours.whole(), theirs.whole());
    let told = ours
        .parts()
        .map(|(part, name, sum)| (part, name.to_owned(), sum));
    assert_eq!(Digest::told(told), ours);
}

#[test]
fn a_digest_tells_which_part_differs() {
    let ours = Digest::of(&good(SHIPPED));
    let slips = [
        ("5dab", "5dac", Part::Hosts, "relay"),
        ("\"1 Gbit/s\"", "\"2 Gbit/s\"", Part::Links, "backbone"),
        ("192.0.2.2", "192.0.2.3", Part::Links, "mast"),
        ("192.0.2.2", "192.0.2.2:27769", Part::Links, "mast"),
        (
            "own = \"class\"  ",
            "mtu = \"1400 B\"\nown = \"class\"  ",
            Part::Links,
            "mast",
        ),
        (
            "own = \"class\"  ",
            "propagation = \"1us\"\nown = \"class\"  ",
            Part::Links,
            "mast",
        ),
        ("own = \"class\"  ", "own = \"all\"  ", Part::Links, "mast"),
        ("\"64 B\"", "\"65 B\"", Part::Channels, "control"),
        ("1000/s", "1001/s", Part::Channels, "control"),
        ("\"10ms\"", "\"11ms\"", Part::Channels, "control"),
        ("drop-oldest", "drop-newest", Part::Channels, "control"),
        ("late = \"discard\"", "", Part::Channels, "control"),
        ("burst = 3", "burst = 4", Part::Channels, "camera"),
        ("uid = 1000", "uid = 1001", Part::Users, "operator"),
        ("listen = [\"control\"]", "", Part::Users, "driver"),
        ("channels = 1", "channels = 2", Part::Users, "driver"),
    ];
    for (from, to, part, name) in slips {
        let text = SHIPPED.replacen(from, to, 1);
        assert_ne!(text, SHIPPED, "{from}");
        let theirs = Digest::of(&good(&text));
        let expected = Difference::Differs(part, name.to_owned());
        assert_eq!(ours.differences(&theirs), [expected], "{from}");
        assert_ne!(ours.whole(), theirs.whole(), "{from}");
    }
    let users = SHIPPED.find("[users.driver]").unwrap();
    let fewer = Digest::of(&good(&SHIPPED[..users]));
    let driver = || "driver".to_owned();
    let [first, second] = [ours.differences(&fewer), fewer.differences(&ours)];
    assert_eq!(first, [Difference::OnlyFirst(Part::Users, driver())]);
    assert_eq!(second, [Difference::OnlySecond(Part::Users, driver())]);
    let told = second[0].to_string();
    assert!(
        told.contains("[users.driver] is in the second alone"),
        "{told}"
    );
}

proptest! {
    /// One change anywhere: read, or explained within the file.
    #[test]
    fn a_slip_in_a_good_file_is_read_or_explained(at: prop::sample::Index, insert in "[\\[\\]{}=\".0-9a-z \n±\t\r-]{0,3}", cut in 0_usize..4) {
        let mut text = SHIPPED.to_owned();
        let from = text.floor_char_boundary(at.index(text.len()));
        let until = text.ceil_char_boundary((from + cut).min(text.len()));
        text.replace_range(from..until, &insert);
        match parse_network(&text, "x.toml") {
            Ok(network) => {
                prop_assert_eq!(Digest::of(&network), Digest::of(&good(&text)));
            }
            Err(found) => {
                prop_assert!(found.iter().any(|one| one.severity == Severity::Error));
                for one in found {
                    prop_assert!(one.line <= text.split('\n').count());
                    prop_assert!(!one.render(Style::Plain).is_empty());
                }
            }
        }
    }

    #[test]
    fn no_text_panics(text in "(?s).{0,200}") {
        let _ = parse_network(&text, "x.toml");
    }
}

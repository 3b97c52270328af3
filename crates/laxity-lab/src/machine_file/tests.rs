use laxity::calibrate::{PacketCost, Packets, WAYS};
use laxity_model::Service;
use laxity_model::program::upcalls::qos::Cost;
use proptest::prelude::*;

use super::packets::BYTE_PS;
use super::*;

fn us(n: u64) -> Span {
    Span::from_micros(n)
}

/// With a different span for every figure.
fn example() -> Calibration {
    let mut machine = Machine::without_costs(250);
    let mut evidence = BTreeMap::new();
    for (number, figure) in (1..).zip(Figure::ALL) {
        let points = vec![
            (0, us(number)),
            (500_000, us(2 * number)),
            (1_000_000, us(90)),
        ];
        *machine.figure_mut(figure) = Quantiles::new(points).unwrap();
        let seen = Evidence {
            samples: 1_000 + number,
            disturbed: number,
            medians: (us(2 * number), us(2 * number + 1)),
        };
        evidence.insert(figure, seen);
    }
    machine.description = "Some Model, 2 processors".to_owned();
    machine.provenance = "by hand".to_owned();
    machine.slot_lead = us(40);
    Calibration {
        machine,
        evidence,
        udp_message: Ok(Cost {
            each: Service::from_micros(7),
            byte_ps: 1_250,
        }),
        packets: [
            ("packet", Ok(packets([11, 2, 310, 3, 420]))),
            ("xdp", Err("no right; run as root".to_owned())),
        ]
        .into(),
        circumstances: Circumstances {
            model: "Some \"Model\"".to_owned(),
            processors: 2,
            kernel: "6.1".to_owned(),
            began: "2026-03-01 14:05 UTC".to_owned(),
            took: Span::from_millis(31_234),
            load_thousandths: 70,
            ..Circumstances::default()
        },
    }
}

/// In microseconds, and picoseconds a byte.
fn packets([wake, receive, receive_byte_ps, send, send_byte_ps]: [u64; 5]) -> PacketCost {
    let cost = |each, byte_ps| Cost {
        each: Service::from_micros(each),
        byte_ps,
    };
    PacketCost {
        wake: Service::from_micros(wake),
        receive: cost(receive, receive_byte_ps),
        send: cost(send, send_byte_ps),
    }
}

/// The one finding about the example in which something was replaced.
#[track_caller]
fn only_finding(from: &str, to: &str) -> Diagnostic {
    let right = render(&example());
    assert!(right.contains(from), "`{from}` is not in\n{right}");
    let wrong = right.replacen(from, to, 1);
    let mut found = parse(&wrong, "machine.toml").expect_err("this is wrong");
    assert_eq!(found.len(), 1, "{found:?}");
    let finding = found.remove(0);
    assert_eq!(finding.file, "machine.toml");
    finding
}

fn line_of(text: &str, part: &str) -> usize {
    let at = text.find(part).unwrap();
    text[..at].matches('\n').count() + 1
}

#[test]
fn the_example_is_read_as_it_was_written() {
    assert_eq!(parse(&render(&example()), "x").unwrap(), example());
}

#[test]
fn what_was_not_measured_has_no_evidence() {
    let mut theory = example();
    theory.evidence.remove(&Figure::DeadlineOverrun);
    let text = render(&theory);
    assert_eq!(parse(&text, "x").unwrap(), theory);
    assert_eq!(text.matches("samples = ").count(), Figure::ALL.len() - 1);
}

#[test]
fn a_file_that_has_no_message_says_so_and_one_that_could_not_be_measured_says_why() {
    let mut found = example();
    let text = render(&found);
    let old = text.split("\n# What a UDP message takes").next();
    let read = parse(old.expect("there is a first part"), "x").expect("an older file");
    let why = read.udp_message.expect_err("it is not there");
    assert!(why.contains("did not measure it"), "{why}");
    found.udp_message = Err("no \"loopback\" here".to_owned());
    assert_eq!(parse(&render(&found), "x").unwrap(), found);
    let both = only_finding("byte_ps = 1250", "not_measured = \"no loopback\"");
    assert!(
        both.cause.contains("[udp_message] has no key `each`"),
        "{both}"
    );
    let none = only_finding("byte_ps = 1250\n", "");
    assert!(none.cause.contains("lacks the key `byte_ps`"), "{none}");
}

#[test]
fn what_packets_take_is_there_by_each_way_that_was_measured_and_right_or_refused() {
    let found = example();
    let text = render(&found);
    assert_eq!(parse(&text, "x").unwrap(), found);
    let (older, _) = text
        .split_once("\n# What packets take")
        .expect("it is there");
    assert_eq!(
        parse(older, "x").expect("an older file").packets,
        Packets::new()
    );
    for (from, to, cause) in [
        ("wake = \"11us\"", "wake = \"11s\"", "11s is no cost"),
        ("wake = \"11us\"", "wake = 11", "no unit"),
        ("wake = \"11us\"", "wake = \"-11us\"", "-11us"),
        ("wake = \"11us\"\n", "", "lacks the key `wake`"),
        ("send_byte_ps = 420", "send_byte_ps = -1", "send_byte_ps"),
        (
            "receive_byte_ps = 310",
            "receive_byte_ps = 9999999999",
            "receive_byte_ps",
        ),
        (
            "send_byte_ps = 420",
            "send_byte_ps = 420\nburst = 3",
            "no key `burst`",
        ),
        ("[packets.xdp]", "[packets.xpd]", "no key `xpd`"),
        (
            "[packets.xdp]\n",
            "[packets.xdp]\nwake = \"1us\"\n",
            "no key `wake`",
        ),
    ] {
        let found = only_finding(from, to);
        assert!(found.cause.contains(cause), "{found}");
    }
    let costs = packets([11, 2, 310, 3, 420]).costs();
    assert_eq!(costs.interrupt, Service::from_micros(11));
    assert_eq!(
        (costs.packet, costs.byte_ps),
        (Service::from_micros(3), 420)
    );
}

#[test]
fn an_unknown_key_is_pointed_at_with_its_likely_name() {
    let found = only_finding("tick_hz = 250", "tick_hz = 250\ntik_hz = 3");
    assert!(found.cause.contains("`tik_hz`"), "{found}");
    assert!(found.remedy.contains("`tick_hz`"), "{found}");
    let found = only_finding("strangers = 0", "strangers = 0\ncolour = 3");
    assert!(
        found.cause.contains("[circumstances] has no key `colour`"),
        "{found}"
    );
}

#[test]
fn a_wrong_unit_and_no_unit_are_pointed_at() {
    let found = only_finding("slot_lead = \"40us\"", "slot_lead = \"40 parsec\"");
    assert!(found.cause.contains("`parsec`"), "{found}");
    let found = only_finding("slot_lead = \"40us\"", "slot_lead = 40");
    assert!(found.cause.contains("no unit"), "{found}");
    let found = only_finding("[\"50 %\", \"2us\"]", "[\"50 %\", \"2\"]");
    assert!(found.cause.contains("no unit"), "{found}");
    let found = only_finding("[\"50 %\", \"2us\"]", "[\"150 %\", \"2us\"]");
    assert!(found.cause.contains("150 %"), "{found}");
    let found = only_finding("[\"50 %\", \"2us\"]", "[\"50 %\", 2]");
    assert!(found.cause.contains("a point must be"), "{found}");
    assert!(found.remedy.contains("[\"50 %\", \"3.2us\"]"), "{found}");
}

#[test]
fn falling_quantiles_are_pointed_at_where_they_fall() {
    for wrong in ["[\"50 %\", \"0.5us\"]", "[\"0 %\", \"2us\"]"] {
        let found = only_finding("[\"50 %\", \"2us\"]", wrong);
        assert!(found.cause.contains("falls below"), "{found}");
        let text = render(&example());
        assert_eq!(found.line, line_of(&text, "[\"50 %\", \"2us\"]"));
    }
}

#[test]
fn what_is_missing_is_named() {
    let found = only_finding("tick_hz = 250\n", "");
    assert!(found.cause.contains("lacks the key `tick_hz`"), "{found}");
    let found = only_finding("disturbed = 1\n", "");
    assert!(
        found.cause.contains("[tick] lacks the key `disturbed`"),
        "{found}"
    );
}

#[test]
fn every_missing_table_is_named() {
    let found = parse("", "empty.toml").expect_err("nothing is there");
    for figure in Figure::ALL {
        let name = format!("lacks the table [{}]", figure.name());
        assert!(found.iter().any(|f| f.cause.contains(&name)), "{name}");
    }
    assert!(found.iter().any(|f| f.cause.contains("[circumstances]")));
    assert!(
        found
            .iter()
            .all(|f| f.remedy.contains("laxity calibrate") || f.cause.contains("key"))
    );
}

#[test]
fn costs_of_seconds_and_other_versions_are_refused() {
    let found = only_finding("[\"100 %\", \"90us\"]", "[\"100 %\", \"90s\"]");
    assert!(found.cause.contains("90s is no cost"), "{found}");
    let found = only_finding("file_version = 1", "file_version = 2");
    assert!(found.cause.contains("file_version"), "{found}");
    let found = only_finding("[\"2us\", \"3us\"]", "[\"3us\", \"2us\"]");
    assert!(found.cause.contains("the lesser one first"), "{found}");
}

#[test]
fn what_is_no_toml_is_pointed_at() {
    let found = only_finding("tick_hz = 250", "tick_hz == 250");
    assert!(found.cause.contains("not TOML"), "{found}");
    let text = render(&example());
    assert_eq!(found.line, line_of(&text, "tick_hz"));
}

#[test]
fn what_a_machine_says_of_itself_steers_no_terminal() {
    let mut found = example();
    found.circumstances.model = "Evil\u{1b}[2J\nCPU".to_owned();
    let text = render(&found);
    let read = parse(&text, "x").expect("what was written is right");
    assert_eq!(read.circumstances.model, r"Evil\u{1b}[2J\nCPU");
}

#[test]
fn the_default_path_is_where_configuration_is() {
    if let Some(path) = default_path() {
        assert!(path.is_absolute());
        assert!(path.ends_with("laxity/machine.toml"));
    }
}

fn cost() -> impl Strategy<Value = Span> {
    (0..=1_000_000_000_u64).prop_map(Span::from_nanos)
}

fn quantiles_of_any_kind() -> impl Strategy<Value = Quantiles> {
    let points = (
        prop::collection::btree_set(0..=1_000_000_u32, 1..16),
        prop::collection::vec(cost(), 16),
    );
    points.prop_map(|(shares, mut spans)| {
        spans.sort();
        Quantiles::new(shares.into_iter().zip(spans).collect()).unwrap()
    })
}

fn evidence_of_any_kind() -> impl Strategy<Value = Option<Evidence>> {
    let evidence = (any::<u32>(), any::<u32>(), cost(), cost());
    prop::option::of(
        evidence.prop_map(|(samples, disturbed, one, other)| Evidence {
            samples: u64::from(samples),
            disturbed: u64::from(disturbed),
            medians: (one.min(other), one.max(other)),
        }),
    )
}

fn circumstances_of_any_kind() -> impl Strategy<Value = Circumstances> {
    let texts = prop::collection::vec(any::<String>(), 7);
    let numbers = (any::<[u32; 4]>(), any::<(u64, Option<u64>)>());
    (texts, numbers).prop_map(|(texts, ([a, b, c, d], (took, steal)))| {
        let mut texts = texts.into_iter();
        // What would steer a terminal is written out in the file, and so what is read.
        let mut text = || plain(&texts.next().unwrap_or_default()).into_owned();
        Circumstances {
            model: text(),
            processors: a,
            hypervisor: text(),
            kernel: text(),
            preemption: text(),
            clock_source: text(),
            governor: text(),
            processor: b as usize,
            began: text(),
            took: Span::from_nanos(took),
            load_thousandths: c,
            steal: steal.map(Span::from_nanos),
            strangers: d,
        }
    })
}

fn message_of_any_kind() -> impl Strategy<Value = Result<Cost, String>> {
    let known = (cost(), BYTE_PS).prop_map(|(each, byte_ps)| {
        let each = Service::from_nanos(each.as_nanos());
        Ok::<_, String>(Cost { each, byte_ps })
    });
    let why = any::<String>().prop_map(|why| Err::<Cost, _>(plain(&why).into_owned()));
    prop_oneof![known, why]
}

fn packets_of_any_kind() -> impl Strategy<Value = Packets> {
    let known = (cost(), [cost(), cost()], [BYTE_PS, BYTE_PS]);
    let known = known.prop_map(|(wake, [receive, send], [receive_ps, send_ps])| {
        let service = |span: Span| Service::from_nanos(span.as_nanos());
        let cost = |each, byte_ps| Cost {
            each: service(each),
            byte_ps,
        };
        Ok::<_, String>(PacketCost {
            wake: service(wake),
            receive: cost(receive, receive_ps),
            send: cost(send, send_ps),
        })
    });
    let why = any::<String>().prop_map(|why| Err::<PacketCost, _>(plain(&why).into_owned()));
    let by_way = prop::collection::vec(prop::option::of(prop_oneof![known, why]), WAYS.len());
    by_way.prop_map(|all| {
        WAYS.into_iter()
            .zip(all)
            .filter_map(|(way, cost)| Some((way, cost?)))
            .collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_the_same(
        figures in prop::collection::vec((quantiles_of_any_kind(), evidence_of_any_kind()), Figure::ALL.len()),
        circumstances in circumstances_of_any_kind(),
        texts in any::<[String; 2]>(),
        tick_hz in 0..=10_000_u32,
        slot_lead in cost(),
        udp_message in message_of_any_kind(),
        packets in packets_of_any_kind(),
    ) {
        let mut machine = Machine::without_costs(tick_hz);
        [machine.description, machine.provenance] = texts.map(|text| plain(&text).into_owned());
        machine.slot_lead = slot_lead;
        let mut evidence = BTreeMap::new();
        for (figure, (quantiles, seen)) in Figure::ALL.into_iter().zip(figures) {
            *machine.figure_mut(figure) = quantiles;
            evidence.extend(seen.map(|seen| (figure, seen)));
        }
        let calibration = Calibration { machine, evidence, udp_message, packets, circumstances };
        let text = render(&calibration);
        prop_assume!(text.len() <= LARGEST_FILE);
        prop_assert_eq!(parse(&text, "x").map_err(|found| found[0].to_string()), Ok(calibration));
    }

    #[test]
    fn no_text_makes_it_panic(at in 0..20_000_usize, insertion in "\\PC{0,8}", length in 0..40_usize) {
        let mut text = render(&example());
        let from = text.floor_char_boundary(at % text.len());
        let to = text.floor_char_boundary((from + length).min(text.len()));
        text.replace_range(from..to.max(from), &insertion);
        if let Err(found) = parse(&text, "x") {
            prop_assert!(!found.is_empty());
            let lines = text.split('\n').count();
            prop_assert!(found.iter().all(|f| (1..=lines).contains(&f.line)));
        }
    }
}

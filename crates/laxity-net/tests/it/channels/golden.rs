//! The examples of `docs/wire.md` are what is encoded.

use std::collections::BTreeMap;

use laxity_net::channels::frame::{Frame, LONGEST, check, checked};

use super::bodies::{KINDS, example};

/// What a page says of each: a block that begins with ```` ```golden NAME ````, of hexadecimal digits, with a comment behind each `#`.
pub(super) fn golden(page: &str) -> BTreeMap<String, Vec<u8>> {
    let page = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(page).expect("the page is there");
    let mut examples = BTreeMap::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("```golden ") else {
            continue;
        };
        let block = lines.by_ref().take_while(|line| !line.starts_with("```"));
        let words = block.map(|line| line.split('#').next().unwrap_or_default().to_owned());
        let digits: String = words.collect::<String>().split_whitespace().collect();
        let byte = |place| u8::from_str_radix(&digits[place..place + 2], 16).expect("digits");
        let bytes = (0..digits.len()).step_by(2).map(byte).collect();
        assert_eq!(examples.insert(name.to_owned(), bytes), None, "{name}");
    }
    examples
}

/// What the examples are called, by their number.
const NAMES: [&str; KINDS as usize] = [
    "data",
    "best-effort",
    "first",
    "answer",
    "heartbeat",
    "heartbeat-echoing",
    "heard",
    "open",
    "confirm",
    "settle",
    "tear",
    "ended",
    "summary",
    "differs",
    "list",
    "list-last",
    "refuse-processor",
    "refuse-link",
    "refuse-buffers",
    "refuse-quota",
    "refuse-time",
    "refuse-no-link",
    "refuse-busy",
    "refuse-nonsense",
    "refuse-declined",
    "refuse-ended",
    "refuse-search",
];

#[test]
fn the_page_has_every_kind_of_frame_as_it_is_encoded() {
    let mut page = golden("wire.md");
    page.retain(|name, _| !name.starts_with("sealed"));
    let mut wrong = Vec::new();
    for (kind, name) in (0..KINDS).zip(NAMES) {
        let parts = example(kind);
        let body = parts.body();
        let mut bytes = vec![0; LONGEST];
        let length = checked(&body, &mut bytes).expect("there is room");
        bytes.truncate(length);
        let said = page.remove(name);
        if let Some(said) = said.as_ref().filter(|said| **said == bytes) {
            let frame = Frame::of_datagram(said).expect("a frame");
            assert_eq!(check(&frame), Ok(body), "{name}");
        } else {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            wrong.push(format!("```golden {name}\n{}\n```", digits.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "the page has not:\n{}", wrong.join("\n"));
    assert!(page.is_empty(), "nobody makes {:?}", page.keys());
}

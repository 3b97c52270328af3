//! How many packets in how long a time, as people write it: `32 packets every 1ms`.

use laxity_model::nif::most::Most;

use super::{UnitError, format_span, span};
use crate::scenario::reader::shortened;

/// So many packets in each interval of this length: `32 packets every 1ms`.
pub fn most(text: &str) -> Result<Most, UnitError> {
    let remedy = "write how many in how long a time, such as \"32 packets every 1ms\"";
    let whole = shortened(text.trim());
    let wrong = |cause: String| UnitError::new(cause, remedy);
    let parts = text.split_once(" every ");
    let (packets, every) =
        parts.ok_or_else(|| wrong(format!("`{whole}` is no bound of packets")))?;
    let mut words = packets.split_whitespace();
    let (number, unit, rest) = (words.next(), words.next(), words.next());
    let number = number.and_then(|number| number.parse().ok());
    let (Some(number), Some("packets" | "packet"), None) = (number, unit, rest) else {
        return Err(wrong(format!(
            "`{whole}` does not begin with a number of packets"
        )));
    };
    let every = span(every).map_err(|UnitError { cause, remedy }| {
        UnitError::new(format!("`{whole}` is no bound of packets: {cause}"), remedy)
    })?;
    Most::new(number, every).ok_or_else(|| {
        let cause = format!("`{whole}` is out of range");
        UnitError::new(
            cause,
            "write 1 to 65535 packets, and a time of more than zero",
        )
    })
}

/// A bound so that [`most`] reads back exactly the same.
pub fn format_most(most: Most) -> String {
    let (packets, every) = (most.packets(), format_span(most.every()));
    let unit = if packets == 1 { "packet" } else { "packets" };
    format!("{packets} {unit} every {every}")
}

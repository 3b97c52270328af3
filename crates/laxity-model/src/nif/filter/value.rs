//! Numbers and addresses of a filter.

use alloc::format;
use core::net::IpAddr;

use super::words::{FilterError, Word};

/// A number within bounds, decimal or hexadecimal. A leading zero would mean an octal one to pcap, and is refused.
pub(super) fn number(word: Word<'_>, least: u64, most: u64) -> Result<u64, FilterError> {
    let expected = || word.expected(&format!("a number from {least} to {most}"));
    let (digits, radix) = match word.text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (word.text, 10),
    };
    let is_octal = radix == 10 && digits.len() > 1 && digits.starts_with('0');
    if is_octal || digits.starts_with('+') {
        return Err(expected());
    }
    let number = u64::from_str_radix(digits, radix).map_err(|_| expected())?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(expected())
    }
}

pub(super) fn host(word: Word<'_>) -> Result<IpAddr, FilterError> {
    word.text
        .parse()
        .map_err(|_| word.expected("an IPv4 or IPv6 address"))
}

/// An address and the mask of its prefix, over the 128 bits of a key's address.
pub(super) fn net(word: Word<'_>) -> Result<(IpAddr, u128), FilterError> {
    let expected = || word.expected("a prefix, such as 10.0.0.0/8 or fd00::/8,");
    let (text, prefix) = parts(word).ok_or_else(expected)?;
    let address: IpAddr = text.text.parse().map_err(|_| expected())?;
    let (long, number) = match address {
        IpAddr::V4(address) => (32, address.to_bits().into()),
        IpAddr::V6(address) => (128, address.to_bits()),
    };
    let free = long - number_of_bits(prefix, 0, long)?;
    let mask = u128::MAX.checked_shl(free).unwrap_or(0);
    zero(word, prefix, number & !mask)?;
    Ok((address, mask))
}

/// A number of so many bits, and the mask of its first bits, where `/BITS` follows, else of all.
pub(super) fn bits(word: Word<'_>, long: u32) -> Result<(u64, u64), FilterError> {
    let most = u64::MAX >> (64 - long);
    let Some((text, prefix)) = parts(word) else {
        return Ok((number(word, 0, most)?, most));
    };
    let value = number(text, 0, most)?;
    let free = long - number_of_bits(prefix, 1, long)?;
    let mask = most & (u64::MAX << free);
    zero(word, prefix, (value & !mask).into())?;
    Ok((value, mask))
}

/// What stands before a `/`, and behind it.
fn parts(word: Word<'_>) -> Option<(Word<'_>, Word<'_>)> {
    let (text, behind) = word.text.split_once('/')?;
    let behind = Word {
        column: word.column + text.chars().count() + 1,
        text: behind,
    };
    Some((Word { text, ..word }, behind))
}

fn number_of_bits(word: Word<'_>, least: u32, most: u32) -> Result<u32, FilterError> {
    Ok(number(word, least.into(), most.into())? as u32)
}

/// Nothing may be said of bits that are not looked at.
fn zero(word: Word<'_>, prefix: Word<'_>, behind: u128) -> Result<(), FilterError> {
    if behind == 0 {
        return Ok(());
    }
    Err(word.wrong(format!(
        "all bits behind the first {} must be zero",
        prefix.text
    )))
}

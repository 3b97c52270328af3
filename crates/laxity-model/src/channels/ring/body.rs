//! Bytes in words that another process may write at any time: each word is read or written whole.

use super::WORD;
use crate::base::atomic::{AtomicU64, Ordering::Relaxed};

/// Writes these bytes from the `at`-th on.
pub(super) fn write(words: &[AtomicU64], at: usize, bytes: &[u8]) {
    let (first, whole, last) = cut(at, bytes.len());
    let words = &words[at / WORD..];
    let (begin, rest) = bytes.split_at(first);
    let (middle, end) = rest.split_at(whole);
    if first > 0 {
        patch(&words[0], at % WORD, begin);
    }
    let words = &words[usize::from(first > 0)..];
    for (word, chunk) in words.iter().zip(middle.as_chunks().0) {
        word.store(u64::from_ne_bytes(*chunk), Relaxed);
    }
    if last > 0 {
        patch(&words[whole / WORD], 0, end);
    }
}

/// Reads as many bytes as there is room for, from the `at`-th on: each once.
pub(super) fn read(words: &[AtomicU64], at: usize, into: &mut [u8]) {
    let (first, whole, last) = cut(at, into.len());
    let words = &words[at / WORD..];
    let (begin, rest) = into.split_at_mut(first);
    let (middle, end) = rest.split_at_mut(whole);
    if first > 0 {
        let word = words[0].load(Relaxed).to_ne_bytes();
        begin.copy_from_slice(&word[at % WORD..][..first]);
    }
    let words = &words[usize::from(first > 0)..];
    for (word, chunk) in words.iter().zip(middle.as_chunks_mut().0) {
        *chunk = word.load(Relaxed).to_ne_bytes();
    }
    if last > 0 {
        let word = words[whole / WORD].load(Relaxed).to_ne_bytes();
        end.copy_from_slice(&word[..last]);
    }
}

/// So many bytes in the word in which they begin, if that is not whole; in whole words; and in the one in which they end.
const fn cut(at: usize, length: usize) -> (usize, usize, usize) {
    let left = (WORD - at % WORD) % WORD;
    let first = if left < length { left } else { length };
    let rest = length - first;
    (first, rest - rest % WORD, rest % WORD)
}

/// A word of which only these bytes are new: nobody else writes it, if they keep to what was agreed.
fn patch(word: &AtomicU64, at: usize, bytes: &[u8]) {
    let mut all = word.load(Relaxed).to_ne_bytes();
    all[at..][..bytes.len()].copy_from_slice(bytes);
    word.store(u64::from_ne_bytes(all), Relaxed);
}

//! Pieces of one signal, one behind the other.

use core::ops::RangeBounds;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::layout::Malformed;

/// What is still to be read.
pub(in crate::channels) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(in crate::channels) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(in crate::channels) fn take<T>(&mut self) -> Result<&'a T, Malformed>
    where
        T: FromBytes + KnownLayout + Immutable + Unaligned,
    {
        let (one, rest) = T::ref_from_prefix(self.0).map_err(|_| Malformed::Short)?;
        self.0 = rest;
        Ok(one)
    }

    /// So many, of which there may be `some`.
    pub(in crate::channels) fn list<T>(
        &mut self,
        count: u32,
        some: impl RangeBounds<usize>,
    ) -> Result<&'a [T], Malformed>
    where
        T: FromBytes + Immutable + Unaligned,
    {
        let count = usize::try_from(count).ok();
        let count = count.filter(|count| some.contains(count));
        let count = count.ok_or(Malformed::Field("the length of a list"))?;
        let list = <[T]>::ref_from_prefix_with_elems(self.0, count);
        let (list, rest) = list.map_err(|_| Malformed::Short)?;
        self.0 = rest;
        Ok(list)
    }

    /// That nothing is left.
    pub(in crate::channels) const fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed::Long)
        }
    }
}

/// Where pieces go to.
pub(in crate::channels) trait Sink {
    fn put<T: IntoBytes + Immutable + ?Sized>(&mut self, piece: &T);
}

/// Only counts their bytes.
#[derive(Default)]
pub(in crate::channels) struct Count(pub(in crate::channels) usize);

impl Sink for Count {
    fn put<T: IntoBytes + Immutable + ?Sized>(&mut self, piece: &T) {
        self.0 += size_of_val(piece);
    }
}

/// Writes them.
pub(in crate::channels) struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(in crate::channels) const fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// All is written.
    pub(in crate::channels) fn end(self) {
        assert_eq!(self.at, self.out.len(), "as long as was counted");
    }
}

impl Sink for Writer<'_> {
    fn put<T: IntoBytes + Immutable + ?Sized>(&mut self, piece: &T) {
        let bytes = piece.as_bytes();
        self.out[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

//! A packet's bytes, in one piece or in several (§2.3).

use std::fmt;

use super::buffer::Unavailable;

/// Bytes of one packet, which may lie apart.
pub trait Message {
    /// The pieces in order, each contiguous.
    fn pieces(&self) -> impl Iterator<Item = &[u8]>;

    /// Bytes in all pieces.
    fn length(&self) -> usize {
        self.pieces().map(<[u8]>::len).sum()
    }

    /// The bytes where they are, if they lie together.
    fn contiguous(&self) -> Option<&[u8]> {
        let mut pieces = self.pieces();
        let first = pieces.next().unwrap_or_default();
        pieces.next().is_none().then_some(first)
    }

    /// Copies all pieces into contiguous memory, and tells how many bytes that were.
    ///
    /// # Errors
    ///
    /// [`Unavailable::TooLong`]: they do not fit. Nothing was copied.
    fn copy_to(&self, into: &mut [u8]) -> Result<usize, Unavailable> {
        let (length, room) = (self.length(), into.len());
        if length > room {
            return Err(Unavailable::TooLong { length, room });
        }
        let mut rest = into;
        for piece in self.pieces() {
            let (here, behind) = rest.split_at_mut(piece.len());
            here.copy_from_slice(piece);
            rest = behind;
        }
        Ok(length)
    }
}

impl Message for [u8] {
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self)
    }
}

/// A message that is gathered from where its pieces are, such as headers of one's own before somebody else's data: it is
/// [sent](super::Buffer::send_gathered) from there, by an interface that can, or copied into the buffer that it is [sent](super::Buffer::fill_with) from.
#[derive(Default)]
pub struct Gathered<'a>(Vec<Box<dyn AsRef<[u8]> + Send + 'a>>);

impl<'a> Gathered<'a> {
    /// With another piece behind those that are here.
    #[must_use]
    pub fn with(mut self, piece: impl AsRef<[u8]> + Send + 'a) -> Self {
        self.0.push(Box::new(piece));
        self
    }

    /// All of it as one piece: copied, unless it is one.
    #[must_use]
    pub fn into_contiguous(mut self) -> Self {
        if self.0.len() > 1 {
            let whole = self.pieces().collect::<Vec<_>>().concat();
            self.0 = vec![Box::new(whole)];
        }
        self
    }
}

impl Message for Gathered<'_> {
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|piece| (**piece).as_ref())
    }
}

impl fmt::Debug for Gathered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.pieces()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_where_they_are_until_they_are_copied_together() {
        let gathered = Gathered::default().with([1, 2]).with(vec![3, 4, 5]);
        assert_eq!((gathered.length(), gathered.contiguous()), (5, None));
        let mut into = [0; 6];
        assert_eq!(gathered.copy_to(&mut into), Ok(5));
        assert_eq!(into, [1, 2, 3, 4, 5, 0]);
        let short = gathered.copy_to(&mut into[..4]);
        assert_eq!(short, Err(Unavailable::TooLong { length: 5, room: 4 }));
        let whole = gathered.into_contiguous();
        assert_eq!(whole.contiguous(), Some(&[1, 2, 3, 4, 5][..]));
        assert_eq!(Gathered::default().contiguous(), Some(&[][..]));
    }
}

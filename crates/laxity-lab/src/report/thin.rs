//! Fewer marks that look the same: what falls on one pixel is drawn once.

use std::collections::BTreeMap;

/// Dots that stand on each other in one column, drawn as one stroke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stroke {
    /// The column's middle, in pixels.
    pub(super) x: i32,
    /// The first dot's height, and the last one's: not below it.
    pub(super) top: i32,
    pub(super) bottom: i32,
}

/// Sides of the squares in which one dot is enough, in pixels; the next is taken where the one before leaves too many.
const SIDES: [i32; 5] = [1, 2, 3, 4, 5];

/// Dots as at most about `most` strokes: one for each square that has any, neighbours in a column joined. A column's highest and lowest
/// dot keep their heights exactly. Also says how wide a column is. O(n log n).
pub(super) fn dots(pixels: &[(i32, i32)], most: usize) -> (i32, Vec<Stroke>) {
    let mut thinned = (1, Vec::new());
    for side in SIDES {
        thinned = (side, in_squares(pixels, side));
        if thinned.1.len() <= most {
            break;
        }
    }
    thinned
}

fn in_squares(pixels: &[(i32, i32)], side: i32) -> Vec<Stroke> {
    let mut columns: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (x, y) in pixels {
        columns.entry(x.div_euclid(side)).or_default().push(*y);
    }
    let mut strokes = Vec::new();
    for (column, mut heights) in columns {
        heights.sort_unstable();
        let lowest = *heights.last().expect("a column is made for a dot");
        let x = column * side + side / 2;
        let mut stroke = Stroke {
            x,
            top: heights[0],
            bottom: heights[0],
        };
        for height in heights {
            // The lowest keeps its own; of the others the first of its square stands for it.
            let is_same = height.div_euclid(side) == stroke.bottom.div_euclid(side);
            if is_same && height != lowest {
                continue;
            }
            if height - stroke.bottom <= side {
                stroke.bottom = height;
            } else {
                strokes.push(std::mem::replace(
                    &mut stroke,
                    Stroke {
                        x,
                        top: height,
                        bottom: height,
                    },
                ));
            }
        }
        strokes.push(stroke);
    }
    strokes
}

/// A line's corners: of each column the first, the highest, the lowest and the last, so that it looks the same. The x rise.
pub(super) fn line(pixels: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let mut corners = Vec::new();
    let mut rest = pixels;
    while let Some((x, _)) = rest.first() {
        let end = rest.partition_point(|(other, _)| other <= x).max(1);
        let (column, after) = rest.split_at(end);
        rest = after;
        let extreme = |is_better: fn(i32, i32) -> bool| {
            let mut best = 0;
            for (index, (_, y)) in column.iter().enumerate() {
                if is_better(*y, column[best].1) {
                    best = index;
                }
            }
            best
        };
        let mut kept = [
            0,
            extreme(|y, best| y < best),
            extreme(|y, best| y > best),
            end - 1,
        ];
        kept.sort_unstable();
        for (place, index) in kept.iter().enumerate() {
            if place == 0 || kept[place - 1] != *index {
                corners.push(column[*index]);
            }
        }
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extremes(of: impl Iterator<Item = (i32, i32)>, side: i32) -> BTreeMap<i32, (i32, i32)> {
        let mut extremes: BTreeMap<i32, (i32, i32)> = BTreeMap::new();
        for (x, y) in of {
            let column = extremes.entry(x.div_euclid(side)).or_insert((y, y));
            *column = (column.0.min(y), column.1.max(y));
        }
        extremes
    }

    proptest! {
        #[test]
        fn no_extreme_of_a_column_is_dropped_and_nothing_is_made_up(
            pixels in prop::collection::vec((-20_i32..120, -50_i32..150), 0..400),
            most in 1_usize..300,
        ) {
            let (side, strokes) = dots(&pixels, most);
            let ends = strokes.iter().flat_map(|stroke| [(stroke.x, stroke.top), (stroke.x, stroke.bottom)]);
            prop_assert_eq!(extremes(ends.clone(), side), extremes(pixels.iter().copied(), side));
            for (x, y) in ends {
                let is_dot = |dot: &(i32, i32)| dot.1 == y && dot.0.div_euclid(side) == x.div_euclid(side);
                prop_assert!(pixels.iter().any(is_dot));
            }
            // Every dot is under a stroke, or in the square of an end of one.
            for (x, y) in &pixels {
                let covers = |stroke: &Stroke| {
                    stroke.x.div_euclid(side) == x.div_euclid(side)
                        && y.div_euclid(side) >= stroke.top.div_euclid(side)
                        && y.div_euclid(side) <= stroke.bottom.div_euclid(side)
                };
                prop_assert!(strokes.iter().any(covers), "{x} {y}");
            }
            prop_assert!(strokes.len() <= most || side == *SIDES.last().expect("there are some"));
        }

        #[test]
        fn a_line_keeps_its_ends_and_extremes(
            mut pixels in prop::collection::vec((0_i32..30, -50_i32..150), 1..300),
        ) {
            pixels.sort_by_key(|(x, _)| *x);
            let corners = line(&pixels);
            prop_assert_eq!(corners.first(), pixels.first());
            prop_assert_eq!(corners.last(), pixels.last());
            prop_assert_eq!(extremes(corners.iter().copied(), 1), extremes(pixels.iter().copied(), 1));
            prop_assert!(corners.len() <= 4 * 30);
        }
    }

    #[test]
    fn what_falls_on_one_pixel_is_one_and_neighbours_are_joined() {
        let pixels = [(3, 5), (3, 5), (3, 6), (3, 9), (4, 5)];
        let stroke = |x, top, bottom| Stroke { x, top, bottom };
        assert_eq!(
            dots(&pixels, 100),
            (1, vec![stroke(3, 5, 6), stroke(3, 9, 9), stroke(4, 5, 5)])
        );
    }
}

//! Chance with a seed: the same seed throws the same numbers on every machine.

/// `SplitMix64`.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn of(seed: u64) -> Self {
        // Neighbouring seeds begin far apart.
        let mut dice = Self(seed.wrapping_mul(0xd134_2543_de82_ef95));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `sides` - 1.
    pub fn below(&mut self, sides: usize) -> usize {
        let sides = u64::try_from(sides.max(1)).unwrap_or(1);
        usize::try_from(self.next() % sides).unwrap_or(0)
    }

    /// True in `percent` of a hundred.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// The index of one of these weights; a weight of 0 is never chosen, and there must be another.
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (at, weight) in weights.iter().enumerate() {
            if left < *weight {
                return at;
            }
            left -= weight;
        }
        unreachable!("the sum of the weights is greater than what was thrown")
    }
}

//! Chance that can be had again.

use std::time::Duration;

/// A small generator with a fixed seed (`SplitMix64`), so that a bad run can be run again.
pub struct Dice(u64);

impl Dice {
    /// One of its own for each `player`.
    pub fn of(seed: u64, player: u64) -> Self {
        let mut dice = Self(seed ^ player.wrapping_mul(0xd6e8_feb8_6659_fd93));
        dice.roll(2);
        dice
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// A span between these, in milliseconds.
    pub fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.roll(range.end - range.start))
    }
}

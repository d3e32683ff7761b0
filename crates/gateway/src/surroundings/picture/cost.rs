//! What opening an image takes, from its head and before any of it is decoded: decoders keep more than the image that comes out.

use image::ImageFormat;

/// Longest side of a picture, in pixels: larger ones are made smaller by the providers anyway.
pub(super) const MAX_SIDE: u32 = 1568;
/// Most pixels of an image: what cameras make.
const MAX_PIXELS: u64 = 40_000_000;
/// The most memory that opening an image takes, with its file.
pub(super) const MAX_PEAK: u64 = 256 << 20;
/// What a decoder may take beside the image for profiles, rows and frames, where it keeps to a limit.
pub(super) const BESIDE: u64 = 16 << 20;
/// What is taken while a decoded image is made smaller: a large one by averages, another one by a buffer of 16 bytes a pixel.
const SHRINKING: u64 = 32 << 20;
const RESIZING: u64 = 112 << 20;
/// What is taken beside all that.
const REST: u64 = 8 << 20;
/// Twelve bytes of a lossless WebP can make a table of 4 KiB, by which others are read.
const CODES: u64 = 400;

/// The bytes that it takes to open an image of this `size`, which has `decoded` bytes in the end. `None`: it is not to be opened.
pub(super) fn cost(file: &[u8], format: ImageFormat, (width, height): (u32, u32), decoded: u64) -> Option<u64> {
    let pixels = u64::from(width) * u64::from(height);
    if pixels > MAX_PIXELS {
        return None;
    }
    let kept = match format {
        // The decoder has a copy of the file.
        ImageFormat::Jpeg => jpeg(file, pixels) + file.len() as u64,
        ImageFormat::WebP => webp(file, pixels, (width, height))?,
        _ => BESIDE,
    };
    let after = if is_averaged(width.max(height)) { SHRINKING } else { RESIZING };
    let peak = decoded + kept.max(after) + file.len() as u64 + REST;
    (peak <= MAX_PEAK).then_some(peak)
}

/// Is an image with this side made smaller by averages?
pub(super) fn is_averaged(longest: u32) -> bool {
    longest >= 2 * MAX_SIDE
}

/// A JPEG whose rows are not complete one after the other is kept as coefficients until its last scan, two bytes each. So is one that we
/// cannot read.
fn jpeg(file: &[u8], pixels: u64) -> u64 {
    match coefficients(file) {
        Some(Some((own, most))) => 2 * pixels * own / most.max(1),
        Some(None) => 0,
        None => 2 * 4 * pixels,
    }
}

/// The coefficients that are kept for so many pixels, if any are. `None`: the markers cannot be followed.
fn coefficients(file: &[u8]) -> Option<Option<(u64, u64)>> {
    let (mut at, mut frame) = (2, None);
    loop {
        while file.get(at..at + 2)? == [0xff, 0xff] {
            at += 1;
        }
        let &[0xff, marker, high, low] = file.get(at..at + 4)? else {
            return None;
        };
        let end = at + 2 + usize::from(u16::from_be_bytes([high, low]));
        let body = file.get(at + 4..end)?;
        match marker {
            // The frame: precision, height, width, then number, sampling and table of each component.
            0xc0..=0xc2 => frame = Some((marker, body.get(6..)?)),
            // The first scan, with the number of its components.
            0xda => {
                let (kind, components) = frame?;
                let whole = kind != 0xc2 && usize::from(*body.first()?) == components.len() / 3;
                let factors = components
                    .chunks_exact(3)
                    .map(|one| (u64::from(one[1] >> 4), u64::from(one[1] & 15)));
                let own = factors.clone().map(|(across, down)| across * down).sum();
                let across = factors.clone().map(|(across, _)| across).max()?;
                let down = factors.map(|(_, down)| down).max()?;
                return Some((!whole).then_some((own, across * down)));
            }
            _ => {}
        }
        at = end;
    }
}

/// A WebP keeps planes of a lossy image, four bytes a pixel of a lossless one or of its transparency, and an animation a canvas and a frame.
/// `None`: a picture inside is larger than the whole, and would be decoded before that is found.
fn webp(file: &[u8], pixels: u64, size: (u32, u32)) -> Option<u64> {
    let coded = coded(file.get(12..)?, size, true)?;
    let a_pixel = match file.get(12..16)? {
        b"VP8 " => 2,
        b"VP8L" => 4,
        _ if file.get(20)? & 2 == 0 => 7,
        _ => 14,
    };
    Some(pixels * a_pixel + CODES * coded)
}

/// The bytes in which pixels are coded without loss. Looks into the frames of an animation, which hold no others.
fn coded(mut chunks: &[u8], (width, height): (u32, u32), frames: bool) -> Option<u64> {
    let mut bytes = 0;
    while let Some((head, rest)) = chunks.split_at_checked(8) {
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let body = &rest[..length.min(rest.len())];
        match &head[..4] {
            // Three bytes of the frame's kind, three that say that its size follows.
            b"VP8 " => {
                let side = |at: usize| Some(u32::from(u16::from_le_bytes([*body.get(at)?, *body.get(at + 1)?]) & 0x3fff));
                if side(6)? > width || side(8)? > height {
                    return None;
                }
            }
            b"VP8L" | b"ALPH" => bytes += body.len() as u64,
            b"ANMF" if frames => bytes += coded(body.get(16..)?, (width, height), false)?,
            _ => {}
        }
        chunks = rest.get(length + length % 2..).unwrap_or_default();
    }
    Some(bytes)
}

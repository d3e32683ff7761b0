//! An image as a model is shown it: no larger than models look at, without what cameras write into it.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_agent::domain::Picture;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits, Rgb, RgbImage};
use tokio::sync::Semaphore;

/// Longest side, in pixels: larger ones are made smaller by the providers anyway.
const MAX_SIDE: u32 = 1568;
/// An image that is no longer than this, in bytes, is drawn without loss.
const SMALL: usize = 256 << 10;
/// The sides of an image that is opened, in pixels, and the memory that opening it may take.
const MAX_OPENED: u32 = 12_000;
const MAX_ALLOC: u64 = 256 << 20;
const QUALITY: u8 = 82;

/// One image is opened at a time: each may take a quarter of a GiB.
static OPENING: Semaphore = Semaphore::const_new(1);

/// The picture of an image file. `None` when it is none that models take, or one that is too large to open.
pub(super) async fn picture(bytes: Vec<u8>) -> Option<Picture> {
    let _place = OPENING.acquire().await.ok()?;
    tokio::task::spawn_blocking(move || draw(bytes)).await.ok()?
}

fn draw(bytes: Vec<u8>) -> Option<Picture> {
    let format = image::guess_format(&bytes).ok()?;
    if !matches!(format, ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP) {
        return None;
    }
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_OPENED);
    limits.max_image_height = Some(MAX_OPENED);
    limits.max_alloc = Some(MAX_ALLOC);
    let mut reader = ImageReader::with_format(Cursor::new(&bytes), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    // The reader's own limit holds for what it needs beside the image.
    if decoder.total_bytes() > MAX_ALLOC {
        return None;
    }
    let orientation = decoder.orientation().ok()?;
    let mut opened = DynamicImage::from_decoder(decoder).ok()?;
    let fits = opened.width().max(opened.height()) <= MAX_SIDE;
    opened.apply_orientation(orientation);
    // Text on a screenshot stays sharp.
    if fits && bytes.len() <= SMALL && format != ImageFormat::Jpeg {
        let mut drawn = Cursor::new(Vec::new());
        opened.write_to(&mut drawn, ImageFormat::Png).ok()?;
        return Some(of("image/png", drawn.get_ref()));
    }
    if !fits {
        opened = opened.resize(MAX_SIDE, MAX_SIDE, FilterType::Triangle);
    }
    let mut drawn = Vec::new();
    on_white(&opened)
        .write_with_encoder(JpegEncoder::new_with_quality(&mut drawn, QUALITY))
        .ok()?;
    Some(of("image/jpeg", &drawn))
}

/// JPEG knows no transparency.
fn on_white(image: &DynamicImage) -> RgbImage {
    let image = image.to_rgba8();
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [red, green, blue, alpha] = image.get_pixel(x, y).0;
        let alpha = u32::from(alpha);
        let over = |color: u8| u8::try_from((u32::from(color) * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX);
        Rgb([over(red), over(green), over(blue)])
    })
}

fn of(media_type: &str, bytes: &[u8]) -> Picture {
    Picture {
        media_type: media_type.to_owned(),
        data: STANDARD.encode(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let image = RgbImage::from_fn(width, height, |x, y| Rgb([(x % 251) as u8, (y % 241) as u8, ((x * y) % 239) as u8]));
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// design: issue I part C, a small image is shown without loss; a large one smaller; what is none, or would take much memory, not at all.
    #[test]
    fn images_are_made_to_fit() {
        let small = encoded(40, 20, ImageFormat::Png);
        let shown = draw(small.clone()).unwrap();
        let opened = image::load_from_memory(&STANDARD.decode(&shown.data).unwrap()).unwrap();
        assert_eq!(
            (shown.media_type.as_str(), opened),
            ("image/png", image::load_from_memory(&small).unwrap())
        );
        let large = draw(encoded(3000, 1500, ImageFormat::Png)).unwrap();
        assert_eq!(large.media_type, "image/jpeg");
        let bytes = STANDARD.decode(&large.data).unwrap();
        let opened = image::load_from_memory(&bytes).unwrap();
        assert_eq!((opened.width(), opened.height()), (1568, 784));
        assert!(bytes.len() < 1 << 20, "{}", bytes.len());
        assert_eq!(draw(b"<html>".to_vec()), None);
        // A PNG of 11,000 by 11,000 pixels, all of one color: small on the wire, 363 MB in memory.
        let mut bomb = Cursor::new(Vec::new());
        RgbImage::new(11_000, 11_000).write_to(&mut bomb, ImageFormat::Png).unwrap();
        assert_eq!(draw(bomb.into_inner()), None);
    }

    /// design: issue I part C, a photograph is encoded anew: where it was taken stays with its owner.
    #[test]
    fn photographs_lose_their_metadata() {
        let mut photo = encoded(64, 64, ImageFormat::Jpeg);
        let note = b"Exif\0\0place: home";
        let mut marker = vec![0xff, 0xe1];
        marker.extend(u16::try_from(note.len() + 2).unwrap().to_be_bytes());
        marker.extend_from_slice(note);
        photo.splice(2..2, marker);
        let shown = STANDARD.decode(draw(photo).unwrap().data).unwrap();
        assert!(!shown.windows(11).any(|part| part == b"place: home"));
    }
}

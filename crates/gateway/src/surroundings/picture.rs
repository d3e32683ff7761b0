//! An image as a model is shown it: no larger than models look at, without what cameras write into it.
//!
//! Images come from outsiders, and a small file may be a large image. So what opening one takes is known from its head, before any of it is
//! decoded, and all that are open at a time share one bound of memory.

mod cost;

use std::collections::HashMap;
use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_agent::domain::Picture;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, Rgb, RgbImage};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::warn;

use cost::{BESIDE, MAX_PEAK, MAX_SIDE, cost, is_averaged};

/// An image that is no longer than this, in bytes, is drawn without loss.
const SMALL: usize = 256 << 10;
const QUALITY: u8 = 82;
/// Time for one image.
const TIME: Duration = Duration::from_secs(10);
/// Bytes that a decoder gets at a time, so that it hears soon that the time is over.
const STEP: usize = 4 << 10;
/// Images that are fetched and opened at a time, of all chats. Others wait without a byte in memory.
const AT_A_TIME: usize = 4;
const MIB: u64 = 1 << 20;

/// Makes pictures: one image of a chat at a time, and all that are open within [`MAX_PEAK`].
#[derive(Debug)]
pub(super) struct Pictures {
    places: Arc<Semaphore>,
    /// The memory of images that are open, in MiB.
    memory: Arc<Semaphore>,
    /// A place for each chat that has one open, or waits for it.
    chats: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Default for Pictures {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(AT_A_TIME)),
            memory: Arc::new(Semaphore::new(mib(MAX_PEAK) as usize)),
            chats: Mutex::default(),
        }
    }
}

/// A chat's turn to have an image fetched and opened.
#[derive(Debug)]
pub(super) struct PicturePermit {
    _chat: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Pictures {
    /// Waits until `chat` may have its next image opened.
    pub(super) async fn turn(&self, chat: &str) -> Option<PicturePermit> {
        // Those of a busy chat wait for each other before they take a place.
        let of_chat = self.place_of(chat).acquire_owned().await.ok()?;
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some(PicturePermit {
            _chat: of_chat,
            _place: place,
        })
    }

    /// The picture of an image file. `None` when it is none that models take, or takes too much memory or time.
    pub(super) async fn picture(&self, turn: PicturePermit, bytes: Vec<u8>) -> Option<Picture> {
        let image = tokio::task::spawn_blocking(move || Image::measured(bytes)).await.ok()??;
        let memory = Arc::clone(&self.memory);
        let memory = memory.acquire_many_owned(mib(image.cost)).await.ok()?;
        let drawing = tokio::task::spawn_blocking(move || {
            let drawn = image.draw(Instant::now() + TIME);
            // Also when nobody waits for it any more: until here its memory is not free.
            drop((turn, memory));
            drawn
        });
        if let Ok(drawn) = tokio::time::timeout(TIME, drawing).await {
            drawn.ok()?
        } else {
            warn!("an image took too long to open; the model is not shown it");
            None
        }
    }

    fn place_of(&self, chat: &str) -> Arc<Semaphore> {
        let mut chats = self.chats.lock();
        if let Some(place) = chats.get(chat).and_then(Weak::upgrade) {
            return place;
        }
        chats.retain(|_, place| place.strong_count() > 0);
        let place = Arc::new(Semaphore::new(1));
        chats.insert(chat.to_owned(), Arc::downgrade(&place));
        place
    }
}

fn mib(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(MIB)).unwrap_or(u32::MAX)
}

/// An image file of a kind that models take, and what opening it costs.
struct Image {
    bytes: Vec<u8>,
    format: ImageFormat,
    cost: u64,
}

impl Image {
    /// Looks at its head alone. `None` when it is not to be opened.
    fn measured(bytes: Vec<u8>) -> Option<Self> {
        let format = image::guess_format(&bytes).ok()?;
        if !matches!(format, ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP) {
            return None;
        }
        let decoder = decoder(Cursor::new(&bytes), format)?;
        let (size, decoded) = (decoder.dimensions(), decoder.total_bytes());
        drop(decoder);
        let cost = cost(&bytes, format, size, decoded)?;
        Some(Self { bytes, format, cost })
    }

    /// The picture. What is not opened by then is none.
    fn draw(self, until: Instant) -> Option<Picture> {
        let Self { bytes, format, .. } = self;
        let length = bytes.len();
        let mut decoder = decoder(Timed::new(bytes, until), format)?;
        let orientation = decoder.orientation().ok()?;
        let mut opened = DynamicImage::from_decoder(decoder).ok()?;
        if Instant::now() >= until {
            return None;
        }
        let longest = opened.width().max(opened.height());
        if longest > MAX_SIDE {
            opened = smaller(opened, longest);
        }
        // Last, for it makes a second image.
        opened.apply_orientation(orientation);
        // Text on a screenshot stays sharp.
        if longest <= MAX_SIDE && length <= SMALL && format != ImageFormat::Jpeg {
            let mut drawn = Cursor::new(Vec::new());
            opened.write_to(&mut drawn, ImageFormat::Png).ok()?;
            return Some(of("image/png", drawn.get_ref()));
        }
        let mut drawn = Vec::new();
        on_white(&opened)
            .write_with_encoder(JpegEncoder::new_with_quality(&mut drawn, QUALITY))
            .ok()?;
        Some(of("image/jpeg", &drawn))
    }
}

/// Reads the head.
fn decoder<'a>(reader: impl BufRead + Seek + 'a, format: ImageFormat) -> Option<impl ImageDecoder + 'a> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(BESIDE);
    let mut reader = ImageReader::with_format(reader, format);
    reader.limits(limits);
    reader.into_decoder().ok()
}

/// The image in [`MAX_SIDE`]. To resize well takes a buffer of the whole width, 16 bytes a pixel: a large image is averaged instead, which
/// takes none.
fn smaller(image: DynamicImage, longest: u32) -> DynamicImage {
    if is_averaged(longest) {
        return image.thumbnail(MAX_SIDE, MAX_SIDE);
    }
    image.resize(MAX_SIDE, MAX_SIDE, FilterType::Triangle)
}

/// Bytes that can be read until a moment.
struct Timed {
    bytes: Cursor<Vec<u8>>,
    until: Instant,
}

impl Timed {
    fn new(bytes: Vec<u8>, until: Instant) -> Self {
        let bytes = Cursor::new(bytes);
        Self { bytes, until }
    }

    fn in_time(&self) -> io::Result<()> {
        if Instant::now() < self.until {
            Ok(())
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.in_time()?;
        let length = buffer.len().min(STEP);
        self.bytes.read(&mut buffer[..length])
    }
}

impl BufRead for Timed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.in_time()?;
        let rest = self.bytes.fill_buf()?;
        Ok(&rest[..rest.len().min(STEP)])
    }

    fn consume(&mut self, amount: usize) {
        self.bytes.consume(amount);
    }
}

impl Seek for Timed {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
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
mod tests;

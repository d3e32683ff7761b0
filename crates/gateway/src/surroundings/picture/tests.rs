//! Images that take little on the wire and much in memory, drawn in a process of their own whose memory is measured.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder as _};

use super::*;
use made::{TURNED, progressive, webp};

mod made;

fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let image = RgbImage::from_fn(width, height, |x, y| Rgb([(x % 251) as u8, (y % 241) as u8, ((x * y) % 239) as u8]));
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn drawn(bytes: Vec<u8>) -> Option<Picture> {
    Image::measured(bytes)?.draw(Instant::now() + Duration::from_secs(600))
}

/// design: issue I part C, a small image is shown without loss; a large one smaller; what is none not at all.
#[test]
fn images_are_made_to_fit() {
    let small = encoded(40, 20, ImageFormat::Png);
    let shown = drawn(small.clone()).unwrap();
    let opened = image::load_from_memory(&STANDARD.decode(&shown.data).unwrap()).unwrap();
    assert_eq!(
        (shown.media_type.as_str(), opened),
        ("image/png", image::load_from_memory(&small).unwrap())
    );
    for (width, height, size) in [(3000, 1500, (1568, 784)), (400, 4000, (157, 1568))] {
        let large = drawn(encoded(width, height, ImageFormat::Png)).unwrap();
        assert_eq!(large.media_type, "image/jpeg");
        let bytes = STANDARD.decode(&large.data).unwrap();
        let opened = image::load_from_memory(&bytes).unwrap();
        assert_eq!((opened.width(), opened.height()), size);
        assert!(bytes.len() < 1 << 20, "{}", bytes.len());
    }
    assert_eq!(drawn(b"<html>".to_vec()), None);
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
    let shown = STANDARD.decode(drawn(photo).unwrap().data).unwrap();
    assert!(!shown.windows(11).any(|part| part == b"place: home"));
}

/// All of one color, and turned.
fn png(side: u32, color: ExtendedColorType) -> Vec<u8> {
    let pixels = vec![0; (u64::from(side) * u64::from(side) * u64::from(color.bits_per_pixel()) / 8) as usize];
    let mut bytes = Vec::new();
    let mut encoder = PngEncoder::new(&mut bytes);
    encoder.set_exif_metadata(TURNED.to_vec()).unwrap();
    encoder.write_image(&pixels, side, side, color).unwrap();
    bytes
}

/// What the child process draws, in its folder.
const FILE: &str = "image";

/// What the kernel says of this process, in KiB.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// interface §10: opening an image takes no more than is reserved for it, whatever it is. Afterwards the memory is given back.
#[test]
fn images_take_what_is_reserved() {
    if !cfg!(target_os = "linux") {
        let _ = writeln!(
            io::stderr(),
            "SKIPPED: images_take_what_is_reserved: /proc tells what a process holds"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (what, bytes) in [
        ("RGBA", png(4000, ExtendedColorType::Rgba8)),
        ("16 bits", png(3200, ExtendedColorType::Rgba16)),
        ("16 bits, to be resized", png(2000, ExtendedColorType::Rgba16)),
        ("in scans", progressive(3200)),
        ("WebP", webp(3200, true)),
        ("WebP without transparency", webp(3200, false)),
    ] {
        fs::write(folder.path().join(FILE), bytes).unwrap();
        let child = format!("{}::the_child_that_draws", module_path!().split_once("::").unwrap().1);
        let output = Command::new(std::env::current_exe().unwrap())
            .args([child.as_str(), "--exact", "--ignored", "--nocapture"])
            .current_dir(&folder)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = told
            .lines()
            .find_map(|line| line.split_once("drew: "))
            .unwrap_or_else(|| panic!("{what}: {told}"))
            .1;
        let words: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [drawn, cost, peak, left] = words[..] else { panic!("{line}") };
        assert_eq!(drawn, 1, "{what}");
        assert!(peak <= cost && cost <= MAX_PEAK / 1024, "{what}: {peak} KiB, of {cost}");
        assert!(left <= 48 << 10, "{what}: {left} KiB are not given back");
    }
}

/// The process whose memory is measured. Alone it does nothing.
#[test]
#[ignore = "the child process of another test"]
fn the_child_that_draws() {
    let Ok(bytes) = fs::read(FILE) else { return };
    let (before, peak) = (status("VmRSS:"), status("VmHWM:"));
    let image = Image::measured(bytes);
    let cost = image.as_ref().map_or(0, |image| image.cost / 1024);
    let drawn = image.and_then(|image| image.draw(Instant::now() + Duration::from_secs(600)));
    let turned = drawn.as_ref().is_none_or(|drawn| {
        let opened = image::load_from_memory(&STANDARD.decode(&drawn.data).unwrap()).unwrap();
        opened.width() == opened.height()
    });
    assert!(turned);
    let drawn = u64::from(drawn.is_some());
    let (peak, left) = (status("VmHWM:") - peak, status("VmRSS:").saturating_sub(before));
    writeln!(io::stdout(), "drew: {drawn} {cost} {peak} {left}").unwrap();
}

/// interface §10: an image has ten seconds; a decoder hears of their end while it reads.
#[test]
fn images_have_a_limit_of_time() {
    let image = Image::measured(encoded(300, 300, ImageFormat::Png)).unwrap();
    let past = Instant::now();
    assert_eq!(image.draw(past), None);
    let mut timed = Timed::new(vec![0; 3 * STEP], Instant::now() + Duration::from_secs(600));
    assert_eq!(timed.fill_buf().unwrap().len(), STEP);
    timed.until = past;
    assert_eq!(timed.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::TimedOut);
}

/// interface §10: an image has at most 40 million pixels, and opening it takes at most 256 MiB. Its head is enough to know.
#[test]
fn a_large_image_is_not_opened() {
    let bytes = encoded(40, 20, ImageFormat::Png);
    let takes = |width: u32, height: u32, a_pixel: u64| {
        cost(
            &bytes,
            ImageFormat::Png,
            (width, height),
            u64::from(width) * u64::from(height) * a_pixel,
        )
    };
    assert!(takes(8000, 5000, 4).is_some_and(|cost| cost <= MAX_PEAK));
    assert_eq!(takes(8000, 5001, 1), None, "too many pixels");
    assert_eq!(takes(6300, 6300, 8), None, "too much memory");
}

/// What lies about the size of what is in it, as far as a decoder would find out too late.
#[test]
fn a_picture_inside_is_no_larger_than_the_whole() {
    let chunk = |name: &[u8; 4], body: &[u8]| [name.as_slice(), &u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat();
    let lossy = chunk(b"VP8 ", &[0, 0, 0, 0x9d, 1, 0x2a, 0xff, 0x3f, 0xff, 0x3f]);
    let canvas = chunk(b"VP8X", &[2, 0, 0, 0, 99, 0, 0, 99, 0, 0]);
    for inside in [lossy.clone(), chunk(b"ANMF", &[[0; 16].as_slice(), &lossy].concat())] {
        let file = [b"RIFF\0\0\0\0WEBP".as_slice(), &canvas, &inside].concat();
        assert_eq!(cost(&file, ImageFormat::WebP, (100, 100), 30_000), None);
        assert!(cost(&file, ImageFormat::WebP, (16_383, 16_383), 1).is_none(), "too many pixels");
        assert!(cost(&file, ImageFormat::WebP, (16_383, 2000), 1).is_none());
    }
    assert!(
        cost(
            &[b"RIFF\0\0\0\0WEBP".as_slice(), &canvas].concat(),
            ImageFormat::WebP,
            (100, 100),
            30_000
        )
        .is_some()
    );
}

/// interface §10: one image of a chat at a time; another chat does not wait for it.
#[tokio::test]
async fn a_chat_has_one_image_opened_at_a_time() {
    let pictures = Pictures::default();
    let busy = pictures.turn("a").await.unwrap();
    let mut waits: Vec<_> = (0..AT_A_TIME).map(|_| Box::pin(pictures.turn("a"))).collect();
    for one in &mut waits {
        assert!(futures_util::poll!(one).is_pending());
    }
    let image = encoded(40, 20, ImageFormat::Png);
    let other = pictures.turn("b").await.unwrap();
    assert!(pictures.picture(other, image.clone()).await.is_some());
    assert!(pictures.picture(busy, image).await.is_some());
    let next = waits.remove(0).await.unwrap();
    assert!(futures_util::poll!(&mut waits[0]).is_pending());
    drop((next, waits));
    assert_eq!(pictures.chats.lock().len(), 2, "forgotten when the next one comes");
    pictures.place_of("c");
    assert_eq!(pictures.chats.lock().len(), 1);
}
